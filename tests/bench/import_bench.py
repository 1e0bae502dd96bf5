#!/usr/bin/python3
"""import_bench.py RASUPD [ROUNDS]: first installation of the real Debian image from a registry on loopback, beside the
same work done by `skopeo copy` plus `ostree commit --tree=tar`, interleaved; medians, ratio, peak memory.

Both fetch, verify and unpack the same layers into a fresh bare repository on the same file system. rasupd does more: it
verifies the signature and the diff_ids, merges the layers, deploys and writes boot entries. Memory is the resident set of
all processes of a run together, sampled every 5 ms. Run as root on a machine that does nothing else. Exits 1 when
rasupd is slower than the pair or its memory passes 64 MiB."""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, SOURCE)

from tests.support import oci_builder as oci  # noqa: E402
from tests.support.world import WorldCase  # noqa: E402

MEMORY_LIMIT = 64 << 20
PAGE = os.sysconf("SC_PAGE_SIZE")


def descendants(root):
    """The process ids of `root` and everything below it."""
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8") as stat:
                parents.setdefault(int(stat.read().rsplit(")", 1)[1].split()[1]), []).append(int(name))
        except OSError:
            continue
    found, todo = [], [root]
    while todo:
        pid = todo.pop()
        found.append(pid)
        todo.extend(parents.get(pid, []))
    return found


def resident(pids):
    """Bytes of memory the processes have in common and alone, shared pages counted once per process."""
    total = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/statm", encoding="utf-8") as statm:
                total += int(statm.read().split()[1]) * PAGE
        except OSError:
            continue
    return total


class Run:
    """One measured command: wall and CPU seconds, peak memory of its processes together."""

    def __init__(self, command, **env):
        before, start = os.times(), time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **env})
        self.memory, done = 0, threading.Event()
        watcher = threading.Thread(target=self.watch, args=(process.pid, done))
        watcher.start()
        out, err = process.communicate()
        self.wall = time.monotonic() - start
        done.set()
        watcher.join()
        after = os.times()
        # The watcher's own time is not a child's.
        self.cpu = after.children_user - before.children_user + after.children_system - before.children_system
        if process.returncode:
            raise SystemExit(f"{command} ended with {process.returncode}: {err.decode(errors='replace')[-2000:]}")
        self.out = out.decode()

    def watch(self, pid, done):
        """Samples memory until told to stop."""
        while not done.wait(0.005):
            self.memory = max(self.memory, resident(descendants(pid)))


class Bench(WorldCase):
    """The test world's registry, keys and configuration, without its tests."""

    def runTest(self):
        rounds = int(os.environ["RASUPD_BENCH_ROUNDS"])
        images = subprocess.run(
            ["bash", SOURCE + "/tests/support/debian_image.sh"], check=True, capture_output=True, text=True
        ).stdout.strip()
        registry = self.start_registry()
        target = registry.reference(self.REPOSITORY, "stable")
        subprocess.run(
            ["skopeo", "--insecure-policy", "copy", "-q", "--preserve-digests", "--dest-tls-verify=false", f"oci:{images}/v1:os",
             "docker://" + target], check=True)
        manifest = registry.request("GET", f"/v2/{self.REPOSITORY}/manifests/stable", headers={"Accept": oci.MANIFEST}).body
        registry.sign(oci.Layout(self / "signatures"), oci.sha256(manifest), self.REPOSITORY, self.key)
        self.layers = json.loads(manifest)["layers"]
        # Not on tmpfs, and removed only at the end: ext4 is slow to create files just after many were deleted.
        self.place = tempfile.mkdtemp(prefix="rasupd-bench-", dir="/var/tmp")
        try:
            pairs = [(self.rasupd_run(target, i), self.pair_run(target, i)) for i in range(rounds + 1)][1:]
        finally:
            shutil.rmtree(self.place, ignore_errors=True)
        self.report(pairs)

    def settle(self):
        """What an earlier run left to write must not be paid by the next."""
        os.sync()

    def rasupd_run(self, target, number):
        self.settle()
        root = f"{self.place}/rasupd-{number}"
        os.mkdir(root)
        run = Run([os.environ["RASUPD"], "--config-root", self.config.path, "--json", "install", "to-filesystem", target, root],
                  OSTREE_SYSROOT_DEBUG="mutable-deployments")
        run.fetched = json.loads(run.out)["bytesFetched"]
        return run

    def pair_run(self, target, number):
        self.settle()
        folder = f"{self.place}/pair-{number}"
        os.mkdir(folder)
        steps = [f"skopeo --insecure-policy copy -q --src-tls-verify=false docker://{target} oci:{folder}/oci:os",
                 f"ostree init --repo={folder}/repo --mode=bare"]
        for index, layer in enumerate(self.layers):
            blob = f"{folder}/oci/blobs/sha256/{layer['digest'].removeprefix('sha256:')}"
            steps.append(f"ostree commit --repo={folder}/repo -b layer/{index} --no-bindings -s x --tar-autocreate-parents "
                         f"--tree=tar={blob} >/dev/null")
        run = Run(["bash", "-euc", "\n".join(steps)])
        blobs = f"{folder}/oci/blobs/sha256"
        run.fetched = sum(os.path.getsize(os.path.join(blobs, name)) for name in os.listdir(blobs))
        return run

    def report(self, pairs):
        compressed = sum(layer["size"] for layer in self.layers)
        print(f"image: {len(self.layers)} layers, {compressed / 1e6:.0f} MB compressed; {len(pairs)} rounds, medians (min–max)")
        print(f"{'':30}{'wall s':>20}{'MB/s':>8}{'CPU s':>8}{'peak MiB':>10}{'fetched MB':>12}")
        for name, runs in (("rasupd install", [a for a, _ in pairs]), ("skopeo copy + ostree commit", [b for _, b in pairs])):
            walls = [run.wall for run in runs]
            wall = statistics.median(walls)
            print(f"{name:30}{f'{wall:.2f} ({min(walls):.2f}–{max(walls):.2f})':>20}{compressed / 1e6 / wall:8.1f}"
                  f"{statistics.median(run.cpu for run in runs):8.2f}{max(run.memory for run in runs) / 2**20:10.1f}"
                  f"{statistics.median(run.fetched for run in runs) / 1e6:12.1f}")
        ratio = statistics.median(b.wall / a.wall for a, b in pairs)
        memory = max(a.memory for a, _ in pairs)
        print(f"rasupd is {ratio:.2f}× as fast as the pair; its peak memory is {memory / 2**20:.1f} MiB of {MEMORY_LIMIT >> 20}")
        self.assertGreater(ratio, 1.0)
        self.assertLess(memory, MEMORY_LIMIT)


def main():
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        raise SystemExit(__doc__)
    os.environ["RASUPD"] = os.path.abspath(sys.argv[1])
    os.environ["RASUPD_BENCH_ROUNDS"] = sys.argv[2] if len(sys.argv) > 2 else "5"
    import unittest

    outcome = unittest.TextTestRunner(verbosity=0).run(Bench())
    raise SystemExit(0 if outcome.wasSuccessful() else 1)


if __name__ == "__main__":
    main()

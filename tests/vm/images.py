"""The images the stories are told with: v1 made by examples/images/debian/build.sh, the others one small layer more.

| version | what is special |
|---|---|
| 1.0 | the first installation |
| 2.0 | another initramfs, another kernel argument by kargs.d, changed defaults in /etc |
| 3.0 | an initramfs that is none: the kernel panics |
| 4.0 | userspace hangs before basic.target |
| 5.0 | a required health check fails |
| 6.0 | /etc/clash is a file; a machine that makes it a directory cannot be merged |
| 7.0 | nothing wrong |
| 8.0 | an initramfs of 40 MB for a small /boot |

They lie in the cache, keyed by everything they are made of, with the key that signs them.
"""

import fcntl
import gzip
import hashlib
import json
import os
import shutil
import subprocess
import tarfile
import tempfile

from tests.support import oci_builder as oci
from tests.support import sign
from tests.support.world import SOURCE, program

from . import guest_files
from .architecture import AMD64

NAME = "registry.test/fleet/os"  # what machines track and signatures name; registries.conf says where it is
RECIPE = os.path.join(SOURCE, "examples/images/debian")
CACHE = os.environ.get("RASUPD_CACHE", "/var/cache/rasupd-tests")


def _files(*roots):
    for root in roots:
        if os.path.isfile(root):
            yield root
        for folder, folders, names in os.walk(root):
            folders.sort()
            yield from (os.path.join(folder, name) for name in sorted(names))


def _hash(*roots, more=""):
    total = hashlib.sha256(more.encode())
    for path in _files(*roots):
        with open(path, "rb") as source:
            total.update(path.encode() + b"\0" + hashlib.sha256(source.read()).digest())
    return total.hexdigest()[:16]


class Images:
    """All versions of one suite and architecture, in the OCI layout `layout`; `digests` and `info` come from the cache."""

    def __init__(self, suite="bookworm", fast=True, architecture=AMD64):
        self.suite, self.fast, self.architecture = suite, fast, architecture
        command = ["bash", os.path.join(RECIPE, "base.sh"), "--suite", suite, "--arch", architecture.name]
        base = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        self.base = base.stdout.strip()
        ours = os.path.dirname(os.path.abspath(__file__))
        self.units = os.path.join(SOURCE, "examples/units")
        key = _hash(architecture.program(), program(), self.units, RECIPE,
                    *(os.path.join(SOURCE, "examples", name) for name in ("health.d", "system.conf.d")),
                    os.path.join(ours, "guest"), os.path.join(ours, "guest_files.py"), os.path.abspath(__file__), more=self.base)
        self.folder = os.path.join(CACHE, f"vm-{suite}-{architecture.name}-{'fast' if fast else 'full'}-{key}")
        with open(os.path.join(CACHE, f"vm-{architecture.name}.lock"), "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not os.path.exists(os.path.join(self.folder, "digests.json")):
                self._make()
        with open(os.path.join(self.folder, "digests.json"), encoding="utf-8") as source:
            self.digests = json.load(source)
        self.layout = oci.Layout(os.path.join(self.folder, "images"))

    @property
    def public_key(self):
        """The path of the key that verifies them."""
        return os.path.join(self.folder, "keys/release.pub")

    def _make(self):
        self._forget_old()
        work = tempfile.mkdtemp(prefix="making-vm.", dir=CACHE)
        try:
            key = sign.KeyPair(os.path.join(work, "keys"), "release")
            self._make_first(work, key)
            layout = oci.Layout(os.path.join(work, "images"))
            digests = {"1.0": layout.entries()[0]["digest"]}
            layout.tag(dict(layout.entries()[0]), "1.0")
            for version, layer in self._layers(layout, digests["1.0"]):
                digests[version] = _derive(layout, digests["1.0"], version, layer)
            for digest in digests.values():
                sign.sign_layout(layout, digest, NAME, key)
            with open(os.path.join(work, "digests.json"), "w", encoding="utf-8") as out:
                json.dump(digests, out)
            shutil.rmtree(self.folder, ignore_errors=True)
            os.rename(work, self.folder)
        finally:
            shutil.rmtree(work, ignore_errors=True)

    def _forget_old(self):
        """Every build of the program makes images anew: only the last few are kept."""
        kind = os.path.basename(self.folder).rpartition("-")[0] + "-"
        old = [os.path.join(CACHE, name) for name in os.listdir(CACHE) if name.startswith(kind)]
        for path in sorted(old, key=os.path.getmtime)[:-2]:
            shutil.rmtree(path)

    def _make_first(self, work, key):
        site, policy = os.path.join(work, "site"), os.path.join(work, "policy.json")
        guest_files.with_agent(site)
        if self.fast:
            guest_files.trimmed(site, self.base, self.kver(), self.architecture.busybox())
        for name, text in _defaults("1.0").items():
            os.makedirs(os.path.dirname(os.path.join(site, name)), exist_ok=True)
            with open(os.path.join(site, name), "w", encoding="utf-8") as out:
                out.write(text)
        rule = {"type": "sigstoreSigned", "keyPath": "/usr/lib/rasupd/keys/release.pub", "signedIdentity": sign.MATCH_REPOSITORY}
        with open(policy, "w", encoding="utf-8") as out:
            json.dump({"default": [{"type": "reject"}], "transports": {"docker": {NAME: [rule]}}}, out)
        command = ["bash", os.path.join(RECIPE, "build.sh"), "--suite", self.suite, "--arch", self.architecture.name]
        command += ["--rasupd", self.architecture.program(), "--policy", policy]
        command += ["--key", key.public, "--site", site, "--version", "1.0", "--out", os.path.join(work, "images")]
        subprocess.run([*command, *(["--units", self.units] if os.path.isdir(self.units) else [])], check=True, stdout=subprocess.DEVNULL)
        shutil.rmtree(site)

    def kver(self):
        """The kernel's version."""
        with open(os.path.join(self.base, "info"), encoding="utf-8") as source:
            return dict(line.strip().split("=") for line in source)["KVER"]

    def _layers(self, layout, first):
        """The layer each later version has more than v1."""
        initramfs = f"usr/lib/modules/{self.kver()}/initramfs.img"
        plain = _read_last(layout, first, initramfs)
        extra = _cpio("etc/initramfs-of-v2", b"2.0\n")
        for version in ("2.0", "3.0", "4.0", "5.0", "6.0", "7.0", "8.0"):
            layer = oci.Layer().whiteout("etc/test/only-1.0.conf")
            for name, text in {**_defaults(version), **_release(layout, first, version)}.items():
                layer.file(name, text)
            if version == "2.0":
                layer.file(initramfs, plain + extra)
                layer.directory("usr/lib/rasupd/kargs.d").file("usr/lib/rasupd/kargs.d/20-test.toml", 'kargs = ["rasupd.test=v2"]\n')
            elif version == "3.0":
                layer.file(initramfs, b"this is no initramfs\n" * 4096)
            elif version == "4.0":
                text = "[Unit]\nDescription=Never ready\nDefaultDependencies=no\nBefore=basic.target\n[Service]\nType=oneshot\n"
                text += "TimeoutStartSec=infinity\nExecStart=/bin/sleep infinity\n"
                layer.file("usr/lib/systemd/system/never-ready.service", text)
                layer.symlink("usr/lib/systemd/system/basic.target.wants/never-ready.service", "../never-ready.service")
            elif version == "5.0":
                layer.file("usr/lib/rasupd/health.d/required.d/50-broken", "#!/bin/sh\necho broken on purpose\nexit 1\n", mode=0o755)
            elif version == "6.0":
                layer.file("etc/clash", "a file\n")
            elif version == "8.0":
                layer.file(initramfs, plain + os.urandom(40 << 20))
            yield version, layer


def _defaults(version):
    """Defaults in /etc that change with the version, and the version itself."""
    files = {"etc/test/default.conf": f"default of {version}\n", "etc/test/edited.conf": f"default of {version}\n"}
    files.update({"etc/test/late.conf": f"default of {version}\n", f"etc/test/only-{version}.conf": "\n"})
    return {**files, "usr/share/rasupd-image/version": version + "\n"}


def _release(layout, first, version):
    text = _read_last(layout, first, "usr/lib/os-release").decode()
    return {"usr/lib/os-release": text.replace("1.0", version)}


def _read_last(layout, digest, name):
    """A file's content in the uppermost layer that has it."""
    for layer in reversed(json.loads(layout.blob(digest))["layers"]):
        with tarfile.open(layout.blob_path(layer["digest"]), "r:gz") as archive:
            for member in archive:
                if os.path.normpath(member.name) == name and member.isfile():
                    return archive.extractfile(member).read()
    raise KeyError(name)


def _cpio(name, content):
    """One more archive for an initramfs, which may be several in a row."""
    def entry(path, mode, data):
        fields = [1, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(path) + 1, 0]
        head = b"070701" + b"".join(b"%08X" % field for field in fields) + path.encode() + b"\0"
        pad = lambda text: text + b"\0" * (-len(text) % 4)
        return pad(head) + pad(data)
    return gzip.compress(entry(name, 0o100644, content) + entry("TRAILER!!!", 0, b""), mtime=0)


def _derive(layout, first, version, layer):
    """Writes the image that is v1 with `layer` on top; returns its digest."""
    manifest = json.loads(layout.blob(first))
    config = json.loads(layout.blob(manifest["config"]["digest"]))
    tar = layer.tar()
    manifest["layers"].append(layout.add_blob(oci.compress(tar, "gzip"), oci.LAYER["gzip"]))
    config["rootfs"]["diff_ids"].append(oci.sha256(tar))
    config.setdefault("history", []).append({"created_by": f"version {version}"})
    config["config"]["Labels"][oci.VERSION] = version
    manifest["config"] = layout.add_json(config, oci.CONFIG)
    manifest.setdefault("annotations", {})[oci.VERSION] = version
    descriptor = layout.add_json(manifest, oci.MANIFEST)
    layout.tag(descriptor, version)
    return descriptor["digest"]


class Channel:
    """One repository of the registry, whose tag `stable` moves from version to version."""

    TAG = "stable"

    def __init__(self, registry, images, repository):
        self.registry, self.images, self.repository = registry, images, repository

    def move_to(self, version):
        """The tag means `version` from now on; its blobs come from the pool of the registry. Returns the digest."""
        layout, digest = self.images.layout, self.images.digests[version]
        self._put(layout, sign.signature_tag(digest), self._signature(layout, digest))
        self._put(layout, self.TAG, digest)
        return digest

    @staticmethod
    def _signature(layout, digest):
        wanted = sign.signature_tag(digest)
        return next(entry["digest"] for entry in layout.entries() if entry.get("annotations", {}).get(oci.REF_NAME) == wanted)

    def _put(self, layout, tag, digest):
        manifest = json.loads(layout.blob(digest))
        for blob in [manifest["config"], *manifest["layers"]]:
            self._put_blob(layout, blob["digest"])
        self.registry.put_manifest(self.repository, tag, layout.blob(digest), oci.MANIFEST)

    def _put_blob(self, layout, digest):
        if self.repository != POOL:
            path = f"/v2/{self.repository}/blobs/uploads/?mount={digest}&from={POOL}"
            if self.registry.request("POST", path, data=b"").status == 201:
                return
        self.registry.put_blob(self.repository, layout.blob(digest), digest)


POOL = "pool/os"

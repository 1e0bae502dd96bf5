"""What the stories share: images, a registry, installed disks, and machines kept while running."""

import os
import shutil
import subprocess
import tempfile
import threading
import time

from tests.support import sign
from tests.support.registry import Registry
from tests.support.world import ConfigRoot

from . import disk as disks
from . import offline
from .architecture import AMD64
from .images import NAME, POOL, Channel, Images
from .machine import GuestError, GuestGone, Machine, overlay, probe

TRACKED = NAME + ":" + Channel.TAG


class Skip(Exception):
    """A story cannot be told here; its text says why."""


class Lab:
    """Made once per run; everything lazily, so that a single story costs only what it needs."""

    def __init__(self, suite="bookworm", keep=False, fast=True, seed=0, architecture=AMD64):
        self.folder = tempfile.mkdtemp(prefix="rasupd-vm-")
        self.suite, self.keep_folder, self.seed = suite, keep, seed
        self.architecture = Machine.architecture = architecture
        self._lock, self._made, self._full = threading.RLock(), {}, None
        self.images = Images(suite, fast, architecture)
        os.makedirs(os.path.join(self.folder, "registry"))
        self.registry = Registry(os.path.join(self.folder, "registry"))
        self.pool = Channel(self.registry, self.images, POOL)
        for version in self.images.digests:
            self.pool.move_to(version)

    def full(self):
        """The same with untrimmed guests: dracut's initramfs, udev, every unit."""
        def make():
            self._full = Lab(self.suite, self.keep_folder, fast=False, seed=self.seed, architecture=self.architecture)
            return self._full
        return self.once("full", make)

    def close(self):
        """Ends the registry and removes all files."""
        if self._full:
            self._full.close()
        self.registry.stop()
        if not self.keep_folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def once(self, name, make):
        """make() the first time, its result from then on; stories that come meanwhile wait."""
        with self._lock:
            lock = self._made.setdefault(name, [threading.Lock(), None, False])
        with lock[0]:
            if not lock[2]:
                lock[1], lock[2] = make(), True
            return lock[1]

    def config_root(self):
        """The host's configuration for installing: the same names as in the guest."""
        def make():
            root = ConfigRoot(os.path.join(self.folder, "config"))
            rule = {"type": "sigstoreSigned", "keyPath": self.images.public_key, "signedIdentity": sign.MATCH_REPOSITORY}
            root.policy(sign.policy(docker={NAME: rule}))
            folder = os.path.join(root.path, "etc/containers")
            os.makedirs(folder)
            with open(os.path.join(folder, "registries.conf"), "w", encoding="utf-8") as out:
                out.write(registries_conf(self.registry.host, POOL))
            return root.path
        return self.once("config", make)

    def installed(self, bootloader="grub", options=()):
        """A disk with v1 on it; kept beside the images, for they change with the program."""
        name = "-".join([bootloader, *(option.strip("-") for option in options)])

        def make():
            self.pool.move_to("1.0")
            kept = os.path.join(self.images.folder, name + ".raw")
            if not os.path.exists(kept):
                new = os.path.join(self.folder, name + ".raw")
                disks.make_disk(TRACKED, self.config_root(), new, bootloader, options, self.architecture)
                subprocess.run(["cp", "--sparse=always", new, kept + ".new"], check=True)
                os.rename(kept + ".new", kept)
                os.unlink(new)
            return kept
        return self.once("disk-" + name, make)

    def firmware(self, wanted=None):
        """The architecture's usual firmware, or the one a story wants; skips the story when there is no such."""
        firmwares = self.architecture.firmwares
        if wanted and wanted not in firmwares:
            raise Skip(f"{self.architecture.name} has no {wanted} firmware")
        return wanted or firmwares[0]

    def choose_accelerator(self):
        """KVM where it works."""
        def make():
            folder = os.path.join(self.folder, "probe")
            os.makedirs(folder)
            Machine.accel = probe(folder, self.installed())
            return Machine.accel
        return self.once("accelerator", make)

    def booted(self, firmware=None, bootloader="grub"):
        """A machine that runs v1, marked good, kept as "booted"; copy it."""
        firmware = self.firmware(firmware)

        def make():
            folder = os.path.join(self.folder, f"booted-{bootloader}-{firmware}")
            os.makedirs(folder)
            machine = Machine(folder, overlay(self.installed(bootloader), os.path.join(folder, "disk.qcow2")), firmware)
            with machine:
                machine.start().wait_up()
                settled(machine)
                machine.keep("booted")
            return machine
        return self.once(f"booted-{bootloader}-{firmware}", make)

    def staged(self, firmware=None, bootloader="grub"):
        """The same with v2 staged for the next boot, kept as "staged"."""
        firmware = self.firmware(firmware)

        def make():
            channel = Channel(self.registry, self.images, "staged/os")
            channel.move_to("2.0")
            machine = self.booted(firmware, bootloader).copy(os.path.join(self.folder, f"staged-{bootloader}-{firmware}"))
            with machine:
                machine.start(resume="booted")
                connect(machine, self.registry, channel.repository)
                code, document = machine.rasupd("upgrade")
                if code or not document["changed"]:
                    raise GuestError(f"upgrade to v2: exit {code}, {document}")
                machine.keep("staged")
            return machine
        return self.once(f"staged-{bootloader}-{firmware}", make)


def registries_conf(host, repository):
    """registries.conf(5): where the fleet's repository is found for now."""
    return f'[[registry]]\nprefix = "{NAME}"\nlocation = "{host}/{repository}"\ninsecure = true\n'


def connect(machine, registry, repository):
    """Makes the guest find its image in `repository`."""
    machine.write("/etc/containers/registries.conf.d/test.conf", registries_conf(f"10.0.2.2:{registry.port}", repository))


def settled(machine, timeout=300):
    """Until the guest's boot is over: health checks have ended, nothing is being started."""
    script = "for i in $(seq 600); do s=$(systemctl is-system-running); [ $s = starting ] || [ $s = initializing ] || break; sleep 0.3; done; echo $s"
    return machine.sh(script, timeout)


class World:
    """What one story works with; everything it started ends with it."""

    def __init__(self, lab, name, say, cuts):
        self.lab, self.name, self._say, self.cuts = lab, name, say, cuts
        self.folder = os.path.join(lab.folder, "story-" + name)
        os.makedirs(self.folder)
        self.channel = Channel(lab.registry, lab.images, name + "/os")
        self.digests = lab.images.digests
        self.machines = []
        self.begun = time.monotonic()

    def say(self, text):
        """One line of the story."""
        self._say(f"{self.name} {time.monotonic() - self.begun:6.1f} s  {text}")

    def close(self, keep):
        """Ends the machines."""
        for machine in self.machines:
            machine.cut()
        if not keep:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _adopt(self, machine):
        self.machines.append(machine)
        return machine

    def fresh(self, firmware=None, bootloader="grub", options=()):
        """A machine that was never started."""
        firmware = self.lab.firmware(firmware)
        base = self.lab.installed(bootloader, options)
        folder = os.path.join(self.folder, f"machine{len(self.machines)}")
        os.makedirs(folder)
        return self._adopt(Machine(folder, overlay(base, os.path.join(folder, "disk.qcow2")), firmware))

    def running(self, firmware=None, bootloader="grub"):
        """A machine on which v1 runs and is good; its channel is this story's."""
        self.channel.move_to("1.0")
        return self._resume(self.lab.booted(firmware, bootloader), "booted")

    def staged(self, firmware=None, bootloader="grub"):
        """A machine on which v1 runs and v2 is staged."""
        self.channel.move_to("2.0")
        return self._resume(self.lab.staged(firmware, bootloader), "staged")

    def _resume(self, kept, state):
        machine = self._adopt(kept.copy(os.path.join(self.folder, f"machine{len(self.machines)}")))
        machine.start(resume=state)
        self.connect(machine)
        return machine

    def connect(self, machine):
        """Makes the guest find its image in this story's channel."""
        connect(machine, self.lab.registry, self.channel.repository)

    # --- claims ---

    def check(self, condition, what):
        """A claim of the story."""
        if not condition:
            raise AssertionError(what)

    def equal(self, wanted, got, what):
        """Two values are the same."""
        self.check(wanted == got, f"{what}: wanted {wanted!r}, got {got!r}")

    def rasupd(self, machine, *words, code=0, **options):
        """Runs rasupd in the guest; its exit code must be `code`. Returns the document."""
        got, document = machine.rasupd(*words, **options)
        self.check(got == code, f"rasupd {' '.join(words)}: exit {got} instead of {code}: {document}")
        return document

    def status(self, machine):
        """status.json's status."""
        return self.rasupd(machine, "status")["status"]

    def runs(self, machine, version):
        """The version that runs, by its own file and by status."""
        self.equal(version, machine.sh("cat /usr/share/rasupd-image/version"), "the version that runs")
        status = self.status(machine)
        booted = (status["booted"] or {}).get("image") or {}
        self.equal(self.digests[version], booted.get("imageDigest"), f"status: the digest booted, in {status}")
        return status

    def good(self, machine):
        """Waits until the boot is over; fails when a trial is still pending then."""
        settled(machine)
        status = self.status(machine)
        trial = status["rasupd"].get("trial")
        self.check(trial is None, f"still on trial after the boot: {trial}")
        return status

    def look(self, machine):
        """The disk of a machine that is off, seen from outside."""
        return offline.look(machine.disk, self.folder)


__all__ = ["GuestError", "GuestGone", "Lab", "Skip", "World", "settled"]

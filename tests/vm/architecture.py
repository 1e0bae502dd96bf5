"""What differs between the architectures the stories are told on: the machine in QEMU and where its image comes from."""

import functools
import os
import subprocess
from dataclasses import dataclass

from tests.support.world import program

HERE = os.path.dirname(os.path.abspath(__file__))


@dataclass(frozen=True)
class Architecture:
    """One architecture; every path is this machine's."""

    name: str  # Debian's and Go's
    qemu: str
    machine: tuple  # QEMU's options for the machine and its processor, emulated
    kvm: tuple  # the same with KVM; empty: never
    console: str
    firmwares: tuple  # the first is the default
    uefi: tuple  # code and variables
    patience: float  # how much longer than the stories plan things may take

    def program(self):
        """The program that goes into the images: RASUPD_GUEST where the guest's release is another than this machine's."""
        return os.environ.get("RASUPD_GUEST", program())

    def busybox(self):
        """A static busybox."""
        return "/usr/bin/busybox"

    def installer(self):
        """What `rasupd install to-disk` is started with, so that it finds the bootloader of this architecture."""
        return []


class Arm64(Architecture):
    """Needs binfmt_misc while images are made: emulated.sh."""

    @staticmethod
    @functools.lru_cache
    def _made():
        done = subprocess.run(["bash", os.path.join(HERE, "arm64_program.sh")], check=True, stdout=subprocess.PIPE, text=True)
        return dict(line.split("=", 1) for line in done.stdout.splitlines())

    def program(self):
        return os.environ.get("RASUPD_GUEST") or self._made()["PROGRAM"]

    def busybox(self):
        return self._made()["ROOT"] + "/bin/busybox"

    def installer(self):
        # Debian has GRUB's modules for arm64 as a package of arm64 alone; the namespace ends with the program.
        mount = f"mount -t overlay -o 'lowerdir={self._made()['ROOT']}/usr/lib/grub:/usr/lib/grub' overlay /usr/lib/grub"
        return ["unshare", "--mount", "--propagation", "private", "sh", "-c", mount + ' && exec "$@"', "sh"]


AMD64 = Architecture(
    "amd64", "qemu-system-x86_64", ("-machine", "q35", "-accel", "tcg,thread=single,tb-size=512", "-cpu", "qemu64,+rdrand"),
    ("-machine", "q35", "-accel", "kvm", "-cpu", "host"), "ttyS0", ("bios", "uefi"),
    ("/usr/share/OVMF/OVMF_CODE_4M.fd", "/usr/share/OVMF/OVMF_VARS_4M.fd"), 1)
# Its clock counts instructions (two nanoseconds each): whatever else this machine does, a deadline in the guest is met as
# on a machine of its own.
ARM64 = Arm64(
    "arm64", "qemu-system-aarch64",
    ("-machine", "virt", "-accel", "tcg,thread=single,tb-size=512", "-icount", "shift=1,sleep=on", "-cpu", "cortex-a57"),
    (), "ttyAMA0", ("uefi",), ("/usr/share/AAVMF/AAVMF_CODE.fd", "/usr/share/AAVMF/AAVMF_VARS.fd"), 6)
ALL = {one.name: one for one in (AMD64, ARM64)}

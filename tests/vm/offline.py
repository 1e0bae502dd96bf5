"""The disk of a machine that is off: is it whole, and what would boot?"""

import os
import struct
import subprocess
import tempfile
from dataclasses import dataclass, field

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "look.sh")


@dataclass
class Disk:
    """What look.sh found."""

    faults: list = field(default_factory=list)  # what is broken; empty when the disk is whole
    versions: list = field(default_factory=list)  # what the boot entries would start, the default first
    trial: str = ""  # the deployment GRUB's menu has on trial
    counter: dict = field(default_factory=dict)  # what grubenv says
    journal: list = field(default_factory=list)  # the lines of rasupd's own journal

    @property
    def armed(self):
        """True when the menu's trial is the one the counter counts."""
        return bool(self.trial) and self.counter.get("rasupd_id") == self.trial and self.counter.get("rasupd_left", "").isdigit()


def root_partition(raw):
    """(offset, size) in bytes of the largest partition of a GPT disk: the root."""
    with open(raw, "rb") as disk:
        disk.seek(512)
        header = disk.read(92)
        first, count, size = struct.unpack_from("<QII", header, 72)
        disk.seek(first * 512)
        table = disk.read(count * size)
    spans = [struct.unpack_from("<QQ", table, number * size + 32) for number in range(count)]
    start, end = max(spans, key=lambda span: span[1] - span[0])
    return start * 512, (end + 1 - start) * 512


def look(disk, folder):
    """Replays the journal in a copy and checks file system, repository and boot entries there."""
    with tempfile.TemporaryDirectory(dir=folder) as work:
        raw = os.path.join(work, "disk.raw")
        subprocess.run(["qemu-img", "convert", "-O", "raw", disk, raw], check=True)
        offset, size = root_partition(raw)
        done = subprocess.run(["bash", SCRIPT, raw, str(offset), str(size), work], capture_output=True, text=True, timeout=900)
    found = Disk()
    for line in done.stdout.splitlines():
        kind, _, rest = line.partition(" ")
        if kind == "fault":
            found.faults.append(rest)
        elif kind == "version":
            found.versions.append(rest)
        elif kind == "trial":
            found.trial = rest
        elif kind == "journal":
            found.journal.append(rest)
        elif kind == "env":
            name, _, value = rest.partition("=")
            found.counter[name] = value
    if done.returncode or not found.versions:
        found.faults.append(f"look.sh: exit {done.returncode}: {done.stdout} {done.stderr}")
    return found

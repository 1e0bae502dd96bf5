"""The disk of a machine that is off: is it whole, and what would boot?"""

import json
import os
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

    @property
    def armed(self):
        """True when the menu's trial is the one the counter counts."""
        return bool(self.trial) and self.counter.get("rasupd_id") == self.trial and self.counter.get("rasupd_left", "").isdigit()


def root_offset(raw):
    """Where the root's file system begins: the largest Linux partition."""
    table = json.loads(subprocess.run(["sfdisk", "-J", raw], check=True, capture_output=True, text=True).stdout)["partitiontable"]
    sector = table.get("sectorsize", 512)
    biggest = max(table["partitions"], key=lambda part: part["size"])
    return biggest["start"] * sector, biggest["size"] * sector


def look(disk, folder):
    """Replays the journal in a copy and checks file system, repository and boot entries there."""
    with tempfile.TemporaryDirectory(dir=folder) as work:
        raw = os.path.join(work, "disk.raw")
        subprocess.run(["qemu-img", "convert", "-O", "raw", disk, raw], check=True)
        offset, size = root_offset(raw)
        done = subprocess.run(["bash", SCRIPT, raw, str(offset), str(size), work], capture_output=True, text=True, timeout=300)
    found = Disk()
    for line in done.stdout.splitlines():
        kind, _, rest = line.partition(" ")
        if kind == "fault":
            found.faults.append(rest)
        elif kind == "version":
            found.versions.append(rest)
        elif kind == "trial":
            found.trial = rest
        elif kind == "env":
            name, _, value = rest.partition("=")
            found.counter[name] = value
    if done.returncode or not found.versions:
        found.faults.append(f"look.sh: exit {done.returncode}: {done.stdout} {done.stderr}")
    return found

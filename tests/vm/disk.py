"""A bootable disk with an image installed on it, as a raw file."""

import hashlib
import os
import shutil
import struct
import subprocess

from tests.support.world import program

ROOT_OFFSET_MIB, ROOT_MIB = 257, 2048
MODULES = "part_gpt ext2 search search_label normal configfile linux loadenv test echo serial terminal sleep minicmd gzio".split()
EARLY = "search --no-floppy --label rasupd-root --set=root\nset prefix=($root)/boot/grub\nconfigfile /boot/grub/grub.cfg\n"
STATIC = """serial --unit=0 --speed=115200
terminal_output serial
set timeout=0
source /boot/loader/grub.cfg
"""


def recipe():
    """Changes with the way disks are made."""
    with open(__file__, "rb") as source:
        return hashlib.sha256(source.read()).hexdigest()[:8]


def make_disk(reference, config_root, work, firmware="bios", bootloader="grub", kargs=()):
    """Installs `reference` onto a new disk file below `work`; returns its path.

    Without loop devices or mounts: the sysroot is a directory that mkfs.ext4 copies, GRUB's image is put where its
    first sector looks for it.
    """
    root, disk = os.path.join(work, "sysroot"), os.path.join(work, f"{bootloader}-{firmware}.raw")
    os.makedirs(work, exist_ok=True)
    arguments = [word for karg in ("root=LABEL=rasupd-root", "rw", *kargs) for word in ("--karg", karg)]
    subprocess.run([program(), "--config-root", config_root, "--progress", "none", "install", "to-filesystem", *arguments, reference, root],
                   check=True, env={**os.environ, "OSTREE_SYSROOT_DEBUG": "mutable-deployments"}, stdout=subprocess.DEVNULL)
    _menu(root)
    subprocess.run(["truncate", "-s", f"{ROOT_OFFSET_MIB + ROOT_MIB + 2}M", disk], check=True)
    subprocess.run(["sgdisk", "-a1", "-n", "128:34:2047", "-t", "128:ef02", "-n", "1:1M:+256M", "-t", "1:ef00",
                    "-n", f"2:{ROOT_OFFSET_MIB}M:+{ROOT_MIB}M", "-t", "2:8304", disk], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["mkfs.ext4", "-q", "-F", "-L", "rasupd-root", "-O", "^metadata_csum_seed,^orphan_file",
                    "-E", f"offset={ROOT_OFFSET_MIB << 20},lazy_itable_init=0", "-d", root, disk, f"{ROOT_MIB}M"],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _grub(work, disk)
    subprocess.run(["chattr", "-R", "-f", "-i", root], check=False, stderr=subprocess.DEVNULL)
    shutil.rmtree(root)
    return disk


def _menu(root):
    entries = os.path.join(root, "boot/loader/entries")
    text = ""
    for name in sorted(os.listdir(entries), reverse=True):
        with open(os.path.join(entries, name), encoding="utf-8") as source:
            entry = dict(line.strip().split(None, 1) for line in source if len(line.split(None, 1)) == 2)
        path = lambda key: "/boot" + entry[key].removeprefix("/boot")
        text += f"menuentry \"{entry['title']}\" {{\n  linux {path('linux')} {entry['options']}\n  initrd {path('initrd')}\n}}\n"
    os.makedirs(os.path.join(root, "boot/grub"), exist_ok=True)
    for name, content in (("loader/grub.cfg", text), ("grub/grub.cfg", STATIC)):
        with open(os.path.join(root, "boot", name), "w", encoding="utf-8") as out:
            out.write(content)


def _grub(work, disk):
    early, core = os.path.join(work, "early.cfg"), os.path.join(work, "core.img")
    with open(early, "w", encoding="utf-8") as out:
        out.write(EARLY)
    subprocess.run(["grub-mkimage", "-O", "i386-pc", "-o", core, "-p", "/boot/grub", "-c", early, "biosdisk", *MODULES], check=True)
    with open(core, "rb") as source:
        image = bytearray(source.read())
    image += b"\0" * (-len(image) % 512)
    struct.pack_into("<QHH", image, 0x1F4, 35, len(image) // 512 - 1, 0x820)  # where the rest of the image lies
    with open("/usr/lib/grub/i386-pc/boot.img", "rb") as source:
        first = bytearray(source.read())
    struct.pack_into("<Q", first, 0x5C, 34)
    first[0x66:0x68] = b"\x90\x90"
    with open(disk, "r+b") as out:
        old = out.read(512)
        out.seek(0)
        out.write(bytes(first[:440]) + old[440:510] + b"\x55\xaa")
        out.seek(34 * 512)
        out.write(image)

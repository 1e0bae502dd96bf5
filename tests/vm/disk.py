"""A bootable disk with an image installed on it, as a raw file."""

import os
import subprocess

from tests.support.world import program

SIZE = "2560M"


def make_disk(reference, config_root, path, bootloader, options, architecture):
    """Installs `reference` onto a new disk file at `path`, by the program's own `install to-disk`.

    One disk of amd64 starts by BIOS and by UEFI when the bootloader is GRUB.
    """
    os.makedirs(os.path.dirname(path), exist_ok=True)
    subprocess.run(["truncate", "-s", SIZE, path], check=True)
    words = [*architecture.installer(), program(), "--config-root", config_root, "--progress", "none", "install", "to-disk", "--bootloader", bootloader, *options]
    words += ["--arch", architecture.name, "--karg", "console=" + architecture.console]
    done = subprocess.run([*words, reference, path], capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise RuntimeError(f"install to-disk: exit {done.returncode}: {done.stdout}{done.stderr}")
    return path

"""What each bootloader would start, through the program and libostree: upgrades, rollbacks, and kills between the steps."""

import os
import re
import unittest

from tests.support.releases import LayoutReleases
from tests.support.world import WorldCase, read, start, write

SWITCH = ("switch-prepared", "switch-written", "switch-finished")


class Bootloaders(WorldCase):
    """Version 1.0 is installed with entries alone; then the bootloader's own files are put there."""

    def setUp(self):
        super().setUp()
        self.releases = LayoutReleases(self / "layout", self.key, self.config)
        self.releases.publish("1.0")
        os.makedirs(self.sysroot.path)
        self.ok("install", "to-filesystem", self.releases.reference, self.sysroot.path, changed=True)

    def put(self, path, content):
        """A file beneath the sysroot."""
        os.makedirs(os.path.dirname(self.sysroot / path), exist_ok=True)
        write(self.sysroot / path, content)

    def deployment(self, options, kernel, initramfs):
        """The version that options lead to, kernel and initramfs being its own."""
        link = re.search(r"(?:^|\s)ostree=(\S+)", options).group(1)
        tree = os.path.realpath(self.sysroot / link.lstrip("/"))
        modules = os.path.join(tree, "usr/lib/modules")
        modules = os.path.join(modules, os.listdir(modules)[0])
        self.assertEqual(read(os.path.join(modules, "vmlinuz"), "rb"), read(kernel, "rb"))
        self.assertEqual(read(os.path.join(modules, "initramfs.img"), "rb"), read(initramfs, "rb"))
        return read(os.path.join(tree, "usr/share/version"))

    def story(self, starts, steps):
        """Up, back, and up again with a kill at every step; `starts` says what the bootloader would start."""
        self.releases.publish("2.0")
        self.ok("upgrade", changed=True)
        self.assertEqual("2.0", starts())
        self.ok("prune")
        self.assertEqual("2.0", starts())
        self.ok("rollback", changed=True)
        self.assertEqual("1.0", starts())
        self.ok("rollback", changed=True)
        self.ok("prune")
        self.assertEqual("2.0", starts())
        version = 2
        for step in (*SWITCH, *steps):
            with self.subTest(step=step):
                version += 1
                self.releases.publish(f"{version}.0")
                before = starts()
                process = start(
                    "--config-root", self.config.path, "--sysroot", self.sysroot.path, "upgrade", RASUPD_FAILPOINT=step + "=kill"
                )
                process.communicate(timeout=120)
                self.assertEqual(-9, process.returncode)
                self.assertIn(starts(), (before, f"{version}.0"))
                self.ok("upgrade")
                self.ok("prune")
                self.assertEqual(f"{version}.0", starts())
        self.assert_sound()

    def test_systemd_boot(self):
        self.put("efi/EFI/systemd/systemd-bootx64.efi", "MZ")
        entries = self.sysroot / "efi/loader/entries"

        def starts():
            """No counters here: nobody booted."""
            first = max(name for name in os.listdir(entries) if name.endswith(".conf"))
            keys = dict(line.split(None, 1) for line in read(os.path.join(entries, first)).splitlines() if " " in line)
            on_esp = [self.sysroot / ("efi" + keys[key]) for key in ("linux", "initrd")]
            return self.deployment(keys["options"], *on_esp)

        self.story(starts, ("esp-kernel-copied", "esp-entry-written", "esp-entries-rewritten", "esp-entries-removed"))

    def test_extlinux(self):
        os.makedirs(self.sysroot / "boot/extlinux")
        os.symlink("../loader/extlinux.conf", self.sysroot / "boot/extlinux/extlinux.conf")

        def starts():
            """The label DEFAULT names."""
            text = read(self.sysroot / "boot/extlinux/extlinux.conf")
            label = re.search(r"^DEFAULT (\S+)$", text, re.M).group(1)
            keys = dict(re.findall(r"^  ([A-Z]+) (.*)$", text.split(f"LABEL {label}\n")[1].split("LABEL rasupd")[0], re.M))
            paths = [os.path.join(self.sysroot / "boot/extlinux", keys[key]) for key in ("KERNEL", "INITRD")]
            return self.deployment(keys["APPEND"], *paths)

        self.story(starts, ("extlinux-menu-written",))

    def test_raspberry_pi(self):
        for folder in ("firmware", "firmware-a", "firmware-b"):
            os.makedirs(self.sysroot / f"boot/{folder}")
        self.put("boot/firmware/autoboot.txt", "[all]\ntryboot_a_b=1\nboot_partition=2\n[tryboot]\nboot_partition=3\n")

        def starts():
            """The side of [all]."""
            text = read(self.sysroot / "boot/firmware/autoboot.txt")
            number = re.search(r"\[all\][^\[]*boot_partition=(\d)", text).group(1)
            side = self.sysroot / ("boot/firmware-" + {"2": "a", "3": "b"}[number])
            self.assertIn("kernel=vmlinuz\n", read(os.path.join(side, "config.txt")))
            paths = [os.path.join(side, name) for name in ("vmlinuz", "initramfs.img")]
            return self.deployment(read(os.path.join(side, "cmdline.txt")), *paths)

        self.story(starts, ("rpi-side-begun", "rpi-file-copied", "rpi-side-written", "rpi-committed"))


if __name__ == "__main__":
    unittest.main()

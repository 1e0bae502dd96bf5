"""A trial on the Raspberry Pi, whose firmware counts nothing: a machine in a faked boot, the firmware played by start()."""

import os
import re
import unittest

from tests.support.booted import BootedCase
from tests.support.world import read, write


class PiMachine(BootedCase):
    """Version 1.0 is installed and good; side A (partition 2) is the board's own, empty."""

    def setUp(self):
        super().setUp()
        self.entry = 0
        for folder in ("firmware", "firmware-a", "firmware-b"):
            os.makedirs(self.sysroot / f"boot/{folder}")
        write(self.autoboot, "[all]\ntryboot_a_b=1\nboot_partition=2\n[tryboot]\nboot_partition=3\n")
        self.done("health", "check")

    @property
    def autoboot(self):
        """The path of autoboot.txt."""
        return self.sysroot / "boot/firmware/autoboot.txt"

    def boot(self, *words, **env):
        return super().boot(*words, **{"FAKE_BOOT_ENTRY": str(self.entry), **env})

    def version_of(self, tree):
        """The version in a deployment."""
        return read(os.path.join(tree, "usr/share/version"))

    def side(self, section):
        """The directory that a section of autoboot.txt starts."""
        number = re.search(rf"\[{section}\][^\[]*boot_partition=(\d)", read(self.autoboot)).group(1)
        return self.sysroot / ("boot/firmware-" + {"2": "a", "3": "b"}[number])

    def start(self, section="all"):
        """Power on. Returns the version that runs."""
        link = re.search(r"ostree=(\S+)", read(os.path.join(self.side(section), "cmdline.txt"))).group(1)
        tree = os.path.realpath(self.sysroot / link.lstrip("/"))
        self.entry = self.sysroot.deployments().index(tree)
        self.reboot()
        return self.version_of(tree)

    def on_trial(self):
        """2.0 is staged and finalized."""
        self.releases.publish("2.0")
        self.switch()
        self.done("finalize", changed=True)
        self.assertIn("# rasupd-trial " + os.path.basename(self.sysroot.deployments()[0]), read(self.autoboot))

    def test_a_trial_that_passes_flips_all(self):
        self.on_trial()
        old = self.side("all")
        before = {name: read(os.path.join(old, name), "rb") for name in os.listdir(old)}
        self.assertEqual("2.0", self.start("tryboot"))
        self.assertEqual("good", self.done("health", "check")["verdict"])
        self.assertNotIn("rasupd-trial", read(self.autoboot))
        self.assertEqual("2.0", self.start())
        self.assertEqual(before, {name: read(os.path.join(old, name), "rb") for name in os.listdir(old)})

    def test_a_start_that_does_not_come_up_ends_on_the_old_side(self):
        self.on_trial()
        self.assertEqual("1.0", self.start(), "a reset")
        self.done("health", "check")
        self.assertEqual("1.0", self.start())

    def killed(self, point):
        """A finalize that is killed at a failpoint, and a reset."""
        with self.assertRaises(AssertionError, msg=point):  # a killed run leaves no document
            self.boot("finalize", RASUPD_FAILPOINT=point + "=kill")
        self.assertEqual("1.0", self.start())

    def test_cut_before_the_switch_there_is_no_trial(self):
        self.releases.publish("2.0")
        self.switch()
        self.killed("switch-prepared")
        self.done("health", "check")
        self.done("prune")
        self.assertNotIn("rasupd-trial", read(self.autoboot))
        self.assertEqual("1.0", self.version_of(self.sysroot.deployments()[0]))
        self.assertEqual("1.0", self.start())

    def test_cut_after_the_switch_the_trial_is_whole(self):
        self.releases.publish("2.0")
        self.switch()
        self.killed("switch-written")
        self.done("health", "check")
        self.done("prune")
        self.assertEqual("1.0", self.start())
        self.assertEqual("2.0", self.start("tryboot"))
        self.assertEqual("good", self.done("health", "check")["verdict"])
        self.assertEqual("2.0", self.start())

    def test_nothing_is_cleaned_up_before_a_cut_switch_is_settled(self):
        self.releases.publish("2.0")
        self.switch()
        self.killed("switch-written")
        # As if only the entries had turned.
        old = {"a": 2, "b": 3}[self.side("all")[-1]]
        write(self.autoboot, f"[all]\ntryboot_a_b=1\nboot_partition={old}\n")
        outcome = self.boot("prune")
        self.assertEqual(10, outcome.code, outcome)
        self.assertEqual("1.0", self.start())
        self.done("health", "check")
        self.assertEqual("1.0", self.version_of(self.sysroot.deployments()[0]))
        self.done("prune")
        self.assertEqual("1.0", self.start())


if __name__ == "__main__":
    unittest.main()

"""Staging, locking, finalizing and rolling back on a machine that booted from one of its deployments."""

import json
import os
import unittest

from tests.support.booted import BootedCase
from tests.support.world import read, write


class FakedBoot(BootedCase):
    """What may happen between two boots."""

    def test_stage_changes_nothing_until_finalize(self):
        second = self.releases.publish("2.0")
        entries, etc = self.sysroot.entries(), self.sysroot.default("etc")
        self.switch()
        self.assertEqual(entries, self.sysroot.entries())
        self.assertEqual(self.first.digest, self.digest("booted"))
        self.assertEqual(second.digest, self.digest("staged"))
        self.assertTrue(self.status_inside()["rasupd"]["rebootRequired"])
        write(etc + "/late.conf", "edited after staging\n")
        self.done("finalize", changed=True)
        self.assertEqual("2.0", self.next_version())
        self.assertEqual("edited after staging\n", read(self.sysroot.default("etc/late.conf")))
        self.reboot()
        self.assertEqual(second.digest, self.digest("booted"))
        self.assertEqual(self.first.digest, self.digest("rollback"))
        self.assertIsNone(self.digest("staged"))
        self.assertEqual("ok", self.status_inside()["rasupd"]["lastFinalize"]["result"])
        self.assert_sound()

    def test_unstage_drops_it(self):
        self.releases.publish("2.0")
        self.switch()
        self.done("unstage", changed=True)
        self.assertIsNone(self.digest("staged"))
        self.done("unstage", changed=False)
        self.done("finalize", changed=False)
        self.assertEqual("1.0", self.next_version())

    def test_staging_twice_and_a_newer_one(self):
        self.releases.publish("2.0")
        self.switch()
        self.done("upgrade", changed=False)
        third = self.releases.publish("3.0")
        self.done("upgrade", changed=True)
        self.assertEqual(third.digest, self.digest("staged"))
        self.done("finalize", changed=True)
        self.assertEqual("3.0", self.next_version())

    def test_download_only_stays_locked(self):
        second = self.releases.publish("2.0")
        self.switch("--download-only")
        self.assertTrue(self.status_inside()["staged"]["downloadOnly"])
        self.assertFalse(self.status_inside()["rasupd"]["rebootRequired"])
        self.done("finalize", changed=False)
        self.assertEqual("1.0", self.next_version())
        os.rename(self.releases.layout.path, self.releases.layout.path + ".away")
        self.done("upgrade", "--from-downloaded", changed=True)
        self.assertEqual(second.digest, self.digest("staged"))
        self.done("finalize", changed=True)
        self.assertEqual("2.0", self.next_version())

    def test_rollback_drops_what_is_staged_and_needs_no_source(self):
        self.releases.publish("2.0")
        self.switch()
        self.done("finalize", changed=True)
        self.reboot()
        third = self.releases.publish("3.0")
        self.done("upgrade", changed=True)
        os.rename(self.releases.layout.path, self.releases.layout.path + ".away")
        document = self.done("rollback", changed=True)
        self.assertIn(third.digest, json.dumps(document["droppedStaged"]))
        self.assertEqual("1.0", self.next_version())
        # Still in the boot of what is the second entry now.
        self.assertTrue(self.done("status", FAKE_BOOT_ENTRY="1")["status"]["rollbackQueued"])
        self.reboot()
        self.assertEqual(self.first.digest, self.digest("booted"))
        self.assert_sound()

    def asked_of_systemd(self):
        """What was asked of systemctl in this boot."""
        path = os.path.join(self.run_directory, "systemctl.log")
        return read(path).splitlines() if os.path.exists(path) else []

    def test_apply_reboots_only_into_what_is_expected(self):
        self.assertFalse(self.done("apply", changed=False)["rebooting"])
        second = self.releases.publish("2.0")
        self.switch("--download-only")
        refused = self.boot("apply", "--expect", self.first.digest)
        self.assertEqual(5, refused.code, refused)
        self.assertNotIn("reboot", self.asked_of_systemd())
        document = self.done("apply", "--expect", second.digest, changed=True)
        self.assertEqual((True, second.digest), (document["rebooting"], document["digest"]))
        self.assertIn("reboot", self.asked_of_systemd())
        self.done("finalize", changed=True)  # released by apply
        self.assertEqual("2.0", self.next_version())
        self.reboot()
        # The same command after the reboot it caused: nothing to do, no second reboot.
        self.done("apply", "--expect", second.digest, changed=False)
        self.assertNotIn("reboot", self.asked_of_systemd())
        self.assertEqual(5, self.boot("apply", "--expect", self.first.digest).code)

    def test_apply_takes_a_queued_rollback(self):
        self.releases.publish("2.0")
        self.switch()
        self.done("finalize", changed=True)
        self.reboot()
        self.done("rollback", changed=True)
        document = self.done("apply", changed=True, FAKE_BOOT_ENTRY="1")
        self.assertEqual(self.first.digest, document["digest"])

    def test_staging_needs_somebody_who_finalizes(self):
        self.releases.publish("2.0")
        self.switch()
        self.assertIn("--quiet is-active rasupd-finalize.service", self.asked_of_systemd())

    def state_directory(self):
        """Where the machine keeps its memory, seen from outside."""
        return os.path.join(self.sysroot.path, "ostree/deploy/default/var/lib/rasupd")

    def make_good(self, deployment, digest):
        """The machine's memory that a deployment was good."""
        document = {"version": 1, "good": {"deployment": deployment, "digest": digest, "since": "2026-01-01T00:00:00Z"}}
        write(self.state_directory() + "/good", json.dumps(document))

    def booted_id(self):
        """CHECKSUM.SERIAL of what runs."""
        entry = self.status_inside()["booted"]["ostree"]
        return f"{entry['checksum']}.{entry['deploySerial']}"

    def install_grub(self):
        """The mark by which GRUB is recognised, and an environment without counter."""
        write(self.sysroot.path + "/boot/grub/grub.cfg", "# rasupd-grub 1\n")
        write(self.sysroot.path + "/boot/grub/grubenv", "# GRUB Environment Block\n".ljust(1024, "#"))

    def grub(self, name):
        """A file of GRUB's: the menu or the environment."""
        return read(os.path.join(self.sysroot.path, {"menu": "boot/loader/grub.cfg", "env": "boot/grub/grubenv"}[name]))

    def test_a_new_deployment_boots_on_trial_when_another_was_good(self):
        self.install_grub()
        self.make_good(self.booted_id(), self.first.digest)
        second = self.releases.publish("2.0")
        self.switch()
        self.done("finalize", changed=True)
        trial = json.loads(read(self.state_directory() + "/trial"))["trial"]
        self.assertEqual((second.digest, self.first.digest, 3, 0), (trial["digest"], trial["previousDigest"], trial["tries"], trial["starts"]))
        self.assertIn(f"set rasupd_trial='{trial['deployment']}'", self.grub("menu"))
        self.assertTrue(self.grub("env").startswith(f"# GRUB Environment Block\nrasupd_id={trial['deployment']}\nrasupd_left=3\n#"))
        self.assertEqual(1024, len(self.grub("env")))
        self.reboot()
        self.assertEqual({"digest": second.digest, "triesLeft": 3}, self.status_inside()["rasupd"]["trial"])
        self.releases.publish("3.0")
        refused = self.boot("upgrade")
        self.assertEqual((7, "trial"), (refused.code, refused.error.get("reason")), refused)
        self.assertEqual("trial", self.done("upgrade", "--check", changed=False)["held"])

    def on_trial(self):
        """Boots 2.0 on trial, 1.0 being good. Returns the trial's deployment."""
        self.install_grub()
        self.make_good(self.booted_id(), self.first.digest)
        self.releases.publish("2.0")
        self.switch()
        self.done("finalize", changed=True)
        self.reboot()
        return json.loads(read(self.state_directory() + "/trial"))["trial"]["deployment"]

    def test_a_clean_up_does_not_end_a_trial(self):
        deployment = self.on_trial()
        self.done("prune")
        self.assertIn(f"set rasupd_trial='{deployment}'", self.grub("menu"))
        self.assertIn("rasupd_left=3", self.grub("env"))

    def test_a_rollback_by_hand_ends_the_trial(self):
        self.on_trial()
        self.done("rollback", changed=True)
        self.assertFalse(os.path.exists(self.state_directory() + "/trial"))
        self.assertNotIn("rasupd_trial", self.grub("menu"))
        self.assertNotIn("rasupd_left", self.grub("env"))
        self.assertEqual("rolled-back", self.status_inside()["rasupd"]["held"][0]["reason"])

    def test_power_cut_before_grub_sees_the_switch(self):
        """GRUB does not replay a journal: the old one may boot once more, with the new one first in the entries."""
        self.on_trial()
        self.assertTrue(self.done("status", FAKE_BOOT_ENTRY="1")["status"]["rasupd"]["rebootRequired"])
        self.done("upgrade", changed=False, FAKE_BOOT_ENTRY="1")  # it boots next already
        third = self.releases.publish("3.0")
        self.done("upgrade", changed=True, FAKE_BOOT_ENTRY="1")
        self.done("finalize", changed=True, FAKE_BOOT_ENTRY="1")
        self.assertEqual(third.digest, json.loads(read(self.state_directory() + "/trial"))["trial"]["digest"])

    def test_nothing_is_taken_before_health_has_said_what_failed(self):
        self.on_trial()
        env = self.grub("env").replace("rasupd_left=3", "rasupd_left=0")
        write(self.sysroot.path + "/boot/grub/grubenv", env)
        self.releases.publish("3.0")
        refused = self.boot("upgrade", FAKE_BOOT_ENTRY="1")
        self.assertEqual((7, "trial"), (refused.code, refused.error.get("reason")), refused)

    def test_without_a_good_deployment_there_is_no_trial_and_a_warning(self):
        self.install_grub()
        self.releases.publish("2.0")
        self.assertIn("without a trial", json.dumps(self.switch()["warnings"]))
        self.done("finalize", changed=True)
        self.assertFalse(os.path.exists(self.state_directory() + "/trial"))
        self.assertNotIn("rasupd_trial", self.grub("menu"))
        self.assertNotIn("rasupd_left", self.grub("env"))

    def test_a_finalize_that_fails_leaves_no_trial_and_says_why(self):
        self.install_grub()
        self.make_good(self.booted_id(), self.first.digest)
        for point in ("deploy-checkout", "trial-recorded", "switch-prepared", "switch-written", "switch-finished"):
            with self.subTest(point):
                self.releases.publish("2.0-" + point)
                self.switch()
                self.assertEqual(1, self.boot("finalize", RASUPD_FAILPOINT=point + "=error").code)
                self.assertEqual("1.0", self.next_version())
                self.assertFalse(os.path.exists(self.state_directory() + "/trial"))
                last = self.status_inside()["rasupd"]["lastFinalize"]
                self.assertEqual("failed", last["result"])
                self.assertIn(point, last["error"])
                if point.startswith("switch-w") or point.startswith("switch-f"):
                    self.assertNotIn("rasupd_trial", self.grub("menu"))
                self.done("unstage")
        self.assert_sound()

    def test_the_menu_is_whole_at_the_moment_the_entries_turn(self):
        """libostree's entries are foretold: killed right after its switch, GRUB's menu must say the same."""
        self.install_grub()
        self.make_good(self.booted_id(), self.first.digest)
        for version in ("2.0", "3.0"):
            self.releases.publish(version)
            self.switch()
            with self.assertRaises(AssertionError):  # a killed run leaves no document
                self.boot("finalize", RASUPD_FAILPOINT="switch-written=kill")
            self.assertEqual(version, self.next_version())
            self.assertIn("set rasupd_trial='", self.grub("menu"))
            told = [line.split() for line in self.grub("menu").splitlines() if line.startswith(("  linux", "  initrd"))]
            wanted = []
            for keys in self.sysroot.entries():
                wanted.append(["linux", f'"$rasupd_boot"\'{keys["linux"]}\'', *(f"'{word}'" for word in keys["options"].split())])
                wanted.append(["initrd", f'"$rasupd_boot"\'{keys["initrd"]}\''])
            self.assertEqual(wanted, told)
            os.unlink(self.state_directory() + "/trial")
            self.reboot()
            self.make_good(self.booted_id(), self.first.digest)

    def test_a_finalize_that_cannot_even_look_is_told(self):
        """The bootloader's evidence contradicts itself: nothing can be locked, and the next boot must know."""
        self.releases.publish("2.0")
        self.switch()
        self.install_grub()
        write(self.sysroot.path + "/boot/firmware/autoboot.txt", "[all]\nboot_partition=2\n")
        failed = self.boot("finalize")
        self.assertNotEqual(0, failed.code)
        os.unlink(self.sysroot.path + "/boot/firmware/autoboot.txt")
        last = self.status_inside()["rasupd"]["lastFinalize"]
        self.assertEqual("failed", last["result"])
        self.assertIn(failed.error["message"], last["error"])

    def test_killed_while_staging(self):
        self.releases.publish("2.0")
        with self.assertRaises(AssertionError):  # a killed run leaves no document
            self.boot("switch", f"oci:{self.inside_layout}:stable", RASUPD_FAILPOINT="stage-written=kill")
        self.assertEqual("1.0", self.next_version())
        self.done("unstage")
        self.switch()
        self.done("finalize", changed=True)
        self.assertEqual("2.0", self.next_version())
        self.assert_sound()


if __name__ == "__main__":
    unittest.main()

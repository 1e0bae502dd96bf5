"""A machine that booted from one of its deployments (tests/support/fake_boot.sh): staging, locking, finalizing,
rolling back. One directory stands for /run, so that several commands see one boot."""

import json
import os
import subprocess
import unittest

from tests.support.releases import LayoutReleases
from tests.support.schemas import complaints
from tests.support.world import SOURCE, Outcome, WorldCase, environment, program, read, write

SCRIPT = os.path.join(SOURCE, "tests/support/fake_boot.sh")


class FakedBoot(WorldCase):
    """Installs version 1.0, then works inside the booted machine. Its images lie in its own /var."""

    def setUp(self):
        super().setUp()
        # Seen at the same path outside and inside: /var of the machine is not where the layout was made.
        os.makedirs(self.sysroot.path)
        self.shared = self / "shared"
        self.inside_layout = "/run/bind/layout"
        self.releases = LayoutReleases(self.shared + "/layout", self.key, self.config)
        os.symlink(os.path.dirname(program()), self / "bin")
        self.first = self.releases.publish("1.0")
        self.ok("install", "to-filesystem", self.releases.reference, self.sysroot.path, changed=True)
        self.boots = 0
        self.reboot()

    def reboot(self):
        """A new boot: a fresh /run, and the configuration where the machine looks for it."""
        self.boots += 1
        self.run_directory = self / f"run-{self.boots}"
        os.makedirs(self.run_directory, exist_ok=True)

    def boot(self, *words, **env):
        """Runs the program inside the booted machine, on the running system."""
        tools = self.shared + "/bin"
        os.makedirs(tools, exist_ok=True)
        if not os.path.exists(tools + "/rasupd"):
            subprocess.run(["cp", program(), tools + "/rasupd"], check=True)
            subprocess.run(["cp", "-a", self.config.path, self.shared + "/config"], check=True)
            subprocess.run(["cp", "-a", self.folder + "/keys", self.shared + "/keys"], check=True)
            self.move_policy()
        script_env = environment(FAKE_BOOT_RUN=self.run_directory, FAKE_BOOT_BIND=self.shared, **env)
        command = ["bash", SCRIPT, self.sysroot.path, "/run/bind/bin/rasupd", "--config-root", "/run/bind/config", "--json", *words]
        done = subprocess.run(command, env=script_env, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
        outcome = Outcome(list(words), done.returncode, done.stdout, done.stderr)
        self.check_contract(outcome)
        return outcome

    def move_policy(self):
        """The policy by the paths the booted machine sees."""
        path = self.shared + "/config/etc/rasupd/policy.json"
        text = read(path).replace(self.releases.layout.path, self.inside_layout).replace(self.folder + "/keys", "/run/bind/keys")
        write(path, text)

    def done(self, *words, changed=None, **env):
        """The document of a run that must succeed."""
        outcome = self.boot(*words, **env)
        self.assertEqual(0, outcome.code, outcome)
        if changed is not None:
            self.assertIs(outcome.document["changed"], changed, outcome)
        return outcome.document

    def status_inside(self):
        """`status` as the booted machine tells it."""
        document = self.done("status")
        self.assertEqual([], complaints(document))
        return document["status"]

    def switch(self, *flags):
        """Stages the newest version from where the machine sees the layout."""
        return self.done("switch", f"oci:{self.inside_layout}:stable", *flags, changed=True)

    def digest(self, entry):
        """imageDigest of an entry of the machine's own status, or None."""
        entry = self.status_inside()[entry]
        return entry and entry["image"]["imageDigest"]

    def next_version(self):
        """The version of the first boot entry."""
        return read(self.sysroot.default("usr/share/version"))

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

"""Answers and advice when something around the main job is odd."""

import fcntl
import json
import os
import shutil
import subprocess
import unittest

from tests.support import oci_builder as oci
from tests.support.releases import LayoutReleases
from tests.support.world import WorldCase, environment, program, read, write


class Answers(WorldCase):
    """A machine with two deployments."""

    def setUp(self):
        super().setUp()
        self.releases = LayoutReleases(self / "layout", self.key, self.config)
        self.releases.publish("1.0")
        self.ok("install", "to-filesystem", self.releases.reference, self.sysroot.path, changed=True)
        self.releases.publish("1.1")
        self.ok("upgrade", changed=True)

    def words(self, *more):
        """A full command line on this machine."""
        return [program(), "--config-root", self.config.path, "--sysroot", self.sysroot.path, *more]

    def test_a_fix_after_a_rollback_is_welcome(self):
        self.ok("rollback", changed=True)
        self.releases.publish("1.0.5")
        self.ok("upgrade", changed=True)
        self.assertEqual("1.0.5", read(self.sysroot.default("usr/share/version")))

    def test_undoing_a_rollback_holds_nothing(self):
        self.ok("rollback", changed=True)
        self.assertEqual(1, len(self.status()["rasupd"]["held"]))

    def test_damaged_memory_is_a_warning_once_the_entries_are_switched(self):
        write(self.sysroot / self.sysroot.STATE + "/held", "{bad")
        outcome = self.ok("rollback", changed=True)
        self.assertTrue(outcome["warnings"], outcome)
        self.assertEqual("1.0", read(self.sysroot.default("usr/share/version")))

    def test_missing_entries_and_repository_are_named(self):
        shutil.move(self.sysroot / "boot", self.sysroot / "boot-away")
        for verb in ("upgrade", "rollback", "prune"):
            error = self.rasupd(verb).error
            self.assertEqual("Boot", error["kind"], error)
            self.assertNotIn("install to-filesystem", error["hint"] or "")
        shutil.move(self.sysroot / "boot-away", self.sysroot / "boot")
        os.rename(self.sysroot / "ostree/repo/config", self.sysroot / "ostree/repo/config.away")
        self.assertIn("ostree/repo", str(self.status()["rasupd"]["problems"]))
        self.assertEqual("Boot", self.rasupd("upgrade").error["kind"])

    def test_an_answer_that_cannot_be_written_is_a_failure(self):
        for words in (("status", "--json"), ("image", "list"), ("upgrade", "--check", "--json")):
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run(self.words(*words), stdout=full, stderr=subprocess.PIPE, env=environment())
            self.assertEqual(1, done.returncode, words)
            self.assertIn(b"standard output", done.stderr)

    def test_usage_names_what_was_meant(self):
        cases = {
            ("bogus",): ("UsageResult", "bogus"), ("install",): ("UsageResult", ""), ("upgrade", "extra"): ("UpgradeResult", "extra"),
            ("upgrade", "--check", "--apply"): ("UpgradeResult", "--apply"), ("pin",): ("PinResult", "N"), ("pin", "-1"): ("PinResult", ""),
        }
        for words, (kind, part) in cases.items():
            with self.subTest(words=words):
                outcome = self.rasupd(*words)
                self.assertEqual(("Usage", kind), (outcome.error["kind"], outcome.document["kind"]), outcome)
                self.assertIn(part, outcome.error["message"])
        for option in ("--sysroot", "--config-root"):
            for value in ("", "/nonexistent", "/etc/passwd"):
                done = subprocess.run([program(), "--json", option, value, "status"], capture_output=True, text=True, env=environment())
                self.assertEqual((2, "Usage"), (done.returncode, json.loads(done.stdout)["error"]["kind"]), (option, value))
        self.assertEqual(2, subprocess.run(self.words("--progress-fd", "77", "status"), capture_output=True, env=environment()).returncode)

    def test_a_progress_reader_that_stops_reading_does_not_stop_the_upgrade(self):
        layers = oci.tiny_os("2.0", extra=[oci.Layer().file(f"usr/share/part-{i}", os.urandom(3000)) for i in range(40)])
        self.releases.publish("2.0", layers)
        reader, writer = os.pipe()
        try:
            fcntl.fcntl(writer, 1031, 4096)  # F_SETPIPE_SZ: as small as the kernel makes it
            done = subprocess.run(self.words("--progress-fd", str(writer), "upgrade"), pass_fds=[writer], capture_output=True, env=environment(),
                                  timeout=60)
            self.assertEqual(0, done.returncode, done.stderr)
        finally:
            os.close(reader)
            os.close(writer)

    def test_a_plain_directory_is_not_littered(self):
        os.makedirs(self / "plain")
        for verb in ("status", "rollback", "upgrade", "unstage", "prune", "pin 0"):
            subprocess.run([program(), "--config-root", self.config.path, "--sysroot", self / "plain", *verb.split()], capture_output=True,
                           env=environment())
        self.assertEqual([], os.listdir(self / "plain"))


if __name__ == "__main__":
    unittest.main()

"""Trials on a machine in a faked boot, with GRUB's files: every end a trial can have, and a cut at every step of it.

GRUB itself is played by GrubMachine.start(): it reads the menu and the environment block as the static configuration
does (bootloader/grub_config.cpp) and counts down."""

import json
import os
import re
import unittest

from tests.support.booted import BootedCase
from tests.support.world import read, write

BLOCK = 1024
HEALTH = "etc/rasupd/health.d"


def environment_block(**values):
    """A GRUB environment block."""
    text = "# GRUB Environment Block\n" + "".join(f"{name}={value}\n" for name, value in values.items())
    return text.ljust(BLOCK, "#").encode()


class GrubMachine(BootedCase):
    """A machine whose bootloader counts. Version 1.0 is installed and marked good."""

    def setUp(self):
        super().setUp()
        self.entry = 0
        self.write_grub()
        self.check("required", "10-ok", "exit 0")

    # The bootloader.

    def grub(self, name):
        """A path in boot/grub."""
        return self.sysroot / ("boot/grub/" + name)

    def write_grub(self):
        """What the installer writes; the menu follows with the next switch."""
        write(self.grub("grub.cfg"), "# rasupd-grub 1\n")
        write(self.grub("grubenv"), environment_block())

    def counter(self):
        """{name: value} of the environment block."""
        block = read(self.grub("grubenv"), "rb")
        self.assertEqual(BLOCK, len(block))
        return dict(re.findall(r"^(rasupd_\w+)=(.*)$", block.decode(), re.M))

    def trial_of_menu(self):
        """The deployment that the menu names as on trial, or ''."""
        named = re.search(r"^set rasupd_trial='(.*)'$", read(self.sysroot / "boot/loader/grub.cfg"), re.M)
        return named.group(1) if named else ""

    def start(self):
        """Power on: GRUB's decision, then a new boot. Returns the version that runs."""
        self.entry = 0
        trial = self.trial_of_menu()
        if trial:
            counter = self.counter()
            left = int(counter.get("rasupd_left") or 0) if counter.get("rasupd_id") == trial else 0
            if left == 0:
                self.entry = 1
            else:
                write(self.grub("grubenv"), environment_block(rasupd_id=trial, rasupd_left=left - 1))
        self.reboot()
        return self.running()

    def running(self):
        """The version of the deployment that runs."""
        return read(os.path.join(self.sysroot.deployments()[self.entry], "usr/share/version"))

    # The machine.

    def boot(self, *words, **env):
        return super().boot(*words, **{"FAKE_BOOT_ENTRY": str(self.entry), **env})

    def check(self, kind, name, script):
        """A check in the operator's directory."""
        path = f"{kind}.d/{name}"
        for root in (self.config.path, self.shared + "/config"):
            if os.path.isdir(root):
                write(os.path.join(root, HEALTH, path), f"#!/bin/sh\n{script}\n", 0o755)

    def settings(self, text):
        """rasupd.conf as the machine sees it."""
        self.boot("health", "status")  # the configuration is copied at the first run
        write(self.shared + "/config/etc/rasupd/rasupd.conf", text)

    def asked(self):
        """What was asked of systemctl in this boot."""
        log = os.path.join(self.run_directory, "systemctl.log")
        return [line for line in (read(log) if os.path.exists(log) else "").splitlines() if line.startswith("reboot")]

    def state(self, name):
        """A file of the state directory, or None."""
        path = self.sysroot / f"{self.sysroot.STATE}/{name}"
        return read(path) if os.path.exists(path) else None

    def journal(self, event):
        """All events of one name."""
        lines = [json.loads(line) for line in (self.state("journal") or "").splitlines()]
        return [line for line in lines if line["event"] == event]

    def held(self):
        """{digest: reason}."""
        return {one["digest"]: one["reason"] for one in self.status_inside()["rasupd"]["held"]}

    def motd(self):
        """The message of the day, or None."""
        path = os.path.join(self.run_directory, "motd.d/50-rasupd")
        return read(path) if os.path.exists(path) else None

    def good(self):
        """The digest that was last marked good."""
        text = self.state("good")
        return text and json.loads(text)["good"]["digest"]

    def health(self, *words, code=0, **env):
        """A health verb's document."""
        outcome = self.boot("health", *words, **env)
        self.assertEqual(code, outcome.code, outcome)
        return outcome.document

    def killed(self, point, *words):
        """A run that is killed at a failpoint."""
        with self.assertRaises(AssertionError, msg=point):  # a killed run leaves no document
            self.boot(*words, RASUPD_FAILPOINT=point + "=kill")

    # Trials.

    def on_trial(self, version="2.0", tries=3):
        """1.0 is good and runs; a new version is staged and finalized. Returns its release."""
        self.start_good()
        self.settings(f"[health]\ntries={tries}\n")
        new = self.releases.publish(version)
        self.switch()
        self.finalized(tries)
        return new

    def finalized(self, tries=3):
        """What is staged is first now, and armed."""
        self.done("finalize", changed=True)
        first = os.path.basename(self.sysroot.deployments()[0])
        self.assertEqual(first, self.trial_of_menu())
        self.assertEqual({"rasupd_id": first, "rasupd_left": str(tries)}, self.counter())

    def start_good(self):
        """The first installation becomes good by its first passing check."""
        document = self.health("check")
        self.assertEqual(("good", True), (document["verdict"], document["changed"]), document)
        self.assertEqual(self.first.digest, self.good())

    def assert_no_trial(self):
        """Neither on record nor on the medium."""
        self.assertIsNone(self.state("trial"))
        self.assertEqual(({}, ""), (self.counter(), self.trial_of_menu()))


class Trials(GrubMachine):
    """Whole stories."""

    def test_a_trial_that_passes_is_good(self):
        new = self.on_trial()
        self.assertEqual("2.0", self.start())
        document = self.health("check")
        self.assertEqual(("good", False), (document["verdict"], document["rebooting"]))
        self.assertEqual(new.digest, self.good())
        self.assert_no_trial()
        self.assertIn('"2.0"', self.state("floor"))
        self.assertEqual([new.digest], [event["digest"] for event in self.journal("mark-good")][1:])
        self.assertEqual([], self.asked())
        self.assertIsNone(self.motd())
        self.assertEqual("2.0", self.start())
        self.assertEqual("none", self.health("check")["verdict"])
        self.assert_sound()

    def test_failing_checks_use_the_tries_and_go_back(self):
        new = self.on_trial()
        self.check("required", "20-bad", "echo 'the database is gone' >&2; exit 7")
        for left in (2, 1):
            self.assertEqual("2.0", self.start())
            document = self.health("check", code=1)
            self.assertEqual(("retry", True), (document["verdict"], document["rebooting"]), document)
            self.assertIn("20-bad", document["error"]["message"])
            self.assertEqual(["reboot"], self.asked())
            trial = self.health("status")["trial"]
            self.assertEqual((left, 3 - left, True), (trial["triesLeft"], trial["starts"], trial["booted"]))
            self.assertEqual({}, self.held())
        self.assertEqual("2.0", self.start())
        self.assertEqual("back", self.health("check", code=1)["verdict"])
        self.assertEqual(["reboot"], self.asked())
        self.assertEqual({new.digest: "health-failed"}, self.held())
        self.assert_no_trial()
        self.assertEqual("1.0", self.start())
        self.assertEqual("1.0", self.next_version())
        self.assertEqual(1, len(self.journal("rollback")))
        self.assertIn("the database is gone", self.journal("rollback")[0]["error"])
        # The image before it is no better: it stays up, and stays (R71).
        self.assertEqual("none", self.health("check", code=1)["verdict"])
        self.assertEqual([], self.asked())
        for word in (new.digest, "health-failed", "20-bad", "--retry-held"):
            self.assertIn(word, self.motd())
        self.assertEqual("Held", self.boot("switch", f"oci:{self.inside_layout}:stable").error["kind"])
        self.assert_sound()

    def test_the_bootloader_gave_it_up(self):
        new = self.on_trial()
        self.assertEqual(["2.0", "2.0", "2.0", "1.0"], [self.start() for _ in range(4)])
        self.assertEqual("2.0", self.next_version())
        document = self.health("check")
        self.assertTrue(document["changed"])
        self.assertEqual({new.digest: "boot-failed"}, self.held())
        self.assert_no_trial()
        self.assertEqual("1.0", self.next_version())
        self.assertEqual(["boot-failed"], [event["error"].split(":")[0] for event in self.journal("rollback")])
        self.assertIn("did not come up", self.motd())
        self.assertEqual([], self.asked())
        self.assertEqual(self.first.digest, self.good())
        # The message comes back with every boot, until something is marked good.
        self.assertEqual("1.0", self.start())
        self.health("check")
        self.assertIn(new.digest, self.motd())
        self.health("mark-good")
        self.assertIsNone(self.motd())
        self.start()
        self.health("check")
        self.assertIsNone(self.motd())

    def test_without_a_trial_a_failure_is_a_warning(self):
        self.start_good()
        self.check("required", "20-bad", "exit 1")
        document = self.health("check", code=1)
        self.assertEqual(("none", False, False), (document["verdict"], document["rebooting"], document["changed"]))
        self.assertEqual(([], {}), (self.asked(), self.held()))
        self.assertEqual("1.0", self.next_version())

    def test_interrupted_before_the_switch(self):
        for point in ("trial-recorded", "trial-armed", "switch-prepared"):
            with self.subTest(point):
                self.start_good()
                self.releases.publish("2.0")
                self.switch()
                self.killed(point, "finalize")
                self.assertIsNotNone(self.state("trial"))
                self.assertEqual("1.0", self.start())
                self.assertTrue(self.health("check")["changed"])
                self.assert_no_trial()
                last = self.status_inside()["rasupd"]["lastFinalize"]
                self.assertEqual(("failed", True), (last["result"], "interrupted" in last["error"]), last)
                self.assertEqual(({}, [], None), (self.held(), self.journal("rollback"), self.motd()))
                self.switch()
                self.finalized()
                self.assertEqual("2.0", self.start())
                self.assertEqual("good", self.health("check")["verdict"])
            self.tearDown()
            self.doCleanups()
            self.setUp()

    def test_a_finalize_that_told_no_end_is_settled_at_boot(self):
        """Power was cut in the middle: what came of it is told by the next boot, armed or not."""
        self.releases.publish("2.0")
        self.switch()  # nothing is good yet: no trial
        self.killed("finalize-started", "finalize")
        self.reboot()  # there is no menu before the first switch
        self.assertEqual("1.0", self.running())
        self.assertEqual("started", self.status_inside()["rasupd"]["lastFinalize"]["result"])
        document = self.health("check")
        last = self.status_inside()["rasupd"]["lastFinalize"]
        self.assertEqual("failed", last["result"])
        self.assertIn("interrupted", last["error"])
        self.assertTrue(any("interrupted" in warning for warning in document["warnings"]), document)
        self.releases.publish("3.0")
        self.switch()
        self.killed("switch-finished", "finalize")
        self.assertEqual("3.0", self.start())
        self.health("check")
        self.assertEqual("ok", self.status_inside()["rasupd"]["lastFinalize"]["result"])
        self.assert_no_trial()
        self.assert_sound()

    def test_a_chosen_old_entry_keeps_the_trial(self):
        new = self.on_trial()
        self.start()
        self.entry = 1  # the boot menu
        self.reboot()
        self.assertEqual("1.0", self.running())
        document = self.health("check")
        self.assertTrue(any("kept" in warning for warning in document["warnings"]), document)
        self.assertEqual(("2", new.digest), (self.counter()["rasupd_left"], self.health("status")["trial"]["digest"]))
        self.assertEqual("Held", self.boot("health", "mark-good").error["kind"])
        self.assertEqual({}, self.held())
        self.assertEqual("2.0", self.start())
        self.assertEqual("good", self.health("check")["verdict"])

    def test_an_unreadable_counter_clears_nothing(self):
        self.on_trial()
        self.start()
        self.entry = 1
        self.reboot()
        write(self.grub("grubenv"), b"#" * BLOCK)
        document = self.health("check")
        self.assertTrue(any("grubenv" in warning for warning in document["warnings"]), document)
        self.assertIsNotNone(self.state("trial"))
        self.assertIsNone(self.health("status")["trial"]["triesLeft"])
        self.assertEqual({}, self.held())

    def test_a_damaged_record_is_no_verdict(self):
        self.on_trial()
        self.start()
        write(self.sysroot / f"{self.sysroot.STATE}/trial", "{")
        self.check("required", "20-bad", "exit 1")
        self.assertEqual("none", self.health("check", code=1)["verdict"])
        self.assertEqual(([], "{"), (self.asked(), self.state("trial")))
        self.assertEqual("Failed", self.boot("health", "mark-good").error["kind"])

    def test_a_counter_without_a_trial_is_cleared(self):
        self.on_trial()
        os.unlink(self.sysroot / f"{self.sysroot.STATE}/trial")
        self.start()
        self.assertTrue(self.health("check")["changed"])
        self.assert_no_trial()
        self.assertEqual("2.0", self.next_version())


class Verdicts(GrubMachine):
    """mark-good and mark-bad, settings, and cuts."""

    def test_mark_good_is_idempotent(self):
        new = self.on_trial()
        self.start()
        self.assertTrue(self.health("mark-good")["changed"])
        self.assertEqual(new.digest, self.good())
        self.assert_no_trial()
        self.assertFalse(self.health("mark-good")["changed"])
        self.assertEqual(2, len(self.journal("mark-good")))

    def test_mark_bad_goes_back_at_the_next_boot(self):
        new = self.on_trial()
        self.start()
        document = self.health("mark-bad")
        self.assertEqual((True, new.digest, self.first.digest), (document["changed"], document["digest"], document["next"]))
        self.assertEqual({new.digest: "marked-bad"}, self.held())
        self.assertEqual([], self.asked())
        self.assert_no_trial()
        self.entry = 1
        self.assertFalse(self.health("mark-bad")["changed"])
        self.assertEqual("1.0", self.start())
        self.health("check")
        self.assertIn("was marked bad", self.motd())
        self.assertEqual(self.first.digest, self.good())

    def test_mark_bad_of_what_was_good(self):
        new = self.on_trial()
        self.start()
        self.health("mark-good")
        self.assertTrue(self.health("mark-bad", "--apply")["rebooting"])
        self.assertEqual(["reboot"], self.asked())
        self.assertEqual({new.digest: "marked-bad"}, self.held())
        self.assertEqual("1.0", self.start())

    def test_mark_bad_without_another_deployment(self):
        self.start_good()
        self.assertEqual("Boot", self.boot("health", "mark-bad").error["kind"])
        self.assertEqual({}, self.held())

    def test_mark_good_external_waits(self):
        new = self.on_trial()
        self.settings("[health]\nmark_good=external\n")
        self.start()
        self.assertEqual("waiting", self.health("check")["verdict"])
        self.assertEqual((self.first.digest, []), (self.good(), self.asked()))
        # The checks did pass: the deadline is none of this trial's business.
        write(self.shared + "/config/etc/rasupd/rasupd.conf", "[health]\nmark_good=external\ndeadline=1\n")
        self.assertFalse(self.health("deadline")["rebooting"])
        self.health("mark-good")
        self.assertEqual(new.digest, self.good())

    def test_the_deadline_ends_a_start_without_a_verdict(self):
        self.on_trial()
        self.settings("[health]\ndeadline=1\n")
        self.start()
        # systemctl answers but nothing shuts down: after a while it is forced; the stop ends the wait here.
        outcome = self.boot("health", "deadline", RASUPD_FAILPOINT="deadline-asked=term")
        self.assertEqual("Cancelled", outcome.error["kind"], outcome)
        # Not by logind, which nothing starts while userspace hangs before basic.target.
        self.assertIn("start reboot.target", read(os.path.join(self.run_directory, "systemctl.log")))
        trial = self.health("status")["trial"]
        self.assertEqual((1, 2), (trial["starts"], trial["triesLeft"]))
        self.assertIn("no verdict within 1 s", self.journal("health")[-1]["error"])
        self.assertEqual({}, self.held())

    def test_the_deadline_ends_in_peace(self):
        self.start_good()
        self.assertFalse(self.health("deadline")["rebooting"])
        self.assertEqual([], self.asked())

    def test_a_typing_error_is_no_verdict(self):
        self.on_trial()
        self.settings("[health]\ntries=many\nnonsense=1\n")
        self.start()
        self.assertEqual("good", self.health("check")["verdict"])

    def test_one_boot_counts_once(self):
        self.on_trial()
        self.check("required", "20-bad", "exit 1")
        self.start()
        for _ in range(2):
            self.assertEqual("retry", self.health("check", code=1)["verdict"])
        self.assertEqual(1, self.health("status")["trial"]["starts"])

    def test_a_reboot_that_cannot_be_asked_for(self):
        self.on_trial()
        self.check("required", "20-bad", "exit 1")
        self.start()
        outcome = self.boot("health", "check", FAKE_BOOT_SYSTEMCTL="1")
        self.assertEqual("Failed", outcome.error["kind"])
        self.assertIn("reboot", outcome.error["message"])
        self.assertIsNotNone(self.state("trial"))

    def test_greenboots_scripts(self):
        self.on_trial()
        self.start()
        self.boot("health", "status")
        base = self.shared + "/config/etc/greenboot/"
        write(base + "check/required.d/30-theirs", "#!/bin/sh\nexit 0\n", 0o755)
        write(base + "green.d/10-tell", "#!/bin/sh\necho green >>/run/told\n", 0o755)
        write(base + "red.d/10-tell", "#!/bin/sh\necho red >>/run/told\n", 0o755)
        names = [check["name"] for check in self.health("check")["checks"]]
        self.assertEqual(["10-ok", "30-theirs"], names)
        write(base + "check/required.d/30-theirs", "#!/bin/sh\nexit 1\n", 0o755)
        self.health("check", code=1)
        self.assertEqual("green\nred\n", read(os.path.join(self.run_directory, "told")))

    def test_killed_while_marking_good(self):
        for version, point in enumerate(("recorded", "floor", "journaled", "counter"), 2):
            with self.subTest(point):
                new = self.on_trial(f"{version}.0") if version == 2 else self.next_trial(f"{version}.0")
                self.start()
                self.killed("mark-good-" + point, "health", "check")
                # A check that fails now says nothing any more about a deployment that was good.
                self.check("required", "90-late", "exit 1")
                self.assertEqual(f"{version}.0", self.start())
                self.assertTrue(self.health("check", code=1)["changed"])
                self.assertEqual(([], {}, new.digest), (self.asked(), self.held(), self.good()))
                self.assert_no_trial()
                self.assertEqual(new.digest, self.journal("mark-good")[-1]["digest"])
                self.assertEqual(version, len(self.journal("mark-good")))
                self.assertIn(f'"{version}.0"', self.state("floor"))
                self.check("required", "90-late", "exit 0")

    def next_trial(self, version):
        """Another one after the first."""
        new = self.releases.publish(version)
        self.done("upgrade", changed=True)
        self.finalized()
        return new

    def test_good_at_the_last_start_and_cut(self):
        new = self.on_trial(tries=1)
        self.start()
        self.killed("mark-good-recorded", "health", "check")
        self.assertEqual("1.0", self.start())  # the counter was used up
        self.health("check")
        self.assertEqual(({}, new.digest), (self.held(), self.good()))
        self.assert_no_trial()
        self.assertEqual("2.0", self.start())

    def test_killed_while_going_back(self):
        for point in ("give-up-held", "give-up-entries", "give-up-journaled"):
            with self.subTest(point):
                new = self.on_trial(tries=1)
                self.start()
                self.check("required", "20-bad", "exit 1")
                self.killed(point, "health", "check")
                self.check("required", "20-bad", "exit 0")
                self.assertEqual("1.0", self.start())
                self.health("check")
                self.assertEqual("health-failed", self.held()[new.digest])
                self.assert_no_trial()
                self.assertEqual("1.0", self.next_version())
                self.assertEqual(1, len(self.journal("rollback")))
                self.assertIn("failed its health checks", self.motd())
                self.assertEqual([], self.asked())
            self.tearDown()
            self.doCleanups()
            self.setUp()


if __name__ == "__main__":
    unittest.main()

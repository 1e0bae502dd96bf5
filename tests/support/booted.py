"""A machine that booted from one of its deployments (fake_boot.sh). One directory stands for /run, so that several
commands see one boot."""

import os
import subprocess

from .releases import LayoutReleases
from .schemas import complaints
from .world import SOURCE, Outcome, WorldCase, environment, program, read, write

SCRIPT = os.path.join(SOURCE, "tests/support/fake_boot.sh")


class BootedCase(WorldCase):
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

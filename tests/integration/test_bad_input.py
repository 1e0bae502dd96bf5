"""Everything that can be wrong with an image, a registry, a policy or a disk: each is refused with the kind and
exit code of the contract, and what boots stays as it was."""

import json
import os
import shutil
import subprocess
import time
import unittest

from tests.support import oci_builder as oci
from tests.support import sign
from tests.support.faults import FaultyRegistry
from tests.support.registry import free_port
from tests.support.releases import LayoutReleases, Releases
from tests.support.world import SOURCE, Sysroot, WorldCase, environment, interrupt, program, read, start, write

FAST = "[download]\nretries=1\nstall_seconds=2\n"


class BadRegistry(WorldCase):
    """A registry that is gone, refuses, breaks off or lies. It is reached through a proxy that spoils answers."""

    def setUp(self):
        super().setUp()
        self.registry = self.start_registry()
        self.proxy = FaultyRegistry(self.registry)
        self.addCleanup(self.proxy.stop)
        self.trust_registry(self.proxy.host)
        self.config.conf(FAST)
        self.releases = Releases(self.registry, self / "layout", self.key)
        self.releases.identity = f"{self.proxy.host}/{self.releases.repository}"
        self.releases.publish("1.0")
        self.reference = f"{self.proxy.host}/{self.releases.repository}:stable"
        os.makedirs(self.sysroot.path)
        self.ok("install", "to-filesystem", self.reference, self.sysroot.path, changed=True)
        self.second = self.releases.publish("2.0")

    def recovers(self):
        """Once the fault is gone the same command succeeds, and all is sound."""
        self.proxy.heal()
        self.ok("upgrade", changed=True)
        self.assertEqual("2.0", read(self.sysroot.default("usr/share/version")))
        self.assert_sound()

    def new_layer(self):
        """The digest of a layer that only the new version has."""
        return self.second.layer_digests[-1]

    def test_unreachable(self):
        gone = f"127.0.0.1:{free_port()}/tests/os:stable"
        self.trust_registry(gone.split("/")[0])
        outcome = self.refused("Offline", "switch", gone)
        self.assertIn(gone.split("/")[0], outcome.error["message"])

    def test_unknown_host(self):
        self.trust_registry("registry.invalid")
        self.refused("Offline", "switch", "registry.invalid/tests/os:stable")

    def test_unauthorized(self):
        self.proxy.spoil("/v2/", status=401, headers={"WWW-Authenticate": 'Basic realm="x"'})
        self.config.credentials(self.proxy.host, "user", "wrong")
        outcome = self.refused("Denied", "upgrade")
        said = outcome.error["message"] + (outcome.error["hint"] or "")
        for named in (self.proxy.host, self.releases.repository, "auth.json"):
            self.assertIn(named, said)
        self.assertNotIn("wrong", outcome.stdout + outcome.stderr)
        self.recovers()

    def test_forbidden(self):
        self.proxy.spoil("/manifests/", status=403)
        self.refused("Denied", "upgrade")
        self.recovers()

    def test_no_such_tag(self):
        self.refused("NotFound", "switch", f"{self.proxy.host}/{self.releases.repository}:none")
        self.refused("NotFound", "switch", f"{self.proxy.host}/tests/nothing:stable")

    def test_missing_blob_behind_a_good_manifest(self):
        self.proxy.spoil("/blobs/" + self.new_layer(), status=404)
        self.refused("Offline", "upgrade")
        self.recovers()

    def test_server_error(self):
        for part in ("/manifests/stable", "/blobs/" + self.new_layer()):
            with self.subTest(part):
                self.proxy.spoil(part, status=500)
                self.refused("Offline", "upgrade")
                self.assertGreater(self.proxy.asked(part), 1, "no second try")
        self.recovers()

    def test_cut_transfer(self):
        self.proxy.spoil("/blobs/" + self.new_layer(), cut=True)
        outcome = self.rasupd("upgrade")
        # Every answer is cut in half, ranges too: either the pieces add up, or it gives up as offline.
        if outcome.code:
            self.assertEqual("Offline", outcome.error["kind"], outcome)
            self.recovers()
        else:
            self.assert_sound()

    def test_cut_manifest(self):
        self.proxy.spoil("/manifests/stable", cut=True)
        self.assertIn(self.refused_as_one_of(("Offline", "Untrusted")), ("Offline", "Untrusted"))
        self.recovers()

    def refused_as_one_of(self, kinds):
        """Runs upgrade, which must fail with one of `kinds` and change nothing; returns the kind."""
        with self.unchanged():
            outcome = self.rasupd("upgrade")
        self.assertIn(outcome.error.get("kind"), kinds, outcome)
        return outcome.error["kind"]

    def test_altered_layer(self):
        self.proxy.spoil("/blobs/" + self.new_layer(), alter=True)
        self.refused("Untrusted", "upgrade")
        self.recovers()

    def test_altered_layer_of_the_same_size_in_storage(self):
        path = self.registry.blob_path(self.new_layer())
        good = read(path, "rb")
        oci.alter_file(path)
        self.refused("Untrusted", "upgrade")
        write(path, good)
        self.recovers()

    def test_altered_config(self):
        self.proxy.spoil("/blobs/" + oci.sha256(self.config_bytes()), alter=True)
        self.refused("Untrusted", "upgrade")
        self.recovers()

    def config_bytes(self):
        """The stored bytes of the new version's config."""
        manifest = self.releases.layout.blob(self.second.digest)
        return self.releases.layout.blob(json.loads(manifest)["config"]["digest"])

    def test_credentials_open_a_closed_registry(self):
        closed = self.start_second_registry()
        reference = Releases(closed, self / "closed-layout", self.key)
        reference.publish("3.0")
        outcome = self.refused("Denied", "switch", reference.reference)
        self.assertIn(closed.host, outcome.error["message"])
        self.config.credentials(closed.host, "user", "secret")
        self.ok("switch", reference.reference, changed=True)

    def start_second_registry(self):
        """A registry that asks for a password."""
        self.folder, kept = self / "closed", self.folder
        os.makedirs(self.folder)
        closed = self.start_registry(credentials=("user", "secret"))
        self.folder = kept
        return closed


class BadImage(WorldCase):
    """Images that must not be deployed, from a layout: no server is in the way."""

    def setUp(self):
        super().setUp()
        os.makedirs(self.sysroot.path)
        self.releases = LayoutReleases(self / "layout", self.key, self.config)
        self.releases.publish("1.0")
        self.ok("install", "to-filesystem", self.releases.reference, self.sysroot.path, changed=True)

    def refuses(self, kind, version="2.0", **how):
        """Publishes an image that must be refused; an honest one afterwards is taken. Returns the message."""
        self.releases.publish(version, **how)
        message = self.refused(kind, "upgrade").error["message"]
        self.refused(kind, "upgrade")
        self.releases.publish("9.0")
        self.ok("upgrade", changed=True)
        self.assert_sound()
        return message

    def test_unsigned(self):
        self.refuses("Untrusted", keys=())

    def test_signed_by_another_key(self):
        self.refuses("Untrusted", keys=(sign.KeyPair(self / "keys", "other"),))

    def test_signed_for_another_repository(self):
        self.refuses("Untrusted", identity="registry.example/tests/another")

    def test_signature_of_another_image(self):
        first = self.releases.publish("2.0")
        image = self.releases.publish("3.0", keys=())
        stolen = sign.signature_manifest(self.releases.layout, first.digest, self.releases.IDENTITY, (self.key,))
        self.releases.layout.tag(stolen, sign.signature_tag(image.digest))
        self.refused("Untrusted", "upgrade")

    def test_no_policy_and_broken_policy(self):
        self.releases.publish("2.0")
        self.config.policy("{")
        outcome = self.refused("Config", "upgrade")
        self.assertIn("policy.json", outcome.error["message"])
        self.config.policy(sign.policy(default="insecureAcceptAnything"))
        self.refused("Untrusted", "upgrade")
        self.config.no_policy()
        self.refused("Untrusted", "upgrade")

    def test_refusal_reads_no_layer(self):
        image = self.releases.publish("2.0", keys=(), lies=oci.Lies(missing_blob=2))
        self.refused("Untrusted", "upgrade")
        self.assertFalse(os.path.exists(self.releases.layout.blob_path(image.layer_digests[2])))

    def test_wrong_diff_id(self):
        for layer in (0, 2):
            with self.subTest(layer=layer):
                self.releases.publish("2.0", lies=oci.Lies(wrong_diff_id=layer))
                self.refused("Untrusted", "upgrade")
        self.refuses("Untrusted", lies=oci.Lies(wrong_diff_id=2))

    def test_altered_truncated_and_missing_blobs(self):
        spoiled = {
            "altered": (oci.Lies(altered_blob=2), "Untrusted"),
            "truncated": (oci.Lies(truncated_blob=2), "Untrusted"),
            "size": (oci.Lies(wrong_size=2), "Untrusted"),
            "config": (oci.Lies(altered_config=True), "Untrusted"),
            "missing": (oci.Lies(missing_blob=2), "Offline"),
        }
        for number, (name, (lies, kind)) in enumerate(spoiled.items()):
            with self.subTest(name):
                self.releases.publish(f"2.{number}", lies=lies)
                self.refused(kind, "upgrade")

    def test_wrong_architecture(self):
        self.refuses("Unsuitable", arch=oci.other_arch())

    def test_index_without_this_architecture(self):
        image = self.releases.layout.add_image(oci.tiny_os("2.0"), version="2.0", arch=oci.other_arch())
        index = self.releases.layout.add_index({oci.other_arch(): image}, tag="stable")
        sign.sign_layout(self.releases.layout, index["digest"], self.releases.IDENTITY, self.key)
        self.refused("Unsuitable", "upgrade")

    def test_index_that_lies_about_the_architecture(self):
        image = self.releases.layout.add_image(oci.tiny_os("2.0"), version="2.0", arch=oci.other_arch())
        index = self.releases.layout.add_index({oci.host_arch(): image}, tag="stable")
        sign.sign_layout(self.releases.layout, index["digest"], self.releases.IDENTITY, self.key)
        self.refused("Unsuitable", "upgrade")

    def test_not_bootable(self):
        self.assertIn("label", self.refuses("Unsuitable", labels={}))

    def test_no_kernel(self):
        self.refuses("Unsuitable", layers=oci.tiny_os("2.0", kernel=False))

    def test_no_initramfs(self):
        self.refuses("Unsuitable", layers=oci.tiny_os("2.0", initramfs=False))

    def test_two_kernels(self):
        more = oci.kernel_layer("2", kernel_version="6.2.0-other")
        self.refuses("Unsuitable", layers=oci.tiny_os("2.0", extra=[more]))

    def test_downgrade(self):
        self.releases.publish("3.0")
        self.ok("upgrade", changed=True)
        self.releases.publish("2.0")
        outcome = self.refused("Held", "upgrade")
        self.assertIn("downgrade", str(outcome.error))

    def test_bad_configuration(self):
        self.releases.publish("2.0")
        self.config.conf("[trust]\nnonsense=1\n")
        outcome = self.refused("Config", "upgrade")
        self.assertIn("rasupd.conf", outcome.error["message"])
        self.ok("status")


class HostileLayers(WorldCase):
    """Signed images whose layers try to leave the tree: signing does not make an archive harmless."""

    REFUSED = (
        "dotdot.tar", "hardlink-dotdot.tar", "whiteout-escape.tar", "device in /usr", "truncated",
    )
    # A hardlink to /etc/hostname means the image's own; what lies in /dev is dropped.
    TAKEN = ("hardlink-outside.tar", "chardev.tar", "absolute.tar", "dir-then-symlink.tar", "rel-symlink-write-through.tar", "dup-entry.tar", "setuid.tar", "filecap.tar")

    def setUp(self):
        super().setUp()
        os.makedirs(self.sysroot.path)
        self.releases = LayoutReleases(self / "layout", self.key, self.config)
        self.releases.publish("1.0")
        self.ok("install", "to-filesystem", self.releases.reference, self.sysroot.path, changed=True)

    def fixture(self, name):
        """A layer of one hostile archive."""
        if name == "device in /usr":
            return oci.Layer().directory("usr").device("usr/mem")
        if name == "truncated":
            return oci.Layer.from_tar(oci.Layer().file("usr/cut", b"x" * 5000).tar()[:2000])
        return oci.Layer.from_tar(read(os.path.join(SOURCE, "tests/fixtures/negative-tars", name), "rb"))

    def outside(self):
        """Places a layer could reach if it left its tree, with what is there."""
        return {folder: sorted(os.listdir(folder)) for folder in ("/", "/etc", self.folder)}

    def test_escapes_are_refused(self):
        for number, name in enumerate(self.REFUSED):
            with self.subTest(name):
                self.releases.publish(f"2.{number}", oci.tiny_os("2.0", extra=[self.fixture(name)]))
                before = self.outside()
                outcome = self.rasupd_refuses()
                self.assertIn(outcome.error["kind"], ("Untrusted", "Unsuitable"), outcome)
                self.assertEqual(before, self.outside())

    def rasupd_refuses(self):
        """Runs upgrade, which must fail and change nothing."""
        with self.unchanged():
            outcome = self.rasupd("upgrade")
        self.assertNotEqual(0, outcome.code, outcome)
        return outcome

    def test_odd_ones_stay_inside(self):
        for number, name in enumerate(self.TAKEN):
            with self.subTest(name):
                self.releases.publish(f"3.{number}", oci.tiny_os("3.0", extra=[self.fixture(name)]))
                before = self.outside()
                outcome = self.rasupd("upgrade")
                self.assertIn(outcome.code, (0, 5, 9), outcome)
                self.assertEqual(before, self.outside())
                self.assert_sound()

    def test_symlink_of_a_lower_layer_is_never_followed(self):
        target = self / "outside"
        os.makedirs(target)
        lower = oci.Layer().symlink("usr/lib/link", target)
        upper = oci.Layer().directory("usr/lib/link").file("usr/lib/link/planted", "x").whiteout("usr/lib/link/victim")
        write(target + "/victim", "precious")
        self.releases.publish("2.0", oci.tiny_os("2.0", extra=[lower, upper]))
        self.ok("upgrade", changed=True)
        self.assertEqual(["victim"], os.listdir(target))
        self.assertEqual("x", read(self.sysroot.default("usr/lib/link/planted")))
        self.assertFalse(os.path.islink(self.sysroot.default("usr/lib/link")))


class FullDisk(WorldCase):
    """A file system with no room for the new image; it exists only in a mount namespace of its own."""

    def test_no_space_leaves_the_old_image(self):
        releases = LayoutReleases(self / "layout", self.key, self.config)
        releases.publish("1.0")
        noise = oci.Layer().file("usr/lib/big", os.urandom(24 << 20))
        releases.layout.add_image(oci.tiny_os("2.0", extra=[noise]), tag="big", version="2.0")
        digest = next(entry["digest"] for entry in releases.layout.entries() if entry["annotations"][oci.REF_NAME] == "big")
        sign.sign_layout(releases.layout, digest, releases.IDENTITY, self.key)
        self.config.conf("[space]\nreserve=0\n")
        script = os.path.join(SOURCE, "tests/support/full_disk.sh")
        words = [self.config.path, releases.reference, f"oci:{releases.layout.path}:big"]
        done = subprocess.run(["bash", script, self.folder, *words], capture_output=True, text=True, env=environment(RASUPD=program()))
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        answer = json.loads(read(self / "answer"))
        self.assertEqual(("NoSpace", 6), (answer["error"]["kind"], answer["error"]["code"]), answer)
        self.assertIs(answer["changed"], False)


class Interrupted(WorldCase):
    """A second run, Ctrl-C, SIGKILL and errors at every step that has a name."""

    UPGRADE_STEPS = (
        "resolve", "trust", "suitable", "plan", "lock", "import", "import-layer", "import-merge", "import-commit", "etc", "stage",
        "deploy-checkout", "deploy-etc", "deploy-entries", "switch-prepared",
        "switch-written", "switch-finished", "deploy-done",
    )

    def setUp(self):
        super().setUp()
        os.makedirs(self.sysroot.path)
        self.releases = LayoutReleases(self / "layout", self.key, self.config)
        self.releases.publish("1.0")
        self.ok("install", "to-filesystem", self.releases.reference, self.sysroot.path, changed=True)
        self.releases.publish("2.0")
        self.pristine = self.sysroot

    def at_each_step(self, trial, steps=UPGRADE_STEPS):
        """Calls trial(step) with a fresh copy of the installed machine for every step."""
        for step in steps:
            with self.subTest(step):
                self.sysroot = Sysroot(self / ("at-" + step))
                subprocess.run(["cp", "-a", self.pristine.path, self.sysroot.path], check=True)
                trial(step)
                shutil.rmtree(self.sysroot.path, ignore_errors=True)

    def version(self):
        """The version that boots next."""
        return read(self.sysroot.default("usr/share/version"))

    def finishes(self):
        """A later run needs no repair."""
        self.assert_sound()
        self.ok("upgrade")
        self.assertEqual("2.0", self.version())
        self.assert_sound()

    def test_steps_are_the_ones_in_the_source(self):
        found = subprocess.run(
            ["grep", "-rhoE", r'failpoint\("[a-z.-]+"\)', os.path.join(SOURCE, "updater")], capture_output=True, text=True
        ).stdout
        named = {line.split('"')[1] for line in found.splitlines()}
        self.assertLessEqual(set(self.UPGRADE_STEPS), named)
        others = {"stage-written", "rollback-entries"}  # staging and rollback: test_faked_boot
        others |= {"trial-recorded", "finalize-started"}  # of machines that boot: tests/vm
        others |= {"disk-verified", "disk-zapped", "disk-mounted", "disk-installed"}  # test_install_disk
        others |= {step for step in named if step.startswith(("mark-good-", "give-up-", "deadline-"))}  # test_health
        unknown = {step for step in named - set(self.UPGRADE_STEPS) - others if "." not in step}
        self.assertEqual(set(), unknown, "a failpoint that no test interrupts")

    def test_interrupt_at_every_step(self):
        self.at_each_step(self.interrupt_at_every_step)

    def interrupt_at_every_step(self, step):
        """One step of the test of this name."""
        before = self.sysroot.boot_state()
        outcome = self.rasupd("upgrade", RASUPD_FAILPOINT=step + "=int")
        if outcome.code == 130:
            self.assertEqual("Cancelled", outcome.error["kind"], outcome)
            self.assertEqual(before, self.sysroot.boot_state())
            self.assertEqual("1.0", self.version())
        else:  # past the commit point a stop is no longer heeded
            self.assertEqual(0, outcome.code, outcome)
            self.assertEqual("2.0", self.version())
            self.assertTrue(step.startswith("deploy-") or step.startswith("switch-") or step == "stage", step)
        self.finishes()

    def test_terminate_is_143(self):
        outcome = self.refused("Cancelled", "upgrade", RASUPD_FAILPOINT="resolve=term")
        self.assertEqual(143, outcome.code, outcome)

    def test_killed_at_every_step(self):
        self.at_each_step(self.killed_at_every_step)

    def killed_at_every_step(self, step):
        """One step of the test of this name."""
        process = start(
            "--config-root", self.config.path, "--sysroot", self.sysroot.path, "--json", "upgrade", RASUPD_FAILPOINT=step + "=kill"
        )
        process.communicate(timeout=120)
        self.assertEqual(-9, process.returncode)
        self.assertIn(self.version(), ("1.0", "2.0"))
        self.finishes()

    def test_error_at_every_step(self):
        self.at_each_step(self.error_at_every_step)

    def error_at_every_step(self, step):
        """One step of the test of this name."""
        before = self.sysroot.boot_state()
        outcome = self.rasupd("upgrade", RASUPD_FAILPOINT=step + "=nospace")
        self.assertEqual("NoSpace", outcome.error["kind"], outcome)
        self.assertEqual(step == "deploy-done", outcome.document["changed"], outcome)
        if step != "deploy-done":
            self.assertEqual(before, self.sysroot.boot_state())
        self.finishes()

    def test_second_run_is_busy(self):
        go = self / "go"
        process = start(
            "--config-root", self.config.path, "--sysroot", self.sysroot.path, "--json", "upgrade",
            RASUPD_FAILPOINT="stage=stall", RASUPD_FAILPOINT_GO=go,
        )
        try:
            outcome = self.until_busy()
            self.assertEqual(("Busy", 8), (outcome.error.get("kind"), outcome.code), outcome)
            self.ok("status")
            self.assertEqual("1.0", self.version())
        finally:
            write(go, "")
            said = process.communicate(timeout=120)
        self.assertEqual(0, process.returncode, said)
        self.assertEqual("2.0", self.version())
        self.assert_sound()

    def until_busy(self):
        """Asks for the lock until the first run holds it."""
        deadline = time.monotonic() + 60
        while True:
            outcome = self.rasupd("unstage")
            if outcome.code or time.monotonic() > deadline:
                return outcome
            time.sleep(0.05)

    def test_interrupt_while_it_waits(self):
        self.config.conf("")
        process = start(
            "--config-root", self.config.path, "--sysroot", self.sysroot.path, "--json", "upgrade",
            RASUPD_FAILPOINT="import=stall", RASUPD_FAILPOINT_GO=self / "go",
        )
        with self.unchanged():
            time.sleep(0.5)
            interrupt(process)
            write(self / "go", "")
            stdout, stderr = process.communicate(timeout=60)
        self.assertEqual(130, process.returncode, stdout + stderr)
        self.finishes()


if __name__ == "__main__":
    unittest.main()

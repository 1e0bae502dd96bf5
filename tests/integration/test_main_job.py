"""The main job, end to end against a real registry: install, upgrade, switch, roll back, look."""

import json
import os
import subprocess
import unittest

from tests.support import oci_builder as oci
from tests.support import sign
from tests.support.releases import LayoutReleases, Releases
from tests.support.world import WorldCase, differences, read, run, snapshot, write


class MainJob(WorldCase):
    """One machine that follows one tag."""

    def setUp(self):
        super().setUp()
        self.registry = self.start_registry()
        self.releases = Releases(self.registry, self / "layout", self.key)
        self.first = self.releases.publish("1.0")

    def install(self):
        """A machine with version 1.0."""
        return self.ok("install", "to-filesystem", self.releases.reference, self.sysroot.path, changed=True)

    def installed(self):
        """The version the default deployment carries."""
        return read(self.sysroot.default("usr/share/version"))

    def entry_digest(self, name):
        """imageDigest of a status entry."""
        return self.status()[name]["image"]["imageDigest"]

    # install

    def test_install_makes_a_bootable_sysroot(self):
        self.install()
        self.assertEqual("1.0", self.installed())
        entries = self.sysroot.entries()
        self.assertEqual(1, len(entries))
        self.assertEqual(b"kernel of 1\n" * 200, self.sysroot.kernel_of(entries[0]))
        self.assertEqual("default of 1.0\n", read(self.sysroot.default("etc/default.conf")))
        self.assertIn("default", self.sysroot.admin_status())
        self.assertEqual(0o700, os.stat(self.sysroot / self.sysroot.STATE).st_mode & 0o777)
        self.assert_sound()

    def test_install_keeps_a_root_with_content_unless_replace(self):
        write(self.sysroot / "precious", "1")
        outcome = self.rasupd("install", "to-filesystem", self.releases.reference, self.sysroot.path)
        self.assertEqual("Usage", outcome.error["kind"], outcome)
        self.assertEqual({"precious"}, set(snapshot(self.sysroot.path)))
        self.ok("install", "to-filesystem", self.releases.reference, self.sysroot.path, "--replace", changed=True)
        self.assertEqual("1.0", self.installed())

    def test_install_takes_kernel_arguments_and_stateroot(self):
        words = ("install", "to-filesystem", self.releases.reference, self.sysroot.path)
        self.ok(*words, "--karg", "quiet", "--karg", "console=ttyS0", "--stateroot", "node")
        options = self.sysroot.entries()[0]["options"].split()
        self.assertIn("quiet", options)
        self.assertIn("console=ttyS0", options)
        self.assertIn("panic=10", options)
        self.assertIn("/ostree/deploy/node/deploy/", self.sysroot.default())

    def test_install_unpacks_the_images_var(self):
        layers = oci.tiny_os("1.0", extra=[oci.Layer().directory("var/lib").file("var/lib/seed", "shipped")])
        self.releases.publish("1.0", layers)
        self.install()
        self.assertEqual("shipped", read(self.sysroot / "ostree/deploy/default/var/lib/seed"))
        layers = oci.tiny_os("2.0", extra=[oci.Layer().directory("var/lib").file("var/lib/later", "never")])
        self.releases.publish("2.0", layers)
        self.ok("upgrade", changed=True)
        self.assertFalse(os.path.exists(self.sysroot / "ostree/deploy/default/var/lib/later"))

    # upgrade

    def test_upgrade_takes_the_new_version_and_keeps_the_old(self):
        self.install()
        old = self.sysroot.deployments()[0]
        second = self.releases.publish("2.0")
        self.ok("upgrade", changed=True)
        self.assertEqual("2.0", self.installed())
        self.assertEqual([old], self.sysroot.deployments()[1:])
        kernels = [self.sysroot.kernel_of(entry) for entry in self.sysroot.entries()]
        self.assertEqual([b"kernel of 2\n" * 200, b"kernel of 1\n" * 200], kernels)
        self.assertEqual(self.first.digest, self.entry_digest("rollback"))
        self.assertIn(second.digest, self.sysroot.origin(self.sysroot.deployments()[0]) + str(self.status()))
        self.assert_sound()

    def test_upgrade_fetches_only_what_is_missing(self):
        self.install()
        second = self.releases.publish("1.1")
        before = self.registry.log_position()
        self.ok("upgrade", changed=True)
        changed = set(second.layer_digests) - set(self.first.layer_digests)
        self.assertEqual(1, len(changed))
        fetched = set(self.registry.fetched_blobs(since=before))
        self.assertLessEqual(changed, fetched)
        self.assertEqual(set(), fetched & set(self.first.layer_digests))

    def test_unchanged_upgrade_writes_nothing(self):
        self.install()
        before = snapshot(self.sysroot.path, skip=(self.sysroot.STATE,), times=True)
        self.ok("upgrade", changed=False)
        self.assertEqual([], differences(before, snapshot(self.sysroot.path, skip=(self.sysroot.STATE,), times=True)))
        outcome = self.rasupd("upgrade", "--unchanged-exit-77")
        self.assertEqual(77, outcome.code, outcome)
        self.assertIs(outcome.document["changed"], False)
        self.assertIsNone(outcome.document["error"])

    def test_check_tells_and_writes_nothing(self):
        self.install()
        before = snapshot(self.sysroot.path, times=True)
        self.ok("upgrade", "--check", changed=False)
        self.assertEqual(77, self.rasupd("upgrade", "--check", "--unchanged-exit-77").code)
        second = self.releases.publish("2.0")
        outcome = self.rasupd("upgrade", "--check", "--unchanged-exit-77")
        self.assertEqual(0, outcome.code, outcome)
        self.assertIn(second.digest, outcome.stdout)
        self.assertIn("2.0", outcome.stdout)
        self.assertEqual([], differences(before, snapshot(self.sysroot.path, times=True)))

    def test_digest_pins_one_upgrade_and_tracking_stays_on_the_tag(self):
        self.install()
        second = self.releases.publish("2.0")
        third = self.releases.publish("3.0")
        self.ok("upgrade", "--digest", second.digest, changed=True)
        self.assertEqual("2.0", self.installed())
        self.ok("upgrade", changed=True)
        self.assertEqual("3.0", self.installed())
        self.refused("NotFound", "upgrade", "--digest", "sha256:" + "0" * 64)
        self.assertNotEqual(second.digest, third.digest)

    def test_index_digest_selects_this_architecture(self):
        images = {
            oci.host_arch(): self.releases.layout.add_image(oci.tiny_os("2.0"), version="2.0"),
            oci.other_arch(): self.releases.layout.add_image(oci.tiny_os("9.0"), version="9.0", arch=oci.other_arch()),
        }
        self.install()
        index = self.releases.publish_index(images)
        self.ok("upgrade", changed=True)
        self.assertEqual("2.0", self.installed())
        self.ok("upgrade", "--digest", index["digest"], changed=False)
        self.ok("upgrade", "--digest", images[oci.host_arch()].digest, changed=False)

    def test_update_is_upgrade(self):
        self.install()
        self.releases.publish("2.0")
        self.ok("update", changed=True)
        self.assertEqual("2.0", self.installed())

    def test_downgrade_when_allowed(self):
        self.releases.publish("2.0")
        self.install()
        self.releases.publish("1.0")
        self.ok("upgrade", "--allow-downgrade", changed=True)
        self.assertEqual("1.0", self.installed())

    def test_five_upgrades_do_not_pile_up(self):
        self.install()
        for version in ("2.0", "3.0", "4.0", "5.0", "6.0"):
            self.releases.publish(version)
            self.ok("upgrade", changed=True)
        self.ok("prune")
        self.assertEqual("6.0", self.installed())
        self.assertEqual(2, len(self.sysroot.deployments()))
        folders = [name for name in os.listdir(self.sysroot / "ostree/deploy/default/deploy") if not name.endswith(".origin")]
        self.assertEqual(2, len(folders))
        self.assert_sound()

    # /etc and /var

    def test_etc_merge(self):
        self.install()
        etc = self.sysroot.default("etc/")
        write(etc + "edited.conf", "mine\n")
        write(etc + "added.conf", "mine\n")
        os.chmod(etc + "mode.conf", 0o600)
        os.unlink(etc + "deleted.conf")
        write(etc + "tree.d/local.conf", "mine\n")
        write(etc + "machine-id", "0123456789abcdef0123456789abcdef\n")
        old = snapshot(etc)
        self.releases.publish("2.0")
        self.ok("upgrade", changed=True)
        merged = self.sysroot.default("etc/")
        wanted = {
            "default.conf": "default of 2.0\n", "static.conf": "the same in all versions\n", "edited.conf": "mine\n",
            "added.conf": "mine\n", "mode.conf": "mode default of 2.0\n", "only-2.0.conf": "2.0",
            "tree.d/shipped.conf": "tree of 2.0\n", "tree.d/local.conf": "mine\n",
            "machine-id": "0123456789abcdef0123456789abcdef\n",
        }
        self.assertEqual(wanted, {name: read(merged + name) for name in wanted})
        self.assertEqual(0o600, os.stat(merged + "mode.conf").st_mode & 0o777)
        self.assertFalse(os.path.lexists(merged + "deleted.conf"))
        self.assertFalse(os.path.lexists(merged + "only-1.0.conf"))
        self.assertEqual([], differences(old, snapshot(self.sysroot.deployments()[1] + "/etc")))

    def test_etc_conflict_is_named_before_anything_changes(self):
        self.install()
        write(self.sysroot.default("etc/clash"), "a file\n")
        layers = oci.tiny_os("2.0", extra=[oci.Layer().directory("etc/clash").file("etc/clash/inside", "x")])
        self.releases.publish("2.0", layers)
        outcome = self.refused("Unsuitable", "upgrade")
        self.assertIn("clash", outcome.error["message"])
        outcome = self.rasupd("etc", "conflicts", self.releases.reference)
        self.assertIn("clash", outcome.stdout)

    def test_etc_diff(self):
        self.install()
        self.assertNotIn("edited.conf", self.rasupd("etc", "diff").stdout)
        write(self.sysroot.default("etc/edited.conf"), "mine\n")
        before = snapshot(self.sysroot.path, times=True)
        self.assertIn("edited.conf", str(self.ok("etc", "diff", changed=False)))
        self.assertEqual([], differences(before, snapshot(self.sysroot.path, times=True)))

    def test_var_is_never_touched(self):
        self.install()
        var = self.sysroot / "ostree/deploy/default/var"
        write(var + "/lib/app/database", b"\0" * 5000, 0o640)
        os.chown(var + "/lib/app/database", 33, 33)
        os.symlink("database", var + "/lib/app/current")
        before = self.sysroot.var_state()
        self.releases.publish("2.0")
        self.ok("upgrade", changed=True)
        self.ok("switch", self.also("3.0"), changed=True)
        self.ok("rollback", changed=True)
        self.assertEqual([], differences(before, self.sysroot.var_state()))

    # switch and rollback

    def also(self, version):
        """Publishes a version under a tag of its own; returns the reference."""
        self.releases.publish(version, tag="other")
        return self.registry.reference(self.releases.repository, "other")

    def test_switch_tracks_the_new_reference(self):
        self.install()
        write(self.sysroot.default("etc/added.conf"), "mine\n")
        other = self.also("2.0")
        self.ok("switch", other, changed=True)
        self.assertEqual("2.0", self.installed())
        self.assertEqual("mine\n", read(self.sysroot.default("etc/added.conf")))
        self.ok("switch", other, changed=False)
        self.also("3.0")
        self.ok("upgrade", changed=True)
        self.assertEqual("3.0", self.installed())
        self.assertIn(other, self.sysroot.origin(self.sysroot.deployments()[0]))
        self.assert_sound()

    def test_rollback_needs_no_registry_and_twice_is_where_we_were(self):
        self.install()
        self.releases.publish("2.0")
        self.ok("upgrade", changed=True)
        write(self.sysroot.default("etc/only-new"), "x")
        there = self.sysroot.deployments()
        self.registry.stop()
        document = self.ok("rollback", changed=True)
        self.assertIn(self.first.digest, str(document))
        self.assertEqual("1.0", self.installed())
        self.assertFalse(os.path.exists(self.sysroot.default("etc/only-new")))
        self.assertEqual(b"kernel of 1\n" * 200, self.sysroot.kernel_of(self.sysroot.entries()[0]))
        self.assert_sound()
        self.ok("rollback", changed=True)
        self.assertEqual(there, self.sysroot.deployments())
        self.assert_sound()

    def test_rollback_without_target(self):
        self.install()
        self.refused("Boot", "rollback")

    def test_rolled_back_digest_is_held(self):
        self.install()
        second = self.releases.publish("2.0")
        self.ok("upgrade", changed=True)
        self.ok("rollback", changed=True)
        self.assertIn(second.digest, [held["digest"] for held in self.status()["rasupd"]["held"]])
        outcome = self.refused("Held", "upgrade")
        self.assertIn(second.digest, outcome.error["message"])
        self.releases.publish("2.1")
        self.ok("upgrade", changed=True)
        self.assertEqual("2.1", self.installed())

    def test_retry_held_takes_it_again(self):
        self.install()
        self.releases.publish("2.0")
        self.ok("upgrade", changed=True)
        self.ok("rollback", changed=True)
        self.ok("upgrade", "--retry-held", changed=True)
        self.assertEqual("2.0", self.installed())

    # looking

    def test_status_answers_bootc_readers(self):
        self.install()
        self.releases.publish("2.0")
        self.ok("upgrade", changed=True)
        document = self.ok("status")
        self.assertEqual(("org.containers.bootc/v1", "BootcHost"), (document["apiVersion"], document["kind"]))
        status = document["status"]
        self.assertIsNone(status["booted"])
        self.assertIsNone(status["staged"])
        rollback = status["rollback"]
        self.assertEqual(self.first.digest, rollback["image"]["imageDigest"])
        self.assertEqual("1.0", rollback["image"]["version"])
        self.assertEqual(oci.host_arch(), rollback["image"]["architecture"])
        self.assertEqual(self.releases.reference, rollback["image"]["image"]["image"])
        self.assertEqual("registry", rollback["image"]["image"]["transport"])
        self.assertEqual("default", rollback["ostree"]["stateroot"])
        self.assertEqual(self.first.digest, status["rollback"]["image"]["imageDigest"])
        default = os.path.basename(self.sysroot.deployments()[0]).split(".")[0]
        self.assertIn(default, str(status["rasupd"]["default"]) + str(status["rasupd"]["entries"]))
        self.assertEqual(oci.host_arch(), status["rasupd"]["architecture"])
        signature = status["rasupd"]["entries"][default]["signature"]
        self.assertIn(self.registry.host, signature["rule"])
        self.assertIn(self.key.public, signature["key"])

    def test_status_writes_nothing_and_works_anywhere(self):
        os.makedirs(self.sysroot.path)
        self.ok("status")
        self.assertEqual({}, snapshot(self.sysroot.path))
        self.install()
        before = snapshot(self.sysroot.path, times=True)
        self.ok("status")
        self.assertEqual([], differences(before, snapshot(self.sysroot.path, times=True)))

    def test_human_answers(self):
        self.install()
        roots = ("--config-root", self.config.path, "--sysroot", self.sysroot.path)
        for words in (("status",), ("upgrade", "--check"), ("upgrade",), ("etc", "diff"), ("image", "list")):
            outcome = run(*roots, *words)
            self.assertEqual(0, outcome.code, outcome)
        self.assertIn(self.first.digest, run(*roots, "status").stdout)

    def test_image_verbs(self):
        reference = self.releases.reference
        inspected = self.ok("image", "inspect", reference, changed=False)
        self.assertIn(self.first.digest, str(inspected))
        verified = self.ok("image", "verify", reference, changed=False)
        self.assertIn(self.key.public, str(verified))
        unsigned = self.releases.publish("2.0", tag="unsigned", keys=())
        reference = self.registry.reference(self.releases.repository, "unsigned")
        self.refused("Untrusted", "image", "verify", reference)
        self.assertIn(unsigned.digest, str(self.ok("image", "inspect", reference)))
        self.install()
        self.assertIn(self.first.digest, str(self.ok("image", "list", changed=False)))

    def test_pin_keeps_and_prune_drops(self):
        self.install()
        pinned = self.sysroot.deployments()[0]
        self.ok("pin", "0", changed=True)
        for version in ("2.0", "3.0", "4.0"):
            self.releases.publish(version)
            self.ok("upgrade", changed=True)
        self.ok("prune")
        self.assertIn(pinned, self.sysroot.deployments())
        self.assertEqual(3, len(self.sysroot.deployments()))
        self.ok("unpin", str(self.sysroot.deployments().index(pinned)), changed=True)
        self.ok("prune")
        self.assertEqual(2, len(self.sysroot.deployments()))
        self.assert_sound()

    def test_unstage_with_nothing_staged(self):
        self.install()
        with self.unchanged():
            self.ok("unstage", changed=False)

    def test_usage(self):
        for words in ((), ("nonsense",), ("upgrade", "--nonsense"), ("switch",), ("switch", "shortname")):
            with self.subTest(words=words):
                outcome = self.rasupd(*words)
                self.assertEqual(("Usage", 2), (outcome.error["kind"], outcome.code), outcome)

    def test_progress_goes_to_the_descriptor_it_is_asked_for(self):
        self.install()
        self.releases.publish("2.0")
        path = self / "progress"
        wrapper = ("bash", "-c", f'exec "$@" 9>{path}', "bash")
        outcome = self.rasupd("--progress-fd", "9", "upgrade", wrapper=wrapper)
        self.assertEqual(0, outcome.code, outcome)
        lines = [json.loads(line) for line in read(path).splitlines()]
        self.assertEqual("Start", lines[0]["type"])
        self.assertEqual("Result", lines[-1]["type"])


class Layouts(WorldCase):
    """The same job from a layout directory: the offline path."""

    def test_install_upgrade_rollback(self):
        releases = LayoutReleases(self / "layout", self.key, self.config)
        releases.publish("1.0")
        self.ok("install", "to-filesystem", releases.reference, self.sysroot.path, changed=True)
        releases.publish("2.0")
        self.ok("upgrade", changed=True)
        self.assertEqual("2.0", read(self.sysroot.default("usr/share/version")))
        self.ok("rollback", changed=True)
        self.assertEqual("1.0", read(self.sysroot.default("usr/share/version")))
        self.assert_sound()

    def test_archive(self):
        releases = LayoutReleases(self / "layout", self.key, self.config)
        releases.publish("1.0")
        archive = self / "image.tar"
        subprocess.run(["tar", "-C", releases.layout.path, "-cf", archive, "."], check=True)
        rule = sign.signed_by(self.key, sign.exact_repository(releases.IDENTITY))
        self.config.policy(sign.policy(**{"oci-archive": {archive: rule}}))
        self.ok("install", "to-filesystem", f"oci-archive:{archive}:stable", self.sysroot.path, changed=True)
        self.assertEqual("1.0", read(self.sysroot.default("usr/share/version")))

    def test_zstd_and_plain_layers(self):
        releases = LayoutReleases(self / "layout", self.key, self.config)
        layers = oci.tiny_os("1.0")
        for layer, how in zip(layers, ("zstd", "none", "gzip")):
            layer.compression = how
        releases.publish("1.0", layers)
        self.ok("install", "to-filesystem", releases.reference, self.sysroot.path, changed=True)
        self.assertEqual("1.0", read(self.sysroot.default("usr/share/version")))

    def test_layers_stack_as_oci_says(self):
        releases = LayoutReleases(self / "layout", self.key, self.config)
        lower = oci.Layer().directory("usr/a").file("usr/a/kept", "1").file("usr/a/gone", "1").directory("usr/b")
        lower.file("usr/b/hidden", "1").file("usr/kind", "file").file("usr/one", "data").hardlink("usr/two", "usr/one")
        lower.file("usr/setuid", "x", mode=0o4755).file("usr/secret", "x", mode=0).file("usr/owned", "x", uid=7, gid=8)
        upper = oci.Layer().whiteout("usr/a/gone").directory("usr/b", mode=0o750).opaque("usr/b").file("usr/b/new", "2")
        upper.directory("usr/kind").file("usr/kind/inside", "2").file("usr/grüße", "ü")
        releases.publish("1.0", oci.tiny_os("1.0", extra=[lower, upper]))
        self.ok("install", "to-filesystem", releases.reference, self.sysroot.path, changed=True)
        usr = self.sysroot.default("usr/")
        self.assertEqual(["kept"], os.listdir(usr + "a"))
        self.assertEqual(["new"], os.listdir(usr + "b"))
        self.assertEqual(0o750, os.stat(usr + "b").st_mode & 0o777)
        self.assertEqual("2", read(usr + "kind/inside"))
        self.assertEqual("data", read(usr + "two"))
        self.assertEqual("ü", read(usr + "grüße"))
        self.assertEqual(0o4755, os.stat(usr + "setuid").st_mode & 0o7777)
        self.assertEqual(0, os.stat(usr + "secret").st_mode & 0o7777)
        self.assertEqual((7, 8), (os.stat(usr + "owned").st_uid, os.stat(usr + "owned").st_gid))


if __name__ == "__main__":
    unittest.main()

"""First installation: what it may remove, when, and where it may write."""

import os
import subprocess
import unittest

from tests.support import oci_builder as oci
from tests.support.releases import LayoutReleases
from tests.support.world import WorldCase, differences, read, snapshot, start, write


class Install(WorldCase):
    """Images in a layout; ROOT is the test's sysroot."""

    def setUp(self):
        super().setUp()
        self.releases = LayoutReleases(self / "layout", self.key, self.config)
        self.releases.publish("1.0")
        os.makedirs(self.sysroot.path)

    def words(self, *more):
        """The command line of an installation into ROOT."""
        return ("install", "to-filesystem", self.releases.reference, self.sysroot.path, *more)

    def whole(self):
        """Everything in ROOT but the state that is allowed to change."""
        return snapshot(self.sysroot.path)

    def test_replace_keeps_the_old_content_until_the_image_is_in(self):
        self.ok(*self.words(), changed=True)
        write(self.sysroot / "precious", "1")
        before = self.whole()
        lies = {"altered": oci.Lies(altered_blob=0), "missing": oci.Lies(missing_blob=0), "diff_id": oci.Lies(wrong_diff_id=0)}
        for name, lie in lies.items():
            with self.subTest(name):
                self.releases.publish("2.0", oci.tiny_os("2.0", extra=[oci.Layer().file(f"usr/{name}", name)]), lies=lie)
                outcome = self.rasupd(*self.words("--replace"))
                self.assertIn(outcome.code, (4, 5), outcome)
                self.assertIs(outcome.document["changed"], False, outcome)
                self.assertEqual([], differences(before, self.whole()))
        self.releases.publish("3.0")
        for step in ("import=int", "import-layer=int", "import-commit=int", "import-merge=nospace"):
            with self.subTest(step):
                outcome = self.rasupd(*self.words("--replace"), RASUPD_FAILPOINT=step)
                self.assertIn(outcome.code, (130, 6), outcome)
                self.assertEqual([], differences(before, self.whole()))
        self.ok(*self.words("--replace"), changed=True)
        self.assertEqual("3.0", read(self.sysroot.default("usr/share/version")))
        self.assertFalse(os.path.exists(self.sysroot / "precious"))
        self.assertEqual([], [name for name in os.listdir(self.sysroot.path) if name.startswith(".")])
        self.assert_sound()

    def test_a_bootloader_gets_its_files_and_is_followed_from_then_on(self):
        files = {"grub": "boot/loader/grub.cfg", "extlinux": "boot/extlinux/extlinux.conf"}
        for bootloader, menu in files.items():
            with self.subTest(bootloader):
                self.ok(*self.words("--replace", "--bootloader", bootloader), changed=True)
                first = read(self.sysroot / menu)
                self.assertIn("/vmlinuz-", first)
                self.releases.publish("2.0-" + bootloader)
                self.ok("upgrade", "--allow-downgrade", changed=True)
                entries = self.sysroot.entries()
                menu_text = read(self.sysroot / menu)
                places = [menu_text.index(entry["options"].split("ostree=")[1].split()[0]) for entry in entries]
                self.assertEqual(sorted(places), places, "not in the order of the entries")
                self.assertEqual(2, len(places))

    def test_a_bootloader_without_its_place_is_refused(self):
        for bootloader in ("systemd-boot", "rpi"):
            with self.subTest(bootloader):
                before = self.whole()
                self.assertEqual(2, self.rasupd(*self.words("--bootloader", bootloader)).code)
                self.assertEqual([], differences(before, self.whole()))

    def test_a_killed_installation_can_be_repeated(self):
        start("--config-root", self.config.path, *self.words(), RASUPD_FAILPOINT="import-layer=kill").communicate(timeout=60)
        self.ok(*self.words(), changed=True)
        self.assert_sound()

    def test_a_failed_installation_leaves_an_empty_root(self):
        self.releases.publish("2.0", lies=oci.Lies(wrong_diff_id=0))
        outcome = self.rasupd(*self.words())
        self.assertEqual(("Untrusted", False), (outcome.error["kind"], outcome.document["changed"]), outcome)
        self.assertEqual([], os.listdir(self.sysroot.path))

    def test_replace_clears_a_boot_of_its_own(self):
        script = (
            'mkdir -p "$1/boot"; mount -t tmpfs tmpfs "$1/boot"; shift; '
            '"$@" && touch "$ROOT/boot/other" && "$@" --replace && ls "$ROOT/boot" && [ -e "$ROOT/boot/other" ]'
        )
        command = [os.environ.get("RASUPD") or "rasupd", "--config-root", self.config.path, *self.words()]
        done = subprocess.run(
            ["unshare", "-m", "--propagation", "private", "bash", "-euc", script, "bash", self.sysroot.path, *command],
            env={**os.environ, "ROOT": self.sysroot.path, "OSTREE_SYSROOT_DEBUG": "mutable-deployments"}, capture_output=True, text=True,
        )
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)

    def test_a_mount_inside_root_is_left_alone(self):
        write(self / "elsewhere/file", "keep")
        script = 'mkdir -p "$1/data"; echo x > "$1/x"; mount --bind "$2" "$1/data"; shift 2; exec "$@"'
        wrapper = ("unshare", "-m", "--propagation", "private", "bash", "-euc", script, "bash", self.sysroot.path, self / "elsewhere")
        self.assertEqual(0, self.rasupd(*self.words("--replace"), wrapper=wrapper).code)
        self.assertEqual("keep", read(self / "elsewhere/file"))

    def test_an_esp_that_others_share_keeps_their_way_of_starting(self):
        layer = oci.Layer().file("usr/lib/systemd/boot/efi/systemd-bootx64.efi", "MZ ours")
        layer.file("usr/lib/systemd/boot/efi/systemd-bootaa64.efi", "MZ ours")
        self.releases.publish("1.0", oci.tiny_os("1.0", extra=[layer]))
        script = """mkdir -p "$1/boot/efi" "$2"; mount -t tmpfs esp "$1/boot/efi"; mkdir -p "$1"/boot/efi/{loader,EFI/BOOT}
            echo timeout 9 > "$1/boot/efi/loader/loader.conf"; for name in X64 AA64; do echo theirs > "$1/boot/efi/EFI/BOOT/BOOT$name.EFI"; done
            code=0; "${@:3}" || code=$?; cp -r "$1/boot/efi/." "$2"; exit $code"""
        wrapper = ("unshare", "-m", "--propagation", "private", "bash", "-euc", script, "bash", self.sysroot.path, self / "esp")
        outcome = self.rasupd(*self.words("--bootloader", "systemd-boot"), wrapper=wrapper)
        self.assertEqual(0, outcome.code, outcome)
        self.assertEqual("timeout 9\n", read(self / "esp/loader/loader.conf"))
        self.assertEqual("theirs\n", read(self / "esp/EFI/BOOT/BOOTX64.EFI"))
        programs = os.listdir(self / "esp/EFI/systemd")
        self.assertEqual("MZ ours", read(self / ("esp/EFI/systemd/" + programs[0])))
        self.assertEqual(1, len([name for name in os.listdir(self / "esp/loader/entries") if name.endswith(".conf")]))

    def test_dangerous_roots_are_refused(self):
        for words in (
            ("install", "to-filesystem", self.releases.reference, "/", "--replace"),
            ("install", "to-filesystem", self.releases.reference, self.folder, "--replace"),
            self.words("--stateroot=../../../out"), self.words("--stateroot", "a/b"), self.words("--stateroot", ""),
            self.words("--karg", "x\nlinux /evil"), ("install", "to-filesystem", self.releases.reference, self / "no/such/root"),
        ):
            with self.subTest(words=words):
                outcome = self.rasupd(*words)
                self.assertEqual("Usage", outcome.error["kind"], outcome)
                self.assertEqual([], os.listdir(self.sysroot.path))
        self.assertTrue(os.path.isdir(self.releases.layout.path))

    def test_a_second_installation_and_a_running_upgrade_are_busy(self):
        go = self / "go"
        first = start("--config-root", self.config.path, "--json", *self.words(), RASUPD_FAILPOINT="stage=stall", RASUPD_FAILPOINT_GO=go)
        try:
            self.wait_for(lambda: os.path.exists(self.sysroot / ".rasupd-install"))
            outcome = self.rasupd(*self.words())
            self.assertIn(outcome.error["kind"], ("Busy", "Usage"), outcome)
        finally:
            write(go, "")
            first.communicate(timeout=60)
        self.assertEqual(0, first.returncode)
        self.assert_sound()
        os.unlink(go)
        self.releases.publish("2.0")
        upgrade = start("--config-root", self.config.path, "--sysroot", self.sysroot.path, "upgrade", RASUPD_FAILPOINT="stage=stall",
                        RASUPD_FAILPOINT_GO=go)
        try:
            self.wait_for(self.is_locked)
            self.assertEqual("Busy", self.rasupd(*self.words("--replace")).error["kind"])
        finally:
            write(go, "")
            upgrade.communicate(timeout=60)
        self.assertEqual(0, upgrade.returncode)
        self.assertEqual("2.0", read(self.sysroot.default("usr/share/version")))

    def is_locked(self):
        """Whether another run holds the sysroot. Only looked at: taking the lock would turn the other away."""
        path = self.sysroot / "ostree/lock"
        inode = os.stat(path).st_ino if os.path.exists(path) else None
        return any(line.split()[5].endswith(f":{inode}") for line in read("/proc/locks").splitlines() if "->" not in line)


if __name__ == "__main__":
    unittest.main()

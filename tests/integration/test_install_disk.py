"""Installation onto a whole disk: what it refuses, what it leaves alone, what lies on the disk afterwards."""

import fcntl
import glob
import hashlib
import json
import os
import shutil
import signal
import struct
import subprocess
import unittest

from tests.support import oci_builder as oci
from tests.support.releases import LayoutReleases
from tests.support.world import WorldCase, start, write

MIB = 1 << 20
WITH_MODULES = os.path.isdir("/usr/lib/grub/x86_64-efi") and os.path.isdir("/usr/lib/grub/i386-pc")


def tool(*words, **options):
    """Runs a program that must succeed; returns what it said."""
    done = subprocess.run(words, capture_output=True, text=True, **options)
    if done.returncode:
        raise AssertionError(f"{words}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def digest(path):
    """Of a sparse file, quickly enough."""
    with open(path, "rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest() if hasattr(hashlib, "file_digest") else hashlib.sha256(source.read()).hexdigest()


class Disk(WorldCase):
    """A signed image in a layout and an empty disk image."""

    SIZE = 700 * MIB

    def setUp(self):
        super().setUp()
        os.makedirs(self.sysroot.path)
        self.releases = LayoutReleases(self / "layout", self.key, self.config)
        self.releases.publish("1.0")
        self.disk = self.blank("disk.img")

    def tearDown(self):
        self.assert_nothing_stays()

    def assert_nothing_stays(self):
        """A loop device that somebody else looks at right now goes a moment later."""
        self.wait_for(lambda: not self.leftovers())

    def blank(self, name, size=None):
        """A sparse file of zeros."""
        path = self / name
        with open(path, "wb") as out:
            out.truncate(size or self.SIZE)
        return path

    def words(self, *more, disk=None):
        """The command line of an installation onto the disk."""
        return ("install", "to-disk", self.releases.reference, disk or self.disk, *more)

    def leftovers(self):
        """Loop devices on this test's files, mounts and directories of rasupd's."""
        found = [line for line in tool("losetup", "--list", "--noheadings", "--output", "BACK-FILE").split("\n") if self.folder in line]
        with open("/proc/self/mountinfo", encoding="utf-8") as source:
            found += [line for line in source if "rasupd-disk-" in line or self.folder in line]
        return found + glob.glob(os.path.join(self.folder, "tmp", "rasupd-disk-*"))

    def rasupd(self, *words, **options):
        """With temporary files where leftovers() looks."""
        os.makedirs(self / "tmp", exist_ok=True)
        return super().rasupd(*words, **{"TMPDIR": self / "tmp", **options})

    def untouched(self, kind, *words, **options):
        """The program fails with `kind` and not one byte of the disk differs; returns the outcome."""
        before = digest(self.disk)
        outcome = self.rasupd(*words, **options)
        self.assertEqual(kind, outcome.error.get("kind"), outcome)
        self.assertIs(outcome.document["changed"], False, outcome)
        self.assertEqual(before, digest(self.disk))
        return outcome

    def partition(self, document, label):
        """One partition of the answer."""
        return next(one for one in document["partitions"] if one["label"] == label)

    def extract(self, partition, disk=None):
        """A partition as a file of its own."""
        path = self / partition["label"]
        tool("dd", f"if={disk or self.disk}", f"of={path}", "bs=1M", f"skip={partition['start'] // MIB}",
             f"count={partition['size'] // MIB}", "conv=sparse", "status=none")
        return path

    def cat(self, image, path):
        """A file of an ext4 image."""
        return tool("debugfs", "-R", f"cat {path}", image)

    def ls(self, image, path):
        """Names in a directory of an ext4 image."""
        return {line.split("/")[5] for line in tool("debugfs", "-R", f"ls -p {path}", image).split("\n") if line.startswith("/")}

    def esp_names(self, document):
        """Paths on the ESP, without a mount."""
        at = self.partition(document, "RASUPD-ESP")["start"]
        return tool("mdir", "-/", "-b", "-i", f"{self.disk}@@{at}", "::", env={**os.environ, "MTOOLS_SKIP_CHECK": "1"})


class Refusals(Disk):
    """Everything that must be said before the first byte is written."""

    def test_signatures_need_wipe(self):
        tool("mkfs.ext4", "-q", "-F", self.disk)
        outcome = self.untouched("Usage", *self.words())
        self.assertIn("ext4", outcome.error["message"])
        self.assertIn("--wipe", outcome.error["hint"])
        self.ok(*self.words("--wipe"), changed=True)
        self.untouched("Usage", *self.words())

    def test_only_the_backup_table_left_is_a_signature(self):
        tool("sgdisk", "-n", "1:0:0", self.disk)
        with open(self.disk, "r+b") as out:
            out.write(bytes(34 * 512))
        self.untouched("Usage", *self.words())

    def test_a_disk_in_use(self):
        loop = tool("losetup", "--find", "--show", self.disk).strip()
        try:
            self.untouched("Usage", *self.words("--wipe"))
            tool("mkfs.ext4", "-q", "-F", loop)
            os.makedirs(self / "mnt")
            tool("mount", loop, self / "mnt")
            try:
                outcome = self.untouched("Usage", *self.words("--wipe", disk=loop))
                self.assertIn("in use", outcome.error["message"])
            finally:
                tool("umount", self / "mnt")
        finally:
            tool("losetup", "--detach", loop)

    def test_an_image_that_a_virtual_machine_runs_on(self):
        with open(self.disk, "r+b") as held:
            lock = struct.pack("hhqqi", fcntl.F_RDLCK, os.SEEK_SET, 100, 1, 0)  # struct flock: QEMU locks a few bytes
            fcntl.fcntl(held, fcntl.F_OFD_SETLK, lock)
            self.assertIn("in use", self.untouched("Usage", *self.words()).error["message"])
        self.ok(*self.words("--bootloader", "none"), changed=True)

    def test_things_that_are_no_disk(self):
        for device in (self / "nothing", self.folder, "/dev/null"):
            with self.subTest(device):
                self.assertEqual("Usage", self.rasupd(*self.words(disk=device)).error["kind"])

    def test_untrusted_and_unsuitable_images_touch_nothing(self):
        tool("mkfs.ext4", "-q", "-F", self.disk)
        self.untouched("Unsuitable", *self.words("--wipe", "--arch", oci.other_arch(), "--bootloader", "none"))
        self.releases.publish("2.0", keys=())
        self.untouched("Untrusted", *self.words("--wipe"))
        self.config.no_policy()
        self.untouched("Untrusted", *self.words("--wipe"))

    def test_too_small(self):
        os.truncate(self.disk, 200 * MIB)
        outcome = self.untouched("NoSpace", *self.words())
        self.assertIn("200 MiB", outcome.error["message"])
        os.truncate(self.disk, self.SIZE)
        noise = oci.Layer("none").file("usr/lib/large", os.urandom(100 * MIB))
        self.releases.publish("2.0", oci.tiny_os("2.0", extra=[noise]))
        outcome = self.untouched("NoSpace", *self.words("--root-size", "150M"))
        self.assertIn("root partition", outcome.error["message"])

    def test_sizes_that_make_no_sense(self):
        for more in (("--esp-size", "x"), ("--esp-size", "1M"), ("--var-size", "rest"), ("--root-size", "0"), ("--boot-size", "-1M"),
                     ("--filesystem", "vfat"), ("--filesystem", "xfs", "--root-size", "100M"), ("--stateroot", "a/b")):
            with self.subTest(more):
                self.untouched("Usage", *self.words(*more))

    def test_a_missing_tool_is_named_with_its_package(self):
        os.makedirs(self / "bin")
        for name in ("wipefs", "sgdisk", "mcopy", "mkfs.vfat", "mkfs.ext4"):
            os.symlink(shutil.which(name), self / f"bin/{name}")
        os.unlink(self / "bin/sgdisk")
        outcome = self.untouched("Failed", *self.words(), PATH=self / "bin")
        self.assertIn("sgdisk", outcome.error["message"])
        self.assertIn("gdisk", outcome.error["hint"])


class Installed(Disk):
    """What lies on the disk afterwards."""

    def assert_clean(self, *images):
        """No file system needs a repair."""
        for image in images:
            tool("e2fsck", "-f", "-n", image)
        tool("sgdisk", "--verify", self.disk)

    def test_defaults(self):
        document = self.ok(*self.words("--karg", "quiet", "--bootloader", "none"), changed=True)
        labels = ["rasupd-bios", "RASUPD-ESP", "rasupd-root"] if oci.host_arch() == "amd64" else ["RASUPD-ESP", "rasupd-root"]
        self.assertEqual(labels, [one["label"] for one in document["partitions"]])
        printed = tool("sgdisk", "--print", self.disk)
        for one in document["partitions"]:
            self.assertRegex(printed, rf"(?m)^\s+{one['number']}\s+{one['start'] // 512}\s+{(one['start'] + one['size']) // 512 - 1}\s.*{one['label']}$")
        root = self.partition(document, "rasupd-root")
        image = self.extract(root)
        self.assert_clean(image)
        self.assertEqual(root["uuid"], tool("blkid", "-p", "-s", "UUID", "-o", "value", image).strip())
        entry = self.cat(image, "/boot/loader.1/entries/" + next(iter(self.ls(image, "/boot/loader.1/entries") - {".", ".."})))
        self.assertIn(f" root=UUID={root['uuid']} rw quiet ", entry + " ")
        deployed = next(one for one in self.ls(image, "/ostree/deploy/default/deploy") if one.endswith(".0"))
        deployment = f"/ostree/deploy/default/deploy/{deployed}"
        self.assertEqual("1.0", self.cat(image, f"{deployment}/usr/share/version"))
        esp = self.partition(document, "RASUPD-ESP")
        self.assertEqual("/boot/efi", esp["mountPoint"])
        self.assertIn(f"UUID={esp['uuid']} /boot/efi vfat nofail,umask=0077 0 2\n", self.cat(image, f"{deployment}/etc/fstab"))
        self.assertIn('"install"', self.cat(image, "/ostree/deploy/default/var/lib/rasupd/journal"))
        tool("fsck.vfat", "-n", self.extract(esp))

    def test_boot_and_var_of_their_own(self):
        layer = oci.Layer().directory("var/seed").file("var/seed/file", "seed").directory("efi")
        self.releases.publish("1.0", oci.tiny_os("1.0", extra=[layer]))
        document = self.ok(*self.words("--boot-size", "100M", "--root-size", "200M", "--var-size", "rest", "--bootloader", "none"))
        root, boot, var = (self.partition(document, f"rasupd-{name}") for name in ("root", "boot", "var"))
        images = {one["label"]: self.extract(one) for one in (root, boot, var)}
        self.assert_clean(*images.values())
        self.assertLessEqual({"loader", "ostree"}, self.ls(images["rasupd-boot"], "/"))
        self.assertEqual({".", ".."}, self.ls(images["rasupd-root"], "/boot"))
        self.assertEqual("seed", self.cat(images["rasupd-var"], "/seed/file"))
        self.assertEqual({".", ".."}, self.ls(images["rasupd-root"], "/ostree/deploy/default/var"))
        deployed = next(one for one in self.ls(images["rasupd-root"], "/ostree/deploy/default/deploy") if one.endswith(".0"))
        fstab = self.cat(images["rasupd-root"], f"/ostree/deploy/default/deploy/{deployed}/etc/fstab")
        for line in (f"UUID={boot['uuid']} /boot ext4 defaults 0 2\n", f"UUID={var['uuid']} /var ext4 defaults 0 2\n", " /efi vfat "):
            self.assertIn(line, fstab)

    @unittest.skipUnless(WITH_MODULES and oci.host_arch() == "amd64", "no GRUB modules on this machine")
    def test_grub(self):
        document = self.ok(*self.words())
        self.assertEqual("grub", document["bootloader"])
        self.assertIn("::/EFI/BOOT/BOOTX64.EFI", self.esp_names(document))
        root = self.partition(document, "rasupd-root")
        image = self.extract(root)
        self.assert_clean(image)
        self.assertIn("rasupd-grub", self.cat(image, "/boot/grub/grub.cfg"))
        self.assertIn("menuentry", self.cat(image, "/boot/loader.1/grub.cfg"))
        self.assertEqual(1024, len(self.cat(image, "/boot/grub/grubenv")))
        with open(self.disk, "rb") as source:
            sector = source.read(512)
            source.seek(34 * 512)
            core = source.read(2014 * 512)
        self.assertEqual((34).to_bytes(8, "little"), sector[0x5c:0x64])
        self.assertEqual(b"\xee", sector[0x1c2:0x1c3], "the protective MBR stays")
        self.assertEqual((35).to_bytes(8, "little"), core[0x1f4:0x1fc])

    def test_other_file_systems(self):
        for kind in ("xfs", "btrfs"):
            with self.subTest(kind):
                os.truncate(self.disk, 0)
                os.truncate(self.disk, 2000 * MIB)
                document = self.ok(*self.words("--filesystem", kind))
                root = self.partition(document, "rasupd-root")
                image = self.extract(root)
                self.assertEqual(kind, tool("blkid", "-p", "-s", "TYPE", "-o", "value", image).strip())
                tool(*(("xfs_repair", "-n") if kind == "xfs" else ("btrfs", "check")), image)
                if document["bootloader"] == "grub":
                    self.assert_clean(self.extract(self.partition(document, "rasupd-boot")))

    def test_systemd_boot(self):
        layer = oci.Layer().file("usr/lib/systemd/boot/efi/systemd-bootx64.efi", "MZ program")
        layer.file("usr/lib/systemd/boot/efi/systemd-bootaa64.efi", "MZ program")
        self.releases.publish("1.0", oci.tiny_os("1.0", extra=[layer]))
        document = self.ok(*self.words("--bootloader", "systemd-boot"))
        names = self.esp_names(document)
        self.assertRegex(names, r"::/EFI/BOOT/BOOT(X64|AA64)\.EFI")
        self.assertRegex(names, r"::/EFI/systemd/systemd-boot\w+\.efi")
        self.assertIn("::/loader/loader.conf", names)
        self.assertRegex(names, r"::/loader/entries/ostree-[^\n]*\.conf")
        kernel = next(line for line in names.split("\n") if "/vmlinuz" in line)
        at = self.partition(document, "RASUPD-ESP")["start"]
        copied = tool("mtype", "-i", f"{self.disk}@@{at}", kernel, env={**os.environ, "MTOOLS_SKIP_CHECK": "1"})
        self.assertEqual("kernel of 1\n" * 200, copied)

    def test_an_esp_without_room_for_the_kernel(self):
        layer = oci.Layer().file("usr/lib/systemd/boot/efi/systemd-bootx64.efi", "MZ program")
        layer.file("usr/lib/systemd/boot/efi/systemd-bootaa64.efi", "MZ program")
        layer.file(f"usr/lib/modules/{oci.KERNEL_VERSION}/initramfs.img", bytes(45 * MIB))
        self.releases.publish("1.0", oci.tiny_os("1.0", extra=[layer]))
        outcome = self.rasupd(*self.words("--bootloader", "systemd-boot", "--esp-size", "40M"))
        self.assertEqual("NoSpace", outcome.error["kind"], outcome)
        self.assertIs(outcome.document["changed"], True, outcome)

    def test_systemd_boot_that_nobody_has(self):
        if os.path.isdir("/usr/lib/systemd/boot/efi"):
            self.skipTest("this machine has it")
        outcome = self.rasupd(*self.words("--bootloader", "systemd-boot"))
        self.assertEqual("Unsuitable", outcome.error["kind"], outcome)
        self.assertIn("systemd-boot-efi", outcome.error["hint"])
        self.assertIs(outcome.document["changed"], True, outcome)

    def test_another_architecture(self):
        self.releases.publish("1.0", arch=oci.other_arch())
        document = self.ok(*self.words("--arch", oci.other_arch(), "--bootloader", "none"))
        labels = [one["label"] for one in document["partitions"]]
        self.assertEqual(oci.other_arch() == "amd64", "rasupd-bios" in labels)

    def test_a_block_device(self):
        loop = tool("losetup", "--find", "--show", self.disk).strip()
        try:
            document = self.ok(*self.words("--bootloader", "none", disk=loop))
            self.assertEqual(loop, document["device"])
        finally:
            tool("losetup", "--detach", loop)
        self.assert_clean(self.extract(self.partition(document, "rasupd-root")))


class Interrupted(Disk):
    """Mounts and loop devices are gone whatever happened (tearDown looks); the disk can be installed again."""

    def test_failures_at_every_step(self):
        self.untouched("Cancelled", *self.words(), RASUPD_FAILPOINT="disk-verified=int")
        for step in ("disk-zapped=error", "disk-mounted=int", "import-layer=int", "stage=error", "deploy-done=error", "disk-installed=term"):
            with self.subTest(step):
                outcome = self.rasupd(*self.words("--wipe"), RASUPD_FAILPOINT=step)
                self.assertNotEqual(0, outcome.code, outcome)
                self.assertIs(outcome.document["changed"], True, outcome)
                self.assertIn("is gone", outcome.error["message"])
                self.assert_nothing_stays()
        self.ok(*self.words("--wipe"), changed=True)

    def test_killed(self):
        for step in ("disk-mounted=kill", "import-layer=kill"):
            with self.subTest(step):
                words = ("--config-root", self.config.path, *self.words("--wipe"))
                process = start(*words, RASUPD_FAILPOINT=step, TMPDIR=self.folder)
                process.communicate(timeout=60)
                self.assertEqual(-signal.SIGKILL, process.returncode)
                self.assert_nothing_stays()
        self.ok(*self.words("--wipe"), changed=True)

    def test_two_at_once(self):
        go = self / "go"
        first = start("--config-root", self.config.path, "--json", *self.words(), RASUPD_FAILPOINT="disk-mounted=stall",
                      RASUPD_FAILPOINT_GO=go, TMPDIR=self.folder)
        try:
            self.wait_for(lambda: "loop" in tool("losetup", "--associated", self.disk))
            self.assertIn(self.rasupd(*self.words("--wipe")).error["kind"], ("Busy", "Usage"))
        finally:
            write(go, "")
            out, err = first.communicate(timeout=60)
        self.assertEqual(0, first.returncode, out + err)
        self.assertEqual("InstallToDiskResult", json.loads(out)["kind"])


if __name__ == "__main__":
    unittest.main()

"""A machine over two upgrades, a switch and a rollback: /etc, /var and the role stay right all the way."""

import os
import unittest

from tests.support import oci_builder as oci
from tests.support.releases import Releases
from tests.support.world import WorldCase, differences, read, snapshot, write


def etc_layer(version):
    """Defaults that differ by version in every way a default can."""
    layer = oci.Layer().directory("etc")
    layer.file("etc/untouched", f"untouched of {version}").file("etc/content", f"content of {version}")
    layer.file("etc/mode", f"mode of {version}").file("etc/gone", f"gone of {version}").directory("etc/dir.d", mode=0o755)
    layer.file("etc/dir.d/shipped", f"shipped of {version}").file(f"etc/only-{version}", version)
    layer.symlink("etc/link", f"target-of-{version}").symlink("etc/relinked", f"target-of-{version}")
    return layer


class LongLife(WorldCase):
    """Every step checks the whole machine."""

    def setUp(self):
        super().setUp()
        self.registry = self.start_registry()
        self.releases = Releases(self.registry, self / "layout", self.key)

    def publish(self, version, **how):
        """One version with its own defaults in /etc."""
        self.releases.publish(version, oci.tiny_os(version, extra=[etc_layer(version)]), **how)

    def edit(self):
        """What an administrator and a running machine change."""
        etc = self.sysroot.default("etc/")
        write(etc + "content", "mine")
        os.chmod(etc + "mode", 0o600)
        os.unlink(etc + "gone")
        write(etc + "added", "mine")
        write(etc + "dir.d/added", "mine")
        os.unlink(etc + "relinked")
        os.symlink("my-target", etc + "relinked")
        os.setxattr(etc + "untouched", "user.note", b"mine")
        state = self.sysroot / self.sysroot.STATE
        write(state + "/role.compute", "")
        write(state + "/role.env", "RASUPD_ROLE=compute\n")
        write(state + "/provisioned", "")
        write(os.path.dirname(os.path.dirname(state)) + "/lib/app/data", b"\0\1" * 4000, 0o640)

    def check(self, version, former):
        """The default deployment is `version` with all that was edited."""
        etc = self.sysroot.default("etc/")
        contents = {"untouched": f"untouched of {version}", "content": "mine", "mode": f"mode of {version}", "added": "mine",
                    "dir.d/shipped": f"shipped of {version}", "dir.d/added": "mine", f"only-{version}": version}
        self.assertEqual(contents, {name: read(etc + name) for name in contents})
        self.assertEqual(0o600, os.stat(etc + "mode").st_mode & 0o7777)
        self.assertEqual((f"target-of-{version}", "my-target"), (os.readlink(etc + "link"), os.readlink(etc + "relinked")))
        self.assertEqual(b"mine", os.getxattr(etc + "untouched", "user.note"))
        for name in ("gone", f"only-{former}"):
            self.assertFalse(os.path.lexists(etc + name), name)
        self.assertEqual([], differences(self.var, self.sysroot.var_state()))
        state = self.sysroot / self.sysroot.STATE
        self.assertEqual("RASUPD_ROLE=compute\n", read(state + "/role.env"))
        self.assertTrue(os.path.exists(state + "/role.compute") and os.path.exists(state + "/provisioned"))
        self.assertEqual("compute", self.status()["rasupd"]["role"])
        self.assert_sound()

    def test_two_upgrades_a_switch_and_a_rollback(self):
        self.publish("1.0")
        self.ok("install", "to-filesystem", self.releases.reference, self.sysroot.path, changed=True)
        self.edit()
        self.var = self.sysroot.var_state()
        self.publish("2.0")
        self.ok("upgrade", changed=True)
        self.check("2.0", "1.0")
        self.publish("3.0")
        self.ok("upgrade", changed=True)
        self.check("3.0", "2.0")
        third = snapshot(self.sysroot.default("etc"))
        self.publish("4.0", tag="other")
        self.ok("switch", self.registry.reference(self.releases.repository, "other"), changed=True)
        self.check("4.0", "3.0")
        self.registry.stop()
        self.ok("rollback", changed=True)
        self.check("3.0", "2.0")
        self.assertEqual([], differences(third, snapshot(self.sysroot.default("etc"))))


if __name__ == "__main__":
    unittest.main()

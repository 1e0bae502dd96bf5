"""The main job with a real Debian 12 image of more than 250 MB in six layers, from a real registry."""

import os
import subprocess
import unittest

from tests.support import oci_builder as oci
from tests.support.world import SOURCE, WorldCase, read, write


class DebianImage(WorldCase):
    """One pass through install, upgrade and rollback: each step is too costly to repeat."""

    def publish(self, registry, folder):
        """Pushes and signs one version; returns (digest, layer digests)."""
        layout = oci.Layout(self / ("signatures-" + os.path.basename(folder)))
        source = f"oci:{folder}:os"
        target = "docker://" + registry.reference(self.REPOSITORY, "stable")
        subprocess.run(
            ["skopeo", "--insecure-policy", "copy", "-q", "--preserve-digests", "--dest-tls-verify=false", source, target], check=True
        )
        manifest = registry.request("GET", f"/v2/{self.REPOSITORY}/manifests/stable", headers={"Accept": oci.MANIFEST}).body
        registry.sign(layout, oci.sha256(manifest), self.REPOSITORY, self.key)
        return oci.sha256(manifest), [layer["digest"] for layer in oci.json.loads(manifest)["layers"]]

    def test_install_upgrade_rollback(self):
        script = os.path.join(SOURCE, "tests/support/debian_image.sh")
        images = subprocess.run(["bash", script], check=True, capture_output=True, text=True).stdout.strip()
        info = dict(line.split("=") for line in read(os.path.join(images, "info")).splitlines())
        self.assertGreater(int(info["TREE_BYTES"]), 250_000_000)
        registry = self.start_registry()
        first, old_layers = self.publish(registry, images + "/v1")
        self.assertGreaterEqual(len(old_layers), 5)

        self.ok("install", "to-filesystem", registry.reference(self.REPOSITORY, "stable"), self.sysroot.path, changed=True)
        self.assertEqual("1.0", read(self.sysroot.default("usr/lib/rasupd-test/version")).strip())
        self.assertEqual(0o4755, os.stat(self.sysroot.default("usr/bin/passwd")).st_mode & 0o7777)
        self.assert_sound()

        write(self.sysroot.default("etc/rasupd-test.conf"), "edited here\n")
        var = self.sysroot.var_state()
        second, new_layers = self.publish(registry, images + "/v2")
        before = registry.log_position()
        self.ok("upgrade", changed=True)
        fetched = set(registry.fetched_blobs(since=before))
        changed = set(new_layers) - set(old_layers)
        self.assertIn(len(changed), (1, 2))
        self.assertLessEqual(changed, fetched)
        self.assertEqual(set(), fetched & set(old_layers), "a layer that was there was fetched again")
        self.assertEqual("2.0", read(self.sysroot.default("usr/lib/rasupd-test/version")).strip())
        self.assertEqual("edited here\n", read(self.sysroot.default("etc/rasupd-test.conf")))
        self.assertTrue(os.path.exists(self.sysroot.default("etc/rasupd-test-2.0.conf")))
        self.assertFalse(os.path.exists(self.sysroot.default("etc/rasupd-test-1.0.conf")))
        self.assertTrue(os.path.exists(self.sysroot.default("usr/bin/tree")))
        self.assertEqual(var, self.sysroot.var_state())
        self.assertEqual(first, self.status()["rollback"]["image"]["imageDigest"])
        self.assert_sound()

        registry.stop()
        self.ok("rollback", changed=True)
        self.assertEqual("1.0", read(self.sysroot.default("usr/lib/rasupd-test/version")).strip())
        self.assertEqual(second, self.status()["rollback"]["image"]["imageDigest"])
        self.assert_sound()


if __name__ == "__main__":
    unittest.main()

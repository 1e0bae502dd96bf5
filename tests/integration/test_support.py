"""The test world itself: what it builds is what other people's tools accept, and its eyes see changes."""

import base64
import json
import os
import subprocess
import unittest
import urllib.error

from tests.support import oci_builder as oci
from tests.support import sign
from tests.support.world import WorldCase, differences, snapshot, write


class Support(WorldCase):
    """skopeo judges images, openssl signatures."""

    def signature_of(self, registry, digest):
        """The stored signature of `digest`: (payload, signature)."""
        tag = sign.signature_tag(digest)
        path = f"/v2/{self.REPOSITORY}"
        manifest = json.loads(registry.request("GET", f"{path}/manifests/{tag}", headers={"Accept": oci.MANIFEST}).body)
        layer = manifest["layers"][0]
        signature = base64.b64decode(layer["annotations"][sign.SIGNATURE])
        return registry.request("GET", f"{path}/blobs/{layer['digest']}").body, signature

    def openssl_accepts(self, key, payload, signature):
        """Whether openssl, with the command that cosign's documents give, says Verified OK."""
        write(self / "signature", signature)
        command = ["openssl", "dgst", "-sha256", "-verify", key.public, "-signature", self / "signature"]
        return subprocess.run(command, input=payload, capture_output=True).stdout.strip() == b"Verified OK"

    def test_openssl_accepts_our_signature_and_no_other_key(self):
        registry = self.start_registry()
        layout = oci.Layout(self / "layout")
        image = layout.add_image(oci.tiny_os("1.0"), tag="1.0", version="1.0")
        registry.push(layout, "1.0", self.REPOSITORY)
        registry.sign(layout, image.digest, self.REPOSITORY, self.key)
        payload, signature = self.signature_of(registry, image.digest)
        self.assertEqual(image.digest, json.loads(payload)["critical"]["image"]["docker-manifest-digest"])
        self.assertTrue(self.openssl_accepts(self.key, payload, signature))
        self.assertFalse(self.openssl_accepts(sign.KeyPair(self / "keys", "other"), payload, signature))
        registry.unsign(image.digest, self.REPOSITORY)
        with self.assertRaises(urllib.error.HTTPError):
            self.signature_of(registry, image.digest)

    def test_skopeo_pulls_what_we_build_and_the_log_proves_it(self):
        registry = self.start_registry()
        layout = oci.Layout(self / "layout")
        image = layout.add_image(oci.tiny_os("1.0"), tag="1.0", version="1.0")
        reference = registry.push(layout, "1.0", self.REPOSITORY)
        before = registry.log_position()
        command = ["skopeo", "--insecure-policy", "copy", "-q", "--src-tls-verify=false", "docker://" + reference]
        subprocess.run([*command, "oci:" + (self / "pulled") + ":x"], check=True)
        self.assertLessEqual(set(image.layer_digests), set(registry.fetched_blobs(since=before)))

    def test_index_and_compressions_survive_a_push(self):
        registry = self.start_registry(credentials=("user", "secret"))
        layout = oci.Layout(self / "layout")
        layers = [oci.Layer(how).directory("etc").file("etc/" + how, how) for how in ("none", "gzip", "zstd")]
        images = {arch: layout.add_image(layers, arch=arch) for arch in ("amd64", "arm64")}
        index = layout.add_index(images, tag="all")
        registry.push(layout, "all", self.REPOSITORY)
        answer = registry.request("GET", f"/v2/{self.REPOSITORY}/manifests/all", headers={"Accept": oci.INDEX})
        self.assertEqual(index["digest"], oci.sha256(answer.body))

    def test_same_description_same_bytes(self):
        first, second = oci.Layout(self / "one"), oci.Layout(self / "two")
        digests = [layout.add_image(oci.tiny_os("1.0"), tag="1.0").digest for layout in (first, second)]
        self.assertEqual(digests[0], digests[1])

    def test_lies_are_told(self):
        layout = oci.Layout(self / "layout")
        image = layout.add_image(oci.tiny_os("1.0"), lies=oci.Lies(altered_blob=1))
        blobs = [oci.sha256(layout.blob(digest)) == digest for digest in image.layer_digests]
        self.assertEqual([True, False, True], blobs)

    def test_snapshot_sees_every_kind_of_change(self):
        folder = self / "tree"
        write(os.path.join(folder, "file"), "a")
        os.symlink("x", os.path.join(folder, "link"))
        seen = snapshot(folder)
        self.assertEqual([], differences(seen, snapshot(folder)))
        changes = {
            "content": lambda: write(os.path.join(folder, "file"), "b"),
            "mode": lambda: os.chmod(os.path.join(folder, "file"), 0o600),
            "owner": lambda: os.chown(os.path.join(folder, "file"), 1, 1),
            "xattr": lambda: os.setxattr(os.path.join(folder, "file"), "user.x", b"1"),
            "new": lambda: write(os.path.join(folder, "more"), "b"),
            "gone": lambda: os.unlink(os.path.join(folder, "link")),
        }
        for name, change in changes.items():
            with self.subTest(name):
                change()
                now = snapshot(folder)
                self.assertEqual(1, len(differences(seen, now)))
                seen = now


if __name__ == "__main__":
    unittest.main()

"""The schemas in docs/schema: whole, strict enough to notice, and kept by every verb.

Every other test validates each document it sees as well (WorldCase.check_contract)."""

import copy
import os
import unittest

import jsonschema

from tests.support import schemas
from tests.support.releases import LayoutReleases
from tests.support.world import WorldCase

BOOTC_STATUS = {"staged", "booted", "rollback"}
BOOTC_ENTRY = {"image", "cachedUpdate", "incompatible", "pinned", "ostree"}


class Schemas(WorldCase):
    """Runs every verb, in success and in failure."""

    def setUp(self):
        super().setUp()
        os.makedirs(self.sysroot.path)
        self.releases = LayoutReleases(self / "layout", self.key, self.config)
        self.releases.publish("1.0")

    def test_schemas_are_schemas(self):
        self.assertTrue(schemas.files())
        for name, schema in schemas.files().items():
            with self.subTest(name):
                jsonschema.validators.validator_for(schema).check_schema(schema)

    def verbs(self):
        """Every verb with its kind, in an order that works on one machine."""
        reference, root = self.releases.reference, self.sysroot.path
        yield "InstallToFilesystemResult", ("install", "to-filesystem", reference, root)
        with open(self / "disk.img", "wb") as disk:
            disk.truncate(600 << 20)
        yield "InstallToDiskResult", ("install", "to-disk", reference, self / "disk.img", "--bootloader", "none")
        yield "UpgradeResult", ("upgrade",)
        self.releases.publish("2.0")
        yield "UpgradeResult", ("upgrade", "--check")
        yield "UpgradeResult", ("upgrade",)
        yield "SwitchResult", ("switch", reference)
        yield "BootcHost", ("status",)
        yield "EtcDiffResult", ("etc", "diff")
        yield "EtcConflictsResult", ("etc", "conflicts", reference)
        yield "ImageInspectResult", ("image", "inspect", reference)
        yield "ImageVerifyResult", ("image", "verify", reference)
        yield "ImageListResult", ("image", "list")
        yield "PinResult", ("pin", "0")
        yield "UnpinResult", ("unpin", "0")
        yield "UnstageResult", ("unstage",)
        yield "RollbackResult", ("rollback",)
        yield "PruneResult", ("prune",)
        yield "HealthStatusResult", ("health", "status")

    def test_every_verb_keeps_its_schema(self):
        seen = set()
        for kind, words in self.verbs():
            with self.subTest(words=words[:2]):
                self.assertEqual(kind, self.ok(*words)["kind"])
                seen.add(kind)
        described = {kind for schema in schemas.files().values() for kind in schemas.kinds_of(schema)}
        booted = {"FinalizeResult", "ApplyResult"} | {f"Health{verb}Result" for verb in ("Check", "Deadline", "MarkGood", "MarkBad")}
        self.assertEqual({"UsageResult"} | booted, described - seen, "a schema whose document no test made")

    def test_failures_keep_their_schema(self):
        for kind, words in {
            "UsageResult": ("nonsense",),
            "UpgradeResult": ("upgrade",),
            "RollbackResult": ("rollback",),
            "ApplyResult": ("apply",),
            "ImageVerifyResult": ("image", "verify", "oci:/nowhere:x"),
        }.items():
            with self.subTest(kind):
                outcome = self.rasupd(*words)
                self.assertNotEqual(0, outcome.code)
                self.assertEqual(kind, outcome.document["kind"], outcome)

    def test_schemas_notice(self):
        self.ok("install", "to-filesystem", self.releases.reference, self.sysroot.path)
        for words in (("status",), ("upgrade",)):
            document = self.ok(*words)
            spoiled = copy.deepcopy(document)
            spoiled["apiVersion"] = 7
            self.assertNotEqual([], schemas.complaints(spoiled))
        spoiled = copy.deepcopy(document)
        del spoiled["changed"]
        self.assertNotEqual([], schemas.complaints(spoiled))

    def test_status_has_bootcs_shape(self):
        self.ok("install", "to-filesystem", self.releases.reference, self.sysroot.path)
        self.releases.publish("2.0")
        self.ok("upgrade")
        document = self.ok("status", "--format", "json", "--format-version", "1")
        self.assertEqual({"apiVersion", "kind", "metadata", "spec", "status"}, set(document) & {"apiVersion", "kind", "metadata", "spec", "status"})
        self.assertLessEqual(BOOTC_STATUS, set(document["status"]))
        self.assertLessEqual(BOOTC_ENTRY, set(document["status"]["rollback"]))
        self.assertEqual({"image", "transport"}, set(document["spec"]["image"]) & {"image", "transport"})
        self.assertEqual("oci", document["spec"]["image"]["transport"])


if __name__ == "__main__":
    unittest.main()

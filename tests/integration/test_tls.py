"""Registries over https: certificates, certs.d, client certificates."""

import os
import shutil
import unittest

from tests.support.releases import Releases
from tests.support.tls import Authority, TlsFront
from tests.support.world import WorldCase

FAST = "[download]\nretries=0\nstall_seconds=5\n"


class Tls(WorldCase):
    """A signed image behind a TLS front; registries.conf allows no plain http."""

    def setUp(self):
        super().setUp()
        self.registry = self.start_registry()
        self.authority = Authority(self / "authority")
        self.config.conf(FAST)

    def publish_behind(self, **options):
        """Starts the front, publishes 1.0 signed for its name; sets self.words for an installation from there."""
        front = TlsFront(self.registry.port, *self.authority.issue("server"), **options)
        self.addCleanup(front.stop)
        self.trust_registry(front.host)
        self.config.plain_http()
        releases = Releases(self.registry, self / "layout", self.key)
        releases.identity = f"{front.host}/{releases.repository}"
        releases.publish("1.0")
        os.makedirs(self.sysroot.path, exist_ok=True)
        self.words = ("install", "to-filesystem", f"{front.host}/{releases.repository}:stable", self.sysroot.path)
        self.certs = os.path.join(self.config.path, "etc/containers/certs.d", front.host)
        os.makedirs(self.certs)

    def test_an_unknown_authority_is_refused_and_certs_d_makes_it_known(self):
        self.publish_behind()
        outcome = self.refused("Offline", *self.words)
        self.assertIn("certs.d", outcome.error["message"] + outcome.error["hint"])
        self.assertEqual([], os.listdir(self.sysroot.path))
        shutil.copy(self.authority.certificate, os.path.join(self.certs, "ca.crt"))
        self.ok(*self.words, changed=True)

    def test_a_certificate_of_another_authority_is_refused(self):
        self.publish_behind()
        shutil.copy(Authority(self / "other").certificate, os.path.join(self.certs, "ca.crt"))
        self.refused("Offline", *self.words)
        self.assertEqual([], os.listdir(self.sysroot.path))

    def test_a_client_certificate_is_shown(self):
        self.publish_behind(client_ca=self.authority.certificate)
        shutil.copy(self.authority.certificate, os.path.join(self.certs, "ca.crt"))
        self.refused("Offline", *self.words)
        certificate, key = self.authority.issue("client")
        shutil.copy(certificate, os.path.join(self.certs, "client.cert"))
        shutil.copy(key, os.path.join(self.certs, "client.key"))
        self.ok(*self.words, changed=True)


if __name__ == "__main__":
    unittest.main()

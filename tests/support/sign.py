"""Cosign's classic signatures made by openssl, and policy files that ask for them.

The signature of sha256:<hex> is a manifest tagged `sha256-<hex>.sig` in the same repository; its layers are
simple-signing payloads, each with the signature of exactly those bytes in an annotation.
"""

import base64
import json
import os
import subprocess

from . import oci_builder as oci

PAYLOAD = "application/vnd.dev.cosign.simplesigning.v1+json"
SIGNATURE = "dev.cosignproject.cosign/signature"


class KeyPair:
    """A throw-away P-256 key: `private` and `public` are paths of PEM files."""

    def __init__(self, folder, name):
        os.makedirs(folder, exist_ok=True)
        self.private = os.path.join(folder, name + ".key")
        self.public = os.path.join(folder, name + ".pub")
        run = lambda *words: subprocess.run(["openssl", *words], check=True, capture_output=True)
        run("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", self.private)
        run("pkey", "-in", self.private, "-pubout", "-out", self.public)

    def sign(self, data):
        """The DER signature of `data` with SHA-256."""
        command = ["openssl", "dgst", "-sha256", "-sign", self.private]
        return subprocess.run(command, input=data, stdout=subprocess.PIPE, check=True).stdout


def signature_tag(digest):
    """The tag under which the signatures of `digest` are found."""
    return digest.replace(":", "-") + ".sig"


def payload(digest, identity):
    """The signed bytes: that `identity` is `digest`."""
    critical = {
        "identity": {"docker-reference": identity},
        "image": {"docker-manifest-digest": digest},
        "type": "cosign container image signature",
    }
    return json.dumps({"critical": critical, "optional": None}, separators=(",", ":")).encode()


def signature_manifest(layout, digest, identity, keys):
    """Writes blobs and manifest of the signatures of `digest` by `keys`; returns the manifest's descriptor."""
    signed = payload(digest, identity)
    layers = []
    for key in keys:
        descriptor = layout.add_blob(signed, PAYLOAD)
        descriptor["annotations"] = {SIGNATURE: base64.b64encode(key.sign(signed)).decode()}
        layers.append(descriptor)
    config = {"architecture": "", "os": "", "config": {}, "rootfs": {"type": "layers", "diff_ids": [layer["digest"] for layer in layers]}}
    manifest = {"schemaVersion": 2, "mediaType": oci.MANIFEST, "config": layout.add_json(config, oci.CONFIG), "layers": layers}
    return layout.add_json(manifest, oci.MANIFEST)


def sign_layout(layout, digest, identity, *keys):
    """Signs a manifest or index that is in `layout`, there."""
    layout.tag(signature_manifest(layout, digest, identity, keys), signature_tag(digest))


def signed_by(key, identity):
    """A policy requirement: a signature by `key` under the signedIdentity `identity`."""
    return {"type": "sigstoreSigned", "keyPath": key.public, "signedIdentity": identity}


def exact_repository(name):
    """The signedIdentity that fits every tag of one repository, also for layouts."""
    return {"type": "exactRepository", "dockerRepository": name}


MATCH_REPOSITORY = {"type": "matchRepository"}


def policy(default="reject", **transports):
    """A policy: transports are given as docker={scope: requirement}."""
    scopes = {name: {scope: [rule] for scope, rule in rules.items()} for name, rules in transports.items()}
    return {"default": [{"type": default}], "transports": scopes}

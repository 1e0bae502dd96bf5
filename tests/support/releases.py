"""Publishing versions of the tiny system: to a registry or into a layout, signed unless asked otherwise."""

from . import oci_builder as oci
from . import sign


class Releases:
    """One repository in a registry; every release goes to one tag, as a fleet's channel does."""

    def __init__(self, registry, folder, key, repository="tests/os", tag="stable"):
        self.registry, self.key, self.repository, self.tag = registry, key, repository, tag
        self.layout = oci.Layout(folder)
        self.identity = None  # another name to sign for, e.g. of a proxy

    @property
    def reference(self):
        """What an operator tracks."""
        return self.registry.reference(self.repository, self.tag)

    @property
    def name(self):
        """The reference without its tag."""
        return f"{self.registry.host}/{self.repository}"

    def publish(self, version, layers=None, keys=None, tag=None, identity=None, **how):
        """Builds, pushes and signs a version; `keys=()` leaves it unsigned. Returns its Image."""
        tag = tag or self.tag
        image = self.layout.add_image(layers or oci.tiny_os(version), tag=tag, version=version, **how)
        self.registry.push(self.layout, tag, self.repository)
        self._sign(image.digest, keys, identity)
        return image

    def publish_index(self, images, tag=None):
        """Pushes and signs an index over {arch: Image}; returns its descriptor."""
        descriptor = self.layout.add_index(images, tag=tag or self.tag)
        self.registry.push(self.layout, tag or self.tag, self.repository)
        self._sign(descriptor["digest"], None, None)
        return descriptor

    def _sign(self, digest, keys, identity):
        keys = (self.key,) if keys is None else keys
        if keys:
            self.registry.sign(self.layout, digest, self.repository, *keys, identity=identity or self.identity)


class LayoutReleases:
    """The same in an OCI layout directory, which needs no server."""

    IDENTITY = "registry.example/tests/os"

    def __init__(self, folder, key, config, tag="stable"):
        self.layout, self.key, self.tag = oci.Layout(folder), key, tag
        rule = sign.signed_by(key, sign.exact_repository(self.IDENTITY))
        config.policy(sign.policy(oci={self.layout.path: rule}))

    @property
    def reference(self):
        """What an operator tracks."""
        return f"oci:{self.layout.path}:{self.tag}"

    def publish(self, version, layers=None, keys=None, identity=None, **how):
        """Builds and signs a version; `keys=()` leaves it unsigned. Returns its Image."""
        image = self.layout.add_image(layers or oci.tiny_os(version), tag=self.tag, version=version, **how)
        keys = (self.key,) if keys is None else keys
        if keys:
            sign.sign_layout(self.layout, image.digest, identity or self.IDENTITY, *keys)
        return image

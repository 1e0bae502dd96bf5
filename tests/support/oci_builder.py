"""A small generator of OCI images in OCI layout directories, able to lie in every way a test needs.

    layout = Layout(path)
    image = layout.add_image(tiny_os("1.0"), tag="1.0", version="1.0")
    print(image.digest)

Same input, same bytes: all times are 0.
"""

import gzip
import hashlib
import io
import json
import os
import platform
import subprocess
import tarfile
from dataclasses import dataclass, field

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = {
    "none": "application/vnd.oci.image.layer.v1.tar",
    "gzip": "application/vnd.oci.image.layer.v1.tar+gzip",
    "zstd": "application/vnd.oci.image.layer.v1.tar+zstd",
}
REF_NAME = "org.opencontainers.image.ref.name"
VERSION = "org.opencontainers.image.version"
KERNEL_VERSION = "6.1.0-test"


def host_arch():
    """This machine's architecture as OCI names it."""
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())


def other_arch():
    """An architecture that this machine is not."""
    return "arm64" if host_arch() == "amd64" else "amd64"


def sha256(data):
    """The digest of `data` as OCI writes it."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def compress(data, how):
    """`data` compressed by "none", "gzip" or "zstd"."""
    if how == "gzip":
        return gzip.compress(data, compresslevel=6, mtime=0)
    if how == "zstd":
        return subprocess.run(["zstd", "-q", "-c"], input=data, stdout=subprocess.PIPE, check=True).stdout
    return data


class Layer:
    """One layer, described entry by entry; methods return the layer so that they chain."""

    def __init__(self, compression="gzip"):
        self.compression = compression
        self.entries = []
        self.raw = None

    def _add(self, path, kind, mode, uid, gid, xattrs, content=b"", target=""):
        info = tarfile.TarInfo(path)
        info.type, info.mode, info.uid, info.gid, info.linkname = kind, mode, uid, gid, target
        info.size = len(content)
        info.pax_headers = {"SCHILY.xattr." + name: value for name, value in (xattrs or {}).items()}
        self.entries.append((info, content))
        return self

    def file(self, path, content=b"", mode=0o644, uid=0, gid=0, xattrs=None):
        """A regular file; text is stored as UTF-8."""
        data = content.encode() if isinstance(content, str) else content
        return self._add(path, tarfile.REGTYPE, mode, uid, gid, xattrs, data)

    def directory(self, path, mode=0o755, uid=0, gid=0, xattrs=None):
        """A directory."""
        return self._add(path, tarfile.DIRTYPE, mode, uid, gid, xattrs)

    def symlink(self, path, target):
        """A symbolic link."""
        return self._add(path, tarfile.SYMTYPE, 0o777, 0, 0, None, target=target)

    def hardlink(self, path, target):
        """A second name of `target`."""
        return self._add(path, tarfile.LNKTYPE, 0o644, 0, 0, None, target=target)

    def device(self, path, mode=0o600):
        """A character device, which no image needs."""
        self._add(path, tarfile.CHRTYPE, mode, 0, 0, None)
        info = self.entries[-1][0]
        info.devmajor, info.devminor = 1, 1  # 0:0 would be an overlay whiteout
        return self

    def whiteout(self, path):
        """Removes `path` of the layers below."""
        folder, name = os.path.split(path)
        return self.file(os.path.join(folder, ".wh." + name))

    def opaque(self, path):
        """Removes what the layers below have in the directory `path`."""
        return self.file(os.path.join(path, ".wh..wh..opq"))

    @classmethod
    def from_tar(cls, data, compression="gzip"):
        """A layer whose tar is `data`, whatever that is."""
        layer = cls(compression)
        layer.raw = data
        return layer

    def tar(self):
        """The uncompressed bytes."""
        if self.raw is not None:
            return self.raw
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for info, content in self.entries:
                archive.addfile(info, io.BytesIO(content))
        return out.getvalue()


@dataclass
class Lies:
    """What an image says falsely. Numbers name a layer."""

    wrong_diff_id: int | None = None  # config names another diff_id
    altered_blob: int | None = None  # one byte of the stored blob differs from its digest
    truncated_blob: int | None = None  # the stored blob ends early
    wrong_size: int | None = None  # the descriptor's size is one too many
    missing_blob: int | None = None  # the blob is not stored
    altered_config: bool = False
    manifest: dict = field(default_factory=dict)  # members that replace the manifest's


@dataclass
class Image:
    """One image as it was written: its manifest's descriptor and those of its layers."""

    descriptor: dict
    layers: list
    config: dict

    @property
    def digest(self):
        """The digest of the manifest."""
        return self.descriptor["digest"]

    @property
    def layer_digests(self):
        """The digests of the layers, lowest first."""
        return [layer["digest"] for layer in self.layers]


class Layout:
    """An OCI layout directory."""

    def __init__(self, path):
        self.path = str(path)
        os.makedirs(os.path.join(self.path, "blobs", "sha256"), exist_ok=True)
        self._write("oci-layout", json.dumps({"imageLayoutVersion": "1.0.0"}).encode())
        if not os.path.exists(os.path.join(self.path, "index.json")):
            self._write_index([])

    def _write(self, name, data):
        with open(os.path.join(self.path, name), "wb") as out:
            out.write(data)

    def _write_index(self, manifests):
        index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests}
        self._write("index.json", json.dumps(index).encode())

    def entries(self):
        """The descriptors of index.json."""
        with open(os.path.join(self.path, "index.json"), encoding="utf-8") as source:
            return json.load(source)["manifests"]

    def blob_path(self, digest):
        """Where a blob is stored."""
        return os.path.join(self.path, "blobs", "sha256", digest.split(":")[1])

    def blob(self, digest):
        """A blob's bytes."""
        with open(self.blob_path(digest), "rb") as source:
            return source.read()

    def add_blob(self, data, media_type):
        """Stores `data`; returns its descriptor."""
        digest = sha256(data)
        with open(self.blob_path(digest), "wb") as out:
            out.write(data)
        return {"mediaType": media_type, "digest": digest, "size": len(data)}

    def tag(self, descriptor, name):
        """Makes `name` mean `descriptor`, which stays findable by its digest under its old names."""
        entry = {key: descriptor[key] for key in ("mediaType", "digest", "size")}
        entry["annotations"] = {REF_NAME: name}
        kept = [old for old in self.entries() if old.get("annotations", {}).get(REF_NAME) != name]
        self._write_index(kept + [entry])

    def untag(self, name):
        """Removes a name, e.g. a signature's."""
        self._write_index([old for old in self.entries() if old.get("annotations", {}).get(REF_NAME) != name])

    def add_json(self, value, media_type):
        """Stores a JSON document as a blob; returns its descriptor."""
        return self.add_blob(json.dumps(value).encode(), media_type)

    def add_image(self, layers, tag=None, version=None, arch=None, labels=None, annotations=None, lies=None):
        """Writes an image; labels default to those of a bootable one. Returns its Image."""
        lies = lies or Lies()
        descriptors, diff_ids = self._add_layers(layers, lies)
        config = self._config(diff_ids, arch or host_arch(), labels, version)
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": self.add_json(config, CONFIG),
            "layers": descriptors,
            "annotations": dict(annotations or {}),
        }
        if version:
            manifest["annotations"][VERSION] = version
        manifest.update(lies.manifest)
        descriptor = self.add_json(manifest, MANIFEST)
        self._spoil(manifest, lies)
        if tag:
            self.tag(descriptor, tag)
        return Image(descriptor, descriptors, config)

    def _add_layers(self, layers, lies):
        descriptors, diff_ids = [], []
        for number, layer in enumerate(layers):
            tar = layer.tar()
            descriptor = self.add_blob(compress(tar, layer.compression), LAYER[layer.compression])
            if lies.wrong_size == number:
                descriptor["size"] += 1
            descriptors.append(descriptor)
            diff_ids.append(sha256(tar + b"?") if lies.wrong_diff_id == number else sha256(tar))
        return descriptors, diff_ids

    @staticmethod
    def _config(diff_ids, arch, labels, version):
        wanted = {"containers.bootc": "1"} if labels is None else dict(labels)
        if version and labels is None:
            wanted[VERSION] = version
        return {
            "architecture": arch,
            "os": "linux",
            "config": {"Labels": wanted},
            "rootfs": {"type": "layers", "diff_ids": diff_ids},
            "history": [{"created_by": f"layer {number}"} for number in range(len(diff_ids))],
        }

    def _spoil(self, manifest, lies):
        """Makes the stored blobs differ from what the manifest promises."""
        layers = manifest["layers"]
        if lies.altered_blob is not None:
            alter_file(self.blob_path(layers[lies.altered_blob]["digest"]))
        if lies.truncated_blob is not None:
            path = self.blob_path(layers[lies.truncated_blob]["digest"])
            os.truncate(path, os.path.getsize(path) // 2)
        if lies.missing_blob is not None:
            os.unlink(self.blob_path(layers[lies.missing_blob]["digest"]))
        if lies.altered_config:
            alter_file(self.blob_path(manifest["config"]["digest"]))

    def add_index(self, images, tag=None):
        """A multi-architecture index over {arch: Image}; returns its descriptor."""
        manifests = [
            dict(image.descriptor, platform={"architecture": arch, "os": "linux"}) for arch, image in images.items()
        ]
        descriptor = self.add_json({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests}, INDEX)
        if tag:
            self.tag(descriptor, tag)
        return descriptor


def alter_file(path):
    """Flips one bit in the middle of a file; its size stays."""
    with open(path, "r+b") as blob:
        data = bytearray(blob.read())
        data[len(data) // 2] ^= 0x01
        blob.seek(0)
        blob.write(data)


def base_layer():
    """What all versions of the tiny system share: the skeleton and a file that compresses badly."""
    layer = Layer()
    for path in ("usr", "usr/bin", "usr/lib", "usr/lib/ostree", "etc", "sysroot", "var", "boot", "run", "tmp", "proc", "sys", "dev"):
        layer.directory(path, mode=0o1777 if path == "tmp" else 0o755)
    layer.symlink("ostree", "sysroot/ostree").symlink("bin", "usr/bin").symlink("lib", "usr/lib").symlink("lib64", "usr/lib64")
    layer.file("usr/bin/true", "#!/bin/sh\n", mode=0o755)
    layer.file("usr/lib/ostree/prepare-root.conf", "[sysroot]\nreadonly=true\n")
    noise = b"".join(hashlib.sha256(str(number).encode()).digest() for number in range(2048))
    return layer.file("usr/lib/noise", noise)


def kernel_layer(version, kernel=True, initramfs=True, kernel_version=KERNEL_VERSION):
    """Kernel and initramfs of a version: bytes nobody looks at."""
    layer = Layer().directory("usr/lib/modules").directory(f"usr/lib/modules/{kernel_version}")
    if kernel:
        layer.file(f"usr/lib/modules/{kernel_version}/vmlinuz", f"kernel of {version}\n" * 200)
    if initramfs:
        layer.file(f"usr/lib/modules/{kernel_version}/initramfs.img", f"initramfs of {version}\n" * 200)
    return layer


def system_layer(version):
    """What changes from version to version: the release and defaults in /etc."""
    layer = Layer().file("usr/lib/os-release", f'ID=tiny\nVERSION_ID={version}\nPRETTY_NAME="Tiny {version}"\n')
    layer.file("etc/hostname", "tiny\n").file("etc/machine-id", "").file("etc/fstab", "")
    layer.file("etc/default.conf", f"default of {version}\n").file("etc/static.conf", "the same in all versions\n")
    layer.file("etc/mode.conf", f"mode default of {version}\n").file("etc/edited.conf", f"edited default of {version}\n")
    layer.file("etc/deleted.conf", f"deleted default of {version}\n").file(f"etc/only-{version}.conf", version)
    layer.directory("etc/tree.d").file("etc/tree.d/shipped.conf", f"tree of {version}\n")
    return layer.file("usr/share/version", version)


def tiny_os(version, kernel=True, initramfs=True, extra=()):
    """The layers of a bootable system of a few KB; `extra` layers go on top."""
    # One kernel for all versions of a series unless asked: "1.0" and "1.1" share it, "2.0" has another.
    return [base_layer(), kernel_layer(version.split(".")[0], kernel, initramfs), system_layer(version), *extra]

#!/usr/bin/python3
"""make_layout.py TREE LAYOUT: an OCI layout whose image is bootable by its shape and has one gzip layer per
top directory below TREE/usr, to feed import_bench.py. Nothing in it boots."""
import gzip
import hashlib
import io
import json
import os
import sys
import tarfile


def blob(layout, data, media_type):
    digest = hashlib.sha256(data).hexdigest()
    with open(f"{layout}/blobs/sha256/{digest}", "wb") as out:
        out.write(data)
    return {"mediaType": media_type, "digest": "sha256:" + digest, "size": len(data)}


def layer(layout, fill):
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as tar:
        fill(tar)
    data = plain.getvalue()
    packed = gzip.compress(data, 6, mtime=0)
    return blob(layout, packed, "application/vnd.oci.image.layer.v1.tar+gzip"), "sha256:" + hashlib.sha256(data).hexdigest()


def base(tar):
    for name in ("sysroot", "boot", "usr"):
        entry = tarfile.TarInfo(name)
        entry.type, entry.mode = tarfile.DIRTYPE, 0o755
        tar.addfile(entry)
    for name, size in (("vmlinuz", 8 << 20), ("initramfs.img", 24 << 20)):
        entry = tarfile.TarInfo("usr/lib/modules/6.1/" + name)
        entry.size = size
        tar.addfile(entry, io.BytesIO(os.urandom(size)))


def main():
    tree, layout = sys.argv[1:3]
    os.makedirs(layout + "/blobs/sha256")

    def only_storable(entry):
        return entry if entry.isreg() or entry.isdir() or entry.issym() or entry.islnk() else None

    layers = [layer(layout, base)]
    for name in sorted(os.listdir(tree + "/usr")):
        path = f"{tree}/usr/{name}"
        if os.path.isdir(path) and not os.path.islink(path) and os.listdir(path):
            layers.append(layer(layout, lambda tar: tar.add(path, "usr/" + name, filter=only_storable)))
    config = {"architecture": "amd64", "os": "linux", "config": {"Labels": {"containers.bootc": "1"}},
              "rootfs": {"type": "layers", "diff_ids": [diff_id for _, diff_id in layers]}}
    manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                "config": blob(layout, json.dumps(config).encode(), "application/vnd.oci.image.config.v1+json"),
                "layers": [descriptor for descriptor, _ in layers]}
    entry = blob(layout, json.dumps(manifest).encode(), manifest["mediaType"])
    entry["annotations"] = {"org.opencontainers.image.ref.name": "bench"}
    with open(layout + "/index.json", "w", encoding="utf-8") as out:
        json.dump({"schemaVersion": 2, "manifests": [entry]}, out)
    with open(layout + "/oci-layout", "w", encoding="utf-8") as out:
        out.write('{"imageLayoutVersion": "1.0.0"}')


main()

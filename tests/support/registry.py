"""A real registry (Debian's docker-registry) on a free loopback port, and pushing to it."""

import base64
import os
import re
import socket
import subprocess
import time
import urllib.error
import urllib.request

from . import sign

CONFIG = """version: 0.1
log:
  level: warn
  accesslog:
    disabled: false
storage:
  filesystem:
    rootdirectory: {storage}
  delete:
    enabled: true
http:
  addr: 127.0.0.1:{port}
"""
HTPASSWD = """auth:
  htpasswd:
    realm: rasupd-test
    path: {path}
"""
FETCHED_BLOB = re.compile(r'"GET /v2/(\S+)/blobs/(sha256:[0-9a-f]{64}) HTTP[^"]*" (\d+)')


def free_port():
    """A loopback port nobody listens on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Registry:
    """Runs until stop(); `credentials` is (user, password) when it should ask for them."""

    def __init__(self, folder, credentials=None):
        self.folder = str(folder)
        self.credentials = credentials
        self.storage = os.path.join(self.folder, "storage")
        os.makedirs(self.storage, exist_ok=True)
        self.log_path = os.path.join(self.folder, "log")
        self.port = free_port()
        self.host = f"127.0.0.1:{self.port}"
        self.process = None
        self.start()

    def start(self):
        """Starts it (again) on its port and waits until it answers."""
        config = os.path.join(self.folder, "config.yml")
        with open(config, "w", encoding="utf-8") as out:
            out.write(CONFIG.format(storage=self.storage, port=self.port))
            if self.credentials:
                out.write(HTPASSWD.format(path=self._write_htpasswd()))
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                ["docker-registry", "serve", config], stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
            )
        self._wait_until_up()

    def _write_htpasswd(self):
        path = os.path.join(self.folder, "htpasswd")
        line = subprocess.run(["htpasswd", "-Bbn", *self.credentials], check=True, capture_output=True).stdout
        with open(path, "wb") as out:
            out.write(line)
        return path

    def _wait_until_up(self):
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError("the registry ended: " + self.log())
            try:
                self.request("GET", "/v2/")
                return
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.05)
        self.stop()
        raise RuntimeError("the registry does not answer: " + self.log())

    def stop(self):
        """Ends the process; the storage stays, so start() goes on where it was."""
        if self.process and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(timeout=10)
        self.process = None

    def log(self):
        """What the registry wrote so far."""
        with open(self.log_path, encoding="utf-8", errors="replace") as source:
            return source.read()

    def request(self, method, path, data=None, headers=None):
        """One HTTP request; returns the response, its body read into `.body`."""
        request = urllib.request.Request(f"http://{self.host}{path}", data=data, method=method, headers=headers or {})
        if self.credentials:
            token = base64.b64encode(":".join(self.credentials).encode()).decode()
            request.add_header("Authorization", "Basic " + token)
        with urllib.request.urlopen(request, timeout=10) as response:
            response.body = response.read()
            return response

    def reference(self, repository, tag):
        """host:port/repository:tag."""
        return f"{self.host}/{repository}:{tag}"

    def push(self, layout, tag, repository, to_tag=None):
        """Copies an image or index with all that belongs to it, digests unchanged."""
        command = ["skopeo", "--insecure-policy", "copy", "--all", "--preserve-digests", "--dest-tls-verify=false", "-q"]
        if self.credentials:
            command += ["--dest-creds", ":".join(self.credentials)]
        target = "docker://" + self.reference(repository, to_tag or tag)
        subprocess.run([*command, f"oci:{layout.path}:{tag}", target], check=True, capture_output=True, timeout=300)
        return self.reference(repository, to_tag or tag)

    def put_blob(self, repository, data, digest):
        """Uploads one blob."""
        location = self.request("POST", f"/v2/{repository}/blobs/uploads/", data=b"").headers["Location"]
        path = location.split(self.host, 1)[1]
        path += ("&" if "?" in path else "?") + "digest=" + digest
        self.request("PUT", path, data=data, headers={"Content-Type": "application/octet-stream"})

    def put_manifest(self, repository, tag, data, media_type):
        """Uploads one manifest under a tag or its digest."""
        self.request("PUT", f"/v2/{repository}/manifests/{tag}", data=data, headers={"Content-Type": media_type})

    def sign(self, layout, digest, repository, *keys, identity=None):
        """Signs `digest` in `repository`; the identity is host:port/repository unless given."""
        descriptor = sign.signature_manifest(layout, digest, identity or f"{self.host}/{repository}", keys)
        manifest = sign.json.loads(layout.blob(descriptor["digest"]))
        for blob in [manifest["config"], *manifest["layers"]]:
            self.put_blob(repository, layout.blob(blob["digest"]), blob["digest"])
        self.put_manifest(repository, sign.signature_tag(digest), layout.blob(descriptor["digest"]), descriptor["mediaType"])

    def unsign(self, digest, repository):
        """Removes the signatures of `digest`."""
        tag = sign.signature_tag(digest)
        headers = {"Accept": sign.oci.MANIFEST}
        found = self.request("HEAD", f"/v2/{repository}/manifests/{tag}", headers=headers).headers["Docker-Content-Digest"]
        self.request("DELETE", f"/v2/{repository}/manifests/{found}")

    def blob_path(self, digest):
        """Where the registry stores a blob: tests alter it there, behind the registry's back."""
        name = digest.split(":")[1]
        return os.path.join(self.storage, "docker/registry/v2/blobs/sha256", name[:2], name, "data")

    def settled_log(self):
        """The log once every request answered so far is in it."""
        mark = f"/v2/?mark={time.monotonic_ns()}"
        self.request("GET", mark)
        deadline = time.monotonic() + 10
        while mark not in self.log() and time.monotonic() < deadline:
            time.sleep(0.02)
        return self.log()

    def fetched_blobs(self, since=0):
        """The digests of blobs that were fetched, in order, after the first `since` characters of the log."""
        return [match[2] for match in FETCHED_BLOB.finditer(self.settled_log()[since:])]

    def log_position(self):
        """A position for fetched_blobs(since=…)."""
        return len(self.settled_log())

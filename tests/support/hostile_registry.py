#!/usr/bin/python3
"""A registry on 127.0.0.1 that serves an OCI layout, and misbehaves where it is told to.

Prints its port as the first line. --faults names a JSON file, read anew at every request:

  {"auth": {"type": "basic"|"bearer", "users": {"alice": "secret"}, "anonymous": true, "realm": "URL"},
   "faults": [{"path": "GLOB", "skip": 0, "times": 1, "do": ACTION, …}]}

The first fault whose path matches is used; it lets `skip` requests pass and then hits `times` (default: all).
Actions: status (status, headers, body) · cut, stall (after: bytes of this answer) · truncate (after: a complete but
shorter answer) · alter (offset of one byte) · content_range (value) · no_range · redirect (to, status) ·
endless · content_type (value) · pad (bytes: spaces are appended). The access log (--log) is JSON lines:
method, path, status, headers. Realm's default is /token here; a bearer token is "token-USER".
"""

import argparse
import base64
import fnmatch
import json
import os
import re
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
lock = threading.Lock()
hits = {}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    options = None

    def log_message(self, *_):
        pass

    def record(self, status):
        if self.options.log:
            line = json.dumps({"method": self.command, "path": self.path, "status": status,
                               "headers": {k.lower(): v for k, v in self.headers.items()}})
            with lock, open(self.options.log, "a", encoding="utf-8") as out:
                out.write(line + "\n")

    def config(self):
        try:
            with open(self.options.faults, encoding="utf-8") as text:
                return json.load(text)
        except (OSError, TypeError):
            return {}

    def fault(self, config):
        for number, fault in enumerate(config.get("faults", [])):
            if not fnmatch.fnmatchcase(self.path.split("?")[0], fault["path"]):
                continue
            with lock:
                key = (number, json.dumps(fault, sort_keys=True))
                hits[key] = count = hits.get(key, 0) + 1
            skip = fault.get("skip", 0)
            return fault if skip < count <= skip + fault.get("times", 1 << 30) else {}
        return {}

    def answer(self, status, body=b"", headers=None):
        self.record(status)
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            try:
                self.wfile.write(body)
            except OSError:  # the client has seen enough
                self.close_connection = True

    def user(self, auth):
        value = self.headers.get("Authorization", "")
        if value.startswith("Basic "):
            name, _, password = base64.b64decode(value[6:]).decode().partition(":")
            return name if auth.get("users", {}).get(name) == password else None
        return None

    def authorized(self, auth):
        if auth.get("type") == "basic":
            challenge = 'Basic realm="test"'
            good = self.user(auth)
        elif auth.get("type") == "bearer":
            realm = auth.get("realm", f"http://127.0.0.1:{self.server.server_port}/token")
            challenge = f'Bearer realm="{realm}",service="test",scope="repository:wrong/one:pull"'
            good = self.headers.get("Authorization", "").startswith("Bearer token-")
        else:
            return True
        if not good:
            self.answer(401, b'{"errors":[{"code":"UNAUTHORIZED","message":"who\\u001b[31m?"}]}',
                        {"WWW-Authenticate": challenge})
        return bool(good)

    def token(self, auth):
        name = self.user(auth)
        if name is None and (self.headers.get("Authorization") or not auth.get("anonymous")):
            return self.answer(401)
        return self.answer(200, json.dumps({"token": "token-" + (name or "anonymous")}).encode())

    def find(self):
        match = re.fullmatch(r"/v2/(.+)/(manifests|blobs)/([^/]+)", self.path)
        if not match:
            return None
        kind, name = match.group(2), match.group(3)
        media = MANIFEST if kind == "manifests" else "application/octet-stream"
        with open(os.path.join(self.options.layout, "index.json"), encoding="utf-8") as text:
            for entry in json.load(text)["manifests"]:
                tag = entry.get("annotations", {}).get("org.opencontainers.image.ref.name")
                if kind == "manifests" and name in (tag, entry["digest"]):
                    name, media = entry["digest"], entry["mediaType"]
        if not re.fullmatch("sha256:[0-9a-f]{64}", name):
            return None
        try:
            with open(os.path.join(self.options.layout, "blobs/sha256", name[7:]), "rb") as blob:
                return media, blob.read()
        except OSError:
            return None

    def do_GET(self):
        config = self.config()
        auth = config.get("auth", {})
        url = urllib.parse.urlsplit(self.path)
        if url.path == "/token":
            return self.token(auth)
        fault = self.fault(config)
        do = fault.get("do")
        if do == "status":
            return self.answer(fault["status"], fault.get("body", "").encode(), fault.get("headers"))
        if do == "redirect":
            return self.answer(fault.get("status", 307), b"", {"Location": fault["to"].replace("{path}", self.path)})
        if not self.authorized(auth):
            return None
        found = self.find()
        if found is None:
            return self.answer(404, b'{"errors":[{"code":"MANIFEST_UNKNOWN","message":"not here"}]}')
        return self.send_content(fault, do, *found)

    def send_content(self, fault, do, media, body):
        status, headers, total = 200, {"Content-Type": media}, len(body)
        wanted = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if do == "alter":
            at = fault.get("offset", 0)
            body = body[:at] + bytes([body[at] ^ 1]) + body[at + 1:]
        if wanted and do != "no_range":
            start = int(wanted.group(1))
            if start >= total:
                return self.answer(416, b"", {"Content-Range": f"bytes */{total}"})
            status, body = 206, body[start:]
            headers["Content-Range"] = f"bytes {start}-{total - 1}/{total}"
        if do == "content_range" and wanted:
            headers["Content-Range"] = fault["value"]
        if do == "content_type":
            headers["Content-Type"] = fault["value"]
        if do == "truncate":
            body = body[:fault["after"]]
        if do == "pad":
            body += b" " * fault["bytes"]
        if do not in ("cut", "stall", "endless"):
            return self.answer(status, body, headers)
        self.record(status)
        self.close_connection = True
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if do != "endless":
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        try:
            self.wfile.write(body if do == "endless" else body[:fault["after"]])
            self.wfile.flush()
            while do == "endless":
                self.wfile.write(b"x" * 65536)
            if do == "stall":
                self.connection.recv(1)
        except OSError:
            pass
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layout", required=True, help="OCI layout directory, served under every repository name")
    parser.add_argument("--faults", help="JSON file described above")
    parser.add_argument("--log", help="access log to append to")
    parser.add_argument("--port", type=int, default=0, help="default: a free one")
    Handler.options = parser.parse_args()
    server = ThreadingHTTPServer(("127.0.0.1", Handler.options.port), Handler)
    server.daemon_threads = True
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()

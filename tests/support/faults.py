"""A proxy in front of the real registry that spoils the answers a test chooses."""

import http.server
import threading
import urllib.error
import urllib.request


class Spoiled:
    """How an answer is spoiled: another status, a cut after half the bytes, or a changed byte."""

    def __init__(self, status=None, cut=False, alter=False, headers=None):
        self.status, self.cut, self.alter, self.headers = status, cut, alter, headers or {}


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        """Nothing on stderr."""

    def do_GET(self):
        """Fetches from the real registry and answers as the test wants."""
        self.server.seen.append((self.command, self.path))
        spoiled = self.server.spoil(self.path) or Spoiled()
        if spoiled.status:
            self._answer(spoiled.status, spoiled.headers, b"{}")
            return
        status, headers, body = self._fetch()
        if spoiled.alter:
            body = bytes([body[0] ^ 1]) + body[1:]
        self._answer(status, headers, body, cut=spoiled.cut)

    do_HEAD = do_GET

    def _fetch(self):
        wanted = {name: self.headers[name] for name in ("Accept", "Range") if name in self.headers}
        request = urllib.request.Request(self.server.upstream + self.path, headers=wanted, method=self.command)
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.headers, error.read()

    def _answer(self, status, headers, body, cut=False):
        self.send_response(status)
        for name in ("Content-Type", "Docker-Content-Digest", "WWW-Authenticate", "Content-Range", "Retry-After"):
            if name in headers:
                self.send_header(name, headers[name])
        length = headers.get("Content-Length") if self.command == "HEAD" else None
        self.send_header("Content-Length", length or str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body[: len(body) // 2] if cut else body)
        if cut:
            self.close_connection = True


class FaultyRegistry:
    """The real registry as seen through a bad day; `spoil(path)` gives a Spoiled or None."""

    def __init__(self, registry):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self.server.daemon_threads = True
        self.server.upstream = f"http://{registry.host}"
        self.server.spoil = lambda path: None
        self.server.seen = []
        self.host = f"127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def spoil(self, part, **how):
        """Spoils every answer whose path contains `part`."""
        self.server.spoil = lambda path: Spoiled(**how) if part in path else None

    def heal(self):
        """Passes everything through again."""
        self.server.spoil = lambda path: None

    def asked(self, part):
        """How often a path with `part` was asked for."""
        return sum(part in path for _, path in self.server.seen)

    def stop(self):
        """Ends the server."""
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

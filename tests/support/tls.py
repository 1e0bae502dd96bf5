"""A TLS front on loopback for a plain registry, with a certificate authority made for the test."""

import os
import socket
import ssl
import subprocess
import threading


def openssl(*words):
    """Runs openssl quietly."""
    subprocess.run(["openssl", *words], check=True, capture_output=True)


class Authority:
    """A CA of its own and certificates it signs, as PEM files in a folder."""

    def __init__(self, folder):
        self.folder = str(folder)
        os.makedirs(self.folder, exist_ok=True)
        self.certificate = self.path("ca.crt")
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=test ca",
                "-keyout", self.path("ca.key"), "-out", self.certificate)

    def path(self, name):
        """A file in the authority's folder."""
        return os.path.join(self.folder, name)

    def issue(self, name, address="127.0.0.1"):
        """(certificate, key) for a server at `address` or a client."""
        certificate, key, request, extension = (self.path(name + end) for end in (".pem", ".key", ".csr", ".ext"))
        with open(extension, "w", encoding="utf-8") as out:
            out.write(f"subjectAltName=IP:{address}\n")
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}", "-keyout", key, "-out", request)
        openssl("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self.path("ca.key"), "-CAcreateserial", "-days", "2",
                "-extfile", extension, "-out", certificate)
        return certificate, key


class TlsFront:
    """Relays https on a free port to a plain port; asks for a client certificate of `client_ca` when given."""

    def __init__(self, target_port, certificate, key, client_ca=None):
        self.target_port = target_port
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificate, key)
        if client_ca:
            self.context.verify_mode = ssl.CERT_REQUIRED
            self.context.load_verify_locations(client_ca)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.host = f"127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def stop(self):
        """No new connections."""
        self.listener.close()

    def _accept(self):
        while True:
            try:
                plain, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(plain,), daemon=True).start()

    def _serve(self, plain):
        try:
            secure = self.context.wrap_socket(plain, server_side=True)
            behind = socket.create_connection(("127.0.0.1", self.target_port))
        except OSError:  # ssl.SSLError is one: the client refused us or we it
            plain.close()
            return
        back = threading.Thread(target=self._relay, args=(behind, secure), daemon=True)
        with secure, behind:
            back.start()
            self._relay(secure, behind)
            back.join()

    @staticmethod
    def _relay(source, sink):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

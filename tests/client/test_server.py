"""The connection to a team's server by TLS: whose certificate is trusted, and what is said of any other."""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from recollect.client.server import ServerClient
from recollect.errors import ServerUnreachable
from recollect.server_url import ServerUrl

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")


class Server(BaseHTTPRequestHandler):
    """Answers with the host and the token of each request."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        said = json.dumps({"host": self.headers["Host"], "token": self.headers["Authorization"]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """Return a certificate of this machine that nobody has signed but itself, with its key."""
    file = tmp_path / "certificate.pem"
    words = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost"
    command = ["openssl", *words.split(), "-keyout", str(file), "-out", str(tmp_path / "public.pem")]
    subprocess.run(command, check=True, capture_output=True)
    file.write_text(file.read_text() + (tmp_path / "public.pem").read_text(), encoding="utf-8")
    return file


@pytest.fixture
def port(certificate: Path) -> Iterator[int]:
    """Return the port of a server with this certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        server.handle_error = lambda *_: None  # type: ignore[method-assign]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def test_a_server_is_asked_by_tls(port: int, certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a certificate that is trusted the request arrives, with the host as the address names it."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    client = ServerClient(ServerUrl(True, "localhost", port, ""), "rec_x")
    assert client.post("/v1/stats", {}) == {"host": f"localhost:{port}", "token": "Bearer rec_x"}


def test_another_certificate_is_refused(port: int) -> None:
    """A certificate that nobody vouches for is named, with the variable that changes it; no token is sent."""
    with pytest.raises(ServerUnreachable, match=r"is not trusted: self.signed certificate\. SSL_CERT_FILE names"):
        ServerClient(ServerUrl(True, "localhost", port, ""), "rec_x").post("/v1/stats", {})


def test_a_name_that_is_not_in_the_certificate_is_refused(
    port: int, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The certificate must be that of the host which the address names."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with pytest.raises(ServerUnreachable, match=r"is not trusted: .*not valid for '127\.0\.0\.1'"):
        ServerClient(ServerUrl(True, "127.0.0.1", port, ""), "rec_x").post("/v1/stats", {})

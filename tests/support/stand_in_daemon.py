"""A stand-in for the daemon: takes requests on a Unix socket in a data folder, and answers what a test says."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

TOKEN = "a token of the test"
Answer = Callable[[dict[str, Any]], bytes]


def http(body: Any, status: str = "200 OK") -> bytes:
    """Return a whole response."""
    content = json.dumps(body).encode()
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(content)}\r\nConnection: close\r\n\r\n"
    return head.encode() + content


def publish(home: Path, path: Path, **changes: Any) -> Path:
    """Write the runtime file of a daemon that listens at a path, for its owner alone."""
    about = {"pid": 1, "version": "0", "protocol": 1, "token": TOKEN, "socket": str(path), "port": 0, "since": ""}
    file = home / "daemon.json"
    file.write_text(json.dumps(about | changes), encoding="utf-8")
    file.chmod(0o600)
    return file


@contextmanager
def standing_in(home: Path, answer: Answer) -> Iterator[list[dict[str, Any]]]:
    """Take requests until the block ends, and give the list of their bodies, each with its `headers` and `path`."""
    home.mkdir(exist_ok=True)
    path, taken = home / "s", list[dict[str, Any]]()
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as listener:
        listener.bind(str(path))
        listener.listen(8)
        thread = threading.Thread(target=_serve, args=[listener, answer, taken], daemon=True)
        thread.start()
        publish(home, path)
        yield taken
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
    thread.join()


def _serve(listener: socket.socket, answer: Answer, taken: list[dict[str, Any]]) -> None:
    while True:
        try:
            link, _ = listener.accept()
        except OSError:
            return
        with closing(link), suppress(OSError, ValueError):
            taken.append(_read(link))
            link.sendall(answer(taken[-1]))


def _read(link: socket.socket) -> dict[str, Any]:
    content = b""
    while b"\r\n\r\n" not in content:
        content += link.recv(65_536)
    head, _, body = content.partition(b"\r\n\r\n")
    headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
    while len(body) < int(headers["Content-Length"]):
        body += link.recv(65_536)
    return dict(json.loads(body)) | {"headers": headers, "path": head.decode().split()[1]}

"""The runtime file: the address of a store's daemon and its token, readable by its owner only.

It imports little, as each hook waits for it.
"""

from __future__ import annotations

import _socket  # `socket` takes longer to import than a hook has
import json
import os

from recollect.private_files import read_private, write_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAME = "daemon.json"
_OF_STORE = "daemon.token"
_TOKEN_BYTES = 32
PROTOCOL = 3
"""Changes when older clients cannot talk to the daemon any more."""
_HOST = "127.0.0.1"
_PORTS = range(65536)
_KINDS = {
    "pid": int,
    "version": str,
    "protocol": int,
    "token": str,
    "socket": str,
    "port": int,
    "since": str,
    "foreground": bool,
}
_DEFAULTS = {"foreground": False}


class Runtime:
    """What a client must know: a Unix socket or a loopback port, the token, and the process and its start.

    A daemon in the `foreground` was started by a person; any other gives way to one.
    """

    def __init__(
        self,
        *,
        pid: int,
        version: str,
        protocol: int,
        token: str,
        socket: str,
        port: int,
        since: str,
        foreground: bool = False,
    ) -> None:
        self.pid = pid
        self.version = version
        self.protocol = protocol
        self.token = token
        self.socket = socket
        self.port = port
        self.since = since
        self.foreground = foreground

    @property
    def public(self) -> dict[str, Any]:
        """Return every field but the token."""
        return {name: getattr(self, name) for name in _KINDS if name != "token"}

    @property
    def headers(self) -> dict[str, str]:
        """Return the headers that every request to the daemon carries."""
        return {"Authorization": f"Bearer {self.token}"}

    def write(self, folder: str | os.PathLike[str]) -> None:
        """Write the file atomically, readable by its owner only from the first byte."""
        write_private(_path_in(folder, NAME), json.dumps({name: getattr(self, name) for name in _KINDS}))

    def connect(self, timeout: float) -> _socket.socket:
        """Return a connection to the daemon; raise `OSError` where nobody listens."""
        link = _socket.socket(_socket.AF_UNIX if self.socket else _socket.AF_INET, _socket.SOCK_STREAM)
        try:
            link.settimeout(timeout)
            link.connect(self.socket or (_HOST, self.port))
        except OSError:
            link.close()
            raise
        return link


def read(folder: str | os.PathLike[str]) -> Runtime | None:
    """Return the content of the runtime file, None where it has none that is valid.

    Raises `OSError` where it cannot be read; a bare `PermissionError` means that other users could read its token, or
    have written it.
    """
    content = read_private(_path_in(folder, NAME))
    return None if content is None else _parse_runtime(content)


def token_of(folder: str | os.PathLike[str]) -> str:
    """Return the token of a store. It is made once, so that clients can use it after every start.

    A file that was deleted, or that others could touch, is replaced by a new token at the next start.
    """
    path = _path_in(folder, _OF_STORE)
    try:
        kept = (read_private(path) or b"").decode("ascii").strip()
    except (OSError, ValueError):
        kept = ""
    if kept:
        return kept
    token = os.urandom(_TOKEN_BYTES).hex()
    write_private(path, token)
    return token


def published_by(folder: str | os.PathLike[str], pid: int) -> bool:
    """Return whether the file exists and was written by `pid`; a file that cannot be read just now still exists."""
    try:
        with open(_path_in(folder, NAME), "rb") as file:  # noqa: PTH123 - pathlib takes long to import
            found = _parse_runtime(file.read())
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:  # such as too many open files
        return True
    return found is not None and found.pid == pid


def remove_runtime_file(folder: str | os.PathLike[str], pid: int) -> None:
    """Delete the runtime file in a data folder if process `pid` wrote it."""
    if published_by(folder, pid):
        try:
            os.unlink(_path_in(folder, NAME))  # noqa: PTH108
        except OSError:  # the folder became read-only: clients find no process behind the file
            return


def _parse_runtime(content: bytes) -> Runtime | None:
    """Return the content of a runtime file, None where a field is missing or has another type."""
    try:
        values = json.loads(content)
    except ValueError:
        return None
    if not isinstance(values, dict):
        return None
    known: dict[str, Any] = {name: values.get(name, _DEFAULTS.get(name)) for name in _KINDS}
    if not all(type(known[name]) is kind for name, kind in _KINDS.items()) or known["port"] not in _PORTS:
        return None
    return Runtime(**known) if known["socket"] or known["port"] else None


def _path_in(folder: str | os.PathLike[str], name: str) -> str:
    return os.path.join(folder, name)  # noqa: PTH118

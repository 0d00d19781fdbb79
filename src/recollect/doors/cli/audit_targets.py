"""Where an export of the audit log goes: a file, standard output or a syslog server; and the cursor that it leaves.

No library for RFC 5424 is kept up: a message is one line of text. A message on a stream is preceded by its length (RFC
6587, RFC 5425), so that nothing in it can be taken for its end; a datagram is a message (RFC 5426).
"""

from __future__ import annotations

import json
import os
import socket
import ssl
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from pydantic import TypeAdapter
from typing_extensions import override

from recollect import __version__
from recollect.domain.accounts import AuditRecord
from recollect.doors.cli import terminal
from recollect.environment import working_folder
from recollect.errors import InvalidInput, StoreUnusable
from recollect.private_files import replace_file

_STDOUT: Final = "-"
_PORTS: Final = {"syslog": 601, "syslog+udp": 514, "syslog+tls": 6514}  # RFC 3195, RFC 5426, RFC 5425
_PATIENCE: Final = 10.0  # seconds for one step of a connection
_FACILITY: Final = 13  # log audit
_NOTICE, _WARNING = 5, 4
_REFUSED: Final = "refuse"
_LONGEST: Final = 255  # characters of a host's name in a message


@dataclass
class Cursor:
    """Where an export goes on: after which lines, and at which byte of its file. It is kept in `file`, if not None."""

    file: Path | None = None
    after: tuple[int, ...] = ()
    size: int = 0

    @classmethod
    def read(cls, file: Path | None) -> Cursor:
        """Return what a file says, the beginning without the file; raise `InvalidInput` for another kind of file."""
        if file is None or not file.exists():
            return cls(file)
        try:
            known = _KEPT.validate_json(file.read_bytes(), strict=True)
        except (OSError, ValueError):
            raise InvalidInput("cursor", f"Invalid cursor: {file} is no cursor of an export.") from None
        return cls(file, known.after, known.size)

    def advance(self, after: tuple[int, ...], size: int) -> None:
        """Go on after these lines; the file says so once it is on the disk. Raises `StoreUnusable`."""
        self.after, self.size = after, size
        if self.file is not None:
            text = json.dumps({"after": after, "size": size})
            try:
                replace_file(self.file, (text.encode(),), durable=True)
            except OSError as error:
                raise StoreUnusable(f"The cursor {self.file} cannot be written: {error.strerror or error}.") from None


@dataclass(frozen=True)
class _Kept:
    """What the file of a cursor holds."""

    after: tuple[int, ...]
    size: int


_KEPT: Final = TypeAdapter(_Kept)


class Target(ABC):
    """Takes the lines of an export; once `write` has returned, they are where they belong."""

    size = 0
    """How many bytes of a file are written."""

    @abstractmethod
    def write(self, lines: Sequence[bytes]) -> None:
        """Write these lines, without what ends them; raise `StoreUnusable` where that cannot be."""

    @abstractmethod
    def close(self) -> None:
        """Let go of what was opened."""


def open_target(to: str, kept: Path | None) -> tuple[Target, Cursor]:
    """Return where an export goes, and from where on it goes; `kept` is the file of its cursor.

    Raises `InvalidInput` for a wrong address, or a file that is not the file of the cursor.
    """
    cursor = Cursor.read(kept)
    if "://" in to:
        return _server(to), cursor
    if to == _STDOUT:
        return _Output(), cursor
    return _File(working_folder() / to, cursor), cursor


class _Output(Target):
    """Standard output."""

    @override
    def write(self, lines: Sequence[bytes]) -> None:
        stream = terminal.stdout()
        stream.write("".join(f"{line.decode()}\n" for line in lines))
        stream.flush()

    @override
    def close(self) -> None:
        """Leave it open, as it is not ours."""


class _File(Target):
    """A file that only its owner reads. What stands in it behind the cursor, a run that was killed has left there."""

    def __init__(self, path: Path, cursor: Cursor) -> None:
        known = path.stat().st_size if path.exists() else 0
        begun = cursor.file is not None and cursor.file.exists()
        if known and not begun:
            raise InvalidInput("to", f"Invalid to: {path} is there already, and no cursor says where to go on in it.")
        if known < cursor.size:
            raise InvalidInput("to", f"Invalid to: {path} is shorter than {cursor.file} says; move both aside.")
        try:
            self._stream = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b")
            self._stream.truncate(cursor.size)
            self.size = self._stream.seek(cursor.size)
        except OSError as error:
            raise InvalidInput("to", f"Invalid to: {path} cannot be written: {error.strerror or error}.") from None
        self._path = path
        if not begun:
            cursor.advance(cursor.after, 0)  # so that a run that is killed at its first lines is continued too

    @override
    def write(self, lines: Sequence[bytes]) -> None:
        try:
            self._stream.write(b"".join(line + b"\n" for line in lines))
            self._stream.flush()
            os.fsync(self._stream.fileno())
        except OSError as error:
            raise StoreUnusable(f"{self._path} cannot be written: {error.strerror or error}.") from None
        self.size = self._stream.tell()

    @override
    def close(self) -> None:
        self._stream.close()


class _Stream(Target):
    """A syslog server over TCP, encrypted where there is a `context`; it is connected to for the first line."""

    def __init__(self, host: str, port: int, context: ssl.SSLContext | None) -> None:
        self._place = (host, port)
        self._context = context
        self._socket: socket.socket | None = None

    @override
    def write(self, lines: Sequence[bytes]) -> None:
        try:
            if self._socket is not None and _is_closed(self._socket):
                self.close()
            if self._socket is None:
                self._socket = self._connected()
            self._socket.sendall(b"".join(b"%d %b" % (len(line), line) for line in lines))
        except OSError as error:
            self.close()
            raise _unsent(self._place, error) from None

    def _connected(self) -> socket.socket:
        plain = socket.create_connection(self._place, _PATIENCE)
        return plain if self._context is None else self._context.wrap_socket(plain, server_hostname=self._place[0])

    @override
    def close(self) -> None:
        link, self._socket = self._socket, None
        if link is not None:
            with suppress(OSError):  # all was sent, and nobody answers
                link.shutdown(socket.SHUT_WR)
            link.close()


class _Datagrams(Target):
    """A syslog server over UDP, which may lose lines without anybody's notice."""

    def __init__(self, host: str, port: int) -> None:
        self._place = (host, port)
        self._socket: socket.socket | None = None

    @override
    def write(self, lines: Sequence[bytes]) -> None:
        try:
            if self._socket is None:
                family, kind, protocol, _, address = socket.getaddrinfo(*self._place, type=socket.SOCK_DGRAM)[0]
                self._socket = socket.socket(family, kind, protocol)
                self._socket.connect(address)
            for line in lines:
                self._socket.send(line)
        except OSError as error:
            self.close()
            raise _unsent(self._place, error) from None

    @override
    def close(self) -> None:
        link, self._socket = self._socket, None
        if link is not None:
            link.close()


def syslog_line(record: AuditRecord, text: str) -> str:
    """Return a record as a message of RFC 5424: facility `log audit`, the action as its kind, and `text` in it."""
    severity = _WARNING if record.action == _REFUSED else _NOTICE
    at = record.at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    host = "".join(sign for sign in socket.gethostname() if "!" <= sign <= "~")[:_LONGEST] or "-"
    origin = f'[origin software="recollect" swVersion="{__version__}"]'
    return f"<{_FACILITY * 8 + severity}>1 {at} {host} recollect - {record.action} {origin} {text}"


def _server(address: str) -> Target:
    """Return the syslog server at an address; raise `InvalidInput` for a wrong address."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:
        host, port = "", 0
    if not (host and port) or parts.path.strip("/") or parts.query or parts.username:
        known = ", ".join(f"`{scheme}://HOST:PORT`" for scheme in _PORTS)
        raise InvalidInput("to", f"Invalid to: Must be a file, `-`, or one of {known}, not `{address}`")
    if parts.scheme == "syslog+udp":
        return _Datagrams(host, port)
    return _Stream(host, port, ssl.create_default_context() if parts.scheme == "syslog+tls" else None)


def _is_closed(link: socket.socket) -> bool:
    """Return whether the other side has closed a connection, on which it never says anything."""
    link.setblocking(False)
    try:
        return link.recv(1) == b""
    except (BlockingIOError, ssl.SSLWantReadError):
        return False
    finally:
        link.settimeout(_PATIENCE)


def _unsent(place: tuple[str, int], error: OSError) -> StoreUnusable:
    return StoreUnusable(f"The syslog server at {place[0]}:{place[1]} takes nothing: {error.strerror or error}.")

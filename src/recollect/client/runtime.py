"""The runtime file: the address of a store's daemon and its token, readable by its owner only."""

from __future__ import annotations

import json
import secrets
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

from recollect.client.light import RUNTIME
from recollect.errors import DaemonUnreachable
from recollect.private_files import read_private, write_private

NAME = RUNTIME
_OF_STORE = "daemon.token"
ROLE = "recollect serve"
"""The role under which a daemon owns a store."""
PROTOCOL = 3
"""Changes when older clients cannot talk to the daemon any more."""
_PORTS: Final = range(65536)


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """What a client must know: a Unix socket or a loopback port, the token, and the process and its start.

    A daemon in the `foreground` was started by a person; any other gives way to one.
    """

    pid: int
    version: str
    protocol: int
    token: str
    socket: str
    port: int
    since: str
    foreground: bool = False

    @property
    def public(self) -> dict[str, Any]:
        """Return everything but the token."""
        return {name: value for name, value in asdict(self).items() if name != "token"}

    def write(self, folder: Path) -> None:
        """Write the file atomically, readable by its owner only from the first byte."""
        write_private(folder / NAME, json.dumps(asdict(self)))


def read(folder: Path) -> Runtime | None:
    """Return the runtime file's content if valid; raise `DaemonUnreachable` when other users could read its token."""
    path = folder / NAME
    try:
        content = read_private(str(path))
    except PermissionError as error:
        from recollect.store.ownership import problem

        if reason := problem(folder, error):
            raise DaemonUnreachable(reason) from None
        if error.errno is not None:
            raise DaemonUnreachable(f"{path} cannot be read: {error.strerror}.") from None
        raise DaemonUnreachable(
            f"{path} is not safe: other users can read or write it, or it belongs to another user. "
            "Stop the daemon with its owner's `recollect stop` and delete the file."
        ) from None
    except OSError as error:
        raise DaemonUnreachable(f"{path} cannot be read: {error.strerror or error}.") from None
    return None if content is None else _parsed(content)


def token_of(folder: Path) -> str:
    """Return the token of a store, which is made once, so that clients can use it after every start.

    After the file was deleted, or others could touch it, the next start makes another token.
    """
    path = folder / _OF_STORE
    with suppress(OSError, ValueError):
        if token := (read_private(str(path)) or b"").decode("ascii").strip():
            return token
    token = secrets.token_urlsafe(32)
    write_private(path, token)
    return token


def published_by(folder: Path, pid: int) -> bool:
    """Return whether the file exists and was written by `pid`; a file that cannot be read just now still exists."""
    try:
        found = _parsed((folder / NAME).read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:  # such as too many open files
        return True
    return found is not None and found.pid == pid


def remove(folder: Path, pid: int) -> None:
    """Remove the file if it was written by `pid`."""
    if published_by(folder, pid):
        with suppress(OSError):  # the folder became read-only: clients find no process behind the file
            (folder / NAME).unlink()


def _parsed(content: bytes) -> Runtime | None:
    try:
        said = json.loads(content)
    except ValueError:
        return None
    if not isinstance(said, dict):
        return None
    known: dict[str, Any] = {field.name: said.get(field.name, field.default) for field in fields(Runtime)}
    if (
        not all(type(known[field.name]).__name__ == field.type for field in fields(Runtime))
        or known["port"] not in _PORTS
    ):
        return None
    found = Runtime(**known)
    return found if found.socket or found.port else None

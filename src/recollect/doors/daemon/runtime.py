"""The runtime file: where the daemon of a store listens, and the token that opens it. For its owner's eyes only."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from recollect.errors import DaemonUnreachable

NAME = "daemon.json"
ROLE = "recollect serve"
"""What a daemon calls itself as the owner of a store."""
PROTOCOL = 1
"""Changes when an older client could no longer understand the daemon."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """What a client must know: a Unix socket or a loopback port, the token, and who is there since when."""

    pid: int
    version: str
    protocol: int
    token: str
    socket: str
    port: int
    since: str

    def write(self, folder: Path) -> None:
        """Publish atomically, readable by nobody else from the first byte."""
        new = folder / f"{NAME}.{self.pid}"
        new.unlink(missing_ok=True)
        handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(asdict(self), file)
        new.replace(folder / NAME)


def read(folder: Path) -> Runtime | None:
    """Return the runtime file's content, or None when there is none that makes sense.

    Raises `DaemonUnreachable` when others could have read or written it: its token is then no secret.
    """
    path = folder / NAME
    try:
        with path.open("rb") as file:
            about, content = os.fstat(file.fileno()), file.read()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise DaemonUnreachable(f"{path} cannot be read: {error.strerror or error}.") from None
    if os.name == "posix" and (about.st_mode & (stat.S_IRWXG | stat.S_IRWXO) or about.st_uid != os.getuid()):
        raise DaemonUnreachable(
            f"{path} is not safe: others can read or write it, or it belongs to another user. "
            "Stop the daemon with its owner's `recollect stop` and delete the file."
        )
    return _parsed(content)


def published_by(folder: Path, pid: int) -> bool:
    """Say whether the file is there and is the one that `pid` published."""
    try:
        found = _parsed((folder / NAME).read_bytes())
    except OSError:
        return False
    return found is not None and found.pid == pid


def remove(folder: Path, pid: int) -> None:
    """Take the file away when it is still the one that `pid` published."""
    if published_by(folder, pid):
        try:
            (folder / NAME).unlink()
        except OSError:  # the folder became read-only: readers find nobody behind the file
            return


def _parsed(content: bytes) -> Runtime | None:
    kinds = {"str": str, "int": int}
    try:
        found: Any = json.loads(content)
        values = {one.name: found[one.name] for one in fields(Runtime)}
    except (ValueError, TypeError, KeyError):
        return None
    sound = all(isinstance(values[one.name], kinds[str(one.type)]) for one in fields(Runtime))
    return Runtime(**values) if sound and (values["socket"] or 0 < values["port"] < 65536) else None

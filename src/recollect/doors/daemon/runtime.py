"""The runtime file: the address of a store's daemon and its token, readable by its owner only."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from recollect.errors import DaemonUnreachable

NAME = "daemon.json"
ROLE = "recollect serve"
"""The role under which a daemon owns a store."""
PROTOCOL = 1
"""Changes when older clients cannot talk to the daemon any more."""


class Runtime(BaseModel):
    """What a client must know: a Unix socket or a loopback port, the token, and the process and its start."""

    model_config = ConfigDict(frozen=True, strict=True)

    pid: int
    version: str
    protocol: int
    token: str
    socket: str
    port: Annotated[int, Field(ge=0, lt=65536)]
    since: str

    def write(self, folder: Path) -> None:
        """Write the file atomically, readable by its owner only from the first byte."""
        new = folder / f"{NAME}.{self.pid}"
        new.unlink(missing_ok=True)
        handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(self.model_dump_json())
        new.replace(folder / NAME)


def read(folder: Path) -> Runtime | None:
    """Return the runtime file's content if valid; raise `DaemonUnreachable` when other users could read its token."""
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
            f"{path} is not safe: other users can read or write it, or it belongs to another user. "
            "Stop the daemon with its owner's `recollect stop` and delete the file."
        )
    return _parsed(content)


def published_by(folder: Path, pid: int) -> bool:
    """Return whether the file exists and was written by `pid`; one that cannot be read just now has not gone."""
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
        found = Runtime.model_validate_json(content)
    except ValidationError:
        return None
    return found if found.socket or found.port else None

"""Which user of this machine is at the other end of a connection that does not leave it, where the system tells."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from starlette.types import Scope

_TABLES: Final = ("/proc/net/tcp", "/proc/net/tcp6")
_LOCAL, _REMOTE, _USER = 1, 2, 7  # columns
_SUPERUSER: Final = 0


def is_of_another_user(scope: Scope) -> bool:
    """Return whether a request surely comes from another user of this machine, the superuser excepted."""
    client, server = scope.get("client"), scope.get("server")
    if not client or not server:
        return False
    return user_of(client[1], server[1]) not in (None, os.getuid(), _SUPERUSER)


def user_of(client_port: int, server_port: int) -> int | None:
    """Return the number of the user whose connection on the loopback joins these ports; None where nothing tells."""
    for table in _TABLES:
        try:
            lines = Path(table).read_text(encoding="ascii").splitlines()[1:]
        except (OSError, ValueError):  # another system
            continue
        for columns in map(str.split, lines):
            if len(columns) > _USER and (_port_in(columns[_LOCAL]), _port_in(columns[_REMOTE])) == (
                client_port,
                server_port,
            ):
                return int(columns[_USER])
    return None


def _port_in(address: str) -> int:
    return int(address.rpartition(":")[2], 16)

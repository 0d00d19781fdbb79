"""An event of a coding agent's session for the server of a team: a process of its own sends it.

The agent waits for that process only where an answer is wanted, and no longer than its second: looking up the name of a
host cannot be broken off within a process.
"""

from __future__ import annotations

import json
import os
import select
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

from recollect import project_files
from recollect.client.server import client_here
from recollect.doors import hook_contracts, hook_spool

_PATIENCE: Final = 20.0  # seconds that an event is tried for which nobody waits
_LARGEST: Final = 2**22  # bytes of an answer


def tell(
    given: Mapping[str, str], told: Mapping[str, str], event: str, fields: dict[str, Any], deadline: float
) -> dict[str, Any]:
    """Hand an event to the server and return its answer, empty where none is wanted or comes before the deadline."""
    waits = event == hook_contracts.PROMPT
    reading, writing = os.pipe()
    if os.fork() == 0:
        try:
            os.close(reading)
            hook_spool.leave(max(0.1, deadline - time.monotonic()) if waits else _PATIENCE)
            answer = _sent(given, told, event, fields)
            with os.fdopen(writing, "wb") as stream:
                stream.write(json.dumps(answer).encode())
        finally:
            os._exit(0)
    os.close(writing)
    said = _received(reading, deadline) if waits else b""
    found = json.loads(said) if said else None
    return found if isinstance(found, dict) else {}


def _sent(given: Mapping[str, str], told: Mapping[str, str], event: str, fields: dict[str, Any]) -> dict[str, Any]:
    """Send an event with what its project asks for; nothing is sent of a session that is not captured."""
    folder = fields["folder"]
    settings = project_files.asked_here(folder, told)
    wanted = "inject" if event == hook_contracts.PROMPT else "capture"
    both_off = all(project_files.is_off(settings.get(name, True)) for name in ("inject", "capture"))
    if both_off or (wanted == "capture" and project_files.is_off(settings.get("capture", True))):
        return {}
    said = {"at": datetime.now(UTC).isoformat()} | fields
    return dict(client_here(given, folder).post(f"/v1/hooks/{event}", {"fields": said, "settings": settings}))


def _received(reading: int, deadline: float) -> bytes:
    """Return what comes until the other end closes, nothing where that takes longer than the deadline."""
    parts: list[bytes] = []
    size = 0
    with suppress(OSError):
        while (left := deadline - time.monotonic()) > 0 and size <= _LARGEST:
            if not select.select([reading], [], [], left)[0]:
                return b""
            part = os.read(reading, 65_536)
            if not part:
                return b"".join(parts)
            parts.append(part)
            size += len(part)
    return b""

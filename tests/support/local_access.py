"""The access of a daemon in this process, over a store that a test has open."""

from __future__ import annotations

from typing import Any

from recollect import Settings
from recollect.client.runtime import Runtime
from recollect.doors.http.local import LocalAccess

TOKEN = "token"


def local_access(app: Any, settings: Settings) -> LocalAccess:
    """Return what lets in whoever carries `TOKEN`; without an `app` it answers no operation."""
    runtime = Runtime(pid=1, version="1", protocol=1, token=TOKEN, socket="", port=1, since="today")
    return LocalAccess(app, runtime, settings, lambda: None, lambda *_: {})

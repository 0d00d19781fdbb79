"""Recollect: durable, searchable memory for AI agents and their teams.

Everything here is loaded on first use, so that `import recollect` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recollect.domain import Caller, Draft, Forget, Get, Hit, Memory, Outcome, Query, Recalled, Scope
    from recollect.doors.daemon.link import connect
    from recollect.errors import RecollectError
    from recollect.operations.embed import reindex
    from recollect.operations.forget import forget, get_memory
    from recollect.operations.recall import recall
    from recollect.operations.remember import remember
    from recollect.ports import App
    from recollect.settings import Settings
    from recollect.wiring import open_app

__all__ = [
    "App",
    "Caller",
    "Draft",
    "Forget",
    "Get",
    "Hit",
    "Memory",
    "Outcome",
    "Query",
    "Recalled",
    "RecollectError",
    "Scope",
    "Settings",
    "connect",
    "forget",
    "get_memory",
    "open_app",
    "recall",
    "reindex",
    "remember",
]

_HOMES = {
    "App": "recollect.ports",
    "RecollectError": "recollect.errors",
    "Settings": "recollect.settings",
    "connect": "recollect.doors.daemon.link",
    "forget": "recollect.operations.forget",
    "get_memory": "recollect.operations.forget",
    "open_app": "recollect.wiring",
    "recall": "recollect.operations.recall",
    "reindex": "recollect.operations.embed",
    "remember": "recollect.operations.remember",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES.get(name, "recollect.domain")), name)


def __dir__() -> list[str]:
    return sorted(__all__)

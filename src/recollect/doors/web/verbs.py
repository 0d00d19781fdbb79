"""The verbs that the page alone asks, and the one way to run any verb from a screen. No start needs to read them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from recollect.app import App
from recollect.domain.fields import Request
from recollect.domain.lifecycle import StartSession
from recollect.domain.page import (
    Browse,
    Facets,
    GlanceAtSessions,
    ReadJournal,
    ReadNearPairs,
    ReplaceMemory,
    SetStanding,
    TellApart,
    UsesOf,
)
from recollect.domain.requests import Caller, Query
from recollect.domain.review import Inbox
from recollect.doors import handlers
from recollect.memory.inbox import count_waiting
from recollect.memory.move import set_standing
from recollect.memory.near import near_pairs, replace_memory, tell_apart
from recollect.memory.overview import browse, facets, read_journal
from recollect.search.recall import recall_uncounted
from recollect.sessions.pipeline import preview_start
from recollect.sessions.session_log import glance_at_sessions, uses_of

PAGE: Final[dict[str, tuple[type[Request], Callable[..., Any]]]] = {
    run.__name__: (request, run)
    for request, run in (
        (Browse, browse),
        (Facets, facets),
        (Inbox, count_waiting),
        (UsesOf, uses_of),
        (ReadJournal, read_journal),
        (SetStanding, set_standing),
        (Query, recall_uncounted),
        (StartSession, preview_start),
        (ReadNearPairs, near_pairs),
        (ReplaceMemory, replace_memory),
        (TellApart, tell_apart),
        (GlanceAtSessions, glance_at_sessions),
    )
}
"""The request of each, and what runs it."""


def perform(app: App, name: str, fields: dict[str, Any], caller: Caller) -> Any:
    """Check the fields, then run a verb, of the page or of all doors."""
    if name not in PAGE:
        return handlers.perform(app, name, fields, caller)
    request, run = PAGE[name]
    return run(app, request(**fields), caller)

"""Verbs under other names, with other fields and scales: each turns its request into that of a verb and calls it."""

from __future__ import annotations

from typing import Any

from recollect.app import App
from recollect.domain.requests import Caller, Draft, MemoryRecall, MemoryRemember, MemoryStore, SearchMemories, Update
from recollect.domain.results import Outcome, Recalled
from recollect.errors import InvalidInput
from recollect.memory.remember import remember
from recollect.memory.update import update_memory
from recollect.search.recall import recall

_STEPS = 10.0


def memory_store(app: App, request: MemoryStore, caller: Caller, *, request_id: str = "") -> Outcome:
    """Create a memory, or with an `id` update that one.

    Raises what `remember` and `update_memory` raise.
    """
    if request.id is not None:
        return update_memory(app, Update(id=request.id, **_fields_with_values(request)), caller, request_id=request_id)
    if request.content is None:
        raise InvalidInput("content", "Missing content: `memory_store` requires `content` unless it updates an `id`")
    scope = {} if request.scope is None else {"scope": request.scope}
    return remember(app, Draft(**_fields_with_values(request), **scope), caller, request_id=request_id)


def search_memories(app: App, request: SearchMemories, caller: Caller) -> Recalled:
    """Return the memories that answer `query`, ordered by their weighted scores alone."""
    return recall(app, request, caller)


def memory_recall(app: App, request: MemoryRecall, caller: Caller) -> Recalled:
    """Return an index of all matches and the details that fit the budget, ranked with the profile `habit`."""
    return recall(app, request, caller)


def memory_remember(app: App, request: MemoryRemember, caller: Caller, *, request_id: str = "") -> Outcome:
    """Remember one of six kinds of knowledge; a profile always merges, events and cases are always new."""
    layers = {name: value for name in ("abstract", "overview") if (value := getattr(request, name)) is not None}
    draft = Draft(content=request.content, fact_type=request.category, scope=request.scope, **layers)
    return remember(app, draft, caller, request_id=request_id)


def _fields_with_values(request: MemoryStore) -> dict[str, Any]:
    """Return the fields of the request that have a value, under the names and scales of `Draft`."""
    importance = None if request.importance is None else request.importance / _STEPS
    named = {"abstract": request.summary, "fact_type": request.type, "importance": importance}
    same = {name: getattr(request, name) for name in ("content", "tags", "ttl_days")}
    return {name: value for name, value in (named | same).items() if value is not None}

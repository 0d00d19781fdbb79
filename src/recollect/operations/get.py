"""Read one memory by its id."""

from __future__ import annotations

from recollect.domain.requests import Caller, Get
from recollect.domain.results import Memory
from recollect.errors import NotFound
from recollect.operations.access_counts import count_use
from recollect.operations.visibility import parse_id, unfiltered
from recollect.ports.app import App


def get_memory(app: App, request: Get, caller: Caller) -> Memory:
    """Return a whole memory, also one that was replaced, and count the access; raise `NotFound` for an unknown id."""
    memory_id = parse_id(request.id)
    view = unfiltered(app, request, caller)
    memory = app.records.load([memory_id], view).get(memory_id) if memory_id else None
    if memory is None:
        raise NotFound(f"Memory {request.id} not found.")
    count_use(app, [memory.id], view.now, caller, accessed=True)
    return memory

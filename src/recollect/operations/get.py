"""Read one memory by its id."""

from __future__ import annotations

from recollect.app import App
from recollect.domain.requests import Caller, Get
from recollect.domain.results import Memory
from recollect.errors import NotFound
from recollect.search.elsewhere import project_with
from recollect.search.recall import count_use
from recollect.search.visibility import parse_id, unfiltered


def get_memory(app: App, request: Get, caller: Caller) -> Memory:
    """Return a whole memory, and count the access; raise `NotFound` for an unknown id.

    One that was replaced or merged into another is shown too, and of what a memory was merged.
    """
    memory_id = parse_id(request.id)
    view = unfiltered(app, request, caller).model_copy(update={"merged": True})
    memory = app.records.load([memory_id], view).get(memory_id) if memory_id else None
    if memory is None:
        project = project_with(app, memory_id, view, caller) if memory_id else ""
        raise NotFound(f"Memory {request.id} not found{f'; it is in your project {project}' if project else ''}.")
    count_use(app, [memory], view.now, caller, accessed=True)
    return memory.model_copy(update={"merged_from": app.records.merged_from(memory.id, view)})

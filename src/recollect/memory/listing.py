"""Reads: one memory by its id, and one page of memories in an order, by file, by concept and in time."""

from __future__ import annotations

from dataclasses import replace

from recollect.app import App
from recollect.domain.enums import Order
from recollect.domain.requests import ByConcept, ByFile, Caller, Get, Listing, Timeline
from recollect.domain.results import Listed, Memory
from recollect.errors import NotFound
from recollect.search.other_projects import note_of_counts, project_with, with_other_projects, with_project
from recollect.search.recall import count_use
from recollect.search.visibility import parse_id, unfiltered, view_of


def list_memories(app: App, request: Listing, caller: Caller) -> Listed:
    """Return a page of the memories that pass the filters, and how many there are."""
    view = view_of(app, request, caller)
    if request.everywhere:
        view = with_other_projects(app, view, caller, request.scope)
    with app.records.snapshot():
        ids, after = app.records.lists.page(view, request.order, request.limit, request.after, request.offset)
        found = app.records.load(ids, view)
        memories = [found[one] for one in ids if one in found]
        total = app.records.count(view)
        notes = () if total or request.everywhere else note_of_counts(app, view, caller, request.scope)
    shown = tuple(with_project(one, caller) if request.everywhere else one for one in memories)
    return Listed(shown, total, notes, after)


def search_by_file(app: App, request: ByFile, caller: Caller) -> Listed:
    """Return the memories that read or modified a file: the path itself, the end of one, or a folder above it."""
    return list_memories(app, request, caller)


def search_by_concept(app: App, request: ByConcept, caller: Caller) -> Listed:
    """Return the memories about a concept."""
    concepts = tuple(dict.fromkeys((request.concept, *request.concepts)))
    return list_memories(app, request.model_copy(update={"concepts": concepts}), caller)


def get_timeline(app: App, request: Timeline, caller: Caller) -> Listed:
    """Return memories in the order of their creation; without an `order`, the latest page of them."""
    if "order" in request.model_fields_set:
        return list_memories(app, request, caller)
    latest = list_memories(app, request.model_copy(update={"order": Order.NEWEST}), caller)
    return replace(latest, memories=latest.memories[::-1])


def get_memory(app: App, request: Get, caller: Caller) -> Memory:
    """Return a whole memory, and count the access.

    One that was replaced or merged into another is shown too, and of what a memory was merged. Raises `NotFound` for an
    unknown id.
    """
    memory_id = parse_id(request.id)
    view = unfiltered(app, request, caller).model_copy(update={"merged": True})
    memory = app.records.load([memory_id], view).get(memory_id) if memory_id else None
    if memory is None:
        project = project_with(app, memory_id, view, caller) if memory_id else ""
        raise NotFound(f"Memory {request.id} not found{f'; it is in your project {project}' if project else ''}.")
    count_use(app, [memory], view.now, caller, accessed=True)
    return memory.model_copy(update={"merged_from": app.records.merged_from(memory.id, view)})

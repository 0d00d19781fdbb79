"""Lists: one page of memories in an order. The lists by file, by concept and in time differ only in their requests."""

from __future__ import annotations

from dataclasses import replace

from recollect.app import App
from recollect.domain.enums import Order
from recollect.domain.requests import ByConcept, ByFile, Caller, Listing, Timeline
from recollect.domain.results import Listed
from recollect.search.elsewhere import note_of_counts, widened, with_project
from recollect.search.visibility import load_page, view_of


def list_memories(app: App, request: Listing, caller: Caller) -> Listed:
    """Return one page of the memories that meet the filters, in the order asked for, and how many there are."""
    view = view_of(app, request, caller)
    if request.everywhere:
        view = widened(app, view, caller, request.scope)
    with app.records.snapshot():
        memories = load_page(app, view, request.order, request.limit, request.offset)
        total = app.records.count(view)
        notes = () if total or request.everywhere else note_of_counts(app, view, caller, request.scope)
    return Listed(tuple(with_project(one, caller) if request.everywhere else one for one in memories), total, notes)


def search_by_file(app: App, request: ByFile, caller: Caller) -> Listed:
    """Return the memories that read or modified a file: the path itself, the end of one, or a folder above it."""
    return list_memories(app, request, caller)


def search_by_concept(app: App, request: ByConcept, caller: Caller) -> Listed:
    """Return the memories about a concept."""
    concepts = tuple(dict.fromkeys((request.concept, *request.concepts)))
    return list_memories(app, request.model_copy(update={"concepts": concepts}), caller)


def get_timeline(app: App, request: Timeline, caller: Caller) -> Listed:
    """Return the memories in the order in which they were created; without an `order` the latest page of them."""
    if "order" in request.model_fields_set:
        return list_memories(app, request, caller)
    latest = list_memories(app, request.model_copy(update={"order": Order.NEWEST}), caller)
    return replace(latest, memories=latest.memories[::-1])

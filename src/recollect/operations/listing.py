"""Lists: memories in an order, by file, by concept, in time; what resembles one; and how many there are."""

from __future__ import annotations

from recollect.domain import (
    ByConcept,
    ByFile,
    Caller,
    FindSimilar,
    Listed,
    Listing,
    Seen,
    Similar,
    Stats,
    Timeline,
    View,
)
from recollect.errors import InvalidInput, ModelUnusable, NotFound
from recollect.operations.view import everything, number_of, view_of
from recollect.ports import App


def list_memories(app: App, request: Listing, caller: Caller | None = None) -> Listed:
    """Return one page of the memories that meet the filters, in the order asked for, and how many there are."""
    return _listed(app, request, view_of(app, request, caller or app.caller))


def search_by_file(app: App, request: ByFile, caller: Caller | None = None) -> Listed:
    """Return the memories that read or modified a file: the path itself, the end of one, or a folder above it."""
    return list_memories(app, request, caller)


def search_by_concept(app: App, request: ByConcept, caller: Caller | None = None) -> Listed:
    """Return the memories about a concept."""
    concepts = tuple(dict.fromkeys((request.concept, *request.concepts)))
    return list_memories(app, request.model_copy(update={"concepts": concepts}), caller)


def get_timeline(app: App, request: Timeline, caller: Caller | None = None) -> Listed:
    """Return the memories in the order in which they were created."""
    return list_memories(app, request, caller)


def _listed(app: App, request: Listing, view: View) -> Listed:
    with app.records.snapshot():
        ids = app.records.listed(view, request.order, request.limit, request.offset)
        found = app.records.load(ids, view)
        return Listed(tuple(found[one] for one in ids if one in found), app.records.count(view))


def find_similar(app: App, request: FindSimilar, caller: Caller | None = None) -> list[Similar]:
    """Return what says nearly the same as a text or a memory: those whose best chunk is near enough, nearest first.

    Without a `threshold` it is the model card's for twins. Raises `InvalidInput` unless one of `content` and `id` is
    given, `NotFound` for an id the caller does not see, `ModelUnusable` while the model is not loaded.
    """
    caller = caller or app.caller
    if request.content is None and request.id is None:
        raise InvalidInput("content", "Missing content: `find_similar` requires either `content` or `id`")
    if request.content is not None and request.id is not None:
        raise InvalidInput("id", "Invalid id: Must not be given together with `content`")
    view = view_of(app, request, caller)
    memory_id = number_of(request.id) if request.id is not None else None
    text = request.content if request.content is not None else _content(app, request, caller, memory_id)
    app.warmup.wait(2.0)
    if not app.embedder.ready:
        raise ModelUnusable(f"Likeness is not known yet: {app.warmup.failure or 'the embedding model is loading.'}")
    threshold = app.embedder.card.twin if request.threshold is None else request.threshold
    vector = app.embedder.embed([text])[0]
    near = app.vectors.nearest(vector, view, request.limit + 1)
    close = {one: cosine for one, cosine in near.items() if cosine >= threshold and one != memory_id}
    found = app.records.load(close, view)
    return [Similar(found[one], cosine) for one, cosine in close.items() if one in found][: request.limit]


def _content(app: App, request: FindSimilar, caller: Caller, memory_id: int | None) -> str:
    contents = app.records.contents([memory_id], everything(app, request, caller)) if memory_id else {}
    if memory_id not in contents:
        raise NotFound(f"Memory {request.id} not found.")
    return contents[memory_id]


def stats(app: App, request: Seen, caller: Caller | None = None) -> Stats:
    """Count what the caller's namespaces hold, by scope, kind and state."""
    caller = caller or app.caller
    view = everything(app, request, caller, request.scope)
    from_now = View(view.namespaces, view.now, view.sensitivities)
    return app.records.stats(from_now)

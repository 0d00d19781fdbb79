"""Find the memories most similar to a text or to a memory."""

from __future__ import annotations

from recollect.app import App
from recollect.domain.requests import Caller, FindSimilar
from recollect.domain.results import Similar
from recollect.errors import InvalidInput, ModelUnusable, NotFound
from recollect.search.candidates import wait_for_model
from recollect.search.visibility import parse_id, unfiltered, view_of


def find_similar(app: App, request: FindSimilar, caller: Caller) -> list[Similar]:
    """Return the memories whose best chunk is similar enough to a text or a memory, nearest first.

    Without a `threshold` it is the model card's `similar`. Raises `InvalidInput` unless one of `content` and `id` is
    given, `NotFound` for an id the caller does not see, `ModelUnusable` while the model is not loaded.
    """
    if request.content is None and request.id is None:
        raise InvalidInput("content", "Missing content: `find_similar` requires either `content` or `id`")
    if request.content is not None and request.id is not None:
        raise InvalidInput("id", "Invalid id: Must not be given together with `content`")
    view = view_of(app, request, caller)
    memory_id = parse_id(request.id) if request.id is not None else None
    text = request.content if request.content is not None else _content_of(app, request, caller, memory_id)
    if not wait_for_model(app):
        why = app.embedder.failure or "it is still loading."
        raise ModelUnusable(f"Similarity search needs the embedding model: {why}")
    threshold = app.embedder.card.similar if request.threshold is None else request.threshold
    vector = app.embedder.read([text])[0].vector
    near = app.vectors.nearest(vector, view, request.limit + 1)
    close = {one: cosine for one, cosine in near.items() if cosine >= threshold and one != memory_id}
    found = app.records.load(close, view)
    return [Similar(found[one], cosine) for one, cosine in close.items() if one in found][: request.limit]


def _content_of(app: App, request: FindSimilar, caller: Caller, memory_id: int | None) -> str:
    """Return the content of a memory; raise `NotFound` where the caller does not see it."""
    contents = app.records.contents([memory_id], unfiltered(app, request, caller)) if memory_id else {}
    if memory_id not in contents:
        raise NotFound(f"Memory {request.id} not found.")
    return contents[memory_id]

"""The parents of recall, each alone: full-text search, vector search, and the rank fusion of both."""

from __future__ import annotations

from typing import Final

from evaluation.sets import fuse, ordered
from recollect import App, Caller
from recollect.domain.search import View
from recollect.search.parse import parse
from recollect.store.text.index import Term

FETCH: Final = 50


def parents(app: App, text: str, caller: Caller) -> tuple[list[int], list[int], list[int]]:
    """Return the best memories by words alone, by vectors alone, and by their rank fusion."""
    lexical, near = by_words_alone(app, text, caller), by_vectors_alone(app, text, caller)
    return lexical, near, fuse(lexical, near)


def by_words_alone(app: App, text: str, caller: Caller) -> list[int]:
    """Return the best memories by bm25."""
    words = [Term(word) for word in parse(text).words]
    return (
        ordered(app.text.search(words, View(namespaces=caller.namespaces(), now=app.clock()), FETCH)) if words else []
    )


def by_vectors_alone(app: App, text: str, caller: Caller) -> list[int]:
    """Return the best memories by cosine."""
    vector = app.embedder.read([text], "query")[0].vector
    return ordered(app.vectors.nearest(vector, View(namespaces=caller.namespaces(), now=app.clock()), FETCH))

"""Reindex: bring every index up to date, and move a store to another embedding model while recall goes on.

The new vectors are built beside the old ones and change places with them in one transaction; before it the store is
wholly of the old model, after it wholly of the new one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from recollect.app import App
from recollect.engines.chunks import Chunk, chunks_of
from recollect.engines.embedder import Embedder
from recollect.memory.embed import embed_pending, stamps_of
from recollect.text.entities import entities
from recollect.text.speaker_names import words_of
from recollect.text.terms import keywords_and_words

_BATCH = 16  # memories read and stored at once: what a kill costs, and how long a writer may wait
_PAUSE = 0.2  # seconds until it is looked again whether other replicas have embedded what they were at

_Progress = Callable[[int, int], None]


def reindex(
    app: App,
    progress: _Progress = lambda _done, _all: None,
    *,
    model: str | None = None,
    models_dir: Path | None = None,
    everything: bool = False,
) -> int:
    """Bring the indexes up to date with what is stored; return how many memories there are.

    With the store's own model only what is missing is embedded, and with `everything` all of it anew. With another
    `model` (as in the settings; looked for in `models_dir` too) the store moves to it: `app` then answers by words
    alone, and is to be opened again with that model. What was interrupted goes on where it was. `progress` gets how
    many memories are done and how many there are, and may raise to break off. Raises `ModelUnusable` before anything is
    touched.
    """
    target = app.embedder if model is None else app.open_model(model, models_dir)
    if stamps_of(target) == stamps_of(app.embedder):
        target = app.embedder
    target.warm()
    app.text.rebuild(keywords_and_words)
    app.records.derived.recount(words_of)
    app.records.moments.rebuild()
    app.records.derived.replace_entities(entities)
    if everything or not app.shadow_index.serves(stamps_of(target)):
        total = _move_to_model(app, target, progress)
    else:
        total = _embed_missing(app, progress)
    app.vectors.repair()
    return total


def _move_to_model(app: App, target: Embedder, progress: _Progress) -> int:
    """Build all vectors for the target model beside the old ones, then switch and embed what was written meanwhile."""
    read = partial(chunks_of, target)
    app.shadow_index.begin(stamps_of(target))
    total = _fill_shadow_index(app, read, progress)
    while not app.shadow_index.switch(read):
        total = _fill_shadow_index(app, read, progress)
    return total


def _fill_shadow_index(app: App, read: Callable[[str], tuple[Chunk, ...]], progress: _Progress) -> int:
    """Embed what the shadow index lacks until it lacks nothing; return how many memories there are."""
    while True:
        done, total = app.shadow_index.counts()
        progress(done, total)
        if done >= total:
            return total
        after = 0
        while waiting := app.shadow_index.missing(after, _BATCH):
            app.shadow_index.put([(one, read(one.content)) for one in waiting])
            after, done = waiting[-1].id, done + len(waiting)
            progress(min(done, total), total)


def _embed_missing(app: App, progress: _Progress) -> int:
    """Embed the memories that have no vectors yet; return how many memories there are."""
    waiting, total = app.records.embeddings.queue_missing(app.embedder.card.dimensions)
    done = total - waiting
    progress(done, total)

    def advance() -> None:
        nonlocal done
        done = min(done + 1, total)
        progress(done, total)

    while not embed_pending(app.records, app.embedder, advance):
        time.sleep(_PAUSE)  # replicas embed the rest
    return total

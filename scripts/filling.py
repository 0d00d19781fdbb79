"""Fill a store for measuring: the real `remember`, but for texts read in batches and commits that many share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal

from rich.console import Console
from rich.progress import track

import recollect
from recollect import App, Draft
from recollect.ports import Embedder, Reading, Records, Writing

_READ = 64
_COMMITTED = 1_024
HOW = f"through remember, read by the model {_READ} at a time, {_COMMITTED} to a commit"


class Prepared:
    """The embedder with the readings of some texts at hand; all else is the real one's."""

    def __init__(self, real: Embedder) -> None:
        self._real = real
        self._readings: dict[str, Reading] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def prepare(self, texts: Sequence[str]) -> None:
        """Read `texts`, and forget those before."""
        self._readings = {}
        for start in range(0, len(texts), _READ):
            batch = texts[start : start + _READ]
            self._readings |= zip(batch, self._real.read(batch), strict=True)

    def read(self, texts: Sequence[str], kind: Literal["query", "document"] = "document") -> list[Reading]:
        """Return the readings at hand, or else what the real embedder says."""
        if not all(text in self._readings for text in texts):
            return self._real.read(texts, kind)
        return [self._readings[text] for text in texts]


class Shared:
    """The records within one open transaction; all else is the real ones'."""

    def __init__(self, real: Records, transaction: Writing) -> None:
        self._real = real
        self._transaction = transaction

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    @contextmanager
    def writing(self, _namespace: str, _actor: str) -> Iterator[Writing]:
        """Hand out the open transaction."""
        yield self._transaction


def fill(app: App, drafts: Sequence[Draft]) -> None:
    """Remember `drafts`, all of them of one scope, as the app's own caller, and bring the vector index up to date."""
    prepared, caller = Prepared(app.embedder), app.caller
    steps = range(0, len(drafts), _COMMITTED)
    for start in track(steps, f"Remembering {len(drafts)} memories", console=Console(stderr=True)):
        batch = drafts[start : start + _COMMITTED]
        prepared.prepare([draft.content for draft in batch])
        with app.records.writing(caller.namespace(batch[0].scope), caller.user) as transaction:
            shared = replace(app, embedder=prepared, records=Shared(app.records, transaction))
            for draft in batch:
                recollect.remember(shared, draft)
    app.vectors.sync()

"""Other memories: texts that answer nothing, to lie beside those of a set."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from rich.progress import track

from evaluation.sets import err, rows_of
from recollect import App, Caller, Draft
from recollect.domain.enums import Source
from recollect.domain.origin import SaidBy
from recollect.domain.transfer import ImportBatch, ImportItem, ItemKind
from recollect.transfer.import_batch import import_batch

_BATCH: Final = 500
_SENTENCE: Final = re.compile(r"(?<=[.!?;])\s+|\n+")
_WORD: Final = re.compile(r"\w")
_LONGEST: Final = 1_200  # characters of another memory
_SHORTEST: Final = 15


def other_texts(folders: Sequence[Path], seed: float = 1) -> Iterator[str]:
    """Yield texts without end: those of other sets, then pairs of their sentences that never stood together."""
    dice = random.Random(seed)
    texts = list(
        dict.fromkeys(one["text"][:_LONGEST] for folder in folders for one in rows_of(folder / "corpus.jsonl"))
    )
    dice.shuffle(texts)
    yield from texts
    pieces = (one.strip() for text in texts for one in _SENTENCE.split(text))
    sentences = [one for one in pieces if len(one) >= _SHORTEST and _WORD.search(one)]
    seen = set(texts)
    while True:
        text = " ".join(dice.sample(sentences, dice.choice((1, 2, 2, 3))))[:_LONGEST]
        if text not in seen:
            seen.add(text)
            yield text


def store(app: App, drafts: Sequence[Draft], caller: Caller, title: str) -> None:
    """Import drafts as the caller's own, and bring the vector index up to date."""
    for start in track(range(0, len(drafts), _BATCH), title, console=err):
        import_own(app, drafts[start : start + _BATCH], caller, start)
    app.vectors.sync()


def import_own(app: App, drafts: Sequence[Draft], caller: Caller, first: int) -> None:
    """Import drafts as the caller's own: what comes from outside would stand behind what was told."""
    own = {"author": caller.user, "source": Source.TOOL, "said_by": SaidBy.PERSON}
    items = [
        ImportItem(
            kind=ItemKind.MEMORY, where=str(place), fields=draft.model_dump(mode="json", exclude_unset=True) | own
        )
        for place, draft in enumerate(drafts, first)
    ]
    import_batch(app, ImportBatch(items=tuple(items), own=True), caller)

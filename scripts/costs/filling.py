"""Fill a store for measuring, through the same import that users have, beside what the model alone would take."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import islice
from typing import Any

import psutil
from rich.console import Console
from rich.progress import track

from evaluation.others import import_own
from recollect import App, Caller, Draft

_BATCH = 1_000
_READ = 64  # texts in one call of the bare model
_BARE_EVERY = 4  # batches: the bare model reads one of so many, so that both rates are of the same minutes


def fill(app: App, drafts: Sequence[Draft], caller: Caller) -> dict[str, Any]:
    """Import `drafts` as the caller's own, bring the vector index up to date, and return rates and sizes.

    The bare rate is that of the embedder over every fourth batch of the same texts, taken in between.
    """
    spent, bare_spent, bare_texts, indexing = 0.0, 0.0, 0, 0.0
    process = psutil.Process()
    starts = range(0, len(drafts), _BATCH)
    for number, start in enumerate(track(starts, f"Importing {len(drafts)} memories", console=Console(stderr=True))):
        batch = drafts[start : start + _BATCH]
        begun = time.perf_counter()
        import_own(app, batch, caller, start)
        spent += time.perf_counter() - begun
        if number % _BARE_EVERY == 0:
            bare_spent += _bare(app, [draft.content for draft in batch])
            bare_texts += len(batch)
    begun = time.perf_counter()
    app.vectors.sync()
    indexing = time.perf_counter() - begun
    rate, bare = len(drafts) / max(spent, 1e-9), bare_texts / max(bare_spent, 1e-9)
    return {
        "memories": len(drafts),
        "seconds": round(spent, 1),
        "per_second": round(rate, 1),
        "bare_per_second": round(bare, 1),
        "of_the_bare_rate": round(rate / bare, 3),
        "vector_index_seconds": round(indexing, 1),
        "process_mb": round(process.memory_info().rss / 1e6, 1),
    }


def _bare(app: App, texts: Sequence[str]) -> float:
    """Return how many seconds the model takes to read `texts`, nothing else done."""
    some, begun = iter(texts), time.perf_counter()
    while batch := list(islice(some, _READ)):
        app.embedder.read(batch)
    return time.perf_counter() - begun

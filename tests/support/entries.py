"""Makes entries as `remember` would, with vectors out of a hash: for tests of the store that need no model."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from recollect.domain.requests import Draft
from recollect.engines.chunks import Chunk
from recollect.gate import clear
from recollect.store.entries import Entry
from recollect.text.text_parts import text_parts

if TYPE_CHECKING:
    from recollect.engines.embedder import Vector

DIMENSIONS = 16
AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def direction(seed: str) -> Vector:
    """Return a unit vector that depends on `seed` alone."""
    number = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8], "big")
    raw = np.random.default_rng(number).standard_normal(DIMENSIONS).astype(np.float32)
    return raw / np.linalg.norm(raw)


def make_entry(
    content: str,
    *,
    chunks: int | None = 1,
    at: datetime = AT,
    expires_at: datetime | None = None,
    author: str = "ada",
    **fields: object,
) -> Entry:
    """Return a cleared draft, `chunks` vectors (None: not embedded yet), what follows from its text, no entities."""
    draft = Draft(content=content, **fields)
    made = [Chunk(0, len(content), direction(f"{content}/{number}")) for number in range(chunks or 0)]
    return Entry(
        cleared=clear(draft),
        given=frozenset(draft.model_fields_set) - {"content", "scope"},
        content_hash=hashlib.sha256(content.encode()).hexdigest(),
        parts=replace(text_parts(draft), entities=()),
        chunks=None if chunks is None else tuple(made),
        confidence=draft.confidence,
        at=at,
        expires_at=expires_at,
        author=author,
    )

"""How near given memories are to a query: exact cosines, then late interaction over the chunks nearest by them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from sqlalchemy import ColumnElement, Connection, select, tuple_

from recollect.ports import LateInteraction
from recollect.store.sql import tables
from recollect.store.sql.statements import in_batches

if TYPE_CHECKING:
    from recollect.ports import Matrix, Vector, Weights

    Similarity: TypeAlias = Callable[[Matrix, Sequence[bytes]], Matrix]
    """From query tokens, float32[q, d], and the packed tokens of each chunk to float32[chunks, q], -1–1."""

_PAGE = 2_000
_BEST, _GOOD = 20, 60  # memories by cosine
_CHUNKS_OF_BEST, _CHUNKS_OF_GOOD = 8, 3  # those nearest by cosine; of all other memories one takes part

Place: TypeAlias = tuple[int, int]  # memory id and ordinal of its chunk


def late_interaction(
    connection: Connection,
    similarity: Similarity,
    vector: Vector,
    tokens: Matrix,
    weights: Weights,
    ids: Sequence[int],
) -> dict[int, LateInteraction]:
    """Return how near each memory of `ids` is; one without vectors is absent.

    `vector` is float32[d] and `tokens` float32[q, d], all unit; `weights` has one number per token, 1 in sum.
    """
    near: dict[int, list[tuple[float, int]]] = defaultdict(list)
    for (memory_id, ordinal), cosine in _cosines(connection, vector, ids).items():
        near[memory_id].append((-cosine, ordinal))
    late = _late(similarity, tokens, weights, _stored(connection, near)) if len(tokens) else {}
    return {one: LateInteraction(-min(found)[0], *late.get(one, (None, None))) for one, found in near.items()}


def _cosines(connection: Connection, vector: Vector, ids: Sequence[int]) -> dict[Place, float]:
    found: dict[Place, float] = {}
    columns = tables.vector.c
    for batch in in_batches(ids):
        query = select(columns.memory_id, columns.ordinal, columns.embedding).where(columns.memory_id.in_(batch))
        for page in connection.execute(query.execution_options(yield_per=_PAGE)).partitions():
            stored = np.frombuffer(b"".join(row[2] for row in page), dtype=np.float32).reshape(len(page), -1)
            found |= {(row[0], row[1]): one for row, one in zip(page, (stored @ vector).tolist(), strict=True)}
    return found


def _most(near: Mapping[int, list[tuple[float, int]]]) -> dict[int, int]:
    """Return how many chunks of each memory take part, so that long documents cost little more than short ones."""
    order = sorted(near, key=lambda one: (min(near[one]), one))
    return {
        one: _CHUNKS_OF_BEST if place < _BEST else _CHUNKS_OF_GOOD if place < _GOOD else 1
        for place, one in enumerate(order)
    }


def _stored(connection: Connection, near: Mapping[int, list[tuple[float, int]]]) -> list[tuple[int, bytes]]:
    """Read the tokens of the chunks of each memory that are nearest."""
    columns = tables.vector.c
    most = _most(near)
    short = [one for one, found in near.items() if len(found) <= most[one]]
    best = {one: sorted(found)[: most[one]] for one, found in near.items() if len(found) > most[one]}
    conditions: list[ColumnElement[bool]] = [columns.memory_id.in_(batch) for batch in in_batches(short)]
    for batch in in_batches(best):
        places = [(one, ordinal) for one in batch for _, ordinal in best[one]]
        # SQLite walks the whole table for pairs alone.
        conditions.append(columns.memory_id.in_(batch) & tuple_(columns.memory_id, columns.ordinal).in_(places))
    found: list[tuple[int, bytes]] = []
    for condition in conditions:
        query = select(columns.memory_id, columns.tokens).where(condition, columns.tokens.is_not(None))
        found += [(row[0], row[1]) for row in connection.execute(query)]
    return found


def _late(
    similarity: Similarity, tokens: Matrix, weights: Weights, stored: Sequence[tuple[int, bytes]]
) -> dict[int, tuple[float, float]]:
    """Return the late interaction of each memory's best chunk, plain and weighted; each may be another chunk's."""
    near = similarity(tokens, [blob for _, blob in stored])
    # Not `@`: on rows this short BLAS also computes with what lies behind them, and then warns of that.
    weighed = (near * np.asarray(weights, dtype=np.float32)).sum(axis=1)
    plain, rare = near.mean(axis=1).tolist(), weighed.tolist()
    best: dict[int, tuple[float, float]] = {}
    for (owner, _), late, weighted in zip(stored, plain, rare, strict=True):
        before = best.get(owner, (-2.0, -2.0))
        best[owner] = (max(late, before[0]), max(weighted, before[1]))
    return best

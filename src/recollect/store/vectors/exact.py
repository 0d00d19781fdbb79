"""How near memories are to a query by the vectors in SQL: exact cosines, then late interaction over the best chunks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from sqlalchemy import Column, ColumnElement, Connection, Row, select, tuple_

from recollect.ports.search import LateInteraction
from recollect.store.sql import store_metadata, tables
from recollect.store.sql.database import Database
from recollect.store.sql.statements import in_batches
from recollect.store.vectors.outbox import as_vector, vectors_of

if TYPE_CHECKING:
    from recollect.ports.models import Matrix, Vector, Weights

    Similarity: TypeAlias = Callable[[Matrix, Sequence[bytes]], Matrix]
    """From query tokens, float32[q, d], and the packed tokens of each chunk to float32[chunks, q], -1–1."""

_PAGE = 2_000
_BEST, _GOOD = 20, 60  # memories by cosine
_CHUNKS_OF_BEST, _CHUNKS_OF_GOOD = 8, 3  # those nearest by cosine; of all other memories one takes part

_vector = tables.vector.c


class SqlVectors:
    """The part of the `Vectors` port that compares a query with the stored vectors of given memories."""

    _database: Database
    _similarity: Similarity
    _model: Mapping[str, str] | None

    def cosines(self, vector: Vector, ids: Sequence[int]) -> dict[int, float]:
        """Return the exact cosine of each memory's best chunk; a memory without vectors is absent."""
        with self._database.reading() as connection:
            return scan(connection, vector, among(ids), len(ids)) if self._serves() else {}

    def late_interaction(
        self, vector: Vector, tokens: Matrix, weights: Weights, ids: Sequence[int]
    ) -> dict[int, LateInteraction]:
        """Return how near each memory of `ids` is to a query; one without vectors is absent.

        `vector` is float32[d] and `tokens` float32[q, d], all unit; `weights` has one number per token, 1 in sum.
        """
        near: dict[int, list[tuple[float, int]]] = defaultdict(list)
        with self._database.reading() as connection:
            for row, cosine in _compared(connection, vector, [_vector.ordinal], among(ids if self._serves() else ())):
                near[row.memory_id].append((-cosine, row.ordinal))
            stored = _stored(connection, near) if len(tokens) else []
        late = _late(self._similarity, tokens, weights, stored) if len(tokens) else {}
        return {one: LateInteraction(-min(found)[0], *late.get(one, (None, None))) for one, found in near.items()}

    def similarities(self, ids: Sequence[int]) -> dict[tuple[int, int], float]:
        """Return the cosine of the best chunks of each pair of memories; one without vectors is in no pair."""
        with self._database.reading() as connection:
            stacked = {
                one: np.stack(some) for one, some in vectors_of(connection, ids if self._serves() else ()).items()
            }
        return {(one, two): float((stacked[one] @ stacked[two].T).max()) for one, two in combinations(stacked, 2)}

    def best_spans(self, vector: Vector, ids: Sequence[int]) -> dict[int, tuple[int, int]]:
        """Return where the best chunk of each memory lies in its content; a memory without vectors is absent."""
        best: dict[int, tuple[float, int, int]] = {}
        with self._database.reading() as connection:
            columns = [_vector.start, _vector.stop]
            for row, cosine in _compared(connection, vector, columns, among(ids if self._serves() else ())):
                found = (-cosine, row.start, row.stop)
                best[row.memory_id] = min(found, best.get(row.memory_id, found))
        return {one: (start, stop) for one, (_, start, stop) in best.items()}

    def _serves(self) -> bool:
        """Say whether the vectors that this thread sees are of our model."""
        with self._database.reading() as connection:
            return store_metadata.embeds(connection, self._model)


def among(ids: Iterable[int]) -> Iterator[ColumnElement[bool]]:
    """Return conditions that together select the vectors of these memories."""
    return map(_vector.memory_id.in_, in_batches(ids))


def scan(
    connection: Connection, vector: Vector, conditions: Iterable[ColumnElement[bool]], limit: int
) -> dict[int, float]:
    """Compare `vector` with each stored one that meets one of `conditions`; return the `limit` nearest memories."""
    best: dict[int, float] = {}
    for row, cosine in _compared(connection, vector, [], conditions):
        best[row.memory_id] = max(cosine, best.get(row.memory_id, -2.0))
    return nearest_first(best, limit)


def nearest_first(cosines: Mapping[int, float], limit: int) -> dict[int, float]:
    """Return the `limit` memories with the largest cosines, the largest first."""
    return dict(sorted(cosines.items(), key=lambda pair: (-pair[1], pair[0]))[:limit])


def _compared(
    connection: Connection, vector: Vector, columns: Iterable[Column[Any]], conditions: Iterable[ColumnElement[bool]]
) -> Iterator[tuple[Row[Any], float]]:
    """Yield each stored chunk that meets one of `conditions` with its cosine; they are read a page at a time."""
    query = select(_vector.memory_id, *columns, _vector.embedding).execution_options(yield_per=_PAGE)
    for condition in conditions:
        for page in connection.execute(query.where(condition)).partitions():
            stored = as_vector(b"".join(row.embedding for row in page)).reshape(len(page), -1)
            yield from zip(page, (stored @ vector).tolist(), strict=True)


def _stored(connection: Connection, near: Mapping[int, list[tuple[float, int]]]) -> list[tuple[int, bytes]]:
    """Read the tokens of the chunks of each memory that are nearest, so that long documents cost little more."""
    order = enumerate(sorted(near, key=lambda one: (min(near[one]), one)))
    most = {one: _CHUNKS_OF_BEST if at < _BEST else _CHUNKS_OF_GOOD if at < _GOOD else 1 for at, one in order}
    best = {one: sorted(found)[: most[one]] for one, found in near.items() if len(found) > most[one]}
    conditions = list(among(one for one in near if one not in best))
    for batch in in_batches(best):
        places = [(one, ordinal) for one in batch for _, ordinal in best[one]]
        # SQLite walks the whole table for pairs alone.
        conditions.append(_vector.memory_id.in_(batch) & tuple_(_vector.memory_id, _vector.ordinal).in_(places))
    found: list[tuple[int, bytes]] = []
    for condition in conditions:
        query = select(_vector.memory_id, _vector.tokens).where(condition, _vector.tokens.is_not(None))
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

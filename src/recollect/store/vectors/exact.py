"""How near memories are to a query by the vectors in SQL: exact cosines, then late interaction over the best chunks."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from sqlalchemy import BigInteger, Connection, Row, Select, bindparam, case, cast, select
from sqlalchemy.exc import DatabaseError

from recollect.engines.signal_columns import LateInteraction
from recollect.errors import StoreUnusable
from recollect.store.sql import store_metadata, tables
from recollect.store.sql.database import Database, is_damage
from recollect.store.sql.expressions import Listed, any_of
from recollect.store.sql.mapping import IDS
from recollect.store.sql.visibility import shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recollect.engines.embedder import Matrix, Vector, Weights

    Similarity: TypeAlias = Callable[[Matrix, Sequence[bytes]], Matrix]
    """From query tokens, float32[q, d], and the packed tokens of each chunk to float32[chunks, q], -1–1."""

log = logging.getLogger(__name__)

FLOAT = 4  # bytes
_PAGE = 2_000
_BEST, _GOOD = 20, 60  # memories by cosine
_CHUNKS_OF_BEST, _CHUNKS_OF_GOOD = 4, 2  # those nearest by cosine; of all other memories one takes part
_COMPARED = 4  # chunks of each memory that are compared with those of others
_ROWS = 500  # chunks in one product
_MOST_PAIRS = 2_000

_MOST_CHUNKS = 1_000_000

_vector = tables.vector.c
_chunks = select(_vector.memory_id, _vector.ordinal, _vector.start, _vector.stop, _vector.embedding)
CHUNKS = _chunks.execution_options(yield_per=_PAGE)
"""All stored chunks, for whoever adds conditions."""
_of_ids = any_of(_vector.memory_id, IDS)
OF_IDS = _chunks.where(_of_ids)
"""Those of some memories, which are read in one piece."""
_SHOWN = (
    select(_vector.memory_id, _vector.embedding)
    .join(tables.memory, tables.memory.c.id == _vector.memory_id)
    .where(shown(), any_of(tables.memory.c.id, IDS))  # before a first ANALYZE, PostgreSQL reads all memories otherwise
    .order_by(_vector.ordinal)
)
_SHOWN_IN = _SHOWN.join(tables.namespace, tables.namespace.c.id == tables.memory.c.namespace_id).where(
    tables.namespace.c.name == bindparam("namespace")
)
_FIRST: Final = case((_vector.ordinal == 0, _vector.tokens))
_WITH_FIRST_TOKENS = select(_vector.memory_id, _vector.ordinal, _FIRST, _vector.embedding).where(_of_ids)
"""The tokens of the first chunk come along, since most memories have no other."""
_place = cast(_vector.memory_id, BigInteger) * _MOST_CHUNKS + _vector.ordinal
_TOKENS = select(_place, _vector.tokens).where(
    _of_ids, any_of(_place, bindparam("places", type_=Listed())), _vector.tokens.is_not(None)
)


class SqlVectors:
    """Compares a query with the stored vectors of given memories."""

    _database: Database
    _similarity: Similarity
    _model: Mapping[str, str] | None
    _unreadable = False

    def cosines(self, vector: Vector, ids: Sequence[int]) -> dict[int, float]:
        """Return the exact cosine of each memory's best chunk; a memory without vectors is absent."""
        with self._tolerate_damage(), self._database.reading() as connection:
            return scan(connection, vector, len(ids), OF_IDS, {"ids": ids}) if self._is_our_model() else {}
        return {}

    def late_interaction(self, vector: Vector, tokens: Matrix, weights: Weights, ids: Sequence[int]) -> LateInteraction:
        """Return how near each memory of `ids` is to a query; one without vectors is absent.

        `vector` is float32[d] and `tokens` float32[q, d], all unit; `weights` has one number per token, 1 in sum.
        """
        with self._tolerate_damage(), self._database.reading() as connection:
            chunks = _Chunks.read(connection, vector, ids if self._is_our_model() else ())
            whole = len(vector) // 8  # bytes of one token
            owners, stored = chunks.tokens(connection, whole) if len(tokens) else (np.zeros(0, np.intp), [])
            late = np.full((2, len(chunks.memories)), np.nan)
            if stored:
                near = self._similarity(tokens, stored)
                # Not `@`: on rows this short BLAS also computes with what lies behind them, and then warns of that.
                weighed = (near * np.asarray(weights, dtype=np.float32)).sum(axis=1)
                np.fmax.at(late[0], owners, near.mean(axis=1))
                np.fmax.at(late[1], owners, weighed)
            return LateInteraction(chunks.memories.tolist(), chunks.best.astype(np.float64), late[0], late[1])
        return LateInteraction.none()

    def similarities(self, ids: Sequence[int]) -> dict[tuple[int, int], float]:
        """Return the cosine of the best chunks of each pair of memories; one without vectors is in no pair."""
        stacked = self._vectors_by_memory(ids)
        return {(one, two): float((stacked[one] @ stacked[two].T).max()) for one, two in combinations(stacked, 2)}

    def near_pairs(self, ids: Sequence[int], least: float) -> dict[tuple[int, int], float]:
        """Return the pairs of memories, the lower id first, that have chunks of a cosine of at least `least`.

        The first four chunks of each are compared. Of very many pairs the nearest come, 2,000 at most.
        """
        stacked = {one: some[:_COMPARED] for one, some in self._vectors_by_memory(ids).items()}
        if not stacked:
            return {}
        owners = np.repeat(list(stacked), [len(some) for some in stacked.values()])
        whole = np.concatenate(list(stacked.values()))
        found: dict[tuple[int, int], float] = {}
        for start in range(0, len(whole), _ROWS):
            cosines = whole[start : start + _ROWS] @ whole.T
            rows, columns = np.nonzero((cosines >= least) & (owners[start : start + _ROWS, None] < owners))
            values = cosines[rows, columns]
            for place in np.argsort(-values)[:_MOST_PAIRS]:
                pair = int(owners[start + rows[place]]), int(owners[columns[place]])
                found[pair] = max(float(values[place]), found.get(pair, least))
        nearest = sorted(found.items(), key=lambda one: (-one[1], one[0]))
        return dict(nearest[:_MOST_PAIRS])

    def _vectors_by_memory(self, ids: Sequence[int]) -> dict[int, Matrix]:
        """Return, by memory id, its vectors as rows; memories without vectors of our model's size are absent."""
        with self._tolerate_damage(), self._database.reading() as connection:
            found = vectors_of(connection, ids if self._is_our_model() else ())
            size = max((len(vector) for some in found.values() for vector in some), default=0)
            whole = {one: [vector for vector in some if len(vector) == size] for one, some in found.items()}
            return {one: np.stack(some) for one, some in whole.items() if some}
        return {}

    def best_spans(self, vector: Vector, ids: Sequence[int]) -> dict[int, tuple[int, int]]:
        """Return where the best chunk of each memory lies in its content; a memory without vectors is absent."""
        best: dict[int, tuple[float, int, int]] = {}
        with self._tolerate_damage(), self._database.reading() as connection:
            for chunks, cosines in _compare_pages(
                connection, vector, OF_IDS, {"ids": ids if self._is_our_model() else ()}
            ):
                for chunk, cosine in zip(chunks, cosines.tolist(), strict=True):
                    found = (-cosine, chunk.start, chunk.stop)
                    best[chunk.memory_id] = min(found, best.get(chunk.memory_id, found))
        return {one: (start, stop) for one, (_, start, stop) in best.items()}

    @contextmanager
    def _tolerate_damage(self) -> Iterator[None]:
        """Let a search answer by words alone where stored vectors are damaged; vectors read before that count."""
        try:
            yield
        except (DatabaseError, StoreUnusable) as error:
            log.warning("the stored vectors cannot be read, words alone answer: %s", error)
            self._unreadable = self._unreadable or is_damage(error)

    def _is_our_model(self) -> bool:
        """Say whether the vectors that this thread sees are of our model."""
        with self._database.reading() as connection:
            return store_metadata.embeds(connection, self._model)


def scan(
    connection: Connection, vector: Vector, limit: int, chunks: Select[Any], values: Mapping[str, Any]
) -> dict[int, float]:
    """Compare `vector` with each chunk of a selection of `CHUNKS`; return the `limit` nearest memories."""
    best: dict[int, float] = {}
    for page, cosines in _compare_pages(connection, vector, chunks, values):
        nearest: dict[int, float] = {}
        for place in np.argsort(-cosines, kind="stable"):
            nearest.setdefault(page[place][0], float(cosines[place]))
            if len(nearest) == limit:
                break
        best |= {one: max(cosine, best.get(one, -2.0)) for one, cosine in nearest.items()}
    return nearest_first(best, limit)


def vectors_of(connection: Connection, ids: Iterable[int], namespace: str | None = None) -> dict[int, list[Vector]]:
    """Return the vectors of each memory that the index holds, in the order of its chunks; of a namespace or all."""
    found: dict[int, list[Vector]] = defaultdict(list)
    query, named = (_SHOWN, {}) if namespace is None else (_SHOWN_IN, {"namespace": namespace})
    for row in connection.execute(query, {"ids": ids, **named}):
        if len(row.embedding) % FLOAT == 0:  # else it is damaged
            found[row.memory_id].append(as_vector(row.embedding))
    return found


def as_vector(blob: bytes) -> Vector:
    """Read a vector from its float32 bytes."""
    return np.frombuffer(blob, dtype=np.float32)


def nearest_first(cosines: Mapping[int, float], limit: int) -> dict[int, float]:
    """Return the `limit` memories with the largest cosines, the largest first."""
    order = sorted(sorted(cosines), key=cosines.__getitem__, reverse=True)
    return {one: cosines[one] for one in order[:limit]}


def _compare_pages(
    connection: Connection, vector: Vector, chunks: Select[Any], values: Mapping[str, Any]
) -> Iterator[tuple[Sequence[Row[Any]], Vector]]:
    """Yield pages of a selection of `CHUNKS` with the cosine of each."""
    for page in connection.execute(chunks, values).partitions(_PAGE):
        whole = b"".join([row[-1] for row in page])
        if len(whole) != len(page) * vector.nbytes:  # damaged ones await `reindex`
            page = [row for row in page if len(row[-1]) == vector.nbytes]
            whole = b"".join([row[-1] for row in page])
        # Not `@`: after it BLAS keeps a thread turning that waits for more to do, which costs more than the product.
        yield page, np.vecdot(as_vector(whole).reshape(len(page), len(vector)), vector)


@dataclass(frozen=True, slots=True)
class _Chunks:
    """The chunks of some memories as columns of length n, each memory's together and its nearest first.

    `starts` are the places of the nearest ones. `first` holds the tokens of the chunks of ordinal 0, None elsewhere.
    """

    owners: NDArray[np.int64]
    ordinals: NDArray[np.int64]
    cosines: NDArray[np.float32]
    first: list[bytes | None]
    starts: NDArray[np.intp]

    @classmethod
    def read(cls, connection: Connection, vector: Vector, ids: Sequence[int]) -> _Chunks:
        """Read the chunks of these memories, and compare each with a vector."""
        rows: list[Any] = []
        parts: list[NDArray[np.float32]] = [np.zeros(0, np.float32)]
        for page, some in _compare_pages(connection, vector, _WITH_FIRST_TOKENS, {"ids": ids}):
            rows += page
            parts.append(some)
        owners, ordinals = (np.array([row[column] for row in rows], np.int64) for column in (0, 1))
        cosines = np.concatenate(parts)
        order = np.lexsort((ordinals, -cosines, owners))
        owners = owners[order]
        starts = np.flatnonzero(np.diff(owners, prepend=-1))
        first = [rows[place][2] for place in order.tolist()]
        return cls(owners, ordinals[order], cosines[order], first, starts)

    @property
    def memories(self) -> NDArray[np.int64]:
        """Return the ids of the memories."""
        return self.owners[self.starts]

    @property
    def best(self) -> NDArray[np.float32]:
        """Return the cosine of the best chunk of each memory."""
        return self.cosines[self.starts]

    def tokens(self, connection: Connection, whole: int) -> tuple[NDArray[np.intp], list[bytes]]:
        """Return the tokens of those chunks of each memory that are nearest, and which memory each is of, by its place.

        Of the best memories several chunks take part, so that long documents cost little more. A token has `whole`
        bytes; what is cut off is left out.
        """
        counts = np.diff(self.starts, append=len(self.owners))
        standing = np.empty(len(self.starts), np.intp)
        standing[np.lexsort((self.memories, self.ordinals[self.starts], -self.best))] = np.arange(len(self.starts))
        most = np.where(standing < _BEST, _CHUNKS_OF_BEST, np.where(standing < _GOOD, _CHUNKS_OF_GOOD, 1))
        chosen = np.flatnonzero(np.arange(len(self.owners)) - np.repeat(self.starts, counts) < np.repeat(most, counts))
        owners, ordinals = self.owners[chosen], self.ordinals[chosen]
        later = owners * _MOST_CHUNKS + ordinals
        asked = {"ids": self.memories.tolist(), "places": later[ordinals > 0].tolist()}
        further = dict(map(tuple, connection.execute(_TOKENS, asked))) if asked["places"] else {}
        known = [
            (self.first[place] if at == 0 else further.get(key)) or b""
            for place, at, key in zip(chosen.tolist(), ordinals.tolist(), later.tolist(), strict=True)
        ]
        sizes = np.array(list(map(len, known)))
        sound = np.flatnonzero((sizes > 0) & (sizes % whole == 0)).tolist()
        return np.searchsorted(self.memories, owners[sound]), [known[place] for place in sound]

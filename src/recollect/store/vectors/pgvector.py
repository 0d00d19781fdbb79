"""pgvector as the vector index: one table per namespace beside the memories of a deployment, never a text.

The tables lie in a schema of their own in the same database. Like every index they are derived and built again from
the memories' own vectors. A namespace of few vectors is compared with all of them; one of many gets an HNSW graph.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from recollect.errors import InvalidInput
from recollect.spans import spanned
from recollect.store.sql.database import Database
from recollect.store.vectors.index import IndexBroken

if TYPE_CHECKING:
    from recollect.engines.embedder import Vector

SCANNED: Final = 2_000
"""Vectors of a namespace that a query is compared with one by one; with more, a graph costs less."""

_GRAPH: Final = "m = 16, ef_construction = 100"
_LEAST_SEARCHED, _MOST_SEARCHED = 100, 1_000  # of hnsw.ef_search; pgvector allows no more, and returns no more rows
_MOST_DIMENSIONS: Final = 2_000  # of a vector in an HNSW graph of pgvector
_BATCH: Final = 1_000
_UNDEFINED_TABLE: Final = "42P01"
_PATIENCE: Final = "5s"  # for readers of a table that is dropped; new ones wait behind it

_PLACE: Final = text(
    "SELECT name, current_user AS role, EXISTS (SELECT FROM pg_namespace WHERE nspname = name) AS made, "
    "(SELECT nspname FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace WHERE extname = 'vector') "
    "AS extension FROM (SELECT current_schema() || '_vectors') AS schema(name)"
)
_TABLES: Final = text("SELECT tablename FROM pg_tables WHERE schemaname = :schema")
_SEARCH_MANY: Final = text("SELECT set_config('hnsw.ef_search', :many, true)")
_WAIT_BRIEFLY: Final = text(f"SET LOCAL lock_timeout = '{_PATIENCE}'")


class PgvectorIndex:
    """The vectors of a deployment in its own PostgreSQL, which several replicas ask: a `VectorIndex`.

    Ids are `MEMORY.CHUNK`. A read is part of the transaction of its thread, so that it takes no second connection.
    A database that does not answer raises what it raises for the memories: then nothing of the store can be used.
    """

    proven_by_use = True
    ready = True

    def __init__(self, database: Database, generation: str, scanned: int = SCANNED) -> None:
        """Make the extension and the schema where they are missing; raise `InvalidInput` where that cannot be.

        A namespace of more than `scanned` vectors gets a graph.
        """
        self.generation = generation
        self._scanned = scanned
        self._database = database
        self._schema, extension = _prepare(database)
        self._type, self._classes = f'"{extension}".vector', f'"{extension}".vector_cosine_ops'
        self._distance = f'embedding OPERATOR("{extension}".<=>) CAST(:vector AS {self._type})'

    def open(self) -> None:
        """Do nothing: the database is open."""

    def close(self) -> None:
        """Do nothing: the database is closed by whoever opened it."""

    def proven(self) -> None:
        """Do nothing: a damaged graph ends a session of the server, not this process."""

    def compact(self) -> None:
        """Do nothing: a dropped table leaves nothing, and the rest is PostgreSQL's to vacuum."""

    @spanned("pgvector query")
    def query(self, namespace: str, vector: Vector, limit: int) -> dict[int, float]:
        """Return the memories of the `limit` nearest chunks, each with its best cosine; the nearest comes first."""
        order = self._distance if limit <= _MOST_SEARCHED else f"({self._distance}) + 0"  # a sum is read from no graph
        query = f"SELECT id, {self._distance} FROM {self._table(namespace)} ORDER BY {order} LIMIT {int(limit)}"  # noqa: S608 - our own names
        with self._database.reading() as connection:
            searched = min(max(limit, _LEAST_SEARCHED), _MOST_SEARCHED)
            connection.execute(_SEARCH_MANY, {"many": str(searched)})
            found: dict[int, float] = {}
            for name, away in _rows(connection, query, vector=_as_text(vector)):
                found.setdefault(int(name.partition(".")[0]), 1.0 - away)
            return found

    @spanned("pgvector count")
    def count(self, namespace: str) -> int:
        """Return how many vectors the namespace's table holds."""
        query = f"SELECT count(*) FROM {self._table(namespace)}"  # noqa: S608 - our own name
        with self._database.reading() as connection:
            return sum(row[0] for row in _rows(connection, query))

    @spanned("pgvector ids")
    def ids(self, namespace: str) -> set[str]:
        """Return every id in the namespace's table."""
        with self._database.reading() as connection:
            return {row[0] for row in _rows(connection, f"SELECT id FROM {self._table(namespace)}")}  # noqa: S608 - our own name

    @spanned("pgvector vectors")
    def vectors(self, namespace: str, ids: Sequence[str]) -> dict[str, Vector]:
        """Return the vectors of these ids, float32[d]; one that the table lacks is absent."""
        query = f"SELECT id, CAST(embedding AS real[]) FROM {self._table(namespace)} WHERE id = ANY(:ids)"  # noqa: S608 - our own name
        with self._database.reading() as connection:
            return {name: np.array(held, np.float32) for name, held in _rows(connection, query, ids=list(ids))}

    @spanned("pgvector put")
    def put(self, namespace: str, ids: Sequence[str], vectors: Sequence[Vector]) -> None:
        """Insert or replace vectors; the namespace's table is made where it is missing, and its graph once it pays."""
        if not ids:
            return
        table, dimensions = self._table(namespace), len(vectors[0])
        columns = f'id text COLLATE "C" PRIMARY KEY, embedding {self._type}({dimensions}) NOT NULL'
        insert = text(
            f"INSERT INTO {table} (id, embedding) "  # noqa: S608 - our own name
            f"SELECT * FROM unnest(CAST(:ids AS text[]), CAST(CAST(:vectors AS text[]) AS {self._type}[])) "
            "ON CONFLICT (id) DO UPDATE SET embedding = excluded.embedding"
        )
        many = text(f"SELECT count(*) FROM (SELECT FROM {table} LIMIT {self._scanned + 1}) AS found")  # noqa: S608 - our own name
        graph = f'"graph_{self._name(namespace)}" ON {table} USING hnsw (embedding {self._classes}) WITH ({_GRAPH})'
        with self._writing() as connection:
            connection.execute(text(f"CREATE TABLE IF NOT EXISTS {table} ({columns})"))
            for start in range(0, len(ids), _BATCH):
                stop = start + _BATCH
                some = [_as_text(one) for one in vectors[start:stop]]
                connection.execute(insert, {"ids": list(ids[start:stop]), "vectors": some})
            if dimensions <= _MOST_DIMENSIONS and connection.execute(many).scalar_one() > self._scanned:
                connection.execute(text(f"CREATE INDEX IF NOT EXISTS {graph}"))

    @spanned("pgvector take")
    def take(self, namespace: str, ids: Sequence[str]) -> None:
        """Remove vectors; ids that are absent are no error, nor is a table that is."""
        with self._writing() as connection:
            _rows(connection, f"DELETE FROM {self._table(namespace)} WHERE id = ANY(:ids) RETURNING id", ids=list(ids))  # noqa: S608 - our own name

    @spanned("pgvector drop")
    def drop(self, namespace: str) -> None:
        """Delete the namespace's table."""
        self._drop(self._table(namespace))

    def adopt(self, generation: str) -> None:
        """Serve the tables of another generation from now on."""
        self.generation = generation

    def discard(self) -> None:
        """Delete the tables of this generation, so that they are built again."""
        self._drop_generations(ours=True)

    def prune(self) -> None:
        """Delete the tables of other generations."""
        self._drop_generations(ours=False)

    def _drop_generations(self, *, ours: bool) -> None:
        with self._database.reading() as connection:
            names = [row[0] for row in connection.execute(_TABLES, {"schema": self._schema})]
        for name in names:
            if (name.rpartition("_")[0] == self.generation) == ours:
                self._drop(f'"{self._schema}"."{name}"')

    def _drop(self, table: str) -> None:
        """Drop a table in a transaction of its own: the server's locks would not suffice for thousands in one."""
        with self._writing() as connection:
            connection.execute(_WAIT_BRIEFLY)
            connection.execute(text(f"DROP TABLE IF EXISTS {table}"))

    def _table(self, namespace: str) -> str:
        return f'"{self._schema}"."{self._name(namespace)}"'

    def _name(self, namespace: str) -> str:
        return f"{self.generation}_{hashlib.sha256(namespace.encode()).hexdigest()[:32]}"

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        with self._database.writing() as connection, _broken():
            yield connection


def _prepare(database: Database) -> tuple[str, str]:
    """Return the schema of the vectors' tables and that of the extension; make what is missing.

    The extension goes beside those tables: the store's own table `vector` has the name of its type. Raises
    `InvalidInput` with what the database's administrator can do.
    """
    with database.reading() as connection:
        place = connection.execute(_PLACE).one()
    if place.made and place.extension is not None:
        return place.name, place.extension
    needed = f'CREATE EXTENSION IF NOT EXISTS vector SCHEMA "{place.name}"'
    with database.exclusive() as connection:  # replicas that start at once make it one after another
        try:
            connection.execute(text(f'CREATE SCHEMA IF NOT EXISTS "{place.name}"'))
            connection.execute(text(needed))
            return place.name, connection.execute(_PLACE).one().extension
        except DBAPIError as error:
            if error.connection_invalidated:
                raise
            why = str(error.orig).partition("\n")[0].rstrip(".")
            raise InvalidInput(
                "vector_index",
                f"RECOLLECT_VECTOR_INDEX is `pgvector`, which the database does not allow yet: {why}. Install pgvector "
                "on PostgreSQL's machine, and let a superuser run in the database: "
                f'CREATE SCHEMA IF NOT EXISTS "{place.name}" AUTHORIZATION "{place.role}"; {needed};',
            ) from None


def _rows(connection: Connection, query: str, **values: Any) -> Sequence[Any]:
    """Return what a statement returns; nothing where the namespace has no table. The transaction lives on after both.

    Raises `IndexBroken`.
    """
    with _broken():
        try:
            with connection.begin_nested():
                return connection.execute(text(query), values).all()
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", "") != _UNDEFINED_TABLE:
                raise
            return ()


@contextmanager
def _broken() -> Iterator[None]:
    """Let what a statement about the index raises be `IndexBroken`, unless the database itself is lost."""
    try:
        yield
    except DBAPIError as error:
        if error.connection_invalidated:
            raise
        raise IndexBroken(str(error.orig).partition("\n")[0]) from error


def _as_text(vector: Vector) -> str:
    """Return a vector as pgvector reads it, to the last bit."""
    return str(vector.tolist())

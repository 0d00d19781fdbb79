"""What every vector index does: a row in `INDEXES` holds another one to it."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import Any

import pytest

from entries import direction
from postgres import Postgres
from recollect.store.sql.database import Database, open_server
from recollect.store.vectors.chroma import ChromaIndex, ChromaServer
from recollect.store.vectors.index import VectorIndex, chunk_id
from recollect.store.vectors.pgvector import PgvectorIndex

INDEXES: Mapping[str, tuple[str, Callable[[Any, str], VectorIndex]]] = {
    "Chroma's folder": ("tmp_path", lambda folder, _: ChromaIndex(folder / "chroma", "m1")),
    "Chroma's server": ("chroma_process", lambda process, store: ChromaServer(process.url, "m1", store)),
    "pgvector": ("pgvector_database", lambda database, _: PgvectorIndex(database, "m1")),
    "pgvector's graph": ("pgvector_database", lambda database, _: PgvectorIndex(database, "m1", scanned=0)),
}
"""What each is made of, by the name of its fixture, and how."""
HERE, THERE = "project:crew/engine", "user:ada"
IDS = {HERE: {"1.0", "1.1", "2.0"}, THERE: {"3.0"}}


@pytest.fixture
def pgvector_database(pgvector: Postgres) -> Iterator[Database]:
    """Return an empty database of a server that has pgvector."""
    url = pgvector.create()
    with closing(open_server(url)) as database:
        yield database
    pgvector.drop(url)


@pytest.fixture(params=INDEXES)
def again(request: pytest.FixtureRequest) -> Iterator[Callable[[], VectorIndex]]:
    """Return a function that closes the index and opens it again."""
    store, opened = secrets.token_hex(4), list[VectorIndex]()
    fixture, made_of = INDEXES[request.param]
    place = request.getfixturevalue(fixture)

    def opening() -> VectorIndex:
        for one in opened:
            one.close()
        opened.append(made_of(place, store))
        return opened[-1]

    yield opening
    for one in opened:
        one.close()


@pytest.fixture
def index(again: Callable[[], VectorIndex]) -> VectorIndex:
    """Return an index of two namespaces."""
    made = again()
    for namespace, ids in IDS.items():
        made.put(namespace, sorted(ids), [direction(one) for one in sorted(ids)])
    return made


def test_it_holds_what_was_put(index: VectorIndex, again: Callable[[], VectorIndex]) -> None:
    """Ids and vectors are those of each namespace, also for whoever opens the index next."""
    for opened in (lambda: index, again):
        one = opened()
        assert {name: one.ids(name) for name in IDS} == IDS
        assert {name: one.count(name) for name in IDS} == {HERE: 3, THERE: 1}
        held = one.vectors(HERE, ["2.0", "3.0"])
        assert {name: vector.tolist() for name, vector in held.items()} == {
            "2.0": pytest.approx(direction("2.0").tolist(), abs=1e-5)
        }


def test_a_memory_is_as_near_as_its_best_chunk(index: VectorIndex) -> None:
    """A query finds the memories of its namespace alone, each once, with the cosine of its nearest chunk."""
    near = index.query(HERE, direction("1.1"), 9)
    assert near.keys() == {1, 2}
    assert near[1] == pytest.approx(1.0, abs=1e-4)
    assert near[2] == pytest.approx(float(direction("2.0") @ direction("1.1")), abs=1e-4)


def test_put_and_take_may_be_repeated(index: VectorIndex) -> None:
    """A vector that is put again is replaced, and one that is not there can be taken."""
    for _ in range(2):
        index.put(HERE, ["2.0"], [direction("new")])
        index.take(HERE, ["1.0", "1.1", chunk_id(99, 0)])
    assert index.ids(HERE) == {"2.0"}
    assert index.query(HERE, direction("new"), 3) == {2: pytest.approx(1.0, abs=1e-4)}


def test_a_dropped_namespace_is_empty(index: VectorIndex) -> None:
    """The others keep what they have; dropping it twice is no error."""
    for _ in range(2):
        index.drop(HERE)
    assert (index.count(HERE), index.query(HERE, direction("1.0"), 3)) == (0, {})
    assert index.ids(THERE) == IDS[THERE]


def test_generations_are_apart(index: VectorIndex, again: Callable[[], VectorIndex]) -> None:
    """Another generation begins empty, and pruning leaves nothing of the one before."""
    index.adopt("m2")
    assert index.count(HERE) == 0
    index.put(HERE, ["7.0"], [direction("7.0")])
    index.prune()
    assert index.ids(HERE) == {"7.0"}
    assert {name: again().count(name) for name in IDS} == {HERE: 0, THERE: 0}


def test_what_is_discarded_is_begun_anew(index: VectorIndex) -> None:
    """After it the index is empty and takes vectors again, as it does after its files were compacted."""
    index.discard()
    assert {name: index.count(name) for name in IDS} == {HERE: 0, THERE: 0}
    index.put(HERE, ["1.0"], [direction("1.0")])
    index.compact()
    assert index.query(HERE, direction("1.0"), 3) == {1: pytest.approx(1.0, abs=1e-4)}

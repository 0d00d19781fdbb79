"""Exact cosines of every chunk, late interaction over the tokens of the nearest ones, on each database."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import text

from callers import ADA
from entries import DIMENSIONS, direction, make_entry
from nearness import LateInteraction, by_memory
from recollect import App, Draft, remember
from recollect.engines.chunks import Chunk
from recollect.engines.late_interaction import pack, similarity
from recollect.store.sql.database import Database, open_file
from recollect.store.sql.records import Records
from recollect.store.vectors.chroma import ChromaIndex
from recollect.store.vectors.vector_search import VectorSearch
from stores import lay

pytestmark = pytest.mark.slow

HERE = "user:ada"
EVEN = [0.25] * 4


def rows(seed: str, count: int = 4) -> Any:
    """Return unit rows that depend on `seed` alone, float32[count, d]."""
    return np.vstack([direction(f"{seed} {number}") for number in range(count)])


class Shelf:
    """Memories with tokens on one database, and how near they are when counted one by one."""

    def __init__(self, database: Database, folder: Path, clock: Any) -> None:
        self.database = database
        self.records = Records(database, clock, lambda: None)
        self.vectors = VectorSearch(database, ChromaIndex(folder / "chroma", "test"), threading.Event(), similarity)
        self.chunks: dict[int, list[tuple[Any, Any]]] = {}

    def add(self, name: str, chunks: Sequence[tuple[Any, Any]]) -> int:
        """Insert a memory with these vectors and token rows; None stands for tokens nobody has stored yet."""
        made = tuple(Chunk(0, len(name), vector, b"" if tokens is None else pack(tokens)) for vector, tokens in chunks)
        with self.records.writing(HERE, "ada") as transaction:
            memory_id = transaction.memories.insert(replace(make_entry(name), chunks=made))
        self.chunks[memory_id] = list(chunks)
        return memory_id

    def late_interaction(
        self, vector: Any, tokens: Any, weights: Sequence[float], ids: Sequence[int]
    ) -> dict[int, LateInteraction]:
        """Return how near each of these memories is to a query."""
        return by_memory(self.vectors.late_interaction(vector, tokens, weights, ids))

    def nearest(self, vector: Any, ids: Sequence[int]) -> list[int]:
        """Return `ids` by the cosine of their best chunk, the nearest first."""
        return sorted(ids, key=lambda one: -max(float(chunk[0] @ vector) for chunk in self.chunks[one]))

    def expected(
        self, vector: Any, tokens: Any, weights: Sequence[float], memory_id: int, most: int = 4
    ) -> LateInteraction:
        """Count by hand: the `most` chunks nearest by cosine, each query token's best sign row in each."""
        nearest = sorted(self.chunks[memory_id], key=lambda chunk: -float(chunk[0] @ vector))
        best = [
            np.array([max(float(one @ np.where(row > 0, 1, -1)) for row in held) for one in tokens])
            for _, held in nearest[:most]
            if held is not None
        ]
        cosine = float(nearest[0][0] @ vector)
        if not best:
            return LateInteraction(cosine, None, None)
        scaled = [one / np.sqrt(DIMENSIONS) for one in best]
        return LateInteraction(cosine, max(map(np.mean, scaled)), max(float(one @ np.array(weights)) for one in scaled))


@pytest.fixture
def shelf(database: Database, tmp_path: Path, clock: Any) -> Shelf:
    """Return an empty shelf on each kind of database."""
    return Shelf(database, tmp_path, clock)


def same(found: dict[int, LateInteraction], expected: dict[int, LateInteraction]) -> bool:
    """Compare to a hundred-thousandth."""
    return found.keys() == expected.keys() and all(
        (one.cosine, one.late, one.rare) == pytest.approx((two.cosine, two.late, two.rare), abs=1e-5)
        for one, two in ((found[number], expected[number]) for number in found)
    )


def test_late_interaction_is_what_counting_by_hand_gives(shelf: Shelf) -> None:
    """For memories of one to nine chunks, all numbers are those of a plain count, and only the asked are answered."""
    ids = [
        shelf.add(
            f"m{number}",
            [(direction(f"{number}/{part}"), rows(f"{number}/{part}", 1 + part)) for part in range(1 + number % 9)],
        )
        for number in range(40)
    ]
    vector, tokens, weights = direction("asked"), rows("asked"), [0.7, 0.1, 0.1, 0.1]
    found = shelf.late_interaction(vector, tokens, weights, ids[5:])
    order = shelf.nearest(vector, ids[5:])
    most = {one: 4 if place < 20 else 2 for place, one in enumerate(order)}
    assert same(found, {one: shelf.expected(vector, tokens, weights, one, most[one]) for one in ids[5:]})
    assert any(abs((one.late or 0) - (one.rare or 0)) > 0.01 for one in found.values())


def test_of_memories_that_are_far_one_chunk_takes_part(shelf: Shelf) -> None:
    """Beside sixty nearer ones a memory is judged by its nearest chunk alone."""
    vector, tokens = direction("asked"), rows("asked")
    ids = [shelf.add(f"near {number}", [(vector, rows(f"near {number}"))]) for number in range(60)]
    far = shelf.add("far", [(direction("a"), rows("a")), (-vector, tokens)])
    found = shelf.late_interaction(vector, tokens, EVEN, [*ids, far])
    assert same({far: found[far]}, {far: shelf.expected(vector, tokens, EVEN, far, most=1)})


def test_only_the_eight_nearest_chunks_take_part(shelf: Shelf) -> None:
    """A chunk that is far by its cosine is not looked into, however well its tokens fit."""
    vector, tokens = direction("asked"), rows("asked")
    near = [(vector, rows(f"other {number}")) for number in range(8)]
    short = shelf.add("short", near)
    long_one = shelf.add("long", [(-vector, tokens), *near])
    found = shelf.late_interaction(vector, tokens, EVEN, [short, long_one])
    assert found[long_one] == found[short]
    only = shelf.late_interaction(-vector, tokens, EVEN, [long_one])[long_one]
    assert only.late is not None
    assert only.late > (found[short].late or 0) + 0.2


def test_tokens_that_are_not_stored_are_no_evidence(shelf: Shelf) -> None:
    """Without stored tokens there is a cosine alone; without vectors nothing; with some, those count."""
    vector, tokens = direction("asked"), rows("asked")
    bare = shelf.add("bare", [(direction("a"), None), (direction("b"), None)])
    half = shelf.add("half", [(direction("a"), None), (direction("b"), rows("b"))])
    nothing = shelf.add("nothing", [])
    found = shelf.late_interaction(vector, tokens, EVEN, [bare, half, nothing, 10**6])
    assert same(found, {one: shelf.expected(vector, tokens, EVEN, one) for one in (bare, half)})
    assert (found[bare].late, found[bare].rare) == (None, None)
    assert found[half].late is not None


def test_a_query_without_tokens_has_cosines_alone(shelf: Shelf) -> None:
    """Where no word of a query tells anything, there is no late interaction; without memories there is nothing."""
    one = shelf.add("one", [(direction("a"), rows("a"))])
    vector = direction("asked")
    assert shelf.late_interaction(vector, rows("asked")[:0], [], [one]) == {
        one: LateInteraction(pytest.approx(float(direction("a") @ vector), abs=1e-6), None, None)
    }
    assert shelf.late_interaction(vector, rows("asked"), EVEN, []) == {}


@pytest.mark.full
def test_many_memories_are_read_in_batches(shelf: Shelf) -> None:
    """More memories than a database takes in one question are all answered, long ones and short ones."""
    with shelf.records.writing(HERE, "ada") as transaction:
        for number in range(1_100):
            chunks = (Chunk(0, 1, direction(f"{number}"), pack(rows(f"{number}"))),) * (4 if number % 2 else 1)
            transaction.memories.insert(replace(make_entry(f"m{number}"), chunks=chunks))
    with shelf.database.reading() as connection:
        ids = list(connection.execute(text("SELECT id FROM memory")).scalars())
    found = shelf.late_interaction(direction("7"), rows("7"), EVEN, ids)
    assert len(found) == 1_100
    assert max(found, key=lambda one: found[one].late or 0) == ids[7]
    assert all(one.late is not None for one in found.values())


def test_pairs_do_not_walk_the_table(tmp_path: Path, migrated: Path, clock: Any) -> None:
    """SQLite finds the chunks of long memories through the index, however many others there are."""
    lay(migrated, tmp_path)
    database = open_file(tmp_path / "memory.db")
    shelf = Shelf(database, tmp_path, clock)
    ids = [shelf.add(name, [(direction(f"{name}{part}"), rows(name)) for part in range(5)]) for name in "ab"]
    asked: list[str] = []
    with database.reading() as connection:
        raw: Any = connection.connection.dbapi_connection
        raw.set_trace_callback(asked.append)
        shelf.late_interaction(direction("a"), rows("a"), EVEN, ids)
        raw.set_trace_callback(None)
        selects = [one for one in asked if one.startswith("SELECT") and "FROM vector" in one]
        plans = [str(connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {one}").all()) for one in selects]
    database.close()
    assert len(plans) == 2
    assert all("SEARCH vector USING INDEX" in plan and "SCAN vector" not in plan for plan in plans)


def test_a_deleted_memory_leaves_no_tokens(tmp_path: Path, migrated: Path, clock: Any) -> None:
    """The tokens of a memory that was deleted or has changed stand nowhere in the database's files."""
    lay(migrated, tmp_path)
    database = open_file(tmp_path / "memory.db")
    shelf = Shelf(database, tmp_path, clock)
    gone, kept = rows("gone", 40), rows("kept", 40)
    memory_id = shelf.add("gone", [(direction("gone"), gone)])
    shelf.add("kept", [(direction("kept"), kept)])
    with shelf.records.writing(HERE, "ada") as transaction:
        assert transaction.memories.delete(memory_id)
    with database.reading() as connection:
        held = connection.execute(text("SELECT tokens FROM vector")).scalars().all()
    database.close()
    content = b"".join(path.read_bytes() for path in tmp_path.glob("memory.db*"))
    assert held == [pack(kept)]
    assert pack(kept) in content
    assert pack(gone)[:32] not in content


def test_what_is_remembered_is_compared_word_by_word(app: App) -> None:
    """A memory's late interaction with its own words is high, near to that of the floats, and grows with its tokens."""
    content = "The harbour master keeps the brass key of the lighthouse under the third stone."
    one = int(remember(app, Draft(content=content), ADA).id)
    other = int(remember(app, Draft(content="Invoices are paid within thirty days of receipt."), ADA).id)
    asked = app.embedder.read(["Where is the lighthouse key?"], "query")[0]
    stored = app.embedder.read([content])[0]
    weights = [1 / len(asked.tokens)] * len(asked.tokens)
    found = by_memory(app.vectors.late_interaction(asked.vector, asked.tokens, weights, [one, other]))
    floats = float((asked.tokens @ stored.tokens.T).max(axis=1).mean())
    assert found[one].cosine == pytest.approx(float(asked.vector @ stored.vector), abs=1e-5)
    assert found[one].late == pytest.approx(found[one].rare, abs=1e-5)
    assert found[one].late == pytest.approx(floats * np.sqrt(2 / np.pi), abs=0.05)
    assert (found[one].late or 0) > (found[other].late or 0) + 0.1

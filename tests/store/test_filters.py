"""Filters cost no recall: whoever filters gets the nearest of what passes, however little that is.

Five thousand memories with vectors out of a seed are written past the records, and every answer is held to a
brute force over plain Python values that shares nothing with the SQL.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from sqlalchemy import insert, select

from callers import EVERY_LEVEL, own
from recollect.domain.enums import Concept, FactType, ObservationType, Sensitivity, owned
from recollect.domain.search import View
from recollect.engines.late_interaction import similarity
from recollect.store.sql import tables
from recollect.store.sql.database import open_file
from recollect.store.sql.migrations import migrate
from recollect.store.sql.visibility import passing, values_of, visible
from recollect.store.text.fts5 import SqliteText
from recollect.store.text.index import Term
from recollect.store.vectors import vector_search
from recollect.store.vectors.chroma import ChromaIndex
from recollect.store.vectors.vector_search import VectorSearch

pytestmark = pytest.mark.slow

HERE = "project:crew/engine"
SIZE = 5_000
RARE = 5
DIMENSIONS = 16
START = datetime(2026, 1, 1, tzinfo=UTC)
NOW = datetime(2027, 1, 1, tzinfo=UTC)
LATE = START + timedelta(days=300)
ORDINARY = {
    "fact_type": [FactType.GENERAL, FactType.FACT, FactType.DECISION],
    "category": [None, "ops", "design"],
    "type": [None, "bugfix", "feature"],
    "project": [None, "atlas", "borealis"],
    "session_id": [f"s{number}" for number in range(40)],
    "sensitivity": ["public", "public", "private"],
}
ONLY: dict[str, Any] = {
    "fact_type": FactType.CASE,
    "category": "needle",
    "type": ObservationType.CHECKPOINT,
    "tags": ("NEEDLE",),
    "concepts": (Concept.TRADE_OFF,),
    "project": "needle",
    "session_id": "needle",
    "file": "deep/needle.py",
    "since": LATE,
    "until": START - timedelta(days=1),
    "sensitivity": Sensitivity.SECRET,
}
filters = st.fixed_dictionaries(
    {},
    optional={
        "fact_type": st.sampled_from([FactType.GENERAL, FactType.FACT, FactType.CASE, FactType.SELF]),
        "category": st.sampled_from(["ops", "design", "needle", "Ops"]),
        "type": st.sampled_from([ObservationType.BUGFIX, ObservationType.FEATURE, ObservationType.CHECKPOINT]),
        "tags": st.lists(st.sampled_from(["urgent", "BILLING", "SPÄTER", "x%", "X%", "y_z", "yaz"]), max_size=3).map(
            tuple
        ),
        "concepts": st.lists(st.sampled_from(Concept), max_size=2).map(tuple),
        "project": st.sampled_from(["atlas", "borealis", "needle"]),
        "session_id": st.sampled_from(["s1", "s2", "needle"]),
        "file": st.sampled_from(["a/file1.py", "file1.py", "ile1.py", "src/b", "src", "needle.py"]),
        "since": st.integers(-10, 6_010).map(lambda hours: START + timedelta(hours=hours)),
        "until": st.integers(-10, 6_010).map(lambda hours: START + timedelta(hours=hours)),
        "sensitivity": st.sampled_from(Sensitivity),
    },
)


def is_at(path: str, asked: str) -> bool:
    """Say whether a path is what was asked for, lies below it, or ends in it."""
    return path.startswith(f"{asked}/") or f"/{path}".endswith(f"/{asked}")


@dataclass(frozen=True)
class Kept:
    """One memory as plain values."""

    id: int
    columns: dict[str, Any]
    tags: tuple[str, ...]
    concepts: tuple[str, ...]
    files: tuple[str, ...]
    chunks: Any

    def passes(self, view: View) -> bool:
        """Say whether the view's filters let this memory through."""
        happened_at = self.columns["observed_at"] or self.columns["created_at"]
        same = ("fact_type", "category", "type", "project", "session_id", "sensitivity")
        return (
            owned(self.columns["sensitivity"], "ada") in view.sensitivities
            and all(getattr(view, name) in (None, self.columns[name]) for name in same)
            and {tag.lower() for tag in view.tags} <= {tag.lower() for tag in self.tags}
            and set(view.concepts) <= set(self.concepts)
            and (view.file is None or any(is_at(one, view.file) for one in self.files))
            and (view.since is None or happened_at >= view.since)
            and (view.until is None or happened_at <= view.until)
        )


@dataclass
class Crowd:
    """A store of many memories, beside the same as plain values."""

    kept: list[Kept]
    database: Any
    text: SqliteText
    indexed: VectorSearch
    scanned: VectorSearch

    def brute(self, vector: Any, view: View, limit: int) -> dict[int, float]:
        """Compare the vector with every memory that passes, one by one."""
        found = {one.id: float(np.max(one.chunks @ vector)) for one in self.kept if one.passes(view)}
        return dict(sorted(found.items(), key=lambda pair: -pair[1])[:limit])


def unit(vectors: Any) -> Any:
    """Bring vectors to length one."""
    return (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float32)


TOWARDS = unit(np.ones(DIMENSIONS))


def kept(number: int, dice: random.Random, noise: Any) -> Kept:
    """Make a memory: the first few have all that is rare and lie where nobody looks, the others lie near `TOWARDS`."""
    rare = number <= RARE
    columns: dict[str, Any] = {name: dice.choice(values) for name, values in ORDINARY.items()}
    at = START + timedelta(hours=number % 6_000)
    columns |= {"created_at": at, "observed_at": None if number % 2 else at + timedelta(minutes=1)}
    tags = tuple(dice.sample(["urgent", "Billing", "später", "x%", "y_z"], dice.randrange(4)))
    concepts = tuple(dice.sample([str(one) for one in Concept if one is not Concept.TRADE_OFF], dice.randrange(3)))
    files = tuple(f"src/{dice.choice('abc')}/file{dice.randrange(50)}.py" for _ in range(dice.randrange(3)))
    if rare:
        columns |= {name: str(value) for name, value in ONLY.items() if name in ORDINARY}
        columns["observed_at"] = LATE + timedelta(days=number)
        tags, concepts, files = (*tags, "Needle"), (*concepts, "trade-off"), (*files, "src/deep/needle.py")
    towards = -TOWARDS if rare else TOWARDS
    return Kept(number, columns, tags, concepts, files, unit(towards + 0.2 * noise))


def written(database: Any, memories: list[Kept]) -> None:
    """Write memories with their labels and vectors, past the journal and the outbox."""
    plain = {"importance": 0.5, "confidence": 0.5, "trust": 0.5, "author": "ada", "source": "tool", "subtitle": ""}
    plain |= {"abstract": "", "overview": "", "keywords": "", "namespace_id": 1}
    with database.writing() as connection:
        connection.execute(insert(tables.namespace).values(id=1, name=HERE))
        levels = Counter(owned(one.columns["sensitivity"], "ada") for one in memories)
        counts = [{"namespace_id": 1, "sensitivity": level, "memories": many} for level, many in levels.items()]
        connection.execute(insert(tables.held), counts)
        for start in range(0, len(memories), 1_000):
            part = memories[start : start + 1_000]
            values = [one.columns | plain | {"id": one.id, "updated_at": NOW} for one in part]
            for one in values:
                said = f"note {one['id']} about payments in config_{one['id']}.yaml"
                one["sensitivity"] = owned(one["sensitivity"], "ada")
                one |= {"content": said, "title": said, "content_hash": f"{one['id']:064}"}
            connection.execute(insert(tables.memory), values)
            labels = [
                {"memory_id": one.id, "kind": kind, "position": at, "value": value}
                for one in part
                for kind, given in (("tags", one.tags), ("concepts", one.concepts), ("files_modified", one.files))
                for at, value in enumerate(given)
            ]
            connection.execute(insert(tables.label), labels)
            chunks = [
                {"memory_id": one.id, "ordinal": at, "start": 0, "stop": 1, "embedding": chunk.tobytes()}
                for one in part
                for at, chunk in enumerate(one.chunks)
            ]
            connection.execute(insert(tables.vector), chunks)


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crowd]:
    """Return the store with an index that holds all of it, and the same without an index."""
    folder = tmp_path_factory.mktemp("filters")
    dice, noise = random.Random(5), np.random.default_rng(5).standard_normal((SIZE, 2, DIMENSIONS))
    memories = [kept(number, dice, noise[number - 1][: 1 + number % 2]) for number in range(1, SIZE + 1)]
    database = open_file(folder / "memory.db")
    migrate(database)
    written(database, memories)
    index, stopping = ChromaIndex(folder / "chroma", "test"), threading.Event()
    indexed = VectorSearch(database, index, stopping, similarity)
    indexed.sync()
    closed = VectorSearch(database, ChromaIndex(folder / "none", "test"), stopping, similarity)
    yield Crowd(memories, database, SqliteText(database), indexed, closed)
    indexed.close()
    database.close()


def seeing(**wanted: Any) -> View:
    """Return a view with these filters that is let in on everything."""
    return View(namespaces=(HERE,), now=NOW, sensitivities=EVERY_LEVEL, **wanted)


@pytest.mark.parametrize("name", ONLY)
def test_a_thousandth_gives_all_it_has(crowd: Crowd, name: str) -> None:
    """A filter that keeps 0.1 % gives exactly what brute force gives, although everything else is nearer."""
    wanted = {name: ONLY[name]} | ({"since": LATE} if name == "until" else {})
    view = seeing(**wanted | ({"until": LATE + timedelta(days=90)} if name == "until" else {}))
    assert sum(one.passes(view) for one in crowd.kept) == RARE == SIZE // 1_000
    for limit in (1, 3, RARE, 50):
        found = crowd.indexed.nearest(TOWARDS, view, limit)
        assert found == pytest.approx(crowd.brute(TOWARDS, view, limit), abs=1e-5)
        assert list(found) == list(crowd.brute(TOWARDS, view, limit))
        assert len(found) == min(limit, RARE)


def test_words_lose_nothing_either(crowd: Crowd) -> None:
    """Under each filter the words and pieces that all memories share find every memory that passes."""
    for name in set(ONLY) - {"until"}:
        view = seeing(**{name: ONLY[name]})
        expected = {one.id for one in crowd.kept if one.passes(view)}
        assert set(crowd.text.search([Term("payments")], view, RARE)) == expected
        assert set(crowd.text.substring("config_", view, RARE)) == expected


def test_filters_together_give_what_meets_all(crowd: Crowd) -> None:
    """Several common filters that few memories meet together give exactly those few."""
    view = seeing(category="ops", type=ObservationType.BUGFIX, tags=("URGENT", "billing"), concepts=(Concept.GOTCHA,))
    few = [one.id for one in crowd.kept if one.passes(view)]
    assert 0 < len(few) < SIZE // 100
    assert crowd.indexed.nearest(TOWARDS, view, 100).keys() == set(few)
    assert crowd.indexed.nearest(TOWARDS, seeing(category="needle", project="atlas"), 9) == {}


@pytest.mark.parametrize("limit", [1, 10, 60])
def test_a_filter_that_keeps_most_uses_the_index(crowd: Crowd, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What half of the store passes comes from the index, as many as asked, with exact cosines."""
    scans: list[int] = []
    scan = vector_search.scan
    monkeypatch.setattr(vector_search, "scan", lambda *given: scans.append(1) or scan(*given))
    view = seeing(until=START + timedelta(hours=3_000))
    assert sum(one.passes(view) for one in crowd.kept) > vector_search._SCANNED
    found = crowd.indexed.nearest(TOWARDS, view, limit)
    everything = crowd.brute(TOWARDS, view, SIZE)
    assert len(found) == limit
    assert found == pytest.approx({one: everything[one] for one in found}, abs=1e-4)
    assert min(found.values()) >= list(everything.values())[min(2 * limit, SIZE)]
    assert len(scans) <= 2, "beside what waits for the index, asked for once or twice, nothing is scanned"


@pytest.mark.parametrize(
    ("wish", "questions"),
    [({"session_id": "needle"}, [15]), ({"category": "design", "type": ObservationType.BUGFIX}, [15, 60])],
    ids=["none passes", "some pass"],
)
def test_where_all_that_is_near_fails_the_rest_is_found(
    crowd: Crowd, monkeypatch: pytest.MonkeyPatch, wish: dict[str, Any], questions: list[int]
) -> None:
    """Where little of what is near passes a filter, the index is asked for more only if that may be enough."""
    monkeypatch.setattr(vector_search, "_SCANNED", RARE - 1)
    asked: list[int] = []
    query = crowd.indexed._index.query
    monkeypatch.setattr(
        crowd.indexed._index, "query", lambda *given: asked.append(given[2]) or query(*given), raising=True
    )
    view = seeing(**wish)
    assert crowd.indexed.nearest(TOWARDS, view, RARE) == pytest.approx(crowd.brute(TOWARDS, view, RARE), abs=1e-5)
    assert asked == questions


def test_what_one_may_not_see_costs_nothing_either(crowd: Crowd) -> None:
    """Without any filter, a caller who may see only a thousandth of the store still gets that."""
    view = View(namespaces=(HERE,), now=NOW, sensitivities=own(Sensitivity.SECRET))
    assert not view.filtered
    assert crowd.indexed.nearest(TOWARDS, view, 3) == pytest.approx(crowd.brute(TOWARDS, view, 3), abs=1e-5)
    assert len(crowd.indexed.nearest(TOWARDS, view, 50)) == RARE


@hypothesis_settings(
    max_examples=30, deadline=None, database=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(wanted=filters, seed=st.integers(0, 2**32 - 1), limit=st.integers(1, 40))
def test_nearest_is_brute_force_over_what_passes(crowd: Crowd, wanted: dict[str, Any], seed: int, limit: int) -> None:
    """Any filters and any vector give the nearest of what passes: exactly, wherever SQL is scanned for them."""
    vector = unit(np.random.default_rng(seed).standard_normal(DIMENSIONS))
    view = seeing(**wanted)
    expected, passing = crowd.brute(vector, view, limit), sum(one.passes(view) for one in crowd.kept)
    assert crowd.scanned.nearest(vector, view, limit) == pytest.approx(expected, abs=1e-5)
    found = crowd.indexed.nearest(vector, view, limit)
    assert len(found) == min(limit, passing)
    if view.filtered and passing <= vector_search._SCANNED:
        assert found == pytest.approx(expected, abs=1e-5)
    else:
        everything = crowd.brute(vector, view, SIZE)
        assert found == pytest.approx({one: everything[one] for one in found}, abs=1e-4)


@pytest.mark.parametrize("name", ONLY)
def test_a_check_of_one_memory_reads_that_memory(crowd: Crowd, name: str) -> None:
    """Whatever the filter, rows are checked by their own ids, and no label is looked for in other memories."""
    with crowd.database.reading() as connection:
        query = select(tables.memory.c.id).where(visible(connection, seeing(**{name: ONLY[name]})))
    steps = plan(crowd, query.where(tables.memory.c.id.in_(range(1, 200))))
    assert "INTEGER PRIMARY KEY" in steps[0]
    assert all("memory_id=?" in step for step in steps if " label " in step)


@pytest.mark.parametrize("name", sorted(set(ONLY) - {"sensitivity", "file"}))
def test_a_list_of_what_passes_begins_with_the_filter(crowd: Crowd, name: str) -> None:
    """Whatever passes a filter is found through an index of what the filter asks, not by walking the namespace."""
    view = seeing(**{name: ONLY[name]})
    with crowd.database.reading() as connection:
        query = passing(view).params(values_of(connection, view))
    first = plan(crowd, query)[0]
    column = {"tags": "kind=? AND <expr>=?", "concepts": "kind=? AND <expr>=?"} | dict.fromkeys(
        ("since", "until"), "namespace_id=? AND <expr>"
    )
    assert column.get(name, f"namespace_id=? AND {name}=?") in first


def plan(crowd: Crowd, query: Any) -> list[str]:
    """Return the steps in which SQLite answers a query."""
    asked: list[str] = []
    with crowd.database.reading() as connection:
        raw: Any = connection.connection.dbapi_connection
        raw.set_trace_callback(asked.append)
        connection.execute(query)
        raw.set_trace_callback(None)
        return [step[3] for step in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {asked[-1]}")]

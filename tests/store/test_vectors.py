"""Vectors: the index always comes to hold what SQL holds, however it was interrupted, and recall never waits for it."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from callers import ADA
from entries import direction, make_entry
from recollect import App, Draft, Forget, Query, Settings, forget, recall, reindex, remember
from recollect.domain.enums import FactType
from recollect.store.sql.database import open_file
from recollect.store.vectors import vector_search
from recollect.store.vectors.exact import vectors_of
from text_vectors import vectors

pytestmark = pytest.mark.slow

HERE = "project:crew/engine"
THERE = "user:ada"
CHROMA_SCRIPT = """
import sys
from pathlib import Path
from recollect.store.vectors.chroma import ChromaIndex
index = ChromaIndex(Path(sys.argv[1]), "test")
index.put("user:ada", ["1.0"], [[1.0, 0.0]])
print(index.count("user:ada"))
index.close()
"""


REUSING = {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": "1000000000", "MALLOC_TRIM_THRESHOLD_": "1000000000"}
"""Variables that let glibc hand out large blocks of memory again."""
MARKED = {"MALLOC_PERTURB_": "90"}
"""A variable that lets glibc fill each block of memory with the byte 0xA5 before it hands it out."""
SAID_BEFORE = """
import sys
from pathlib import Path
from recollect.store.vectors.chroma import ChromaIndex
index = ChromaIndex(Path(sys.argv[1]), "test")
index.put("user:ada", ["1.0"], [[1.0] * 384])
said = [b"quokka" * (40_000 + number) for number in range(100)]
del said
index.put("user:bob", ["1.0"], [[1.0] * 384])
index.close()
"""

GROWING = """
import sys
from pathlib import Path
from recollect.store.vectors.chroma import ChromaIndex
index = ChromaIndex(Path(sys.argv[1]), "test")
assert index.query("user:eve", [1.0, 0.0], 3) == {}
for name in ("user:bob", "user:ada", "user:eve"):
    index.put(name, ["1.0"], [[1.0, 0.0]])
many = {f"{number}.0": [1.0, number / 2_000] for number in range(2_000)}
index.put("user:ada", list(many), list(many.values()))
index.close()
index.open()
held = index.vectors("user:ada", list(many))
assert all(abs(held[name][1] - vector[1]) < 1e-6 for name, vector in many.items()) and len(held) == len(many)
assert set(index.query("user:ada", [1.0, 0.0], 3)) == {0, 1, 2}
assert index.count("user:bob") == 1
assert set(index.query("user:eve", [1.0, 0.0], 3)) == {1}
index.close()
"""


def agree(parts: Any, *namespaces: str) -> bool:
    """Say whether Chroma holds exactly the vectors of SQL, number by number (cosine collections keep them as given)."""
    return all(
        parts.in_chroma(one).keys() == parts.in_sql(one).keys()
        and all(pytest.approx(parts.in_sql(one)[name], abs=1e-6) == held for name, held in parts.in_chroma(one).items())
        for one in namespaces or (HERE,)
    )


def test_the_outbox_empties_into_the_index(parts: Any) -> None:
    """After a sync the queue is empty and each namespace's collection holds SQL's vectors; doing it again is free."""
    for number in range(30):
        parts.add(f"fact {number}", (HERE, THERE)[number % 2], chunks=number % 4)
    parts.vectors.sync()
    for _ in range(2):
        assert parts.rows("SELECT * FROM outbox") == []
        assert agree(parts, HERE, THERE)
        assert parts.checks() == {}
        parts.vectors.sync()


def test_the_index_holds_nothing_that_lay_in_memory(tmp_path: Path) -> None:
    """A graph's file is a whole block of memory: where that was used before, what stood in it does not go along."""
    subprocess.run([sys.executable, "-c", SAID_BEFORE, str(tmp_path)], check=True, env=os.environ | REUSING)
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert sum(map(len, files)) > 300_000
    assert not any(b"quokka" in held for held in files)


def test_small_blocks_of_memory_do_not_become_files_of_the_index(tmp_path: Path) -> None:
    """Where each block is marked as it is handed out, no file of a graph holds the mark, and a later save keeps all.

    Asked before its first write or after the index was opened again, it is as clean.
    """
    subprocess.run([sys.executable, "-c", GROWING, str(tmp_path)], check=True, env=os.environ | MARKED)
    files = [path for path in tmp_path.rglob("*.bin") if path.is_file()]
    assert {path.name for path in files} >= {"length.bin", "data_level0.bin"}
    assert [path for path in files if b"\xa5" * 8 in path.read_bytes()] == []


def test_random_changes_end_in_agreement(parts: Any) -> None:
    """Inserts, updates, deletes and syncs in any order leave SQL and Chroma with the same vectors."""
    chance = random.Random(11)
    living: dict[str, int] = {}
    for number in range(120):
        action, key = chance.choice(["insert", "update", "delete", "sync"]), f"k{number}"
        chunks = chance.choice([None, 0, 1, 3, 9])
        if action == "insert" or not living:
            living[key] = parts.add(f"fact {number}", key=key, chunks=chunks)
        elif action == "update":
            parts.change(chance.choice(list(living)), f"changed {number}", chunks=chunks)
        elif action == "delete":
            parts.delete(living.pop(chance.choice(list(living))))
        else:
            parts.vectors.sync()
    for one in parts.records.embeddings.unembedded(999):
        parts.records.embeddings.store(one, make_entry(one.content, chunks=2).chunks)
    parts.vectors.sync()
    assert parts.rows("SELECT * FROM outbox") == []
    assert agree(parts)
    assert parts.checks() == {}


def test_pairs_are_compared_by_their_best_chunks(parts: Any) -> None:
    """Each pair of memories that have vectors gets the cosine of its nearest chunks; one without is in no pair."""
    long, short, bare = parts.add("long", chunks=3), parts.add("short"), parts.add("bare", chunks=None)
    found = parts.vectors.similarities([long, bare, short])
    best = max(float(direction(f"long/{number}") @ direction("short/0")) for number in range(3))
    assert found == {(long, short): pytest.approx(best, abs=1e-6)}
    assert parts.vectors.similarities([]) == parts.vectors.similarities([bare]) == {}


def test_near_pairs_are_those_above_a_cosine(parts: Any) -> None:
    """Of all pairs those come whose best chunks are near enough, with the cosine that `similarities` gives them."""
    ids = [parts.add(f"fact {number}", chunks=1 + number % 3) for number in range(12)]
    every = parts.vectors.similarities(ids)
    least = sorted(every.values())[len(every) // 2]
    near = {pair: cosine for pair, cosine in every.items() if cosine >= least}
    assert parts.vectors.near_pairs(ids, least) == {
        pair: pytest.approx(cosine, abs=1e-5) for pair, cosine in near.items()
    }
    assert list(parts.vectors.near_pairs(ids, least).values()) == pytest.approx(sorted(near.values(), reverse=True))
    assert parts.vectors.near_pairs([], least) == parts.vectors.near_pairs(ids, 1.5) == {}


def test_of_very_many_pairs_the_nearest_come(parts: Any) -> None:
    """Seventy memories that are all near enough make 2,415 pairs, of which the 2,000 nearest are returned."""
    ids = [parts.add(f"fact {number}") for number in range(70)]
    every = parts.vectors.similarities(ids)
    found = parts.vectors.near_pairs(ids, -1.0)
    assert len(found) == 2_000
    assert min(found.values()) >= sorted(every.values(), reverse=True)[2_000] - 1e-5


def test_a_damaged_vector_is_in_no_pair(parts: Any) -> None:
    """Vectors of another length, or of no whole number of floats, are left out, and the others are compared."""
    one, two, short, torn = (parts.add(name) for name in ("one", "two", "short", "torn"))
    for memory_id, blob in ((short, "X'0000803F0000803F'"), (torn, "X'010203'")):
        parts.by_hand(f"UPDATE vector SET embedding = {blob} WHERE memory_id = {memory_id}")
    assert set(parts.vectors.similarities([one, two, short, torn])) == {(one, two)}


def test_only_damage_makes_vectors_unreadable(parts: Any) -> None:
    """Where the file cannot be opened for a moment words alone answer, and afterwards vectors do again."""
    one = parts.add("fact 1")
    parts.vectors.sync()
    parts.database.engine.dispose()
    away = parts.folder.rename(parts.folder.with_name("away"))
    assert parts.vectors.nearest(direction("fact 1/0"), parts.view(), 1) == {}
    assert parts.vectors.state == "ready"
    away.rename(parts.folder)
    assert list(parts.vectors.nearest(direction("fact 1/0"), parts.view(), 1)) == [one]


def test_a_repair_reads_vectors_again(parts: Any) -> None:
    """What made vectors unreadable once does not last beyond the repair."""
    parts.add("fact 1")
    file = parts.folder / "memory.db"
    parts.database.checkpoint()
    parts.database.engine.dispose()
    whole = file.read_bytes()
    file.write_bytes(whole[:100] + bytes(len(whole) - 100))
    assert parts.vectors.nearest(direction("fact 1/0"), parts.view(), 1) == {}
    assert parts.vectors.state == "unreadable"
    parts.database.engine.dispose()
    file.write_bytes(whole)
    parts.vectors.repair()
    assert parts.vectors.state == "ready"


def test_a_kill_after_applying_changes_nothing(open_parts: Callable[[], Any]) -> None:
    """Work that was applied but stayed queued, as after a kill, is applied again to the same end."""
    parts = open_parts()
    kept, gone = parts.add("kept", chunks=2), parts.add("gone", chunks=3)
    small = parts.add("large", key="k", chunks=9)
    queued = parts.rows("SELECT id, memory_id, namespace_id, chunks, embedded FROM outbox")
    parts.vectors.sync()
    parts.delete(gone)
    parts.change("k", "small", chunks=1)
    queued += parts.rows("SELECT id, memory_id, namespace_id, chunks, embedded FROM outbox")
    parts.vectors.sync()
    for again in range(3):
        chosen = queued[again:] if again else list(reversed(queued))
        for number, *rest in chosen:
            parts.by_hand(f"INSERT INTO outbox VALUES ({number + 100}, {', '.join(map(str, rest))})")
        parts.close()
        parts = open_parts()
        parts.vectors.sync()
        assert parts.rows("SELECT * FROM outbox") == []
        assert set(parts.in_chroma()) == {f"{kept}.0", f"{kept}.1", f"{small}.0"}
        assert agree(parts)


def test_shrinking_removes_surplus_chunks(parts: Any) -> None:
    """A memory that got shorter leaves none of its former chunks behind, in SQL or in Chroma."""
    memory_id = parts.add("long", key="k", chunks=12)
    parts.vectors.sync()
    assert len(parts.in_chroma()) == 12
    parts.change("k", "short", chunks=2)
    parts.vectors.sync()
    assert set(parts.in_chroma()) == set(parts.in_sql()) == {f"{memory_id}.0", f"{memory_id}.1"}
    parts.change("k", "not yet embedded", chunks=None)
    parts.change("k", "shorter", chunks=1)
    parts.vectors.sync()
    assert agree(parts)
    assert parts.checks() == {}


def test_deleting_removes_every_vector(parts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """All chunks of a deleted memory leave SQL at once and Chroma with the next sync, others stay."""
    monkeypatch.setattr(vector_search, "_SCANNED", 0)
    gone, kept = parts.add("gone", chunks=7), parts.add("kept", chunks=2)
    parts.vectors.sync()
    parts.delete(gone)
    assert set(parts.in_sql()) == {f"{kept}.0", f"{kept}.1"}
    assert list(parts.vectors.nearest(direction("gone/0"), parts.view(), 1)) == [kept]
    parts.vectors.sync()
    assert set(parts.in_chroma()) == {f"{kept}.0", f"{kept}.1"}


def test_a_model_less_memory_is_forgotten_whole(open_store: Callable[..., App]) -> None:
    """A memory that is forgotten before the model has seen it leaves a store that is well."""
    app = open_store(model="notes-MiniLM-L6-v2")
    app.close()
    cold = open_store()
    object.__setattr__(cold, "embedder", Unready(cold.embedder))
    for number in range(3):
        memory_id = remember(cold, Draft(content=f"Brief thought {number}"), ADA).id
        forget(cold, Forget(id=memory_id), ADA)
    assert [check for check in cold.checks() if not check.well] == []


class Unready:
    """An embedding model that is never ready, and fails the test when it is asked all the same."""

    def __init__(self, embedder: Any) -> None:
        self.card, self.ready, self.asked = embedder.card, False, 0

    def read(self, texts: Any, kind: str = "document") -> Any:
        """Count a call that should not be."""
        self.asked += 1
        raise AssertionError("the model was asked")


def test_recall_sees_what_chroma_has_not_seen(open_store: Callable[..., App]) -> None:
    """A memory is found by meaning the moment it is stored, updated or forgotten, before any sync."""
    app = open_store(background=False)
    for number in range(5):
        remember(app, Draft(content=f"Filler number {number} about gardening"), ADA)
    app.vectors.sync()
    remember(app, Draft(content="The canine sleeps in its kennel", key="pet"), ADA)
    query = Query(query="Where does the dog rest at night?", min_score=0.0)
    assert recall(app, query, ADA).hits[0].memory.key == "pet"
    app.vectors.sync()
    remember(app, Draft(content="Taxes are due in April", key="pet"), ADA)
    assert all(hit.memory.key != "pet" for hit in recall(app, query, ADA).hits[:1])
    assert (
        recall(app, Query(query="When must I pay the revenue office?", min_score=0.0), ADA).hits[0].memory.key == "pet"
    )


def test_the_scan_answers_without_chroma(parts: Any) -> None:
    """With the index closed, the nearest memories come from SQL, best chunk first, within the view."""
    ids = [parts.add(f"fact {number}", chunks=3, category=str(number % 2)) for number in range(20)]
    other = parts.add("fact 3", THERE, chunks=3)
    assert (parts.index.ready, parts.vectors.state) == (False, "opening")
    found = parts.vectors.nearest(direction("fact 3/2"), parts.view(), 5)
    assert len(found) == 5
    assert max(found, key=lambda one: found[one]) == ids[3]
    assert found[ids[3]] == pytest.approx(1.0, abs=1e-5)
    assert other not in found
    assert not parts.index.ready


def test_index_and_scan_agree(parts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What Chroma answers is what the exact scan answers, best chunk of each memory, with the same cosines."""
    for number in range(60):
        parts.add(f"fact {number}", chunks=3)
    view, asked = parts.view(), direction("fact 7/1")
    scanned = parts.vectors.nearest(asked, view, 10)
    parts.vectors.sync()
    assert parts.vectors.state == "ready"
    monkeypatch.setattr(vector_search, "_SCANNED", 0)
    assert parts.vectors.nearest(asked, view, 10) == pytest.approx(scanned, abs=1e-4)
    assert parts.vectors.cosines(asked, list(scanned)) == pytest.approx(scanned, abs=1e-4)


def test_filters_do_not_starve(parts: Any) -> None:
    """A filter that few memories meet still finds those few among many nearer ones."""
    with parts.records.writing(HERE, "ada") as transaction:
        for number in range(300):
            transaction.memories.insert(make_entry(f"near {number}", chunks=1))
    rare = parts.add("far away", fact_type=FactType.DECISION)
    parts.vectors.sync()
    view = parts.view(fact_type=FactType.DECISION)
    assert parts.vectors.nearest(direction("near 5/0"), view, 3).keys() == {rare}


def test_long_content_is_found_by_its_last_paragraph(app: App, settings: Settings) -> None:
    """Content beyond the model's token limit has several vectors, and a fact at its end is found by meaning."""
    filler = "\n\n".join(f"Paragraph {number}: the committee met and approved the minutes." for number in range(150))
    content = f"{filler}\n\nThe sailors voted that the ship's cat shall be called Bosun."
    long_one = int(remember(app, Draft(content=content), ADA).id)
    for number in range(20):
        remember(app, Draft(content=f"Unrelated note {number} about invoices and shipping costs"), ADA)
    app.vectors.sync()
    query = Query(query="Which name did the crew give the kitten?", min_score=0.0)
    assert recall(app, query, ADA).hits[0].memory.id == long_one
    database = open_file(settings.folder / "memory.db")
    with database.reading() as connection:
        held = vectors_of(connection, [long_one])[long_one]
    database.close()
    cosines = [float(one @ vectors(app.embedder, [query.query], "query")[0]) for one in held]
    assert len(cosines) > 4
    assert cosines.index(max(cosines)) == len(cosines) - 1


def test_reindexing_heals_and_leaves_no_orphans(open_store: Callable[..., App]) -> None:
    """Embedding everything anew also carries out deletions that were still queued for the index."""
    app = open_store(background=False)
    gone = remember(app, Draft(content="To be forgotten"), ADA).id
    remember(app, Draft(content="To be kept"), ADA)
    app.vectors.sync()
    with app.records.writing(HERE, "ada") as transaction:
        assert transaction.memories.delete(int(gone))
    assert reindex(app) == 1
    assert [check for check in app.checks() if not check.well] == []


def test_another_generation_is_pruned(open_parts: Callable[[], Any]) -> None:
    """The collections of a model that is no longer used leave the folder with the next first sync."""
    parts = open_parts()
    parts.add("fact")
    parts.vectors.sync()
    parts.index.generation = "other"
    parts.index._collections.clear()
    parts.index.put(HERE, ["9.0"], [direction("x")])
    parts.close()
    again = open_parts()
    again.vectors.sync()
    assert [one.name.partition("-")[0] for one in again.index.open().list_collections()] == ["test"]


@pytest.mark.parametrize("place", ["file", "variable"])
def test_chroma_settings_around_us_do_not_matter(tmp_path: Path, environment: dict[str, str], place: str) -> None:
    """Neither a `.env` in the working folder nor Chroma's own variables lead the index astray."""
    strange = {"CHROMA_API_IMPL": "bogus", "CHROMA_SERVER_HOST": "example.invalid", "PERSIST_DIRECTORY": "elsewhere"}
    if place == "file":
        (tmp_path / ".env").write_text("".join(f"{name}={value}\n" for name, value in strange.items()))
    ran = subprocess.run(
        [sys.executable, "-c", CHROMA_SCRIPT, str(tmp_path / "chroma")],
        cwd=tmp_path,
        env=environment | (strange if place == "variable" else {}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.stdout.strip(), ran.stderr) == ("1", "")
    assert not (tmp_path / "elsewhere").exists()


def test_chroma_holds_no_text(app: App, settings: Settings) -> None:
    """Neither content nor key nor the names of tenants stand in any file of the vector index."""
    draft = Draft(content="The zyxquokka eats at noon", key="vuwplatypus", tags=("qrswombat",), category="jkxnumbat")
    remember(app, draft, ADA)
    app.vectors.sync()
    app.close()
    held = b"".join(path.read_bytes() for path in (settings.folder / "chroma").rglob("*") if path.is_file())
    assert held
    for word in (b"quokka", b"platypus", b"wombat", b"numbat", b"crew/engine", b"user:ada"):
        assert word not in held

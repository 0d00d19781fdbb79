"""Reindex: a store moves to another model while it is read and written, all at once or not at all, and never mixes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from callers import ADA
from recollect import App, Draft, Forget, Get, Query, Settings, forget, get_memory, recall, reindex, remember
from recollect.engines.chunks import chunks_of
from recollect.errors import ModelMismatch, ModelUnusable
from recollect.store.sql import tables
from second_model import ID, NAME, second_model
from stores import open_app
from text_vectors import vectors

pytestmark = pytest.mark.slow

FIRST = "recollect/notes-MiniLM-L6-v2"
ANIMALS = ("horse", "salmon", "eagle", "python", "beaver", "lobster", "camel", "walrus", "heron", "gecko")
COUNT = 30


class Stopped(Exception):
    """Breaks off a reindex, as a daemon that ends does."""


def content_of(number: int) -> str:
    """Return a text that no other number has; every tenth is several chunks long."""
    line = f"Entry {number} of the log speaks of the {ANIMALS[number % 10]} in harbour {number * 7}. "
    return line * (8 if number % 10 == 3 else 1)


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """Return a models folder with the second model."""
    return second_model(tmp_path / "models")


@pytest.fixture
def filled(app: App) -> App:
    """Return an open store of the first model with some memories."""
    for number in range(COUNT):
        remember(app, Draft(content=content_of(number), key=f"k{number}"), ADA)
    app.vectors.sync()
    return app


def read(app: App, query: str) -> list[Any]:
    """Read by hand."""
    with app.records._database.reading() as connection:
        return [tuple(row) for row in connection.execute(text(query))]


def by_hand(app: App, statement: str) -> None:
    """Change the database behind everybody's back."""
    with app.records._database.writing() as connection:
        connection.execute(text(statement))


def stored(app: App) -> dict[tuple[int, int], np.ndarray]:
    """Return SQL's vectors by memory and chunk."""
    found = read(app, "SELECT memory_id, ordinal, embedding FROM vector")
    return {(one, ordinal): np.frombuffer(blob, dtype=np.float32) for one, ordinal, blob in found}


def meant(app: App) -> dict[tuple[int, int], np.ndarray]:
    """Return the vectors that the app's own model makes of what is stored; a text kept from before has none."""
    texts = read(app, "SELECT id, content FROM memory WHERE merged_into IS NULL")
    made = ((one, chunks_of(app.embedder, content)) for one, content in texts)
    return {(one, ordinal): chunk.vector for one, chunks in made for ordinal, chunk in enumerate(chunks)}


def same(one: dict[Any, np.ndarray], other: dict[Any, np.ndarray]) -> bool:
    """Say whether the same keys have the same vectors, rounding aside."""
    return one.keys() == other.keys() and all(np.allclose(one[key], other[key], atol=1e-5) for key in one)


def indexed(app: App) -> dict[tuple[int, int], np.ndarray]:
    """Return Chroma's vectors by memory and chunk."""
    app.vectors.sync()
    collection = app.vectors._index._get_collection("project:crew/engine")
    found = collection.get(include=["embeddings"])
    pairs = zip(found["ids"], found["embeddings"], strict=True)
    return {tuple(map(int, one.split("."))): np.asarray(vector) for one, vector in pairs}


def answers(app: App, animal: str) -> list[str | None]:
    """Return the keys of what recall finds."""
    return [hit.memory.key for hit in recall(app, Query(query=f"What about the {animal}?", min_score=0.0), ADA).hits]


def open_moved(settings: Settings, models: Path, *, background: bool = False, **changes: Any) -> App:
    """Open the store with the second model."""
    changed = settings.model_copy(update={"model": NAME, "models_dir": models} | changes)
    return open_app(changed, background=background)


def check_moved(settings: Settings, models: Path) -> None:
    """Hold the store to what a store of the second model must be in every part."""
    with open_moved(settings, models) as app:
        assert same(stored(app), meant(app))
        assert same(indexed(app), stored(app))
        assert [check for check in app.checks() if not check.well] == []
        assert read(app, "SELECT name FROM store_metadata WHERE name LIKE 'shadow.%'") == []
        assert read(app, "SELECT * FROM vector_shadow") == []
        names = {one.name.rpartition("-")[0] for one in app.vectors._index.open().list_collections()}
        assert names == {app.vectors._index.generation}


def test_a_store_moves_to_another_model(filled: App, settings: Settings, models: Path) -> None:
    """After the move every vector is the new model's, the index too, and the old model may no longer open the store."""
    before, told = stored(filled), []
    assert reindex(filled, lambda done, total: told.append((done, total)), model=NAME, models_dir=models) == COUNT
    assert told[0] == (0, COUNT)
    assert told[-1] == (COUNT, COUNT)
    assert told == sorted(told)
    after = stored(filled)
    assert before.keys() == after.keys()
    assert not any(np.allclose(before[key], after[key], atol=1e-3) for key in before)
    filled.close()
    check_moved(settings, models)
    with pytest.raises(ModelMismatch, match=ID):
        open_app(settings)


def test_nothing_waits_after_the_switch(filled: App, settings: Settings, models: Path) -> None:
    """When the new model opens the store, it builds its whole index at once."""
    reindex(filled, model=NAME, models_dir=models)
    assert read(filled, "SELECT * FROM outbox") == []
    filled.close()
    with open_moved(settings, models, daemon=False) as app:
        assert set(indexed(app)) == set(stored(app))


def test_a_broken_off_move_goes_on(filled: App, settings: Settings, models: Path) -> None:
    """What was read before the build ended is not read again, and the end is as if it had never ended."""

    def stop(done: int, _: int) -> None:
        if done >= 16:
            raise Stopped

    before = stored(filled)
    with pytest.raises(Stopped):
        reindex(filled, stop, model=NAME, models_dir=models)
    assert same(stored(filled), before)
    kept = len(read(filled, "SELECT DISTINCT memory_id FROM vector_shadow"))
    assert kept >= 16
    filled.close()
    told: list[int] = []
    with open_app(settings) as again:
        assert answers(again, "walrus")
        reindex(again, lambda done, _: told.append(done), model=NAME, models_dir=models)
    assert told[0] == kept
    check_moved(settings, models)


@pytest.mark.full
def test_writers_get_by_while_it_is_built(filled: App, settings: Settings, models: Path) -> None:
    """What is stored, changed or forgotten during the build is so in the moved store."""
    seen = set()

    def write(done: int, total: int) -> None:
        stage = (done > 0) + (done >= total)
        if stage in seen:
            return
        seen.add(stage)
        remember(filled, Draft(content=f"A straggler of stage {stage} brought a tapir", key=f"late{stage}"), ADA)
        remember(filled, Draft(content=f"Rewritten in stage {stage}: a yak", key=f"k{stage}"), ADA)
        assert forget(filled, Forget(id=str(10 + stage)), ADA).id == str(10 + stage)

    reindex(filled, write, model=NAME, models_dir=models)
    assert seen == {0, 1, 2}
    filled.close()
    check_moved(settings, models)
    with open_moved(settings, models) as app:
        contents = {row[0] for row in read(app, "SELECT content FROM memory")}
        assert {f"A straggler of stage {stage} brought a tapir" for stage in range(3)} <= contents
        assert {f"Rewritten in stage {stage}: a yak" for stage in range(3)} <= contents
        assert len(contents) == COUNT
        assert "late2" in answers(app, "tapir")


def test_a_writer_right_before_the_switch(filled: App, settings: Settings, models: Path) -> None:
    """What changes between the last look and the switch is read by the switch itself."""
    switch = filled.shadow_index.switch

    def late(read_content: Callable[[str], Any]) -> bool:
        remember(filled, Draft(content="One chunk now: a quagga", key="k3"), ADA)
        remember(filled, Draft(content="At the very last a numbat came", key="last"), ADA)
        forget(filled, Forget(id="8"), ADA)
        return switch(read_content)

    filled.shadow_index.switch = late  # type: ignore[method-assign]
    reindex(filled, model=NAME, models_dir=models)
    filled.close()
    check_moved(settings, models)


@pytest.mark.full
def test_more_stragglers_than_a_switch_reads(filled: App, settings: Settings, models: Path) -> None:
    """Where many were written since the last look, the switch changes nothing and the build goes on."""
    switch, told = filled.shadow_index.switch, list[bool]()

    def late(read_content: Callable[[str], Any]) -> bool:
        for number in range(0 if told else 20):
            remember(filled, Draft(content=f"Straggler {number} of a whole herd of gnus", key=f"gnu{number}"), ADA)
        told.append(switch(read_content))
        return told[-1]

    filled.shadow_index.switch = late  # type: ignore[method-assign]
    assert reindex(filled, model=NAME, models_dir=models) == COUNT + 20
    assert told == [False, True]
    filled.close()
    check_moved(settings, models)


def test_recall_answers_throughout(filled: App, models: Path) -> None:
    """While everything is read anew and changes places, each question finds its answer."""
    wanted = {animal: set(answers(filled, animal)) for animal in ANIMALS}
    assert all(f"k{number}" in wanted[animal] for number, animal in enumerate(ANIMALS))
    over, found, failed = threading.Event(), [], []

    def ask() -> None:
        while not over.is_set():
            for number, animal in enumerate(ANIMALS):
                recalled = recall(filled, Query(query=f"What about the {animal}?", min_score=0.0), ADA)
                keys = {hit.memory.key for hit in recalled.hits}
                (found if f"k{number}" in keys else failed).append((animal, keys, recalled.notes))

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        reindex(filled, model=NAME, models_dir=models)
        count = len(found)
    finally:
        over.set()
        asking.join()
    assert count >= len(ANIMALS)
    assert failed == []


def test_a_moved_app_answers_by_words_and_mixes_nothing(filled: App, settings: Settings, models: Path) -> None:
    """After the move the process that still has the old model searches words alone, and what it writes waits."""
    reindex(filled, model=NAME, models_dir=models)
    assert filled.vectors.state == "moved"
    recalled = recall(filled, Query(query="the lobster in harbour 175", min_score=0.0), ADA)
    assert recalled.hits[0].memory.key == "k25"
    assert any("switched to another embedding model" in note for note in recalled.notes)
    vector = vectors(filled.embedder, ["lobster"], "query")[0]
    assert filled.vectors.cosines(vector, [1, 2]) == {}
    late = int(remember(filled, Draft(content="Written by a process of yesterday: an okapi", key="late"), ADA).id)
    remember(filled, Draft(content="Changed by a process of yesterday: an okapi", key="k1"), ADA)
    forget(filled, Forget(id="7"), ADA)
    assert {key[0] for key in stored(filled)}.isdisjoint({late, 2, 7})
    assert filled.records.embeddings.unembedded(9) == []
    filled.close()
    with open_moved(settings, models, background=True) as app:
        assert app.embedder.wait(60)
        assert "late" in answers(app, "okapi")
    check_moved(settings, models)


@pytest.mark.full
def test_another_target_drops_what_was_begun(filled: App, settings: Settings, models: Path) -> None:
    """What was read for a model that is not moved to after all is dropped, never mixed with another's."""
    second_model(models, "third", "acme/third", "x y z ")

    def stop(done: int, _: int) -> None:
        if done >= 16:
            raise Stopped

    with pytest.raises(Stopped):
        reindex(filled, stop, model="third", models_dir=models)
    assert read(filled, "SELECT value FROM store_metadata WHERE name = 'shadow.model'") == [("acme/third",)]
    told: list[int] = []
    reindex(filled, lambda done, _: told.append(done), model=NAME, models_dir=models)
    assert told[0] == 0
    filled.close()
    check_moved(settings, models)


def test_the_switch_is_all_or_nothing(filled: App, settings: Settings, models: Path) -> None:
    """A switch that fails at its very end leaves the store wholly of the old model; the next one succeeds."""
    query = "SELECT name, value FROM store_metadata WHERE name NOT LIKE 'shadow.%'"
    before, stamps = stored(filled), read(filled, query)
    by_hand(
        filled,
        "CREATE TRIGGER refuse BEFORE DELETE ON store_metadata WHEN old.name = 'shadow.model' "
        "AND NOT EXISTS (SELECT 1 FROM vector_shadow) BEGIN SELECT RAISE(ABORT, 'not yet'); END",
    )
    with pytest.raises(IntegrityError, match="not yet"):
        reindex(filled, model=NAME, models_dir=models)
    assert same(stored(filled), before)
    assert read(filled, query) == stamps
    assert filled.vectors.state == "ready"
    assert "k7" in answers(filled, "walrus")
    by_hand(filled, "DROP TRIGGER refuse")
    assert reindex(filled, model=NAME, models_dir=models) == COUNT
    filled.close()
    check_moved(settings, models)


def test_the_same_model_reads_nothing_again(filled: App) -> None:
    """With the store's own model nothing is embedded that has its vectors, and the answers stay."""
    before, found = stored(filled), answers(filled, "camel")
    watched, reading = [], filled.embedder.read
    filled.embedder.read = lambda texts, kind="document": watched.extend(texts) or reading(texts, kind)  # type: ignore[method-assign]
    assert reindex(filled) == COUNT
    assert reindex(filled, model=FIRST) == COUNT
    assert watched == []
    del filled.embedder.read
    assert same(stored(filled), before)
    assert answers(filled, "camel") == found
    assert filled.vectors.state == "ready"


def test_what_is_missing_is_read(filled: App) -> None:
    """With the store's own model, memories without vectors and ids that the index lacks or has too many come back."""
    before = stored(filled)
    by_hand(filled, "DELETE FROM vector WHERE memory_id IN (3, 4)")
    by_hand(filled, "UPDATE vector SET embedding = x'00' WHERE memory_id = 9")
    filled.vectors._index.take("project:crew/engine", ["21.0"])
    filled.vectors._index.put("project:crew/engine", ["999.0"], [before[1, 0]])
    told: list[tuple[int, int]] = []
    assert reindex(filled, lambda *some: told.append(some)) == COUNT
    assert told[0] == (COUNT - 3, COUNT)
    assert same(stored(filled), before)
    assert same(indexed(filled), before)
    assert [check for check in filled.checks() if not check.well] == []


@pytest.mark.full
def test_everything_anew_with_the_same_model(filled: App, settings: Settings) -> None:
    """Asked for everything, the same model reads it all beside, and the open app serves the new index at once."""
    before, generation = stored(filled), filled.vectors._index.generation
    by_hand(filled, "UPDATE vector SET embedding = zeroblob(1536) WHERE memory_id % 2 = 0")
    for _ in range(2):
        assert reindex(filled, everything=True) == COUNT
        assert same(stored(filled), before)
        assert same(indexed(filled), before)
        assert filled.vectors.state == "ready"
    assert filled.vectors._index.generation == generation
    reindex(filled, everything=True)
    assert filled.vectors._index.generation != generation
    found = answers(filled, "heron")
    assert [check for check in filled.checks() if not check.well] == []
    filled.close()
    with open_app(settings) as again:
        assert same(indexed(again), before)
        assert answers(again, "heron") == found
        assert [check for check in again.checks() if not check.well] == []


@pytest.mark.parametrize("model", ["no-such-model-anywhere", "/no/such/folder/at/all"])
def test_an_unknown_model_touches_nothing(filled: App, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that cannot be loaded is an error before anything has changed."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    names = [row[0] for row in read(filled, "SELECT name FROM sqlite_master WHERE type = 'table'")]
    before = {name: read(filled, f'SELECT * FROM "{name}"') for name in names}
    with pytest.raises(ModelUnusable):
        reindex(filled, model=model)
    assert {name: read(filled, f'SELECT * FROM "{name}"') for name in names} == before


def test_an_empty_store_moves_too(app: App, settings: Settings, models: Path) -> None:
    """A store without memories is of the other model afterwards."""
    assert reindex(app, model=NAME, models_dir=models) == 0
    app.close()
    check_moved(settings, models)


def test_every_table_of_the_index_is_in_the_exchange() -> None:
    """Whatever column a vector has, the shadow one has it too, so that none is lost in the switch."""
    names = {column.name for column in tables.vector.c}
    assert {column.name for column in tables.vector_shadow.c} == {*names, "content_hash"}


def test_what_memories_name_is_noted_anew(app: App) -> None:
    """A store of a version that knew no entities has them after a reindex, and a second one writes nothing."""
    stored_as = remember(
        app, Draft(content="Write to ada@example.org about ENG-42, see src/api/auth.py", tags=["mail"]), ADA
    )
    by_hand(app, "DELETE FROM label WHERE kind LIKE 'entity_%'")
    reindex(app)
    memory = get_memory(app, Get(id=stored_as.id), ADA)
    named = {(one.name, str(one.type)) for one in memory.entities}
    assert {("ada@example.org", "email"), ("ENG-42", "ticket"), ("src/api/auth.py", "file")} <= named
    assert memory.tags == ("mail",)
    before = read(app, "SELECT * FROM label ORDER BY memory_id, kind, position")
    reindex(app)
    assert read(app, "SELECT * FROM label ORDER BY memory_id, kind, position") == before

"""What was broken, what the doctor says, and what heals: one row for each kind of damage or tampering.

The store of each row is a copy of one that was filled once. `--deep` must name all of it, the quick look what is cheap.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recollect
from callers import ADA
from recollect import Draft, Forget, Query, Settings, StoreFact
from recollect.domain.requests import Inspect
from recollect.domain.results import Check
from recollect.domain.transfer import ExportPage
from recollect.errors import StoreUnusable
from recollect.memory.reports import doctor
from recollect.store.journal import FIRST, SIGNED, chained
from recollect.transfer.export_page import export_page, pages
from stores import open_app
from unprivileged import unprivileged

pytestmark = pytest.mark.slow

HERE = "project:crew/engine"
FURTHER = {
    *("content and its hash", "trust", "unknown level", "namespace", "tag added", "fact deleted", "page of words"),
    *("page of memory_trigram_data", "first page of vector", "triggers lost", "counts", "page of memory_text_data"),
    *("vector of another size", "page of ix_memory_namespace_id_created_at", "page of vector"),
}
"""Kinds that only scripts/soak tries: each resembles one that is always tried."""


def by_hand(folder: Path, *statements: str) -> None:
    """Change the database behind Recollect's back."""
    with closing(sqlite3.connect(folder / "memory.db")) as database, database:
        for statement in statements:
            database.execute(statement)


def rechained(folder: Path) -> None:
    """Change who wrote the first line, and make every hash of the chain anew."""
    with closing(sqlite3.connect(folder / "memory.db")) as database, database:
        database.row_factory = sqlite3.Row
        triggers = [
            row["sql"] for row in database.execute("SELECT sql FROM sqlite_master WHERE name LIKE 'journal_no%'")
        ]
        for name in ("update", "delete", "replace"):
            database.execute(f"DROP TRIGGER journal_no_{name}")
        database.execute("UPDATE journal SET actor = 'eve' WHERE id = 1")
        tips: dict[str, str] = {}
        for row in database.execute("SELECT * FROM journal ORDER BY id").fetchall():
            line = {name: row[name] for name in SIGNED} | {"changes": json.loads(row["changes"])}
            line["at"] = datetime.fromisoformat(row["at"]).replace(tzinfo=UTC)
            previous = tips.get(row["namespace"], FIRST)
            tips[row["namespace"]] = chained(previous, line)
            values = (previous, tips[row["namespace"]], row["id"])
            database.execute("UPDATE journal SET previous = ?, hash = ? WHERE id = ?", values)
        for sql in triggers:
            database.execute(sql)


def cut(folder: Path) -> None:
    """Cut the last line off the journal and put the trigger back."""
    with closing(sqlite3.connect(folder / "memory.db")) as database, database:
        (sql,) = database.execute("SELECT sql FROM sqlite_master WHERE name = 'journal_no_delete'").fetchone()
        database.execute("DROP TRIGGER journal_no_delete")
        database.execute("DELETE FROM journal WHERE id = (SELECT max(id) FROM journal)")
        database.execute(sql)


def edited_mirror(folder: Path) -> None:
    """Change the actor of one line of the mirror to another name of the same length."""
    mirror = folder / "mirror.jsonl"
    mirror.write_text(
        mirror.read_text(encoding="utf-8").replace('"actor": "ada"', '"actor": "eve"', 1), encoding="utf-8"
    )


def edited(*statements: str) -> Callable[[Path], None]:
    """Return what runs these statements."""
    return lambda folder: by_hand(folder, *statements)


def other_vector(folder: Path) -> None:
    """Give one memory the vector of nothing in particular, of the right size and length."""
    vector = np.ones(384, dtype=np.float32) / np.sqrt(384)
    with closing(sqlite3.connect(folder / "memory.db")) as database, database:
        database.execute("UPDATE vector SET embedding = ? WHERE memory_id = 2", (vector.astype("<f4").tobytes(),))


@dataclass(frozen=True)
class Damage:
    """One row: what breaks the store, the check that must name it and in which words, and whether a quick look does."""

    harm: Callable[[Path], None]
    check: str
    seen: str
    quick: bool = True


TAMPERED = {
    "journal cut at the end": Damage(cut, "journal ends", "was cut off or written anew"),
    "journal line missing": Damage(
        edited("DROP TRIGGER journal_no_delete", "DELETE FROM journal WHERE id = 2"), "journal", "line 3 of " + HERE
    ),
    "journal chained anew": Damage(rechained, "journal ends", "written anew"),
    "triggers dropped": Damage(
        edited("DROP TRIGGER journal_no_update", "DROP TRIGGER journal_no_delete"),
        "schema",
        "trigger journal_no_delete is missing; trigger journal_no_update is missing",
    ),
    "trigger planted": Damage(
        edited("CREATE TRIGGER evil AFTER INSERT ON memory BEGIN UPDATE memory SET sensitivity = 'public'; END"),
        "schema",
        "trigger evil is not ours",
    ),
    "mirror edited": Damage(edited_mirror, "journal mirror", "line 1 of " + HERE),
    "content": Damage(edited("UPDATE memory SET content = 'We deploy on Mondays' WHERE id = 1"), "journal", "memory 1"),
    "content and its hash": Damage(
        edited("UPDATE memory SET content = '', content_hash = lower(hex(zeroblob(32))) WHERE id = 1"),
        "journal",
        "memory 1 was changed",
    ),
    "content that is no text": Damage(
        edited("UPDATE memory SET content = x'ff00' WHERE id = 1"), "journal", "a row holds what Recollect never writes"
    ),
    "author": Damage(edited("UPDATE memory SET author = 'eve' WHERE id = 1"), "journal", "memory 1 was changed"),
    "trust": Damage(edited("UPDATE memory SET trust = 1.0 WHERE id = 1"), "journal", "memory 1 was changed"),
    "sensitivity": Damage(
        edited("UPDATE memory SET sensitivity = 'private' WHERE id = 1"), "journal", "memory 1 was changed"
    ),
    "unknown level": Damage(
        edited("UPDATE memory SET sensitivity = 'weird' WHERE id = 1"), "journal", "memory 1 was changed"
    ),
    "namespace": Damage(edited("UPDATE memory SET namespace_id = 2 WHERE id = 1"), "journal", "memory 1 was changed"),
    "hidden": Damage(edited("UPDATE memory SET superseded_by = 2 WHERE id = 1"), "journal", "memory 1 was changed"),
    "tag changed": Damage(
        edited("UPDATE label SET value = 'x' WHERE kind = 'tags'"), "journal", "memory 2 was changed"
    ),
    "tag added": Damage(edited("INSERT INTO label VALUES (1, 'tags', 0, 'x')"), "journal", "memory 1 was changed"),
    "fact changed": Damage(edited("UPDATE fact SET object = 'x'"), "journal", "fact 1 was changed"),
    "fact deleted": Damage(edited("DELETE FROM fact"), "journal", "fact 1 is gone"),
    "memory deleted": Damage(edited("DELETE FROM memory WHERE id = 3"), "journal", "memory 3 is gone"),
    "memory added": Damage(
        edited(
            "CREATE TEMP TABLE one AS SELECT * FROM memory WHERE id = 1",
            "UPDATE one SET id = 77, key = 'other'",
            "INSERT INTO memory SELECT * FROM one",
        ),
        "journal",
        "memory 77 was added",
    ),
    "vector": Damage(other_vector, "vector values", "memory 2"),
    "vector, against the text": Damage(other_vector, "embeddings", "memory 2", quick=False),
}


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Return settings of a store with a mirror in its folder."""
    return settings.model_copy(update={"journal_mirror": settings.folder / "mirror.jsonl"})


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return where the filled store is kept between tests."""
    return tmp_path_factory.mktemp("template") / "home"


@pytest.fixture
def filled(settings: Settings, template: Path) -> Iterator[Path]:
    """Return the folder of a store with memories, a fact and a deleted memory in two namespaces, which is closed."""
    if not template.exists():
        with open_app(settings) as app:
            for content in ("We deploy on Fridays", "The mascot is a quokka", "Lunch is at noon", "The door is red"):
                tags = ("animals",) if "quokka" in content else ()
                recollect.remember(app, Draft(content=content, tags=tags), ADA)
            fact = StoreFact(subject="ada", predicate="likes", object="tea", memory_id="1")
            recollect.store_fact(app, fact, ADA)
            recollect.remember(app, Draft(content="Ada sits by the window", scope="personal"), ADA)
            for number in range(30):
                said = " ".join(f"detail{number * 7 + one} of part{one}" for one in range(12))
                recollect.remember(app, Draft(content=f"Section {number} says: {said}"), ADA)
            recollect.forget(app, Forget(id="4"), ADA)
            app.vectors.sync()
            assert ill(app, deep=True) == {}
        shutil.copytree(settings.folder, template)
        yield settings.folder
        return
    shutil.rmtree(settings.folder)
    shutil.copytree(template, settings.folder)
    yield settings.folder


def ill(app: Any, *, deep: bool) -> dict[str, Check]:
    """Return what the doctor finds not well, after checking that each finding says what to do."""
    found = {one.name: one for one in doctor(app, Inspect(deep=deep), ADA) if not one.well}
    ways = ("recollect ", "aside", "see `files` below")
    assert all(any(way in one.advice for way in ways) for one in found.values()), found
    return found


def cases(kinds: dict[str, Damage]) -> list[Any]:
    """Return the rows of a table as parameters."""
    return [
        pytest.param(damage, id=name, marks=[pytest.mark.full] if name in FURTHER else [])
        for name, damage in kinds.items()
    ]


@pytest.mark.full_cases(
    "author", "sensitivity", "hidden", "tag changed", "memory added", "journal line missing", "trigger planted"
)
@pytest.mark.parametrize("damage", cases(TAMPERED))
def test_tampering_is_named(filled: Path, settings: Settings, damage: Damage) -> None:
    """Whatever was changed by hand, the doctor names it, also in a quick look where that reads more than a sample."""
    damage.harm(filled)
    for deep in (False, True) if damage.quick else (True,):
        with open_app(settings) as app:
            found = ill(app, deep=deep)
        assert damage.check in found, found
        assert damage.seen in found[damage.check].seen


def test_what_was_written_since_does_not_hide_a_cut(filled: Path, settings: Settings) -> None:
    """The ends of the chains that were seen stay as they were when they no longer fit."""
    cut(filled)
    for content in ("The office is in Lisbon", "Tea is at four"):
        with open_app(settings) as app:
            recollect.remember(app, Draft(content=content, scope="personal"), ADA)
            assert "journal ends" in ill(app, deep=False)
    (filled / "journal.tips").unlink()
    for _ in range(2):  # it is named until somebody trusts the journal as it is
        with open_app(settings) as app:
            assert "was missing on" in ill(app, deep=False)["journal ends"].seen
    (filled / "journal.tips").write_text("{}", encoding="utf-8")
    with open_app(settings) as app:
        assert "journal ends" not in ill(app, deep=False)


def page(table: str, *, first: bool = False) -> Callable[[Path], None]:
    """Return what overwrites the last page of a table or index, or its first, with noise."""

    def harm(folder: Path) -> None:
        with closing(sqlite3.connect(folder / "memory.db")) as database:
            (pages,) = database.execute("SELECT group_concat(pageno) FROM dbstat WHERE name = ?", (table,)).fetchone()
            (size,) = database.execute("PRAGMA page_size").fetchone()
        numbers = sorted(int(one) for one in pages.split(","))
        with (folder / "memory.db").open("r+b") as stream:
            stream.seek((numbers[0 if first else -1] - 1) * size)
            stream.write(random.Random(3).randbytes(size))

    return harm


REBUILT = {
    "text index emptied": Damage(edited("DELETE FROM memory_text_data WHERE id > 100"), "text index", "memory_text"),
    "text index overwritten": Damage(
        edited("UPDATE memory_text_data SET block = randomblob(50)"), "text index", "memory_text"
    ),
    "text index without configuration": Damage(edited("DELETE FROM memory_text_config"), "text index", "memory_text"),
    "text index dropped": Damage(edited("DROP TABLE memory_text"), "schema", "table memory_text is missing"),
    "index of parts dropped": Damage(edited("DROP TABLE memory_trigram"), "schema", "table memory_trigram is missing"),
    "index of spellings dropped": Damage(edited("DROP TABLE word_trigram"), "schema", "table word_trigram is missing"),
    "lengths dropped": Damage(edited("DROP TABLE text_length"), "schema", "table text_length is missing"),
    "trigger of the text index dropped": Damage(
        edited("DROP TRIGGER memory_text_update"), "schema", "trigger memory_text_update is missing"
    ),
    "vocabulary": Damage(edited("UPDATE word SET uses = uses + 1 WHERE id = 3"), "vocabulary", "do not agree"),
    "counts": Damage(edited("UPDATE held SET memories = 77"), "counts", "counted wrongly"),
    "vector of another size": Damage(
        edited("UPDATE vector SET embedding = x'00' WHERE memory_id = 2"), "embeddings", "memory 2", quick=False
    ),
    "vectors lost": Damage(edited("DELETE FROM vector"), "embeddings", "memory 1"),
}
"""What `reindex` builds again."""
LOST = {
    **{
        f"page of {table}": Damage(page(table), "database", "")
        for table in (
            "ix_memory_namespace_id_created_at",
            "sqlite_autoindex_vector_1",
            "memory_text_data",
            "memory_trigram_data",
        )
    },
    "page of vector": Damage(page("vector"), "database", ""),
    "first page of vector": Damage(page("vector", first=True), "database", ""),
    "page of words": Damage(page("memory_words"), "database", ""),
    "page of vocabulary": Damage(page("word"), "database", ""),
    "index out of step": Damage(
        edited(
            "PRAGMA writable_schema=ON",
            "DELETE FROM sqlite_master WHERE name = 'ix_memory_namespace_id_created_at'",
        ),
        "schema",
        "index ix_memory_namespace_id_created_at is missing",
    ),
    "triggers lost": TAMPERED["triggers dropped"],
    "trigger planted": TAMPERED["trigger planted"],
}
"""Damage to the file or its schema, after which only a backup helps."""


def healed(settings: Settings, *, everything: bool = False) -> None:
    """Do what `recollect reindex` does."""
    with open_app(settings) as app:
        recollect.reindex(app, everything=everything)


@pytest.mark.parametrize("damage", cases(REBUILT))
def test_damaged_indexes_are_named_and_rebuilt(filled: Path, settings: Settings, damage: Damage) -> None:
    """Recall answers on what was damaged, or one sentence says what to do; after `reindex` the doctor finds nothing."""
    before = contents(filled)
    damage.harm(filled)
    with contextlib.ExitStack() as open_stores:
        said = ""
        try:
            app = open_stores.enter_context(open_app(settings))
            found = ill(app, deep=True)
            assert damage.check in found, found
            assert damage.seen in found[damage.check].seen
            recollect.recall(app, Query(query="Who is the mascot?"), ADA)
        except StoreUnusable as error:
            said = str(error)
    assert not said or "recollect reindex" in said
    healed(settings)
    with open_app(settings) as app:
        assert ill(app, deep=True) == {}
        best = recollect.recall(app, Query(query="mascot quokka"), ADA).hits[0]
        assert best.memory.id == 2
        assert best.signals.bm25 > 0  # by its words, not by its vector alone
        assert recollect.recall(app, Query(query="quoka"), ADA).hits[0].signals.fuzzy > 0
    assert contents(filled) == before


def test_a_vector_that_was_changed_is_embedded_anew(filled: Path, settings: Settings) -> None:
    """What a plain reindex takes for whole, `reindex --all` mends, as the doctor says."""
    other_vector(filled)
    healed(settings)
    with open_app(settings) as app:
        assert {name: one.advice for name, one in ill(app, deep=True).items()} == {
            "embeddings": "Run `recollect reindex --all`."
        }
    healed(settings, everything=True)
    with open_app(settings) as app:
        assert ill(app, deep=True) == {}


@pytest.mark.full_cases("page of vocabulary")
@pytest.mark.parametrize("damage", cases(LOST))
def test_a_damaged_file_is_named_and_left_as_it_is(filled: Path, settings: Settings, damage: Damage) -> None:
    """The doctor or the error names a backup as the way back, and every memory and journal line stays."""
    before = contents(filled)
    damage.harm(filled)
    try:
        with open_app(settings) as app:
            found = ill(app, deep=True)
        assert damage.check in found, found
        assert damage.seen in found[damage.check].seen
        advice = " ".join(one.advice for one in found.values())
    except StoreUnusable as error:
        advice = str(error)
    assert "recollect backup restore FILE --force" in advice
    assert contents(filled) == before


@pytest.mark.parametrize("table", ["memory", "journal"])
def test_an_export_gives_what_can_be_read(filled: Path, settings: Settings, table: str) -> None:
    """Rows on a damaged page are named, all others are in the export; another store takes them in."""
    whole = contents(filled)
    page(table)(filled)
    unreadable: list[str] = []
    with open_app(settings) as app:
        lines = list(pages(ExportPage(), lambda one: export_page(app, one, ADA), unreadable))
    kept = {one["memory"]["id"] for one in lines if "memory" in one}
    lost = {int(one.split()[1]) for one in unreadable if one.startswith(table)}
    assert lost
    if table == "memory":
        ids = {row[0] for row in whole[0]}
        assert kept == ids - lost
        assert len(kept) > len(ids) / 2
    else:
        assert len([one for one in lines if "journal" in one]) + len(lost) >= len(whole[1]) - 1


@pytest.mark.parametrize("table", ["vector", "sqlite_autoindex_vector_1"])
def test_words_answer_where_vectors_cannot_be_read(filled: Path, settings: Settings, table: str) -> None:
    """Damaged vectors do not keep recall from finding what the words say, and a note names the command that helps."""
    page(table, first=True)(filled)
    shutil.rmtree(filled / "chroma")
    with open_app(settings) as app:
        for _ in range(2):
            answer = recollect.recall(app, Query(query="mascot quokka"), ADA)
            assert answer.hits[0].memory.id == 2
    assert any("recollect reindex" in note for note in answer.notes), answer.notes


def contents(folder: Path) -> list[Any]:
    """Return the memories and journal of a store."""
    with closing(sqlite3.connect(folder / "memory.db")) as database:
        return [
            database.execute("SELECT id, content, author, namespace_id FROM memory NOT INDEXED ORDER BY id").fetchall(),
            database.execute("SELECT hash FROM journal NOT INDEXED ORDER BY id").fetchall(),
        ]


@pytest.mark.parametrize("own_folder", [True, False])
def test_a_store_that_cannot_be_written_is_read(
    filled: Path, settings: Settings, public_folder: Path, own_folder: bool
) -> None:
    """In a read-only folder recall, lists and history answer; a write is refused in a sentence, and nothing changes.

    Whose folder it is, the doctor says only where that is another user.
    """
    if not own_folder and os.geteuid() != 0:
        pytest.skip("only the superuser can look at a folder as another user")
    home = public_folder / "home"
    shutil.copytree(filled, home)
    read_only = settings.model_copy(update={"home": home, "journal_mirror": None})
    with open_app(settings) as app:  # whatever is imported late is there by now
        recollect.recall(app, Query(query="Who is the mascot?"), ADA)
    for path in home.rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o444)
    home.chmod(0o555)
    with unprivileged():
        reader = os.geteuid()
    for path in (home, *home.rglob("*")) if own_folder else ():
        os.chown(path, reader, -1)
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    with unprivileged(), open_app(read_only) as app:
        assert recollect.recall(app, Query(query="Who is the mascot?"), ADA).hits[0].memory.id == 2
        assert recollect.get_memory(app, recollect.Get(id="1"), ADA).content == "We deploy on Fridays"
        assert [line.action for line in recollect.history(app, recollect.Get(id="4"), ADA)] == ["insert", "delete"]
        with pytest.raises(StoreUnusable, match="readonly"):
            recollect.remember(app, Draft(content="Lunch is at one"), ADA)
        foreign = [] if own_folder else ["files"]
        assert [*ill(app, deep=True)] == ["indexes", *foreign]  # what could not be looked at is not called well
    assert {path: path.read_bytes() for path in home.rglob("*") if path.is_file()} == before
    home.chmod(0o755)

"""Export and import: a store that is emptied and filled again from its export is the same store."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from recollect import App, Caller, Draft, Get, Query, Settings, get_memory, open_app, recall, remember
from recollect.domain import (
    Export,
    FactQuery,
    JournalEntry,
    Purge,
    Sensitivity,
    Shape,
    SoftForget,
    StoreFact,
    Update,
    View,
)
from recollect.errors import InvalidInput
from recollect.operations.exchange.exporting import export
from recollect.operations.exchange.files import export_file, import_file
from recollect.operations.facts import query_facts, store_fact
from recollect.operations.forget import forget, memory_forget
from recollect.operations.get import update_memory
from recollect.operations.inspect import history
from recollect.operations.retention import purge_expired

QUERIES = ("when do we ship?", "who is Ada", "tests", "what does Bo drink", "the harbour and the ships")
ALL_LEVELS = tuple(Sensitivity)
ALL = Export(allow_private=True, allow_secret=True)


def fill(app: App, clock: Any) -> None:
    """Put into the store what an export must not lose: every field, and every way to leave sight."""
    rich = {
        "title": "Shipping",
        "subtitle": "when",
        "type": "decision",
        "concepts": ["gotcha", "why-it-exists"],
        "files_read": ["src/a.py"],
        "files_modified": ["src/b.py", "src/c.py"],
        "session_id": "s1",
        "position": 3,
        "speaker": "Ada Lovelace",
        "observed_at": "2025-12-24T18:00:00+01:00",
        "ttl_days": 400.5,
        "discovery_tokens": 12,
        "importance": 0.0,
        "confidence": 0.9,
    }
    first = remember(app, Draft(content="We ship on Fridays.", key="shipping", tags=["ops", "Ops 2"], **rich))
    clock.pass_days(1.25)
    remember(app, Draft(content="Ada likes pine trees and quiet harbours.", scope="personal", sensitivity="private"))
    remember(app, Draft(content="Nobody may know of the sunken ship.", scope="team", sensitivity="secret"))
    remember(app, Draft(content="I am Ada, an engineer.", fact_type="profile"))
    remember(app, Draft(content="I am Ada, an engineer with a dog in Turin.", fact_type="profile"))
    hidden = remember(app, Draft(content="The mascot is a hedgehog called Pip.", speaker="Bo"))
    gone = remember(app, Draft(content="This will be deleted for good."))
    remember(app, Draft(content="This passes its time soon.", ttl_days=1))
    long = "The harbour was calm. The ships were late, and number {} was last to leave at dawn. "
    remember(app, Draft(content="".join(long.format(number) for number in range(60)), category="sea"))
    clock.pass_days(2)
    memory_forget(app, SoftForget(id=hidden.id))
    forget(app, SoftForget(id=gone.id))
    update_memory(app, Update(id=first.id, content="We ship on Mondays."))
    store_fact(app, StoreFact(subject="Bo", predicate="drinks", object="tea", memory_id=first.id))
    clock.pass_days(0.5)
    store_fact(app, StoreFact(subject="Bo", predicate="drinks", object="coffee", confidence=0.8))
    store_fact(app, StoreFact(subject="Ada", predicate="fears", object="owls", sensitivity="private"))
    get_memory(app, Get(id=first.id))
    recall(app, Query(query=QUERIES[0]))


def lines(app: App, request: Export = ALL) -> list[dict[str, Any]]:
    """Return what an export says, but for when it was made."""
    return [line for line in export(app, request) if "format" not in line]


def journal(app: App) -> list[JournalEntry]:
    view = View(app.caller.namespaces(), app.clock(), ALL_LEVELS)
    return app.leaving.lines(view, 0, 10_000)


def well(app: App) -> None:
    """Assert that the store finds nothing wrong with itself, once the vector index has caught up."""
    app.vectors.sync()
    assert all(check.well for check in app.checks()), app.checks()


def answers(app: App) -> list[tuple[int, float]]:
    """Return what recall answers to every query: ids in their order, with their scores."""
    found = [recall(app, Query(query=query, allow_private=True, allow_secret=True, min_score=0.0)) for query in QUERIES]
    return [(hit.memory.id, round(hit.score, 4)) for one in found for hit in one.hits]


@pytest.fixture
def stores(settings: Settings, clock: Any, tmp_path: Path) -> Iterator[tuple[App, App, Path]]:
    """Return a filled store, an empty one and the file of the first one's export; both do everything at once."""
    other = settings.model_copy(update={"home": tmp_path / "other"})
    with (
        open_app(settings, background=False, clock=clock) as full,
        open_app(other, background=False, clock=clock) as empty,
    ):
        fill(full, clock)
        path = tmp_path / "export.jsonl"
        export_file(full, path, ALL)
        yield full, empty, path


def test_an_empty_store_becomes_the_same_store(stores: tuple[App, App, Path]) -> None:
    """Memories with all their fields, facts with their times, the journal with its hashes, recall in its order."""
    full, empty, path = stores
    purge_expired(full, Purge())  # what has passed its time stays, and would still weigh among the rarity of words
    export_file(full, path, ALL)
    report = import_file(empty, path)
    assert (report.updated, report.unchanged, report.refused, report.failed) == (0, 0, 0, 0)
    assert report.problems == ()
    assert lines(empty) == lines(full)
    assert journal(empty) == journal(full)
    view = View(full.caller.namespaces(), full.clock(), ALL_LEVELS)
    assert empty.leaving.memories(view, 0, 1_000) == full.leaving.memories(view, 0, 1_000)
    assert empty.leaving.facts(view, 0, 1_000) == full.leaving.facts(view, 0, 1_000)
    assert query_facts(empty, FactQuery(as_of="2026-03-04T12:00:00Z")) == (
        query_facts(full, FactQuery(as_of="2026-03-04T12:00:00Z"))
    )
    assert answers(empty) == answers(full)
    assert answers(full)
    well(empty)


def test_a_second_import_changes_nothing(stores: tuple[App, App, Path]) -> None:
    """The report says so, and the store says the same as before; so does an import into the store it came from."""
    full, empty, path = stores
    import_file(empty, path)
    before = lines(empty)
    for store in (empty, full):
        report = import_file(store, path)
        assert (report.new, report.updated, report.facts, report.journal) == (0, 0, 0, 0)
        assert report.unchanged == len([line for line in before if "memory" in line])
        assert report.problems == ()
        assert lines(store) == before


def test_what_comes_next_has_a_number_of_its_own(stores: tuple[App, App, Path]) -> None:
    """No number that the journal tells of is given again, so that no two memories share a history."""
    full, empty, path = stores
    import_file(empty, path)
    told = {line.memory_id for line in journal(empty)}
    for store in (full, empty):
        new = remember(store, Draft(content="Something else entirely."))
        assert int(new.id) not in told
        assert [line.action for line in history(store, Get(id=new.id))] == ["insert"]
    assert [line.hash for line in journal(empty)][:-1] == [line.hash for line in journal(full)][:-1]


def test_a_store_that_is_in_use_takes_it_in(stores: tuple[App, App, Path]) -> None:
    """Where numbers are taken the memories get others, their facts and merges follow, and the journal goes its way."""
    full, empty, path = stores
    kept = remember(empty, Draft(content="I was here before."))
    report = import_file(empty, path)
    memories = [line["memory"] for line in lines(full) if "memory" in line]
    assert report.new == len(memories)
    assert "this store has its own" in report.problems[0].why
    assert report.journal == 0
    memories.sort(key=_named)
    found = [line["memory"] for line in lines(empty) if "memory" in line and line["memory"]["id"] != int(kept.id)]
    arrived = sorted(found, key=_named)
    numbers = {old["id"]: new["id"] for old, new in zip(memories, arrived, strict=True)}
    moved = [_moved(old, numbers) for old in memories]
    assert moved == arrived
    assert numbers[1] != 1
    (fact,) = query_facts(empty, FactQuery(object="tea", history=True)).facts
    assert fact.memory_id == numbers[1]
    assert [line.action for line in history(empty, Get(id=str(fact.memory_id)))][:1] == ["insert"]
    well(empty)
    assert import_file(empty, path).new == 0


def test_levels_leave_only_when_they_are_let_in(stores: tuple[App, App, Path], tmp_path: Path) -> None:
    """Private and secret memories, their facts and their history stay unless asked for; an unknown level always."""
    full, _, path = stores
    public = json.dumps(lines(full, Export()))
    assert "harbours" not in public
    assert "sunken" not in public
    assert "owls" not in public
    private = json.dumps(lines(full, Export(allow_private=True)))
    assert ("harbours" in private, "owls" in private, "sunken" in private) == (True, True, False)
    assert "sunken" in path.read_text()
    shut = [line["memory"]["id"] for line in lines(full) if "sunken" in json.dumps(line)]
    assert not [line for line in lines(full, Export()) if line.get("journal", {}).get("memory_id") in shut]
    assert "its time soon" not in path.read_text()


def test_a_part_of_a_store_takes_its_history_along(stores: tuple[App, App, Path], tmp_path: Path) -> None:
    """An export without the private memories gives an empty store each memory's history, in a chain of its own."""
    full, empty, _ = stores
    path = tmp_path / "public.jsonl"
    export_file(full, path, Export())
    report = import_file(empty, path)
    assert report.problems == ()
    for line in lines(full, Export()):
        if "memory" in line:
            asked = Get(id=str(line["memory"]["id"]))
            assert _unhashed(history(empty, asked)) == _unhashed(history(full, asked))
    well(empty)
    assert import_file(empty, path).problems == ()


def test_a_journal_that_was_changed_is_not_restored(stores: tuple[App, App, Path]) -> None:
    """A line that does not follow from the one before is told; the memories arrive with a history of their own."""
    _, empty, path = stores
    path.write_text(path.read_text().replace('"actor":"ada"', '"actor":"eve"', 1))
    report = import_file(empty, path)
    assert report.journal == 0
    assert "a line was changed" in report.problems[0].why
    assert {line.actor for line in journal(empty)} == {"ada"}
    well(empty)


def test_another_caller_has_their_own(stores: tuple[App, App, Path]) -> None:
    """Whoever imports another one's export gets the memories into their own rooms, and not the other's journal."""
    full, empty, path = stores
    other = Caller(user="eve", team="away", project="side")
    report = import_file(empty, path, other)
    assert report.new == len([line for line in lines(full) if "memory" in line])
    assert report.journal == 0
    view = View(other.namespaces(), empty.clock(), ALL_LEVELS)
    assert {line.namespace for line in empty.leaving.lines(view, 0, 999)} == set(other.namespaces())
    assert lines(empty) == []
    assert recall(empty, Query(query=QUERIES[0]), other).hits


def test_one_scope_leaves_alone(stores: tuple[App, App, Path]) -> None:
    """With a scope nothing of the others leaves."""
    full, _, _ = stores
    scopes = {line["memory"]["scope"] for line in lines(full, replace_scope("team")) if "memory" in line}
    assert scopes == {"team"}


def test_a_file_that_was_cut_off_is_told(stores: tuple[App, App, Path]) -> None:
    """The header's counts show that something is missing; what is there arrives."""
    _, empty, path = stores
    path.write_text("\n".join(path.read_text().splitlines()[:-3]) + '\n{"fact": {"subj')
    report = import_file(empty, path)
    assert report.new > 5
    assert [one.why for one in report.problems if "promises" in one.why]


def test_the_file_is_its_owners_alone(stores: tuple[App, App, Path], tmp_path: Path) -> None:
    """Nobody else may read it, nothing is left beside it, and a place that cannot be written is an error of ours."""
    full, _, path = stores
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not [one for one in path.parent.iterdir() if one.name.endswith(".new")]
    with pytest.raises(InvalidInput, match="cannot be written"):
        export_file(full, tmp_path / "none" / "x.jsonl", ALL)


def test_people_read_markdown(stores: tuple[App, App, Path], tmp_path: Path) -> None:
    """The document shows what lives by scope and kind, facts that hold, and nothing hidden, merged or internal."""
    full, _, _ = stores
    path = tmp_path / "notes.md"
    export_file(full, path, Export(shape=Shape.MARKDOWN))
    text = path.read_text()
    assert "## Project" in text
    assert "### sea" in text
    assert "We ship on Mondays." in text
    assert "- Bo drinks coffee" in text
    assert not [word for word in ("Pip", "tea\n", "sunken", "content_hash", "project:crew") if word in text]
    assert text.count("We ship on") == 1


def replace_scope(scope: str) -> Export:
    return Export(scope=scope, allow_private=True, allow_secret=True)


def _named(memory: dict[str, Any]) -> tuple[str, bool]:
    return memory["content"], "merged_into" in memory


def _moved(memory: dict[str, Any], numbers: dict[int, int]) -> dict[str, Any]:
    names = [name for name in ("id", "merged_into", "superseded_by") if name in memory]
    return memory | {name: numbers[memory[name]] for name in names}


def _unhashed(found: list[JournalEntry]) -> list[JournalEntry]:
    return [replace(line, hash="") for line in found]

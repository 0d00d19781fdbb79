"""Export and import: a store that is emptied and filled again from its export is the same store."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from callers import ADA, EVERY_LEVEL, own
from file_transfer import export, export_file, import_file
from recollect import App, Caller, Draft, Get, Query, Settings, get_memory, recall, remember
from recollect.domain.enums import Sensitivity
from recollect.domain.requests import FactQuery, Purge, SoftForget, StoreFact, Update
from recollect.domain.results import JournalEntry
from recollect.domain.search import View
from recollect.domain.transfer import ExportFormat, ExportPage
from recollect.errors import InvalidInput
from recollect.memory.facts import query_facts, store_fact
from recollect.memory.forget import forget, memory_forget, purge_expired
from recollect.memory.reports import history
from recollect.memory.update import update_memory
from stores import open_app

pytestmark = pytest.mark.slow

QUERIES = ("when do we ship?", "who is Ada", "tests", "what does Bo drink", "the harbour and the ships")
ALL_LEVELS = EVERY_LEVEL
ALL = ExportPage(allow_private=True, allow_secret=True)


def fill(app: App, clock: Any) -> None:
    """Put into the store what an export must not lose: every field, and every way to leave sight."""
    rich = {
        "title": "Shipping",
        "subtitle": "when",
        "type": "decision",
        "concepts": ["gotcha", "why-it-exists"],
        "files_read": ["src/a.py"],
        "files_modified": ["src/b.py", "src/c.py"],
        "when": ["run make ship !--dry-run", "edit src/b.py"],
        "session_id": "s1",
        "position": 3,
        "speaker": "Ada Lovelace",
        "observed_at": "2025-12-24T18:00:00+01:00",
        "ttl_days": 400.5,
        "discovery_tokens": 12,
        "importance": 0.0,
        "confidence": 0.9,
    }
    first = remember(app, Draft(content="We ship on Fridays.", key="shipping", tags=["ops", "Ops 2"], **rich), ADA)
    clock.pass_days(1.25)
    remember(
        app, Draft(content="Ada likes pine trees and quiet harbours.", scope="personal", sensitivity="private"), ADA
    )
    remember(app, Draft(content="Nobody may know of the sunken ship.", scope="team", sensitivity="secret"), ADA)
    remember(app, Draft(content="I am Ada, an engineer.", fact_type="profile"), ADA)
    remember(app, Draft(content="I am Ada, an engineer with a dog in Turin.", fact_type="profile"), ADA)
    hidden = remember(app, Draft(content="The mascot is a hedgehog called Pip.", speaker="Bo"), ADA)
    gone = remember(app, Draft(content="This will be deleted for good."), ADA)
    remember(app, Draft(content="This passes its time soon.", ttl_days=1), ADA)
    long = "The harbour was calm. The ships were late, and number {} was last to leave at dawn. "
    remember(app, Draft(content="".join(long.format(number) for number in range(60)), category="sea"), ADA)
    clock.pass_days(2)
    memory_forget(app, SoftForget(id=hidden.id), ADA)
    forget(app, SoftForget(id=gone.id), ADA)
    update_memory(app, Update(id=first.id, content="We ship on Mondays."), ADA)
    store_fact(app, StoreFact(subject="Bo", predicate="drinks", object="tea", memory_id=first.id), ADA)
    clock.pass_days(0.5)
    store_fact(app, StoreFact(subject="Bo", predicate="drinks", object="coffee", confidence=0.8, replaces=True), ADA)
    store_fact(app, StoreFact(subject="Ada", predicate="fears", object="owls", sensitivity="private"), ADA)
    get_memory(app, Get(id=first.id), ADA)
    recall(app, Query(query=QUERIES[0]), ADA)


def lines(app: App, request: ExportPage = ALL) -> list[dict[str, Any]]:
    """Return the memories and facts that an export tells of."""
    return [line for line in export(app, request, ADA) if {"memory", "fact"} & line.keys()]


def exported_journal(app: App, request: ExportPage) -> list[dict[str, Any]]:
    return [line["journal"] for line in export(app, request, ADA) if "journal" in line and "format" not in line]


def journal(app: App) -> list[JournalEntry]:
    view = View(namespaces=ADA.namespaces(), now=app.clock(), sensitivities=ALL_LEVELS)
    return app.export_reader.lines(view, 0, 10_000)


def well(app: App) -> None:
    """Assert that the store finds nothing wrong with itself, once the vector index has caught up."""
    app.vectors.sync()
    assert all(check.well for check in app.checks()), app.checks()


def answers(app: App) -> list[tuple[int, float]]:
    """Return what recall answers to every query: ids in their order, with their scores."""
    found = [
        recall(app, Query(query=query, allow_private=True, allow_secret=True, min_score=0.0), ADA) for query in QUERIES
    ]
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
        export_file(full, path, ALL, ADA)
        yield full, empty, path


def test_an_empty_store_becomes_the_same_store(stores: tuple[App, App, Path]) -> None:
    """Memories with all their fields and ids, facts with their times, recall in its order; the journal tells of it."""
    full, empty, path = stores
    purge_expired(full, Purge(), ADA)  # what has passed its time stays, and would still weigh among the rarity of words
    export_file(full, path, ALL, ADA)
    report = import_file(empty, path, ADA, own=True)
    assert (report.updated, report.unchanged, report.refused, report.failed) == (0, 0, 0, 0)
    assert report.problems == ()
    assert lines(empty) == lines(full)
    imported = [line["memory"] for line in lines(full) if "memory" in line]
    merged = [(one["id"], {"merged_into": one["merged_into"]}) for one in imported if "merged_into" in one]
    brought = [line for line in journal(empty) if line.action == "import"]
    linked = [line for line in journal(empty) if line.action == "update"]
    assert [line.memory_id for line in brought if "fact" not in line.changes] == [one["id"] for one in imported]
    assert all("export.jsonl:" in line.changes["from"] for line in brought)
    assert [(line.memory_id, line.changes) for line in linked] == merged != []
    assert journal(empty) == brought + linked
    assert {line.actor for line in journal(empty)} == {"ada"}
    view = View(namespaces=ADA.namespaces(), now=full.clock(), sensitivities=ALL_LEVELS)
    assert empty.export_reader.memories(view, 0, 1_000) == full.export_reader.memories(view, 0, 1_000)
    assert empty.export_reader.facts(view, 0, 1_000) == full.export_reader.facts(view, 0, 1_000)
    assert query_facts(empty, FactQuery(as_of="2026-03-04T12:00:00Z"), ADA) == (
        query_facts(full, FactQuery(as_of="2026-03-04T12:00:00Z"), ADA)
    )
    assert answers(empty) == answers(full)
    assert answers(full)
    well(empty)


def test_a_second_import_changes_nothing(stores: tuple[App, App, Path]) -> None:
    """The report says so, and the store says the same as before; so does an import into the store it came from."""
    full, empty, path = stores
    import_file(empty, path, ADA, own=True)
    before = lines(empty)
    for store in (empty, full):
        report = import_file(store, path, ADA)
        assert (report.new, report.updated, report.facts) == (0, 0, 0)
        assert report.unchanged == len([line for line in before if "memory" in line])
        assert report.problems == ()
        assert lines(store) == before


def test_what_comes_next_has_a_number_of_its_own(stores: tuple[App, App, Path]) -> None:
    """No id is given twice, so that no two memories share a history."""
    full, empty, path = stores
    import_file(empty, path, ADA, own=True)
    told = {line.memory_id for line in journal(empty)}
    for store in (full, empty):
        new = remember(store, Draft(content="Something else entirely."), ADA)
        assert int(new.id) not in told
        assert [line.action for line in history(store, Get(id=new.id), ADA)] == ["insert"]


def test_a_store_that_is_in_use_takes_it_in(stores: tuple[App, App, Path]) -> None:
    """Where ids are taken the memories get others, and their facts and merges follow."""
    full, empty, path = stores
    kept = remember(empty, Draft(content="I was here before."), ADA)
    report = import_file(empty, path, ADA, own=True)
    memories = [line["memory"] for line in lines(full) if "memory" in line]
    assert report.new == len(memories)
    assert report.problems == ()
    memories.sort(key=_named)
    found = [line["memory"] for line in lines(empty) if "memory" in line and line["memory"]["id"] != int(kept.id)]
    arrived = sorted(found, key=_named)
    numbers = {old["id"]: new["id"] for old, new in zip(memories, arrived, strict=True)}
    moved = [_moved(old, numbers) for old in memories]
    assert moved == arrived
    assert numbers[1] != 1
    (fact,) = query_facts(empty, FactQuery(object="tea", history=True), ADA).facts
    assert fact.memory_id == numbers[1]
    assert [line.action for line in history(empty, Get(id=str(fact.memory_id)), ADA)][:1] == ["import"]
    well(empty)
    assert import_file(empty, path, ADA, own=True).new == 0


def test_levels_leave_only_when_they_are_let_in(stores: tuple[App, App, Path], tmp_path: Path) -> None:
    """Private and secret memories, their facts and their history stay unless asked for; an unknown level always."""
    full, _, path = stores
    public = json.dumps(lines(full, ExportPage()))
    assert "harbours" not in public
    assert "sunken" not in public
    assert "owls" not in public
    private = json.dumps(lines(full, ExportPage(allow_private=True)))
    assert ("harbours" in private, "owls" in private, "sunken" in private) == (True, True, False)
    assert "sunken" in path.read_text()
    shut = [line["memory"]["id"] for line in lines(full) if "sunken" in json.dumps(line)]
    told = exported_journal(full, ExportPage())
    assert not [line for line in told if line.get("memory_id") in shut]
    assert "its time soon" not in path.read_text()


def test_history_leaves_for_information_only(stores: tuple[App, App, Path]) -> None:
    """An export has the journal's lines of what leaves; an import writes lines of its own and none of them."""
    full, empty, path = stores
    exported = exported_journal(full, ALL)
    assert [line["id"] for line in exported] == [line.id for line in journal(full)]
    assert not [line for line in exported if "hash" in line]
    ids = {line["memory"]["id"] for line in lines(full, ExportPage()) if "memory" in line}
    public = exported_journal(full, ExportPage())
    assert ids < {line.get("memory_id") for line in public}
    report = import_file(empty, path, ADA, own=True)
    assert report.problems == ()
    assert {line.action for line in journal(empty)} == {"import", "update"}
    well(empty)


def test_another_caller_has_their_own(stores: tuple[App, App, Path]) -> None:
    """Whoever imports another one's export gets the memories into their own namespaces."""
    full, empty, path = stores
    other = Caller(user="eve", team="away", project="side")
    report = import_file(empty, path, other, own=True)
    assert report.new == len([line for line in lines(full) if "memory" in line])
    view = View(namespaces=other.namespaces(), now=empty.clock(), sensitivities=own(*Sensitivity, user="eve"))
    assert {line.namespace for line in empty.export_reader.lines(view, 0, 999)} == set(other.namespaces())
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
    report = import_file(empty, path, ADA, own=True)
    assert report.new > 5
    assert [one.why for one in report.problems if "promises" in one.why]


def test_the_file_is_its_owners_alone(stores: tuple[App, App, Path], tmp_path: Path) -> None:
    """Nobody else may read it, nothing is left beside it, and a place that cannot be written is an error of ours."""
    full, _, path = stores
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not [one for one in path.parent.iterdir() if one.name.endswith(".new")]
    with pytest.raises(InvalidInput, match="cannot be written"):
        export_file(full, tmp_path / "none" / "x.jsonl", ALL, ADA)


def test_people_read_markdown(stores: tuple[App, App, Path], tmp_path: Path) -> None:
    """The document shows what lives by scope and kind, facts that hold, and nothing hidden, merged or internal."""
    full, _, _ = stores
    path = tmp_path / "notes.md"
    export_file(full, path, ExportPage(), ADA, format=ExportFormat.MARKDOWN)
    text = path.read_text()
    assert "## Project" in text
    assert "### sea" in text
    assert "We ship on Mondays." in text
    assert "- Bo drinks coffee" in text
    assert not [word for word in ("Pip", "tea\n", "sunken", "content_hash", "project:crew") if word in text]
    assert text.count("We ship on") == 1


def replace_scope(scope: str) -> ExportPage:
    return ExportPage(scope=scope, allow_private=True, allow_secret=True)


def _named(memory: dict[str, Any]) -> tuple[str, bool]:
    return memory["content"], "merged_into" in memory


def _moved(memory: dict[str, Any], numbers: dict[int, int]) -> dict[str, Any]:
    names = [name for name in ("id", "merged_into", "superseded_by") if name in memory]
    return memory | {name: numbers[memory[name]] for name in names}

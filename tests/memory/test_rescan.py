"""Rescan: secrets that got in before a detector knew them are told of, masked, or put out of all sight."""

from __future__ import annotations

import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import text

import recollect
from callers import ADA
from recollect import App, Draft, Get, Listing, Query, Restore, StoreFact
from recollect.domain.enums import OnFound
from recollect.domain.lifecycle import Decision, Observation
from recollect.domain.requests import Inspect, Rescan, SoftForget
from recollect.errors import NotFound, SecretFound
from recollect.memory.forget import memory_forget
from recollect.memory.reports import doctor, history
from recollect.memory.rescan import rescan
from recollect.memory.restore import restore_memory
from recollect.store.sql.database import Database, open_file

if TYPE_CHECKING:
    from conftest import Clock

SECRET = "ghp_" + "a1B2c3D4e5F6" * 3


def smuggle(app: App, home: Path, statement: str, **values: Any) -> None:
    """Write into the tables by hand what no gate would let in."""
    database: Database = open_file(home / "memory.db")
    with database.writing() as connection:
        connection.execute(text(statement), values)
    database.close()


@pytest.fixture
def exposed(app: App, settings: recollect.Settings) -> App:
    """Return a store in which one of two memories and one of two facts hold a secret."""
    for content in ("We deploy on Fridays", "The deploy bot signs in with its own account"):
        recollect.remember(app, Draft(content=content, tags=["deploy"]), ADA)
    recollect.store_fact(app, StoreFact(subject="bot", predicate="uses", object="an account"), ADA)
    recollect.store_fact(app, StoreFact(subject="team", predicate="eats at", object="noon"), ADA)
    content = f"The deploy bot signs in with {SECRET} of its own"
    named = {"content": content, "hash": sha256(content.encode()).hexdigest()}
    smuggle(app, settings.folder, "UPDATE memory SET content = :content, content_hash = :hash WHERE id = 2", **named)
    smuggle(app, settings.folder, "UPDATE fact SET object = :object WHERE id = 1", object=f"token {SECRET}")
    return app


def test_a_report_tells_where_and_changes_nothing(exposed: App) -> None:
    """It names the memory and the fact, the field and the kind, never the value, and a second one says the same."""
    found = rescan(exposed, Rescan(), ADA)
    assert [(one.what, one.id, one.field) for one in found.exposed] == [("memory", 2, "content"), ("fact", 1, "object")]
    assert all(one.kinds for one in found.exposed)
    assert (found.scanned, found.changed) == (4, 0)
    assert SECRET not in repr(found)
    assert rescan(exposed, Rescan(), ADA) == found
    assert SECRET in recollect.get_memory(exposed, Get(id="2"), ADA).content


def test_redaction_leaves_no_trace_of_the_secret(exposed: App, settings: recollect.Settings) -> None:
    """The rest of the text stays and is found, the secret stands in no row, no index and no file, and all agrees."""
    found = rescan(exposed, Rescan(on_found=OnFound.REDACT), ADA)
    assert found.changed == 2
    memory = recollect.get_memory(exposed, Get(id="2"), ADA)
    assert SECRET not in repr(memory)
    assert "[redacted: " in memory.content
    assert memory.tags == ("deploy",)
    hits = recollect.recall(exposed, Query(query="how does the deploy bot sign in?"), ADA).hits
    assert hits[0].memory.id == 2
    facts = recollect.query_facts(exposed, recollect.FactQuery(subject="bot"), ADA).facts
    assert "[redacted: " in facts[0].object
    assert [line.action for line in history(exposed, Get(id="2"), ADA)][-1] == "redact"
    assert rescan(exposed, Rescan(), ADA).exposed == ()
    exposed.text.purge_deleted()
    assert all(one.well for one in doctor(exposed, Inspect(), ADA)), doctor(exposed, Inspect(), ADA)
    for file in settings.folder.rglob("memory.db*"):
        assert SECRET.encode() not in file.read_bytes()


def test_a_masked_fact_leaves_no_trace_of_the_secret(app: App, settings: recollect.Settings) -> None:
    """Where only a fact held a secret, the log of the database is purged as well."""
    recollect.store_fact(app, StoreFact(subject="bot", predicate="uses", object="an account"), ADA)
    smuggle(app, settings.folder, "UPDATE fact SET object = :object", object=f"token {SECRET}")
    assert rescan(app, Rescan(on_found=OnFound.REDACT), ADA).changed == 1
    for file in settings.folder.rglob("memory.db*"):
        assert SECRET.encode() not in file.read_bytes()


def test_quarantine_puts_it_out_of_all_sight(exposed: App) -> None:
    """No read shows it, whatever is let in, and it comes back only when the gate finds nothing in it."""
    assert rescan(exposed, Rescan(on_found=OnFound.QUARANTINE), ADA).changed == 2
    everything = {"allow_private": True, "allow_secret": True}
    with pytest.raises(NotFound):
        recollect.get_memory(exposed, Get(id="2", **everything), ADA)
    listed = recollect.list_memories(exposed, Listing(superseded=True, **everything), ADA)
    assert [one.id for one in listed.memories] == [1]
    assert recollect.query_facts(exposed, recollect.FactQuery(subject="bot", **everything), ADA).total == 0
    assert all(
        hit.memory.id == 1
        for hit in recollect.recall(exposed, Query(query="deploy bot account", min_score=0.0, **everything), ADA).hits
    )
    with pytest.raises(SecretFound):
        restore_memory(exposed, Restore(id="2"), ADA)
    assert [one for one in doctor(exposed, Inspect(), ADA) if not one.well] == []


def test_a_key_brings_no_secret_out_of_quarantine(app: App, settings: recollect.Settings) -> None:
    """Remembered again by its key, a quarantined memory has its level, and its other texts come back masked."""
    for key in ("bot", "pier"):
        recollect.remember(
            app, Draft(content=f"The {key} has an owner", subtitle="known", tags=["deploy"], key=key), ADA
        )
    smuggle(app, settings.folder, "UPDATE memory SET subtitle = :subtitle", subtitle=f"signs in with {SECRET}")
    rescan(app, Rescan(on_found=OnFound.QUARANTINE), ADA)
    recollect.remember(app, Draft(content="The bot has two owners", key="bot"), ADA)
    recollect.remember(app, Draft(content="The pier has two owners", key="pier", sensitivity="public"), ADA)
    for memory in (recollect.get_memory(app, Get(id=one), ADA) for one in "12"):
        assert memory.content.endswith("two owners")
        assert memory.title == memory.content
        assert memory.subtitle.startswith("signs in with [redacted: ")
        assert memory.tags == ("deploy",)
    assert rescan(app, Rescan(), ADA).exposed == ()


def test_every_row_is_read_once_whatever_the_page(exposed: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading page by page counts no row twice and leaves none out, also where the last page is full."""
    for number in range(4):
        recollect.remember(exposed, Draft(content=f"Pier {number} is swept on day {number}"), ADA)
        recollect.store_fact(exposed, StoreFact(subject=f"pier {number}", predicate="has", object="a lamp"), ADA)
    whole = rescan(exposed, Rescan(), ADA)
    assert whole.scanned == 12
    for page in (2, 3, 5):
        monkeypatch.setattr("recollect.memory.rescan._PAGE", page)
        assert rescan(exposed, Rescan(), ADA) == whole


def test_hidden_memories_are_scanned_too(exposed: App) -> None:
    """What was softly forgotten can come back, so a secret in it counts."""
    memory_forget(exposed, SoftForget(id="2"), ADA)
    assert [one.id for one in rescan(exposed, Rescan(), ADA).exposed if one.what == "memory"] == [2]


@pytest.mark.full
def test_the_command_ends_with_three_while_a_secret_is_in_sight(
    exposed: App, settings: recollect.Settings, environment: dict[str, str]
) -> None:
    """The report ends with the exit code of a found secret; after masking all is well."""
    exposed.close()
    command = [str(Path(sys.executable).with_name("recollect")), "--home", str(settings.folder), "--in-process"]
    run = lambda *more: subprocess.run([*command, "rescan", *more], env=environment, capture_output=True, text=True)  # noqa: E731
    report = run()
    assert report.returncode == SecretFound.exit_code
    assert SECRET not in report.stdout + report.stderr
    assert run("--redact", "--quarantine").returncode == 2
    assert run("--redact").returncode == 0
    assert run("--json").returncode == 0


def test_what_sessions_keep_is_looked_at(app: App, clock: Clock) -> None:
    """A secret in what was dropped, or in what the stages know, is told of by session and number, and masked."""
    session = app.sessions.begin(ADA, "s1", "claude-code", clock())
    seen = Observation(
        at=clock(),
        event="tool:post",
        decision=Decision.DROPPED,
        summary=f"export TOKEN={SECRET}",
        draft={"content": f"The bot signs in with {SECRET}", "tags": ["bot"]},
    )
    harmless = Observation(at=clock(), event="tool:post", decision=Decision.DROPPED, summary="a listing")
    state = {"trail": {"task": f"use {SECRET}"}, "seen": [sha256(b"x").hexdigest()]}
    app.sessions.save(session.model_copy(update={"state": state}), [harmless, seen])
    found = rescan(app, Rescan(), ADA)
    assert {(one.what, one.id, one.field) for one in found.exposed} == {
        ("session s1", 0, "state"),
        ("session s1", 2, "summary"),
        ("session s1", 2, "draft"),
    }
    assert (found.scanned, found.changed) == (2, 0)
    assert rescan(app, Rescan(scope="team"), ADA).exposed == ()
    assert rescan(app, Rescan(on_found="quarantine"), ADA).changed == 2
    assert rescan(app, Rescan(), ADA).exposed == ()
    kept = app.sessions.find(ADA, "s1")
    assert kept is not None
    assert kept.state["seen"] == state["seen"]
    first, second = app.sessions.observations(kept)
    assert (first.summary, second.draft and second.draft["tags"]) == ("a listing", ["bot"])
    assert SECRET not in repr((kept, second))

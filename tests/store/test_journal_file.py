"""The journal's mirror: a file that follows the journal, survives a crash, and shows lines that vanished."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

import recollect
from callers import ADA
from recollect import Draft, Forget, Settings
from recollect.domain.requests import Inspect
from recollect.errors import SecretFound
from recollect.memory.reports import doctor
from recollect.store.journal import chained
from recollect.store.sql.database import open_file
from stores import open_app


def lines(file: Path) -> list[dict[str, Any]]:
    """Return the mirror's lines."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Return the settings of a store with a mirror in a folder that is not there yet."""
    return Settings(home=tmp_path / "home", user="ada", project="p", journal_mirror=tmp_path / "logs" / "journal.jsonl")


def mirrored(settings: Settings) -> Path:
    """Return the mirror's file."""
    assert settings.journal_mirror is not None
    return settings.journal_mirror


def test_every_line_is_mirrored(settings: Settings) -> None:
    """Writes, deletions and refusals stand in the file once the store is closed, in order and without a secret."""
    secret = "ghp_" + "a1B2c3D4e5F6" * 3
    with open_app(settings, background=False) as app:
        stored = recollect.remember(app, Draft(content="We deploy on Fridays"), ADA)
        recollect.forget(app, Forget(id=stored.id), ADA)
        with pytest.raises(SecretFound):
            recollect.remember(app, Draft(content=f"token {secret}"), ADA)
    found = lines(mirrored(settings))
    assert [line["action"] for line in found] == ["insert", "delete", "refuse"]
    assert [line["id"] for line in found] == [1, 2, 3]
    assert secret not in mirrored(settings).read_text(encoding="utf-8")
    assert mirrored(settings).stat().st_mode & 0o777 == 0o600


def test_the_next_owner_goes_on_where_the_file_ends(settings: Settings) -> None:
    """A line that a crash broke off is written again, whole, and no line stands twice."""
    with open_app(settings, background=False) as app:
        recollect.remember(app, Draft(content="We deploy on Fridays"), ADA)
        recollect.remember(app, Draft(content="The mascot is a quokka"), ADA)
    file = mirrored(settings)
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) - 40])
    with open_app(settings, background=False) as app:
        recollect.remember(app, Draft(content="Lunch is at noon"), ADA)
    assert [line["id"] for line in lines(file)] == [1, 2, 3]
    assert file.read_bytes().startswith(whole)


def test_doctor_sees_lines_that_vanished(settings: Settings) -> None:
    """Whoever cuts lines off the journal's end leaves the mirror ahead of it, and the doctor says which line."""
    with open_app(settings, background=False) as app:
        recollect.remember(app, Draft(content="We deploy on Fridays"), ADA)
        recollect.remember(app, Draft(content="The mascot is a quokka"), ADA)
        assert {one.name: one.well for one in doctor(app, Inspect(), ADA)}["journal mirror"]
    database = open_file(settings.folder / "memory.db")
    with database.writing() as connection:
        connection.execute(text("DROP TRIGGER journal_no_delete"))
        connection.execute(text("DELETE FROM journal WHERE id = 2"))
    database.close()
    with open_app(settings, background=False) as app:
        check = next(one for one in doctor(app, Inspect(), ADA) if one.name == "journal mirror")
    assert not check.well
    assert "line 2" in check.seen


def test_a_mirror_that_cannot_be_written_does_not_stop_writing(settings: Settings, tmp_path: Path) -> None:
    """Memories are stored all the same, and the doctor says what is wrong with the file."""
    (tmp_path / "logs").write_text("a file where the folder should be", encoding="utf-8")
    with open_app(settings) as app:
        stored = recollect.remember(app, Draft(content="We deploy on Fridays"), ADA)
        check = next(one for one in doctor(app, Inspect(), ADA) if one.name == "journal mirror")
        assert recollect.get_memory(app, recollect.Get(id=stored.id), ADA).content == "We deploy on Fridays"
    assert not check.well
    assert "cannot be written" in check.seen


@pytest.mark.parametrize(
    "held", ["notes of somebody", "hello\nworld\n", '{"a": 1}\n', "[1]\n", '{"id": "x", "hash": 1}\n']
)
def test_a_file_of_somebody_elses_stays_as_it_is(settings: Settings, held: str) -> None:
    """What is no mirror is neither cut nor appended to; memories are stored all the same, and the doctor tells."""
    file = mirrored(settings)
    file.parent.mkdir()
    file.write_text(held, encoding="utf-8")
    with open_app(settings) as app:
        recollect.remember(app, Draft(content="We deploy on Fridays"), ADA)
        check = next(one for one in doctor(app, Inspect(), ADA) if one.name == "journal mirror")
    assert not check.well
    assert check.seen == f"The file {file} is no mirror of a journal and stays as it is."
    assert file.read_text(encoding="utf-8") == held


def test_a_long_line_is_no_stumbling_block(settings: Settings) -> None:
    """A line that is longer than what is read of the file's end at first is the last line all the same."""
    with open_app(settings, background=False) as app:
        app.records.refuse("project:local/p", "ada", "content", ["x" * 100_000])
        assert {one.name: one.well for one in doctor(app, Inspect(), ADA)}["journal mirror"]
        recollect.remember(app, Draft(content="We deploy on Fridays"), ADA)
    assert [line["id"] for line in lines(mirrored(settings))] == [1, 2]


def test_lines_written_after_a_cut_do_not_hide_it(settings: Settings) -> None:
    """Where lines were cut off and others written since, the doctor says which line no longer follows."""
    with open_app(settings) as app:
        for content in ("We deploy on Fridays", "The mascot is a quokka"):
            recollect.remember(app, Draft(content=content), ADA)
    database = open_file(settings.folder / "memory.db")
    with database.writing() as connection:
        connection.execute(text("DROP TRIGGER journal_no_delete"))
        connection.execute(text("DELETE FROM journal WHERE id = 2"))
    database.close()
    for content in ("Lunch is at noon", "The office is in Lisbon"):
        with open_app(settings) as app:
            recollect.remember(app, Draft(content=content), ADA)
            check = next(one for one in doctor(app, Inspect(), ADA) if one.name == "journal mirror")
        assert not check.well
        assert check.seen == "line 3 of project:crew/engine was changed, or does not follow from the one before"
    assert [line["id"] for line in lines(mirrored(settings))] == [1, 2, 3, 4]


def test_each_namespace_has_its_own_last_line(settings: Settings) -> None:
    """Lines of several namespaces stand in the order in which they were written, each once, over several owners."""
    names = ["user:ada", "project:local/p", "user:ada", "team:local", "user:ada", "team:local"]
    for name in names:
        with open_app(settings) as app:
            app.records.refuse(name, "ada", "content", ["a token"])
            assert {one.name: one.well for one in app.checks()}["journal mirror"]
    assert [line["namespace"] for line in lines(mirrored(settings))] == names


def test_a_line_has_the_same_hash_for_ever() -> None:
    """The hash of a line does not change between versions: the chain of an older store must still hold."""
    changes = {"fields": ["content"]}
    line = {"id": 1, "at": datetime(2026, 3, 1, 12, tzinfo=UTC), "action": "insert", "actor": "ada", "changes": changes}
    first = chained("", line)
    assert first == "187d063a3aaf05d7bec02b06ee60d989c3a1bb4bffe9f9a1449ffff316b0e633"
    assert chained(first, line) != first

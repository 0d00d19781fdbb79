"""Outside the lock: the model reads while nobody waits to write, and what changes meanwhile is seen."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from recollect import App, Settings
from recollect.domain.enums import Choice
from recollect.domain.results import WriteStatus
from run_operations import Judge, add, always, do, ill, judged_by, listed, recalled, rows, shown
from stores import open_app

if TYPE_CHECKING:
    from conftest import Clock

LIMITS = ("The upload limit is 5 MB.", "The upload limit is 6 MB.")


@pytest.fixture
def app(settings: Settings, clock: Clock) -> Iterator[App]:
    """Return an open store in which nobody writes in the background."""
    with open_app(settings, background=False, clock=clock) as app:
        yield app


class Watched:
    """The embedding model, which calls `notify` before each reading."""

    def __init__(self, app: App, notify: Callable[[], None]) -> None:
        self._embedder = app.embedder
        self._notify = notify

    def __getattr__(self, name: str) -> Any:
        return getattr(self._embedder, name)

    def read(self, *texts: Any) -> Any:
        self._notify()
        return self._embedder.read(*texts)


def watched(app: App, settings: Settings, meanwhile: Callable[[], None] = lambda: None) -> tuple[App, list[str]]:
    """Return the app with a model that looks whether anybody can write, then lets something happen once."""
    readings: list[str] = []

    def notify() -> None:
        with closing(sqlite3.connect(settings.folder / "memory.db", timeout=0)) as other:
            other.execute("BEGIN IMMEDIATE")
            other.rollback()
        readings.append("read")
        if len(readings) == 1:
            meanwhile()

    return replace(app, embedder=Watched(app, notify)), readings


def test_an_update_reads_before_it_writes(app: App, settings: Settings) -> None:
    """While the new content is read others may write, also to that memory, and both changes last."""
    one = add(app, "The mascot is a quokka.")
    slow, readings = watched(app, settings, lambda: do(app, "update_memory", id=str(one), tags=("animal",)))
    do(slow, "update_memory", id=str(one), content="The emblem is a heron.")
    assert readings == ["read"]
    assert (shown(app, one).content, shown(app, one).tags) == ("The emblem is a heron.", ("animal",))
    assert recalled(app, "heron emblem") == {one}
    assert ill(app) == []


def test_an_update_of_other_fields_reads_nothing(app: App, settings: Settings) -> None:
    """The same content keeps its vectors."""
    one = add(app, "The mascot is a quokka.")
    slow, readings = watched(app, settings)
    do(slow, "update_memory", id=str(one), content="The mascot is a quokka.", tags=("animal",))
    assert readings == []
    assert ill(app) == []


def test_a_restored_memory_is_read_as_it_is_then(app: App, settings: Settings) -> None:
    """What is hidden, changed and hidden again while it is read comes back as it was last, with the vectors of that."""
    one = add(app, "The mascot is a quokka.", key="mascot")
    do(app, "memory_forget", id=str(one))

    def meanwhile() -> None:
        add(app, "The emblem is a heron.", key="mascot")
        do(app, "memory_forget", id=str(one))

    slow, readings = watched(app, settings, meanwhile)
    assert do(slow, "restore", id=str(one)).status is WriteStatus.RESTORED
    assert readings == ["read", "read"]
    assert shown(app, one).content == "The emblem is a heron."
    assert recalled(app, "heron emblem") == {one}
    assert ill(app) == []


def test_a_merge_that_changes_while_it_is_taken_apart_keeps_the_change(app: App, settings: Settings) -> None:
    """Both halves are read outside the lock; a whole that somebody writes to meanwhile keeps what was written."""
    one = add(app, LIMITS[0])
    add(judged_by(app, always(Choice.MERGE)), LIMITS[1])
    (part,) = rows(settings, f"SELECT id FROM memory WHERE merged_into IS NOT NULL AND content = '{LIMITS[1]}'")
    slow, _ = watched(app, settings, lambda: do(app, "update_memory", id=str(one), content="There is no limit."))
    outcome = do(slow, "restore", id=str(part[0]))
    assert outcome.notes == (f"Memory {one} keeps its present text.",)
    assert [shown(app, each).content for each in (one, part[0])] == ["There is no limit.", LIMITS[1]]
    assert ill(app) == []


def test_nothing_is_merged_into_what_changed_while_it_was_judged(app: App) -> None:
    """A memory that became private, or got labels, after it was looked at takes nothing up: both stay by themselves."""
    one = add(app, LIMITS[0])

    def decide(_new: str, _old: object) -> tuple[Choice, int]:
        do(app, "update_memory", id=str(one), sensitivity="private", tags=("hush",))
        return Choice.MERGE, 0

    two = add(judged_by(app, Judge(decide)), LIMITS[1])
    assert listed(app) == [two]
    assert (shown(app, one).content, shown(app, one).tags) == (LIMITS[0], ("hush",))
    assert ill(app) == []

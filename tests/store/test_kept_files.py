"""Databases that were put aside hold what is forgotten later: they are named, and go after a week."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import recollect
from callers import ADA
from clock import Clock
from recollect import Draft, Forget, Settings, StoreFact
from recollect.store.kept_files import KEPT_DAYS


def aside(settings: Settings, since: datetime, kind: str = "before-restore") -> Path:
    """Put a database aside as a restore does."""
    path = settings.folder / f"memory.db.{kind}-{since:%Y%m%dT%H%M%S}"
    path.write_bytes(b"some text")
    return path


def test_a_database_put_aside_goes_after_a_week(open_store: Any, settings: Settings, clock: Clock) -> None:
    """The upkeep deletes what is a week old, its log and what a killed restore left, and nothing younger."""
    week = clock() - timedelta(days=KEPT_DAYS)
    old, damaged = aside(settings, week), aside(settings, week, "damaged")
    log = old.with_name(f"{old.name}-wal")
    log.write_bytes(b"some text")
    young, foreign = aside(settings, week + timedelta(hours=1)), settings.folder / "memory.db.before-restore-mine"
    foreign.write_bytes(b"of somebody else")
    left, running = (settings.folder / f".recollect-{name}" for name in ("left", "running"))
    for path, days in ((left, 2), (running, 0.5)):
        path.mkdir()
        (path / "memory.db").write_bytes(b"some text")
        at = (clock() - timedelta(days=days)).timestamp()
        os.utime(path, (at, at))
    open_store(background=True).close()
    gone = [old, damaged, log, left]
    assert [path.name for path in (*gone, young, foreign, running) if path.exists()] == [
        young.name,
        foreign.name,
        running.name,
    ]


def test_whoever_forgets_is_told_what_was_put_aside(open_store: Any, settings: Settings, clock: Clock) -> None:
    """The answers of `forget` and of the doctor name the file and the command that deletes it."""
    app = open_store()
    stored = recollect.remember(app, Draft(content="The mascot is a quokka"), ADA)
    hidden = recollect.remember(app, Draft(content="Lunch is at noon"), ADA)
    fact = recollect.store_fact(app, StoreFact(subject="ada", predicate="likes", object="tea"), ADA)
    path = aside(settings, clock() - timedelta(days=2))
    assert recollect.memory_forget(app, recollect.SoftForget(id=hidden.id), ADA).notes == (
        "The memory is hidden; `restore` brings it back.",
    )
    forgotten = recollect.forget(app, Forget(id=stored.id), ADA), recollect.forget_fact(app, Forget(id=fact.id), ADA)
    for outcome in forgotten:
        (note,) = outcome.notes
        assert note.startswith(f"{path.name}, which was put aside, may still hold it until 20")
        assert f"`rm {path}`" in note
    (check,) = [one for one in app.checks() if one.name == "databases put aside"]
    assert check.well
    assert f"{path.name}, 2 days old, 0.0 MB (`rm {path}`)" in check.seen
    path.unlink()
    assert recollect.forget(app, Forget(id=hidden.id), ADA).notes == ()

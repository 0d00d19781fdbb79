"""Accounts in a damaged file: they come along whole, or nothing is changed; access is never rebuilt from less."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from recollect import Settings
from recollect.auth.administration import administer, operator
from recollect.errors import StoreUnusable
from recollect.store.salvage import mend
from stores import open_app

TABLES = ("account", "team", "membership", "team_project", "project_membership", "token")


@pytest.fixture
def folder(settings: Settings) -> Path:
    """Return a store with a private project and a user in it."""
    with open_app(settings) as app:
        who = operator("ops")
        for name, fields in (
            ("add_team", {"team": "crew"}),
            ("add_user", {"user": "ada", "team": "crew"}),
            ("add_project", {"team": "crew", "project": "vault", "private": True}),
            ("grant_project", {"team": "crew", "project": "vault", "user": "ada"}),
        ):
            administer(app, name, fields, who)
    return settings.folder


def rows(folder: Path) -> dict[str, list[tuple[object, ...]]]:
    """Return every row of the accounts."""
    with closing(sqlite3.connect(folder / "memory.db")) as database:
        return {name: database.execute(f"SELECT * FROM {name}").fetchall() for name in TABLES}


def test_accounts_come_along(folder: Path) -> None:
    """A database that is built anew, as its schema was damaged, has every user, role and token."""
    before = rows(folder)
    assert all(before.values())
    with closing(sqlite3.connect(folder / "memory.db")) as database, database:
        database.execute("DROP TRIGGER journal_no_delete")
    assert mend(folder / "memory.db") is not None
    assert rows(folder) == before


@pytest.mark.parametrize("table", ["project_membership", "token"])
def test_accounts_that_cannot_be_read_are_not_left_out(folder: Path, table: str) -> None:
    """Where a page of theirs is gone, nothing is built anew: else a private project might be open to everybody."""
    with closing(sqlite3.connect(folder / "memory.db")) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (page,) = database.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
        (size,) = database.execute("PRAGMA page_size").fetchone()
    file = folder / "memory.db"
    whole = file.read_bytes()
    file.write_bytes(whole[: (page - 1) * size] + b"\xff" * size + whole[page * size :])
    damaged = file.read_bytes()
    with pytest.raises(StoreUnusable, match=f"The table {table} .* cannot be read whole"):
        mend(folder / "memory.db")
    assert file.read_bytes() == damaged

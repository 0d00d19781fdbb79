"""One store, on every database that must keep the same promises.

A file marked `pooled` keeps them through a pooler too, which lends each transaction another session of the server.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from account_admin import Office
from callers import EVERY_LEVEL
from entries import make_entry
from recollect.auth.administration import initialize
from recollect.auth.principal import Principal
from recollect.domain.results import Memory
from recollect.domain.search import View
from recollect.store.sql.database import Database, open_file
from recollect.store.sql.records import Records
from recollect.store.text.fts5 import SqliteText
from recollect.store.text.postgres import PostgresText
from stores import lay

NAMESPACE = "project:crew/engine"
EVERYTHING = EVERY_LEVEL
_NAMES = {
    True: "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name",
    False: "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename",
}


@dataclass
class Store:
    """The records on one database, and ways to look behind them."""

    database: Database
    clock: Any
    records: Records = field(init=False)
    told: int = 0

    def __post_init__(self) -> None:
        self.records = Records(self.database, self.clock, self._notify)

    def _notify(self) -> None:
        self.told += 1

    @property
    def text(self) -> SqliteText | PostgresText:
        """Return the text index of the database."""
        return SqliteText(self.database) if self.sqlite else PostgresText(self.database)

    @property
    def sqlite(self) -> bool:
        """Say whether the database is SQLite's."""
        return self.database.file is not None

    def add(self, content: str, namespace: str = NAMESPACE, **fields: Any) -> int:
        """Insert one memory in a transaction of its own."""
        with self.records.writing(namespace, "ada") as transaction:
            return transaction.memories.insert(make_entry(content, at=self.clock(), **fields))

    def delete(self, memory_id: int, namespace: str = NAMESPACE) -> None:
        """Delete one memory in a transaction of its own."""
        with self.records.writing(namespace, "ada") as transaction:
            assert transaction.memories.delete(memory_id)

    def view(self, *namespaces: str, **changes: Any) -> View:
        """Return a view of `namespaces` at the clock's time."""
        return View(namespaces=namespaces or (NAMESPACE,), now=self.clock(), **changes)

    def one(self, memory_id: int, namespace: str = NAMESPACE) -> Memory:
        """Load a memory, whatever its sensitivity."""
        return self.records.load([memory_id], self.view(namespace, sensitivities=EVERYTHING))[memory_id]

    def sees(self, view: View) -> set[int]:
        """Return every id that `view` shows."""
        return set(self.records.load([row[0] for row in self.rows("SELECT id FROM memory")], view))

    def rows(self, query: str, **values: Any) -> list[Any]:
        """Read by hand."""
        with self.database.reading() as connection:
            return list(connection.execute(text(query), values))

    def by_hand(self, *statements: str, **values: Any) -> None:
        """Change the database behind the records' back."""
        with self.database.writing() as connection:
            for statement in statements:
                connection.execute(text(statement), values)

    def dump(self) -> dict[str, list[Any]]:
        """Read every row of every table, those of the text index included."""
        names = [row[0] for row in self.rows(_NAMES[self.sqlite])]
        return {name: sorted(map(repr, self.rows(f'SELECT * FROM "{name}"'))) for name in names}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test of a store on each kind of database."""
    if "server" in metafunc.fixturenames:
        pooled = ["pgbouncer"] if metafunc.definition.get_closest_marker("pooled") else []
        metafunc.parametrize("server", ["sqlite", "postgresql", *pooled])


@pytest.fixture
def database(server: str, request: pytest.FixtureRequest, tmp_path: Path, migrated: Path) -> Iterator[Database]:
    """Return an empty database of each kind, at the newest revision."""
    if server == "sqlite":
        lay(migrated, tmp_path)
        opened = open_file(tmp_path / "memory.db")
    elif server == "postgresql":
        opened = Database(request.getfixturevalue("migrated_postgres_url"))
    else:
        pooler = request.getfixturevalue("pgbouncer")
        opened = Database(pooler.address(request.getfixturevalue("migrated_postgres_url")))
    yield opened
    opened.close()


@pytest.fixture
def store(database: Database, clock: Any) -> Store:
    """Return records on each kind of database."""
    return Store(database, clock)


@pytest.fixture
def office(store: Store) -> Office:
    return Office(store, store.clock)


@pytest.fixture
def root(office: Office) -> Principal:
    """Return the first admin of the deployment, with a team."""
    who = office.enter(initialize(office.app, "root", "operator").token)
    office.do("add_team", who, team="crew")
    return who

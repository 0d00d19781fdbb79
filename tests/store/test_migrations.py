"""Migrations: an empty database comes to the newest tables, an up-to-date one is left alone, an unknown one refused."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from alembic import command
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text

from recollect import Settings
from recollect.errors import StoreUnusable
from recollect.store.sql import migrations
from recollect.store.sql.database import Database, open_file
from recollect.store.sql.migrations import HEAD, OLDER, configuration, migrate, revision, schema_faults, upgrade
from stores import open_app

OPENING = """
import sys
from pathlib import Path
from recollect.store.sql.database import open_file
from recollect.store.sql.migrations import migrate
database = open_file(Path(sys.argv[1]))
migrate(database)
database.close()
print("alembic" in sys.modules)
"""

NEXT = str(int(HEAD) + 1)
LATER = f'''"""A revision after the newest, which adds a column that is missing and one that is there."""

from recollect.store.sql.migrations import add_columns
from recollect.store.sql.tables import memory

revision = "{NEXT}"
down_revision = "{HEAD}"


def upgrade() -> None:
    add_columns(memory, "discovery_tokens", "title")
'''


@pytest.fixture
def settings(unused_settings: Settings) -> Settings:
    """Return settings of a store whose tables are not made yet."""
    return unused_settings


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """Return a database of each kind in which nothing stands."""
    sqlite = request.param == "sqlite"
    database = open_file(tmp_path / "memory.db") if sqlite else Database(request.getfixturevalue("postgres_url"))
    yield database
    database.close()


def test_head_is_what_alembic_finds(empty: Database) -> None:
    """The constant that saves importing Alembic names the newest revision, and there is only one line of them."""
    scripts = ScriptDirectory.from_config(configuration(empty))
    assert scripts.get_heads() == [HEAD]
    assert len(scripts.get_bases()) == 1


def test_an_empty_database_comes_to_head(empty: Database) -> None:
    """A database without tables has no revision, and has the newest one after the first opening."""
    assert revision(empty) is None
    migrate(empty)
    assert revision(empty) == HEAD
    with empty.reading() as connection:
        names = set(inspect(connection).get_table_names())
    assert {"memory", "journal", "outbox", "vector", "word"} <= names


def test_the_tables_are_what_the_models_say(empty: Database) -> None:
    """Alembic finds no difference between the migrated database and the SQLModel tables."""
    migrate(empty)
    command.check(configuration(empty))
    assert revision(empty) == HEAD


def test_migrating_twice_does_nothing(empty: Database) -> None:
    """A second opening changes neither tables nor rows."""
    migrate(empty)
    with empty.writing() as connection:
        connection.execute(text("INSERT INTO namespace (name) VALUES ('user:ada')"))
    migrate(empty)
    with empty.reading() as connection:
        assert connection.execute(text("SELECT name FROM namespace")).scalars().all() == ["user:ada"]


def test_a_local_store_costs_no_alembic(tmp_path: Path) -> None:
    """A process that makes a local store does not import Alembic, nor does one that opens it again."""
    answers = [
        subprocess.run(
            [sys.executable, "-c", OPENING, str(tmp_path / "memory.db")],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for _ in range(2)
    ]
    assert answers == ["False", "False"]


def test_a_new_store_is_what_the_revisions_make() -> None:
    """The tables that a new local store is given at once are, word for word, those of all revisions in turn."""
    schemas = []
    for make in (migrate, upgrade):
        with closing(Database("sqlite://")) as database:
            make(database)
            with database.reading() as connection:
                rows = connection.execute(text("SELECT type, name, tbl_name, sql FROM sqlite_master"))
                schemas.append({tuple(" ".join(str(part).split()) for part in row) for row in rows})
            assert revision(database) == HEAD
    assert schemas[0] == schemas[1]
    assert len(schemas[0]) > 50


def test_a_later_revision_is_run(empty: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store comes to the next revision, which may add a column that is there; its rows stay as they are."""
    migrate(empty)
    (tmp_path / "later.py").write_text(LATER, encoding="utf-8")
    config = configuration(empty)
    versions = Path(config.get_main_option("script_location") or "") / "versions"
    config.set_main_option("version_locations", f"{versions}{os.pathsep}{tmp_path}")
    for name, value in {"HEAD": NEXT, "OLDER": (*OLDER, HEAD), "configuration": lambda _: config}.items():
        monkeypatch.setattr(migrations, name, value)
    with empty.writing() as connection:
        connection.execute(text("ALTER TABLE memory DROP COLUMN discovery_tokens"))
        connection.execute(text("INSERT INTO namespace (name) VALUES ('user:ada')"))
    migrate(empty)
    assert revision(empty) == NEXT
    command.check(config)
    with empty.reading() as connection:
        assert connection.execute(text("SELECT name FROM namespace")).scalars().all() == ["user:ada"]
        assert empty.file is None or schema_faults(connection) == []


def test_a_store_of_the_first_revision_gets_the_tables_of_the_second(empty: Database) -> None:
    """A store from before holds and retention were there has their tables after an opening, and its own rows."""
    migrate(empty)
    with empty.writing() as connection:
        for name in ("departure", "retention_rule", "legal_hold"):
            connection.execute(text(f"DROP TABLE {name}"))
        connection.execute(text("INSERT INTO namespace (name) VALUES ('user:ada')"))
        connection.execute(text("UPDATE alembic_version SET version_num = '1'"))
    migrate(empty)
    assert revision(empty) == HEAD
    command.check(configuration(empty))
    with empty.reading() as connection:
        assert connection.execute(text("SELECT name FROM namespace")).scalars().all() == ["user:ada"]
        assert empty.file is None or schema_faults(connection) == []


@pytest.mark.parametrize("found", ["9999", "0004"])
def test_an_unknown_schema_is_refused(empty: Database, found: str) -> None:
    """A database of another version is refused in one sentence that says what to do, and stays as it is."""
    migrate(empty)
    with empty.writing() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = :found"), {"found": found})
    advice = "recollect export" if empty.file else "start that version here too"
    with pytest.raises(StoreUnusable, match=f"has schema {found}, .* knows schema {HEAD} only. .*{advice}"):
        migrate(empty)
    assert revision(empty) == found


def test_a_refused_store_can_be_opened_again(settings: Settings) -> None:
    """A store that was refused is not left owned by the process that was refused."""
    open_app(settings, background=False).close()
    for found, refused in (("9999", True), (HEAD, False)):
        with closing(sqlite3.connect(settings.folder / "memory.db")) as connection, connection:
            connection.execute("UPDATE alembic_version SET version_num = ?", [found])
        if refused:
            with pytest.raises(StoreUnusable):
                open_app(settings, background=False)
        else:
            with open_app(settings, background=False) as app:
                assert all(check.well for check in app.checks())


@pytest.mark.parametrize("content", [b"this is no database, but long enough to have a header" * 90, b"\0" * 8192])
def test_a_file_that_is_no_database_is_refused(settings: Settings, content: bytes) -> None:
    """A memory.db that SQLite cannot read ends in one sentence of ours, and is not overwritten."""
    settings.folder.mkdir(parents=True)
    file = settings.folder / "memory.db"
    file.write_bytes(content)
    with pytest.raises(StoreUnusable, match=r"memory\.db"):
        open_app(settings, background=False)
    assert file.read_bytes() == content


def test_a_folder_that_cannot_be_made_is_refused(settings: Settings) -> None:
    """A data folder that is a file ends in one sentence of ours."""
    settings.folder.write_text("in the way", encoding="utf-8")
    with pytest.raises(StoreUnusable, match="cannot be written"):
        open_app(settings, background=False)


def test_a_migration_that_fails_leaves_nothing(empty: Database) -> None:
    """A migration that is interrupted half-way is undone as a whole, so that the next opening starts clean."""
    with empty.writing() as connection:
        connection.execute(text("CREATE TABLE journal (in_the_way INTEGER)"))
    with pytest.raises(Exception, match="journal"):
        migrate(empty)
    with empty.writing() as connection:
        assert "memory" not in inspect(connection).get_table_names()
        connection.execute(text("DROP TABLE journal"))
    migrate(empty)
    assert revision(empty) == HEAD


def test_the_store_is_private(settings: Settings) -> None:
    """Nobody but the owner of the process may read the data folder or the database."""
    with open_app(settings, background=False):
        assert settings.folder.stat().st_mode & 0o077 == 0
        assert (settings.folder / "memory.db").stat().st_mode & 0o077 == 0

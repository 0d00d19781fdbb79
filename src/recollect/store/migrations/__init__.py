"""Bring a database to the tables of this version. Alembic is imported only when there is something to do."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import inspect, text
from sqlalchemy.exc import DatabaseError

from recollect.errors import StoreUnusable
from recollect.store.database import Database

if TYPE_CHECKING:
    from alembic.config import Config

HEAD = "0004"
"""The newest revision; a test holds it to what Alembic finds in `versions`."""

_CHANGES_DATA: frozenset[str] = frozenset()
"""Revisions that rewrite rows: before one of them runs, the database file is copied beside itself."""


def migrate(database: Database) -> None:
    """Upgrade `database` to `HEAD`; raise `StoreUnusable` when it cannot be read or a newer Recollect wrote it."""
    try:
        found = revision(database)
    except DatabaseError as error:
        name = database.file or database.url.render_as_string()
        raise StoreUnusable(f"The database {name} cannot be read: {error.orig}.") from None
    if found == HEAD:
        return
    from alembic import command
    from alembic.script import ScriptDirectory

    config = configuration(database)
    scripts = ScriptDirectory.from_config(config)
    known = [script.revision for script in scripts.walk_revisions()]
    if found is not None and found not in known:
        raise StoreUnusable(
            f"The database was written by a newer Recollect (schema {found}, this one knows {HEAD}): "
            "upgrade Recollect, or set RECOLLECT_HOME to another folder."
        )
    pending = set(known) if found is None else set(known[: known.index(found)])
    if found is not None and pending & _CHANGES_DATA:
        copy_before(database, found)
    command.upgrade(config, "head")


def revision(database: Database) -> str | None:
    """Return the schema revision of `database`, or None for an empty one."""
    with database.reading() as connection:
        if not inspect(connection).has_table("alembic_version"):
            return None
        return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def copy_before(database: Database, found: str) -> Path | None:
    """Copy the SQLite file, consistent while others read, to `NAME.before-REVISION` and return its path."""
    if database.file is None:
        return None
    target = database.file.with_name(f"{database.file.name}.before-{found}")
    with closing(sqlite3.connect(database.file)) as source, closing(sqlite3.connect(target)) as copy:
        source.backup(copy)
    target.chmod(0o600)
    return target


def configuration(database: Database) -> Config:
    """Return Alembic's configuration for `database`, without an ini file."""
    from alembic.config import Config

    config = Config(stdout=StringIO())  # what it says is for nobody, and a client's stdout carries MCP
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["database"] = database
    return config

"""Bring a database to the tables of this version. Alembic is imported only when there is something to do."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import inspect, text
from sqlalchemy.exc import DatabaseError

from recollect.errors import StoreUnusable
from recollect.store.sql.database import Database

if TYPE_CHECKING:
    from alembic.config import Config

HEAD = "1"
"""The newest revision; a test holds it to what Alembic finds in `versions`."""


def migrate(database: Database) -> None:
    """Upgrade `database` to `HEAD`; raise `StoreUnusable` when it cannot be read or has a revision unknown here."""
    try:
        found = revision(database)
    except DatabaseError as error:
        name = database.file or database.url.render_as_string()
        raise StoreUnusable(f"The database {name} cannot be read: {error.orig}.") from None
    if found == HEAD:
        return
    if found is not None:  # there is one revision yet; later ones are looked up among Alembic's scripts
        raise StoreUnusable(
            f"The database has schema {found}, and this version of Recollect knows schema {HEAD} only. Open it with "
            "the version that wrote it (to move it here: `recollect export` there, `recollect import` here), or set "
            "RECOLLECT_HOME to another folder."
        )
    from alembic import command

    command.upgrade(configuration(database), "head")


def revision(database: Database) -> str | None:
    """Return the schema revision of `database`, or None for an empty one."""
    with database.reading() as connection:
        if not inspect(connection).has_table("alembic_version"):
            return None
        return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def configuration(database: Database) -> Config:
    """Return Alembic's configuration for `database`, without an ini file."""
    from alembic.config import Config

    config = Config(stdout=StringIO())  # what it says is for nobody, and a client's stdout carries MCP
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["database"] = database
    return config

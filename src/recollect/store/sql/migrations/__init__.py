"""Bring a database to the tables of this version. Alembic is imported only when there is something to move.

A revision only adds what replicas of the version before can do without, as they go on beside it on PostgreSQL.
The tables of a new local store are made as they are declared, which spares its first start a fifth of a second.
"""

from __future__ import annotations

import re
from contextlib import closing
from functools import cache
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import Column, Connection, MetaData, PrimaryKeyConstraint, String, Table, inspect, text

from recollect.errors import StoreUnusable
from recollect.store.sql import tables
from recollect.store.sql.database import Database
from recollect.store.text import fts5_schema

if TYPE_CHECKING:
    from alembic.config import Config

_PART = re.compile(r"(?:[^,()]|\([^()]*\))+")  # of a table: a column or a constraint, with what it has in brackets
_SQLITES_OWN = ("sqlite_sequence", "sqlite_stat1", "sqlite_stat4")

HEAD = "4"
"""The newest revision; a test holds it to what Alembic finds in `versions`."""

OLDER = tuple(str(number) for number in range(1, int(HEAD)))
"""The revisions from which a database is brought to the newest one."""


_OTHER_FILE = (
    "Open it with the version that wrote it (to move it here: `recollect export` there, `recollect import` here), or "
    "set RECOLLECT_HOME to another folder."
)
_OTHER_REPLICA = (
    "A replica of another version has brought it there: start that version here too. Replicas that were running "
    "before go on."
)

_PGVECTOR_HERE = text(
    "SELECT current_schema() AS schema, current_user AS role FROM pg_extension "
    "WHERE extname = 'vector' AND extnamespace = CAST(quote_ident(current_schema()) AS regnamespace)"
)

_VERSION = Table(
    "alembic_version",
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
"""The table in which Alembic keeps the revision, as it declares it."""


def migrate(database: Database) -> None:
    """Upgrade `database` to `HEAD`; raise `StoreUnusable` when it cannot be read or has a revision unknown here."""
    try:
        found = revision(database)
    except StoreUnusable as error:
        raise StoreUnusable(f"{database.file or database.url.render_as_string()}: {error}") from None
    if found == HEAD:
        return
    if found in OLDER and database.read_only:
        raise StoreUnusable(
            f"{database.file} has schema {found}, which cannot be read as it is, and the folder cannot be written. "
            "Make it writable for one command, which brings it to the newest schema."
        )
    if found is not None and found not in OLDER:
        advice = _OTHER_FILE if database.url.get_backend_name() == "sqlite" else _OTHER_REPLICA
        raise StoreUnusable(
            f"The database has schema {found}, and this version of Recollect knows schema {HEAD} only. {advice}"
        )
    if found is None and database.url.get_backend_name() == "sqlite":
        _make_schema(database)
    else:
        if found is None:
            _refuse_pgvector(database)
        upgrade(database)


def _refuse_pgvector(database: Database) -> None:
    """Raise `StoreUnusable` where the extension pgvector takes the name of our table `vector`, which is its type's."""
    with database.reading() as connection:
        taken = connection.execute(_PGVECTOR_HERE).one_or_none()
    if taken is not None:
        raise StoreUnusable(
            f"The extension pgvector is in the schema `{taken.schema}`, where its type has the name of a table of "
            "Recollect. Let a superuser run in the database: "
            f'CREATE SCHEMA IF NOT EXISTS "{taken.schema}_vectors" AUTHORIZATION "{taken.role}"; '
            f'ALTER EXTENSION vector SET SCHEMA "{taken.schema}_vectors";'
        )


def upgrade(database: Database) -> None:
    """Run the revisions that `database` lacks, one after another."""
    from alembic import command

    command.upgrade(configuration(database), "head")


def _make_schema(database: Database) -> None:
    """Make the newest schema in an empty database, and mark it with the newest revision."""
    with database.exclusive() as connection:
        tables.metadata.create_all(connection, checkfirst=False)
        for statement in database.dialect.schema:
            connection.execute(text(statement))
        _VERSION.create(connection)
        connection.execute(_VERSION.insert().values(version_num=HEAD))


def add_columns(table: Table, *names: str) -> None:
    """Add columns, for a revision, as the table declares them: each must allow NULL.

    The revision that makes a table makes it as it is declared today, so a column may be there already.
    """
    from alembic import op

    there = {column["name"] for column in inspect(op.get_bind()).get_columns(table.name)}
    for name in names:
        if name not in there:
            op.add_column(table.name, Column(name, table.c[name].type))


def revision(database: Database) -> str | None:
    """Return the schema revision of `database`, or None for an empty one."""
    with database.reading() as connection:
        if not inspect(connection).has_table("alembic_version"):
            return None
        return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


class SchemaFault(NamedTuple):
    """A part of an SQLite database's schema that is missing, changed or foreign."""

    kind: str
    name: str
    wrong: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name} {self.wrong}"

    @property
    def is_derived(self) -> bool:
        """Say whether it belongs to the text index, which is made anew from the memories."""
        return self.name in fts5_schema.PARTS


def schema_faults(connection: Connection) -> list[SchemaFault]:
    """Return what of an SQLite database's tables, indexes, views and triggers is missing, foreign or changed."""
    found, wanted = _read_schema(connection), _migrated_schema()
    lacking = [SchemaFault(*part, "is missing") for part in sorted(wanted.keys() - found.keys())]
    foreign = [SchemaFault(*part, "is not ours") for part in sorted(found.keys() - wanted.keys())]
    both = sorted(wanted.keys() & found.keys())
    changed = [SchemaFault(*part, "was changed") for part in both if found[part] != wanted[part]]
    return [*lacking, *foreign, *changed]


@cache
def _migrated_schema() -> dict[tuple[str, str], str]:
    """Return the schema that the migrations make."""
    with closing(Database("sqlite://")) as empty:
        migrate(empty)
        with empty.reading() as connection:
            return _read_schema(connection)


def _read_schema(connection: Connection) -> dict[tuple[str, str], str]:
    """Return the SQL statement of each part of the schema, without SQLite's own tables, by its kind and name.

    What a table has is sorted: SQLite puts a column that was added behind all others.
    """
    rows = connection.exec_driver_sql("SELECT type, name, tbl_name, sql FROM sqlite_master")
    return {
        (
            str(row.type),
            str(row.name),
        ): f"{row.tbl_name} {_with_sorted_columns(row.sql) if row.type == 'table' else _on_one_line(row.sql)}"
        for row in rows
        if not (row.type == "table" and row.name in _SQLITES_OWN)
    }


def _with_sorted_columns(made: str) -> str:
    """Return a statement that makes a table with its columns sorted, as their order says nothing."""
    head, _, rest = made.partition("(")
    parts, _, options = rest.rpartition(")")
    return _on_one_line(f"{head}({', '.join(sorted(map(_on_one_line, _PART.findall(parts))))}){options}")


def _on_one_line(statement: str | None) -> str:
    return " ".join(str(statement).split())


def configuration(database: Database) -> Config:
    """Return Alembic's configuration for `database`, without an ini file."""
    from alembic.config import Config

    config = Config(stdout=StringIO())  # what it says is for nobody, and a client's stdout carries MCP
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["database"] = database
    return config

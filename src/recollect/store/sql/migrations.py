"""Bring a database to the tables of this version, by the revisions that it lacks, in one transaction.

A revision only adds what replicas of the version before can do without, as they go on beside it on PostgreSQL. What it
makes stands in `tables.py` and the database's dialect as it is today; rows are changed by statements of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final

from sqlalchemy import (
    Column,
    Connection,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    bindparam,
    delete,
    inspect,
    select,
    text,
    type_coerce,
    update,
)

from recollect.domain.enums import Sensitivity, owned
from recollect.errors import StoreUnusable
from recollect.store import journal
from recollect.store.sql import tables
from recollect.store.sql.child_tables import held_memories
from recollect.store.sql.database import Database
from recollect.store.sql.dialect import Dialect
from recollect.store.sql.statements import insert_all
from recollect.store.sql.tables import QUARANTINED, fact, held, memory, memory_words, namespace, word
from recollect.store.text.vocabulary import word_uses

_SQLITES_OWN = ("sqlite_sequence", "sqlite_stat1", "sqlite_stat4")
_OTHER_FILE = (
    "Open it with the version that wrote it (to move it here: `recollect export` there, `recollect import` here), or "
    "set RECOLLECT_HOME to another folder."
)
_OTHER_REPLICA = (
    "A replica of another version has brought it there: start that version here too. Replicas that were running "
    "before go on."
)

_VERSION = Table(
    "alembic_version",
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
"""The table of the revision, under the name and in the form that Alembic gave it, which made the first stores."""
_SESSIONS = (tables.session, tables.observation, tables.consolidation)
_ACCOUNTS = (
    *(tables.account, tables.team, tables.membership),
    *(tables.team_project, tables.project_membership, tables.token),
)
_OWNED = [str(level) for level in Sensitivity if level is not Sensitivity.PUBLIC]
_AFTER = ("", QUARANTINED)


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
    upgrade(database)


def upgrade(database: Database, upto: str = "") -> None:
    """Run the revisions that `database` lacks, one after another, all of them or those up to one."""
    with database.exclusive() as connection:
        found = _revision(connection)  # another replica may have been quicker
        if found is None:
            _VERSION.create(connection)
        elif found not in OLDER:
            return
        numbers = list(REVISIONS)
        for number in numbers[numbers.index(found) + 1 if found else 0 : numbers.index(upto or HEAD) + 1]:
            REVISIONS[number](connection, database.dialect)
            connection.execute(_VERSION.delete())
            connection.execute(_VERSION.insert().values(version_num=number))


def revision(database: Database) -> str | None:
    """Return the schema revision of `database`, or None for an empty one."""
    with database.reading() as connection:
        return _revision(connection)


def _revision(connection: Connection) -> str | None:
    known = inspect(connection).has_table(_VERSION.name)
    return connection.execute(select(_VERSION.c.version_num)).scalar() if known else None


def schema_faults(connection: Connection) -> list[str]:
    """Say what of an SQLite database's tables, indexes, views and triggers is missing, changed or foreign."""
    found, wanted = _schema(connection), _migrated()
    lacking = [f"{kind} {name} is missing" for kind, name in sorted(wanted.keys() - found.keys())]
    foreign = [f"{kind} {name} is not ours" for kind, name in sorted(found.keys() - wanted.keys())]
    changed = [
        f"{kind} {name} was changed"
        for kind, name in sorted(wanted.keys() & found.keys())
        if found[kind, name] != wanted[kind, name]
    ]
    return [*lacking, *foreign, *changed]


@cache
def _migrated() -> dict[tuple[str, str], str]:
    """Return the schema that the migrations make."""
    with closing(Database("sqlite://")) as empty:
        migrate(empty)
        with empty.reading() as connection:
            return _schema(connection)


def _schema(connection: Connection) -> dict[tuple[str, str], str]:
    """Return the statement that makes each part of the schema but SQLite's own tables, by its kind and name."""
    rows = connection.exec_driver_sql("SELECT type, name, tbl_name, sql FROM sqlite_master")
    return {
        (str(row.type), str(row.name)): " ".join(f"{row.tbl_name} {row.sql}".split())
        for row in rows
        if not (row.type == "table" and row.name in _SQLITES_OWN)
    }


def _first_tables(connection: Connection, dialect: Dialect) -> None:
    """Make every table, index and trigger of the first release; one that is there already is an error."""
    later = (*_SESSIONS, *_ACCOUNTS)
    first = [one for one in tables.metadata.sorted_tables if one not in later]
    tables.metadata.create_all(connection, first, checkfirst=False)
    for statement in dialect.schema:
        connection.execute(text(statement))


def _sessions(connection: Connection, _: Dialect) -> None:
    """Make the sessions of coding agents with their observations, and how far each memory is consolidated."""
    tables.metadata.create_all(connection, _SESSIONS, checkfirst=False)


def _accounts(connection: Connection, _: Dialect) -> None:
    """Make the users, teams, projects and tokens of a deployment."""
    tables.metadata.create_all(connection, _ACCOUNTS, checkfirst=False)


def _postings(connection: Connection, dialect: Dialect) -> None:
    """Put today's functions of PostgreSQL's text index in the place of those of an older database.

    With them a long text changes without comparing its words with each other.
    """
    for statement in dialect.functions:
        connection.execute(text(statement))


def _owners(connection: Connection, _: Dialect) -> None:
    """Give each level above public its owner, as `private@ada`, with a line in the journal; count by levels again."""
    moved = [_move_levels(connection, table) for table in (memory, fact)]
    if any(moved):
        _move_words(connection)
        _count(connection)


def _move_levels(connection: Connection, table: Table) -> bool:
    """Write the owners of one table's rows; say whether there were any."""
    column = type_coerce(table.c.sensitivity, Text)
    wanted = [prefix + level for level in _OWNED for prefix in _AFTER]
    of = table.c.id.label("memory_id") if table is memory else fact.c.memory_id
    query = select(table.c.id, of, column.label("level"), table.c.author, namespace.c.name)
    joined = query.join(namespace, namespace.c.id == table.c.namespace_id).where(column.in_(wanted))
    found = connection.execute(joined.order_by(table.c.id)).all()
    lines: dict[tuple[str, str], list[tuple[int | None, str, dict[str, Any]]]] = defaultdict(list)
    for row in found:
        level = owned(row.level, row.author)
        connection.execute(update(table).where(table.c.id == row.id).values(sensitivity=level))
        about = {"fields": ["sensitivity"]} | ({} if table is memory else {"fact": row.id})
        lines[row.name, row.author].append((row.memory_id, level.removeprefix(QUARANTINED), about))
    for (name, author), changes in lines.items():
        journal.extend(connection, name, author, datetime.now(UTC), "update", changes)
    return bool(found)


def _move_words(connection: Connection) -> None:
    query = select(memory_words.c.memory_id, memory_words.c.sensitivity, memory.c.author)
    joined = query.join(memory, memory.c.id == memory_words.c.memory_id)
    rows = [
        {"this": row.memory_id, "new": f"{row.sensitivity}@{row.author}"}
        for row in connection.execute(joined)
        if row.sensitivity.rpartition(":")[2] in _OWNED
    ]
    if rows:
        mine = update(memory_words).where(memory_words.c.memory_id == bindparam("this"))
        connection.execute(mine.values(sensitivity=bindparam("new")), rows)


def _count(connection: Connection) -> None:
    connection.execute(delete(held))
    counts = held_memories(connection).items()
    names = ("namespace_id", "sensitivity")
    insert_all(connection, held, (dict(zip(names, place, strict=True)) | {"memories": many} for place, many in counts))
    connection.execute(delete(word))
    uses = word_uses(connection).items()
    words = (*names, "text")
    insert_all(connection, word, (dict(zip(words, place, strict=True)) | {"uses": many} for place, many in uses))


REVISIONS: Final[Mapping[str, Callable[[Connection, Dialect], None]]] = {
    "1": _first_tables,
    "2": _sessions,
    "3": _accounts,
    "4": _postings,
    "5": _owners,
}
"""What each revision does to a database of the one before."""
HEAD: Final = tuple(REVISIONS)[-1]
"""The newest revision."""
OLDER: Final = tuple(REVISIONS)[:-1]
"""The revisions from which a database is brought to the newest one."""

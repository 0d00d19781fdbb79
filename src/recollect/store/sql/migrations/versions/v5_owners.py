"""What is private or secret belongs to its author: the level that is stored names them, as `private@ada`."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from typing import Any

from alembic import op
from sqlalchemy import Connection, Table, Text, bindparam, delete, select, type_coerce, update

from recollect.domain.enums import Sensitivity, owned
from recollect.store import journal
from recollect.store.sql.child_tables import held_memories
from recollect.store.sql.column_types import QUARANTINED
from recollect.store.sql.statements import insert_all
from recollect.store.sql.tables import fact, held, memory, memory_words, namespace, word
from recollect.store.text.vocabulary import word_uses

revision = "5"
down_revision = "4"

_OWNED = [str(level) for level in Sensitivity if level is not Sensitivity.PUBLIC]
_AFTER = ("", QUARANTINED)


def upgrade() -> None:
    """Give each level above public its owner, with a line in the journal, and count again what is kept by levels."""
    connection = op.get_bind()
    moved = [_move(connection, table) for table in (memory, fact)]
    if any(moved):
        _move_words(connection)
        _count(connection)


def _move(connection: Connection, table: Table) -> bool:
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

"""What a doctor sees: whether SQL, text index, vector index and journal are sound and agree."""

from __future__ import annotations

from sqlalchemy import Connection, func, select

from recollect.domain.results import Check
from recollect.store import journal
from recollect.store.sql import tables
from recollect.store.sql.database import Database
from recollect.store.sql.statements import count
from recollect.store.sql.tables import memory, namespace, outbox, speaker, word
from recollect.store.text.vocabulary import word_uses
from recollect.store.vectors.chroma import ChromaIndex, IndexBroken
from recollect.store.vectors.outbox import expected_ids
from recollect.store.vectors.vector_search import SqlChromaVectors

_RESTORE = "Restore the newest backup of memory.db: rows of it can no longer be read."
_REINDEX = "Run `recollect reindex`."


def examine(database: Database, vectors: SqlChromaVectors, index: ChromaIndex) -> list[Check]:
    """Look at every part of the store; changes nothing, but lets writers wait while it compares the parts."""
    vectors.sync()
    with database.reading() as connection:
        checks = [_database(connection, database), _journal(connection), _counts(connection)]
    with database.exclusive() as connection:
        checks += [_text(connection, database), _vocabulary(connection)]
        waiting = set(connection.execute(select(outbox.c.memory_id)).scalars())
        checks.append(_vectors(connection, index, waiting))
    advice = "Wait a moment; when it stays, run `recollect reindex`."
    checks.append(Check("outbox", not waiting, f"{len(waiting)} memories wait for the vector index", advice))
    return checks


def _database(connection: Connection, database: Database) -> Check:
    memories, spaces = count(connection, memory), count(connection, namespace)
    size = f", {database.file.stat().st_size / 1e6:.1f} MB" if database.file else ""
    damage = database.dialect.damage(connection)
    return Check("database", not damage, damage or f"{memories} memories in {spaces} namespaces{size}", _RESTORE)


def _journal(connection: Connection) -> Check:
    broken = [f"line {number} of {name}" for name, number in sorted(journal.broken(connection).items())]
    seen = f"{count(connection, tables.journal)} lines, chains whole"
    advice = "Somebody changed the database by hand; compare with a backup."
    return Check("journal", not broken, f"changed or missing before: {', '.join(broken)}" if broken else seen, advice)


def _counts(connection: Connection) -> Check:
    counted = select(namespace.c.id, func.count(memory.c.id)).outerjoin(memory, memory.c.namespace_id == namespace.c.id)
    found = {tuple(row) for row in connection.execute(counted.group_by(namespace.c.id))}
    kept = {tuple(row) for row in connection.execute(select(namespace.c.id, namespace.c.memories))}
    spoken = set(connection.execute(select(memory.c.namespace_id, memory.c.speaker).distinct()))
    known = set(connection.execute(select(speaker.c.namespace_id, speaker.c.name).distinct()))
    seen = f"{sum(held for _, held in kept)} memories counted, {len(known)} speakers known by name"
    return Check("counts", found == kept and known <= spoken, seen, _REINDEX)


def _text(connection: Connection, database: Database) -> Check:
    damaged = database.dialect.text_damage(connection)
    seen = f"{damaged} does not agree with the memories" if damaged else "agrees with the memories"
    return Check("text index", not damaged, seen, _REINDEX)


def _vocabulary(connection: Connection) -> Check:
    stored = {(row.namespace_id, row.text): row.uses for row in connection.execute(select(word))}
    return Check("vocabulary", stored == word_uses(connection), f"{len(stored)} words", _REINDEX)


def _vectors(connection: Connection, index: ChromaIndex, waiting: set[int]) -> Check:
    expected = expected_ids(connection)
    try:
        differing = (one for name, ids in expected.items() for one in index.ids(name) ^ ids)
        wrong = sum(int(one.partition(".")[0]) not in waiting for one in differing)
    except IndexBroken as error:
        return Check("vector index", False, f"cannot be read: {error}", _REINDEX)
    held = sum(len(ids) for ids in expected.values())
    return Check("vector index", wrong == 0, f"{held} vectors, {wrong} of them in doubt", _REINDEX)

"""What a doctor sees: whether SQL, text index, vector index and journal are sound and agree."""

from __future__ import annotations

from sqlalchemy import Connection, func, select
from sqlalchemy.exc import DatabaseError

from recollect.ports import Check
from recollect.store import journal, rows
from recollect.store.database import Database
from recollect.store.nearest import SqlChromaVectors
from recollect.store.vectors import ChromaIndex, IndexBroken, chunk_id

_TEXT_TABLES = ("memory_text", "memory_trigram", "word_trigram")
_INTEGRITY = "INSERT INTO {name}({name}, rank) VALUES ('integrity-check', 1)"
_RESTORE = "Restore the newest backup of memory.db: rows of it can no longer be read."
_REINDEX = "Run `recollect reindex`."


def examine(database: Database, vectors: SqlChromaVectors, index: ChromaIndex) -> list[Check]:
    """Look at every part of the store; changes nothing, but lets writers wait while it compares the parts."""
    vectors.sync()
    with database.reading() as connection:
        checks = [_database(connection, database), _journal(connection), _counts(connection)]
    with database.writing() as connection:
        if database.sqlite:
            checks += [_text(connection), _vocabulary(connection)]
        waiting = set(connection.execute(select(rows.outbox.c.memory_id)).scalars())
        checks.append(_vectors(connection, index, waiting))
    advice = "Wait a moment; when it stays, run `recollect reindex`."
    checks.append(Check("outbox", not waiting, f"{len(waiting)} memories wait for the vector index", advice))
    return checks


def _database(connection: Connection, database: Database) -> Check:
    memories, spaces = _count(connection, rows.memory), _count(connection, rows.namespace)
    size = f", {database.file.stat().st_size / 1e6:.1f} MB" if database.file else ""
    seen = f"{memories} memories in {spaces} namespaces{size}"
    if not database.sqlite:
        return Check("database", True, seen)
    verdict = connection.exec_driver_sql("PRAGMA quick_check").scalar()
    return Check("database", verdict == "ok", seen if verdict == "ok" else f"{verdict}", _RESTORE)


def _journal(connection: Connection) -> Check:
    broken = journal.first_broken(connection)
    lines = _count(connection, rows.journal)
    seen = f"{lines} lines, chain whole" if broken is None else f"line {broken} was tampered with"
    return Check("journal", broken is None, seen, "Somebody changed the database by hand; compare with a backup.")


def _counts(connection: Connection) -> Check:
    memory, space = rows.memory.c, rows.namespace.c
    counted = select(space.id, func.count(memory.id)).outerjoin(rows.memory, memory.namespace_id == space.id)
    held = {tuple(row) for row in connection.execute(counted.group_by(space.id))}
    kept = {tuple(row) for row in connection.execute(select(space.id, space.memories))}
    spoken = set(connection.execute(select(memory.namespace_id, memory.speaker).distinct()))
    known = set(connection.execute(select(rows.speaker.c.namespace_id, rows.speaker.c.name).distinct()))
    seen = f"{sum(count for _, count in kept)} memories counted, {len(known)} speakers known by name"
    return Check("counts", held == kept and known <= spoken, seen, _REINDEX)


def _text(connection: Connection) -> Check:
    for name in _TEXT_TABLES:
        try:
            connection.exec_driver_sql(_INTEGRITY.format(name=name))
        except DatabaseError:
            return Check("text index", False, f"{name} does not agree with the memories", _REINDEX)
    return Check("text index", True, "agrees with the memories")


def _vocabulary(connection: Connection) -> Check:
    uses: dict[tuple[int, str], int] = {}
    query = select(rows.memory.c.namespace_id, rows.memory_words.c.words)
    for number, words in connection.execute(query.join(rows.memory, rows.memory.c.id == rows.memory_words.c.memory_id)):
        for word in words.split():
            uses[number, word] = uses.get((number, word), 0) + 1
    stored = {(row.namespace_id, row.text): row.uses for row in connection.execute(select(rows.word))}
    return Check("vocabulary", stored == uses, f"{len(stored)} words", _REINDEX)


def _vectors(connection: Connection, index: ChromaIndex, waiting: set[int]) -> Check:
    query = (
        select(rows.namespace.c.name, rows.vector.c.memory_id, rows.vector.c.ordinal)
        .join(rows.memory, rows.memory.c.namespace_id == rows.namespace.c.id)
        .join(rows.vector, rows.vector.c.memory_id == rows.memory.c.id)
        .where(rows.shown())
    )
    expected: dict[str, set[str]] = {
        name: set() for name in connection.execute(select(rows.namespace.c.name)).scalars()
    }
    for name, memory_id, ordinal in connection.execute(query):
        expected[name].add(chunk_id(memory_id, ordinal))
    try:
        differing = (one for name, ids in expected.items() for one in index.ids(name) ^ ids)
        wrong = sum(int(one.partition(".")[0]) not in waiting for one in differing)
    except IndexBroken as error:
        return Check("vector index", False, f"cannot be read: {error}", _REINDEX)
    held = sum(len(ids) for ids in expected.values())
    return Check("vector index", wrong == 0, f"{held} vectors, {wrong} of them in doubt", _REINDEX)


def _count(connection: Connection, table: object) -> int:
    return connection.execute(select(func.count()).select_from(table)).scalar_one()  # type: ignore[arg-type]

"""The checks of `doctor`: whether SQL, text index, vector index and journal are sound and agree.

A quick look reads a part of the journal and of the vectors; a deep one reads everything. Whether a vector is that of
its text, a deep look sees by the digest beside it: it embeds what has none or another, and a few that are drawn at
random. A part that cannot be read is a finding like any other.

A check that finds nothing wrong names no numbers: how much a store holds is not for everybody to know.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any

from sqlalchemy import BindParameter, Connection, LargeBinary, bindparam, func, select, text, update
from sqlalchemy.exc import DatabaseError

from recollect.domain.results import Check
from recollect.engines.chunks import Chunk
from recollect.errors import StoreUnusable
from recollect.store import journal, journal_state
from recollect.store.entries import ChunkDigests
from recollect.store.sql import limit_schema, store_metadata, tables
from recollect.store.sql.child_tables import count_by_namespace_and_level
from recollect.store.sql.database import Database
from recollect.store.sql.granted_rights import never_granted, unknown_roles
from recollect.store.sql.migrations import schema_faults
from recollect.store.sql.tables import held, memory, namespace, outbox, speaker, word
from recollect.store.sql.visibility import shown
from recollect.store.text.vocabulary import word_uses
from recollect.store.vectors.exact import as_vector
from recollect.store.vectors.index import IndexAway, IndexBroken, VectorIndex, chunk_id
from recollect.store.vectors.vector_search import VectorSearch

Embed = Callable[[str], Sequence[Chunk]]
"""Makes the chunks of a content with the store's model."""

UNREADABLE = "cannot be read: "
"""The beginning of what is seen of a vector index that does not answer or is broken."""

_LINES = 20_000  # of the journal, for a quick look
_SAMPLE = 50  # memories of each namespace, for a quick look
_EMBEDDED = 5  # memories that are embedded again, for a quick look
_DRAWN = 20  # memories whose digests are right that are embedded all the same, for a deep look
_AT_ONCE = 500  # memories that a deep look reads together
_NAMED = 5
_AS_EMBEDDED = 0.999  # cosine of two embeddings of one text

_REBUILDING = "is built again; SQL answers meanwhile"
_CHROMA = "Start Chroma, or correct RECOLLECT_CHROMA_URL; recall and writes go on without it."
_REINDEX = "Run `recollect reindex`."
_RESTORE = (
    "Bring back a backup with `recollect backup restore FILE --force`; "
    "`recollect export FILE` saves what can be read until then."
)
_ROLES = "Somebody has changed the tables: grant those roles anew, or revoke the tokens that have them."
_ELSEWHERE = "Run `recollect doctor` as a user who may write the folder, or on a copy of it."
_FORGED = (
    "Somebody has changed the tables: disable those users, take away those roles and revoke those tokens "
    "(`recollect user disable`, `recollect team revoke`, `recollect token revoke`)."
)
_EDITED = (
    "Somebody changed the database by hand. Look with `recollect show ID` and `recollect history ID`; "
    "where it is wrong, bring back a backup with `recollect backup restore FILE --force`."
)

_IDS: BindParameter[Any] = bindparam("ids", expanding=True)
_CONTENTS = select(memory.c.id, memory.c.content).where(memory.c.id.in_(_IDS)).order_by(memory.c.id)
_VECTORS = (
    select(*(tables.vector.c[name] for name in ("memory_id", "ordinal", "start", "stop", "embedding", "digest")))
    .where(tables.vector.c.memory_id.in_(_IDS))
    .order_by(tables.vector.c.memory_id, tables.vector.c.ordinal)
)
_PROVE = (
    update(tables.vector)
    .where(
        tables.vector.c.memory_id == bindparam("of"),
        tables.vector.c.ordinal == bindparam("at"),
        tables.vector.c.digest.is_not_distinct_from(bindparam("old", type_=LargeBinary)),
    )
    .values(digest=bindparam("new"))
)
"""Writes a digest in the place of an older one or none, unless somebody has written the vector meanwhile."""


def examine(
    database: Database,
    vectors: VectorSearch,
    index: VectorIndex,
    *,
    deep: bool = False,
    embed: Embed | None = None,
) -> Iterator[Check]:
    """Look at every part of the store, one after another; nobody writes while the indexes are compared.

    Changes nothing but digests. Take what comes at once: writers wait for it.

    With `embed` some memories are embedded again and compared with their vectors; where it is `deep`, all whose digests
    do not prove them. Those that turn out to be right get their digests. Indexes cannot be compared in a database that
    can only be read: that is a finding, too.
    """
    looks: dict[str, Callable[[Connection], Check]] = {
        "database": lambda connection: _check_database(connection, database),
        "schema": lambda connection: _check_schema(connection, database),
        "journal": lambda connection: _check_journal(connection, deep=deep),
        "counts": _check_counts,
        "accounts": _check_accounts,
    }
    if database.read_only:
        looks["vocabulary"] = _check_vocabulary
    proven: list[dict[str, Any]] = []
    if embed is not None and deep:
        looks["embeddings"] = lambda connection: _check_all_embeddings(connection, embed, proven)
    elif embed is not None:
        looks["embeddings"] = lambda connection: _check_some_embeddings(connection, embed)
    for name, look in looks.items():
        yield _check_part(database, name, look)
    if proven and not database.read_only:
        with suppress(StoreUnusable), database.writing() as connection:  # else the next look embeds them again
            connection.execute(_PROVE, proven)
    if database.read_only:
        yield Check("indexes", False, "not compared, as the data folder cannot be written", _ELSEWHERE)
        return
    yield from _check_indexes(database, vectors, index, deep=deep)


def _check_indexes(database: Database, vectors: VectorSearch, index: VectorIndex, *, deep: bool) -> Iterator[Check]:
    """Compare the indexes with the memories, once the vector index has caught up; nobody writes meanwhile."""
    with suppress(StoreUnusable):  # the checks say why
        vectors.sync(everything=index.proven_by_use)
    waiting: set[int] = set()
    try:
        with database.exclusive() as connection:
            yield _check_text_index(connection, database)
            yield _check_vocabulary(connection)
            waiting = _waiting_ids(connection)
            yield _check_vector_index(connection, vectors, index, waiting)
    except StoreUnusable as error:
        yield Check("indexes", False, str(error), _RESTORE)
    try:
        yield _check_values(vectors, deep=deep)
    except StoreUnusable as error:
        yield Check("vector values", False, str(error), _RESTORE)
    advice = "Wait a moment; when it stays, run `recollect reindex`."
    waits = "the vector index is built again" if vectors.state == "rebuilding" else "memories wait for the vector index"
    well = not waiting and vectors.state != "rebuilding"
    yield Check("outbox", well, "nothing waits" if well else waits, advice)


def backup_faults(database: Database) -> list[str]:
    """Return everything that makes a database file unfit as a backup: in schema, pages, journal, rows or references.

    Nothing in the file runs before its schema is known to be ours.
    """
    with database.reading() as connection:
        if found := schema_faults(connection):
            return [str(fault) for fault in found]
        verdict = connection.exec_driver_sql("PRAGMA integrity_check(3)").scalars().all()
        if list(verdict) != ["ok"]:
            return [str(one).splitlines()[0] for one in verdict]
        if connection.exec_driver_sql("PRAGMA foreign_key_check").first() is not None:
            return ["a row refers to one that is not there"]
        return find_tampering(connection, deep=True)[1]


def find_tampering(connection: Connection, *, deep: bool) -> tuple[int, list[str]]:
    """Walk the journal and compare the rows with it; return how many lines were read, and each difference."""
    walked = journal.walk(connection, None if deep else _LINES)
    broken = [f"line {number} of {name}" for name, number in sorted(walked.broken.items())]
    chains = [f"changed or missing before: {', '.join(broken)}"] if broken else []
    return walked.lines, [*chains, *journal_state.altered(connection, walked.signed, whole=walked.whole)]


def _check_part(database: Database, name: str, look: Callable[[Connection], Check]) -> Check:
    """Return the check that `look` makes; a part that cannot be read fails its check."""
    try:
        with database.reading() as connection:
            return look(connection)
    except (StoreUnusable, DatabaseError) as error:
        return Check(name, False, str(error).partition("\n")[0], _RESTORE)
    except (ValueError, TypeError, AttributeError) as error:  # SQLite keeps bytes in a column of texts
        return Check(name, False, f"a row holds what Recollect never writes: {error}", _EDITED)


def _check_database(connection: Connection, database: Database) -> Check:
    damage = database.dialect.damage(connection)
    return Check("database", not damage, damage or "its pages are sound", _RESTORE)


def _check_schema(connection: Connection, database: Database) -> Check:
    found = schema_faults(connection) if database.file else []
    seen = _name_first([str(fault) for fault in found]) or "tables, indexes and triggers are ours"
    return Check("schema", not found, seen, _REINDEX if all(fault.is_derived for fault in found) else _RESTORE)


def _check_journal(connection: Connection, *, deep: bool) -> Check:
    _, found = find_tampering(connection, deep=deep)
    seen = "its chains are whole, and the rows are as they say"
    return Check("journal", not found, _name_first(found) or seen, _EDITED)


def _check_counts(connection: Connection) -> Check:
    """Check the counts of memories and the names of speakers, which are derived from the memories."""
    found = count_by_namespace_and_level(connection)
    kept = {(row.namespace_id, row.sensitivity): row.memories for row in connection.execute(select(held))}
    spoken = set(connection.execute(select(memory.c.namespace_id, memory.c.speaker).distinct()))
    known = set(connection.execute(select(speaker.c.namespace_id, speaker.c.name).distinct()))
    sized = not connection.execute(text(limit_schema.DIFFERS[connection.dialect.name])).scalar()
    right = found == {place: many for place, many in kept.items() if many} and known <= spoken and sized
    seen = "memories and speakers are counted" if right else "memories and speakers are counted wrongly"
    return Check("counts", right, seen, _REINDEX)


def _check_accounts(connection: Connection) -> Check:
    """Check that Recollect knows every role, and that the journal has a line for every right."""
    foreign = unknown_roles(connection)
    if foreign:
        return Check("accounts", False, f"{foreign} roles are none that Recollect knows", _ROLES)
    forged = never_granted(connection)
    named = ", ".join(forged[:_NAMED])
    seen = f"{len(forged)} rights were granted by nobody: {named}" if forged else "every right was granted by somebody"
    return Check("accounts", not forged, seen, _FORGED)


def _check_text_index(connection: Connection, database: Database) -> Check:
    damaged = database.dialect.text_damage(connection)
    seen = f"{damaged} does not agree with the memories" if damaged else "agrees with the memories"
    return Check("text index", not damaged, seen, f"{_REINDEX} If that fails: {_RESTORE[0].lower()}{_RESTORE[1:]}")


def _check_vocabulary(connection: Connection) -> Check:
    stored = {(row.namespace_id, row.sensitivity, row.text): row.uses for row in connection.execute(select(word))}
    right = stored == word_uses(connection)
    seen = "agrees with the memories" if right else "the words do not agree with the memories"
    return Check("vocabulary", right, seen, _REINDEX)


def _check_vector_index(connection: Connection, vectors: VectorSearch, index: VectorIndex, waiting: set[int]) -> Check:
    """Check that the index holds the vectors that SQL has, except those of the `waiting` memories."""
    expected = _expected_ids(connection)
    try:
        differing = (one for name, ids in expected.items() for one in index.ids(name) ^ ids)
        wrong = sum(int(one.partition(".")[0]) not in waiting for one in differing)
    except IndexBroken as error:
        return unreadable("vector index", error)
    if wrong and vectors.state == "rebuilding":
        return Check("vector index", True, _REBUILDING)
    return Check("vector index", wrong == 0, f"{wrong} vectors in doubt" if wrong else "agrees with SQL", _REINDEX)


def _expected_ids(connection: Connection) -> dict[str, set[str]]:
    """Return, by namespace, the ids that the index should hold; a namespace without vectors has an empty set."""
    found: dict[str, set[str]] = {name: set() for name in connection.execute(select(namespace.c.name)).scalars()}
    columns = (namespace.c.name, tables.vector.c.memory_id, tables.vector.c.ordinal)
    query = select(*columns).select_from(tables.vector).join(memory).join(namespace).where(shown())
    for name, memory_id, ordinal in connection.execute(query):
        found[name].add(chunk_id(memory_id, ordinal))
    return found


def unreadable(name: str, error: IndexBroken) -> Check:
    """Return the finding that the vector index cannot be read: it is broken, or its server is away."""
    away = isinstance(error, IndexAway)
    return Check(name, False, f"{UNREADABLE}{error}", _CHROMA if away else _REINDEX)


def _check_values(vectors: VectorSearch, *, deep: bool) -> Check:
    """Compare what SQL and the vector index hold of each chunk, or of those of a few memories."""
    try:
        wrong = vectors.differing(None if deep else _SAMPLE)
    except IndexBroken as error:
        return unreadable("vector values", error)
    if wrong and vectors.state == "rebuilding":
        return Check("vector values", True, _REBUILDING)
    seen = (
        f"the index holds other vectors of memory {_ids_text(wrong)}" if wrong else "the index holds the vectors of SQL"
    )
    return Check("vector values", not wrong, seen, _REINDEX)


def _check_some_embeddings(connection: Connection, embed: Embed) -> Check:
    """Embed a few memories again and compare: their vectors may be damaged, or another text's."""
    looked = select(memory.c.id, memory.c.content).where(shown(), memory.c.id.not_in(_waiting_ids(connection)))
    drawn = connection.execute(looked.order_by(func.random()).limit(_EMBEDDED)).all()
    stored = _stored_vectors(connection, [one.id for one in drawn])
    wrong = {one.id for one in drawn if not _is_same_embedding(stored[one.id], embed(one.content))}
    return _embeddings_check(wrong, "are those of the texts")


def _check_all_embeddings(connection: Connection, embed: Embed, proven: list[dict[str, Any]]) -> Check:
    """Compare the vectors of all memories with their texts: by digest, or by embedding where the digest fails.

    Fills `proven` with the digests of those that are right without one.
    """
    waiting, model = _waiting_ids(connection), store_metadata.model_of(store_metadata.read(connection))
    every = connection.execute(select(memory.c.id).where(shown()).order_by(memory.c.id)).scalars()
    ids = [one for one in every if one not in waiting]
    drawn, wrong = set(random.sample(ids, min(_DRAWN, len(ids)))), set[int]()
    for first in range(0, len(ids), _AT_ONCE):
        some = ids[first : first + _AT_ONCE]
        stored = _stored_vectors(connection, some)
        for one in connection.execute(_CONTENTS, {"ids": some}):
            digests = ChunkDigests(sha256(one.content.encode()).hexdigest(), model, len(stored[one.id]))
            made = [digests.of(row.ordinal, row.start, row.stop, row.embedding) for row in stored[one.id]]
            right = bool(made) and made == [row.digest for row in stored[one.id]]
            if right and one.id not in drawn:
                continue
            if not _is_same_embedding(stored[one.id], embed(one.content)):
                wrong.add(one.id)
            elif not right:
                rows = zip(stored[one.id], made, strict=True)
                proven += [{"of": one.id, "at": row.ordinal, "old": row.digest, "new": new} for row, new in rows]
    seen = f"are those of the texts by their digests; {_DRAWN} at most were drawn at random and embedded again"
    return _embeddings_check(wrong, seen)


def _stored_vectors(connection: Connection, ids: Sequence[int]) -> dict[int, list[Any]]:
    """Return, by memory id, its stored vectors in their order."""
    found: dict[int, list[Any]] = {one: [] for one in ids}
    for row in connection.execute(_VECTORS, {"ids": list(ids)}):
        found[row.memory_id].append(row)
    return found


def _embeddings_check(wrong: set[int], well: str) -> Check:
    seen = f"the vectors of memory {_ids_text(wrong)} are not those of its text" if wrong else well
    return Check("embeddings", not wrong, seen, "Run `recollect reindex --all`.")


def _is_same_embedding(stored: Sequence[Any], made: Sequence[Chunk]) -> bool:
    """Say whether stored vectors have the places of newly made ones, and nearly their direction."""
    if [(one.start, one.stop) for one in stored] != [(one.start, one.end) for one in made]:
        return False
    pairs = [(one.embedding, two.vector) for one, two in zip(stored, made, strict=True)]
    return all(len(one) == two.nbytes and float(as_vector(one) @ two) > _AS_EMBEDDED for one, two in pairs)


def _waiting_ids(connection: Connection) -> set[int]:
    return set(connection.execute(select(outbox.c.memory_id)).scalars())


def _ids_text(found: set[int]) -> str:
    return _name_first([str(one) for one in sorted(found)])


def _name_first(found: Sequence[str]) -> str:
    """Return the first few findings and how many more there are, as one text."""
    more = len(found) - _NAMED
    return "; ".join(found[:_NAMED]) + (f"; {more} more" if more > 0 else "")

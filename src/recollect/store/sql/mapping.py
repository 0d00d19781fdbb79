"""Between rows and nouns: a field of a noun is the column, the label or the count of the same name.

So a new field of a memory is a field of `Draft` and of `Memory` and, unless it holds several values, a column in
`tables.py`; nothing here names it.

What hangs on a memory's row: labels and entities, words, names of speakers, vectors, and its place in the outbox.

Everything happens inside the caller's write transaction.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from pydantic import BaseModel
from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Row,
    Select,
    Table,
    bindparam,
    case,
    delete,
    func,
    select,
    text,
    update,
)

from recollect.domain.enums import OF_SESSION, EntityType, Scope, Standing
from recollect.domain.requests import MemoryFields
from recollect.domain.results import Entity, Fact, JournalEntry, Memory
from recollect.domain.search import RankingRow
from recollect.store.entries import Chunk, ChunkDigests, Entry
from recollect.store.sql import store_metadata
from recollect.store.sql.expressions import Listed, any_of
from recollect.store.sql.statements import insert_all, select_in
from recollect.store.sql.tables import (
    QUARANTINED,
    WITHDRAWN,
    fact,
    journal,
    label,
    level_of,
    memory,
    memory_words,
    namespace,
    outbox,
    usage,
    vector,
)
from recollect.store.sql.visibility import ENTITIES, STANDING, of_levels

LISTS = tuple(name for name, field in MemoryFields.model_fields.items() if field.default == ())
"""The fields of a draft that hold several values: each is a kind of label."""
ENTITY = "entity_"
"""What the kinds of those labels begin with that are entities; the type follows."""

IDS = bindparam("ids", type_=Listed())
"""In a statement that is built once: the ids of memories."""

_SCOPES = {"user": Scope.PERSONAL, "project": Scope.PROJECT, "team": Scope.TEAM}


def _fields(noun: type[Any]) -> tuple[str, ...]:
    return tuple(noun.model_fields) if issubclass(noun, BaseModel) else tuple(one.name for one in fields(noun))


def _columns(noun: type[Any], table: Table) -> tuple[Column[Any], ...]:
    """Return the columns of `table` that hold fields of a noun."""
    return tuple(table.c[name] for name in _fields(noun) if name in table.c)


_USAGE = [
    func.coalesce(usage.c.accessed_count, 0).label("accessed_count"),
    func.coalesce(usage.c.recalled_count, 0).label("recalled_count"),
]
_NAMESPACE = namespace.c.name.label("namespace")
_MEMORY = [*_columns(Memory, memory), *_USAGE, usage.c.last_accessed_at, _NAMESPACE]
MEMORIES = (
    select(*_MEMORY)
    .join(namespace, namespace.c.id == memory.c.namespace_id)
    .outerjoin(usage, usage.c.memory_id == memory.c.id)
)
"""All memories with their usage, for whoever adds conditions."""
_WORDS = func.coalesce(memory_words.c.words, "").label("words")
_OF_RANKING = {one.key: one for one in (*memory.c, *_USAGE, _WORDS)}
RANKING = (
    select(*(_OF_RANKING[name] for name in _fields(RankingRow)))
    .outerjoin_from(memory, memory_words, memory_words.c.memory_id == memory.c.id)
    .outerjoin(usage, usage.c.memory_id == memory.c.id)
)
"""The fields of a `RankingRow` of all memories, in their order."""
_stating = memory.alias("stating")
_OWN = fact.c.said_by.is_not(None)
_ORIGIN = [case((_OWN, fact.c[name]), else_=_stating.c[name]).label(name) for name in ("said_by", "came_from")]
FACTS = (
    select(*(one for one in _columns(Fact, fact) if one.name not in ("said_by", "came_from")), *_ORIGIN, _NAMESPACE)
    .join(namespace, namespace.c.id == fact.c.namespace_id)
    .outerjoin(_stating, _stating.c.id == fact.c.memory_id)
)
"""All facts, for whoever adds conditions, order and limits; one from before facts had an origin has its memory's."""
_LABELS = select(label).where(any_of(label.c.memory_id, IDS)).order_by(label.c.position)
LINE = tuple(_fields(JournalEntry))
"""The columns of a line of the journal that are shown."""
_LINE = _columns(JournalEntry, journal)
_LINKS = ("superseded_by", "merged_into")
_OF_DRAFT = tuple(name for name in MemoryFields.model_fields if name in memory.c)
_OF_ENTRY = tuple(name for name in _fields(Entry) if name in memory.c)


def load(connection: Connection, condition: ColumnElement[bool], levels: Iterable[str]) -> list[Memory]:
    """Read every memory that meets `condition`, with its labels and usage."""
    return memories(connection, connection.execute(MEMORIES.where(condition)), levels)


def memories(connection: Connection, found: Iterable[Row[Any]], levels: Iterable[str]) -> list[Memory]:
    """Make memories of rows of `MEMORIES`, and read their labels.

    Where one gave way to a memory of none of these levels, it says 0 in the place of that one's id.
    """
    rows = [row._mapping for row in found]
    lists = dict(_lists(connection, [row["id"] for row in rows]))
    known = _let_in(connection, {row[name] for row in rows for name in _LINKS} - {None}, levels)
    links = ({name: known.get(row[name], 0) for name in _LINKS if row[name] is not None} for row in rows)
    more = ({"scope": scope_of(row["namespace"])} | lists[row["id"]] for row in rows)
    return [Memory(**{**row, **one, **two}) for row, one, two in zip(rows, more, links, strict=True)]


def facts(connection: Connection, query: Select[Any]) -> list[Fact]:
    """Read the facts that a query made of `FACTS` selects."""
    return [Fact(**row._mapping, scope=scope_of(row.namespace)) for row in connection.execute(query)]


def lines(connection: Connection, condition: ColumnElement[bool], limit: int | None = None) -> list[JournalEntry]:
    """Read the journal's lines that meet `condition`, in their order."""
    query = select(*_LINE).where(condition).order_by(journal.c.id).limit(limit)
    return [JournalEntry(**row._mapping) for row in connection.execute(query)]


def columns_of(entry: Entry, given: Collection[str] | None = None) -> dict[str, Any]:
    """Return the columns of a memory that an entry fills; with `given`, of the draft's fields only those."""
    draft = entry.cleared.value
    values = {name: getattr(draft, name) for name in _OF_DRAFT if given is None or name in given}
    values |= {name: one for name in _OF_ENTRY if (one := getattr(entry, name)) is not None or memory.c[name].nullable}
    values |= {"content": draft.content, "updated_at": entry.at}
    return {name: "" if one is None and not memory.c[name].nullable else one for name, one in values.items()}


def _let_in(connection: Connection, ids: Collection[int], levels: Iterable[str]) -> dict[int, int]:
    """Return those of `ids` that are memories of these levels."""
    if not ids:
        return {}
    let_in = of_levels(memory.c.sensitivity, levels, away=True)
    found = connection.execute(select(memory.c.id).where(any_of(memory.c.id, IDS), let_in), {"ids": ids})
    return {one: one for one in found.scalars()}


def scope_of(name: str) -> Scope:
    """Return the scope to which a namespace of this name belongs."""
    return _SCOPES[name.partition(":")[0]]


def _lists(connection: Connection, ids: Sequence[int]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield for each memory its fields that hold several values."""
    labels: dict[tuple[int, str], tuple[str, ...]] = defaultdict(tuple)
    for row in connection.execute(_LABELS, {"ids": ids}) if ids else ():
        labels[row.memory_id, row.kind] += (row.value,)
    for one in ids:
        entities = tuple(Entity(name, kind) for kind in EntityType for name in labels[one, f"{ENTITY}{kind}"])
        standing = next((Standing(value) for value in labels[one, STANDING]), None)
        yield one, {name: labels[one, name] for name in LISTS} | {"entities": entities, "standing": standing}


_COUNT = text(
    "INSERT INTO held (namespace_id, sensitivity, memories) VALUES (:namespace, :level, :change) "
    "ON CONFLICT (namespace_id, sensitivity) DO UPDATE SET memories = held.memories + :change"
)
_UNASKED = "summary:"
_OF_SESSION = select(memory.c.id).where(memory.c.type.in_(sorted(OF_SESSION)))
_COUNT_WORD = text(
    "INSERT INTO word (namespace_id, sensitivity, text, uses) VALUES (:namespace, :level, :word, :change) "
    "ON CONFLICT (namespace_id, sensitivity, text) DO UPDATE SET uses = word.uses + :change"
)
_PRUNE_WORD = text(
    "DELETE FROM word WHERE namespace_id = :namespace AND sensitivity = :level AND text = :word AND uses <= 0"
)
_ADD_SPEAKER = text(
    "INSERT INTO speaker (namespace_id, name, word) VALUES (:namespace, :name, :word) ON CONFLICT DO NOTHING"
)
_PRUNE_SPEAKER = text(
    "DELETE FROM speaker WHERE namespace_id = :namespace AND name = :name "
    "AND NOT EXISTS (SELECT 1 FROM memory WHERE namespace_id = :namespace AND speaker = :name)"
)
_WRITE_WORDS = text(
    "INSERT INTO memory_words (memory_id, sensitivity, words) VALUES (:id, :level, :words) "
    "ON CONFLICT (memory_id) DO UPDATE SET words = :words, sensitivity = :level"
)
_PUT_WORDS = text(
    "INSERT INTO memory_words (memory_id, sensitivity, words) "
    "SELECT id, replace(replace(sensitivity, :quarantined, ''), :withdrawn, ''), :words FROM memory WHERE id = :id "
    "ON CONFLICT (memory_id) DO UPDATE SET words = :words"
)


def add_speakers(connection: Connection, namespace_id: int, entries: Iterable[Entry]) -> None:
    """File whoever speaks under the words of their name."""
    named = {(one.cleared.value.speaker, word) for one in entries for word in one.speaker_words}
    values = [{"namespace": namespace_id, "name": name, "word": word} for name, word in sorted(named, key=str)]
    if values:
        connection.execute(_ADD_SPEAKER, values)


def prune_speaker(connection: Connection, namespace_id: int, speaker: str | None) -> None:
    """Forget the name with the last memory of whoever bore it."""
    if speaker is not None:
        connection.execute(_PRUNE_SPEAKER, {"namespace": namespace_id, "name": speaker})


def labels_of(memory_id: int, entry: Entry, fields: Iterable[str] = LISTS) -> Iterator[dict[str, Any]]:
    """Yield the rows of these lists of a draft, and of the entities it names."""
    for kind in fields:
        for position, value in enumerate(getattr(entry.cleared.value, kind)):
            yield {"memory_id": memory_id, "kind": kind, "position": position, "value": str(value)}
    yield from _entities(memory_id, entry.entities)


def standing_of(memory_id: int, standing: Standing) -> dict[str, Any]:
    """Return the row that says what somebody decided about a memory."""
    return {"memory_id": memory_id, "kind": STANDING, "position": 0, "value": str(standing)}


def replace_labels(connection: Connection, memory_id: int, entry: Entry) -> None:
    """Write the lists that were given and the entities in the place of those that stood there."""
    fields = [name for name in LISTS if name in entry.given]
    connection.execute(delete(label).where(label.c.memory_id == memory_id, label.c.kind.in_([*fields, *ENTITIES])))
    insert_all(connection, label, labels_of(memory_id, entry, fields))


def replace_entities(connection: Connection, memory_id: int, entities: Sequence[Entity]) -> None:
    """Put these entities in the place of what the memory was said to name; nothing is written where it is the same."""
    wanted = list(_entities(memory_id, entities))
    mine = (label.c.memory_id == memory_id) & label.c.kind.in_(ENTITIES)
    held = [dict(row._mapping) for row in connection.execute(select(label).where(mine).order_by(label.c.position))]
    if wanted != held:
        connection.execute(delete(label).where(mine))
        insert_all(connection, label, wanted)


def count_memories(connection: Connection, namespace_id: int, level: str, change: int) -> None:
    """Note that a namespace holds so many more memories of a level."""
    connection.execute(_COUNT, {"namespace": namespace_id, "level": str(level), "change": change})


def held_memories(connection: Connection) -> dict[tuple[int, str], int]:
    """Count the memories of each namespace and level of sensitivity; quarantine does not change a level."""
    level = level_of(memory)
    query = select(memory.c.namespace_id, level, func.count()).group_by(memory.c.namespace_id, level)
    return {(number, name): many for number, name, many in connection.execute(query)}


def write_words(connection: Connection, namespace_id: int, words: Mapping[int, tuple[str, Collection[str]]]) -> None:
    """Let each memory stand in its namespace's vocabulary at its level with these words and no others.

    The words of what sums up a session stand at a level that nobody asks for: they are those of other memories.
    """
    summing = {row.id for row in select_in(connection, _OF_SESSION, memory.c.id, words)}
    wanted = {
        one: (f"{_UNASKED * (one in summing)}{level}", frozenset(" ".join(some).split()))
        for one, (level, some) in words.items()
    }
    changes = Counter((level, word) for level, some in wanted.values() for word in some)
    for row in select_in(connection, select(memory_words), memory_words.c.memory_id, wanted):
        changes.subtract((row.sensitivity, word) for word in row.words.split())
    changed: list[dict[str, Any]] = [
        {"namespace": namespace_id, "level": level, "word": word, "change": by}
        for (level, word), by in sorted(changes.items())
        if by
    ]
    if changed:
        connection.execute(_COUNT_WORD, changed)
    if fewer := [one for one in changed if one["change"] < 0]:
        connection.execute(_PRUNE_WORD, fewer)
    if wanted:
        rows = [{"id": one, "level": level, "words": " ".join(sorted(some))} for one, (level, some) in wanted.items()]
        connection.execute(_WRITE_WORDS, rows)


def put_words(connection: Connection, memory_id: int, words: str) -> None:
    """Note the words of a memory, separated by spaces, at its level, without counting them."""
    away = {"quarantined": QUARANTINED, "withdrawn": WITHDRAWN}
    connection.execute(_PUT_WORDS, {"id": memory_id, "words": words} | away)


def mark_embedded(connection: Connection, memory_id: int) -> None:
    """Let nothing that is queued of the memory wait for the model any longer."""
    connection.execute(update(outbox).where(outbox.c.memory_id == memory_id).values(embedded=True))


def replace_chunks(connection: Connection, memory_id: int, chunks: Sequence[Chunk], content_hash: str) -> None:
    """Put `chunks` of a content in the place of whatever vectors the memory had."""
    connection.execute(delete(vector).where(vector.c.memory_id == memory_id))
    model = store_metadata.model_of(store_metadata.read(connection))
    insert_all(connection, vector, chunk_rows(memory_id, chunks, content_hash, model))


def chunk_rows(
    memory_id: int, chunks: Sequence[Chunk], content_hash: str, model: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """Yield the rows that hold the chunks of a memory, which a model with these stamps has read."""
    digests = ChunkDigests(content_hash, model, len(chunks))
    for ordinal, chunk in enumerate(chunks):
        place, embedding = {"ordinal": ordinal, "start": chunk.start, "stop": chunk.end}, chunk.vector.tobytes()
        made = {"embedding": embedding, "digest": digests.of(**place, embedding=embedding)}
        yield {"memory_id": memory_id} | place | made | {"tokens": chunk.tokens or None}


def _entities(memory_id: int, entities: Iterable[Entity]) -> Iterator[dict[str, Any]]:
    for position, one in enumerate(entities):
        yield {"memory_id": memory_id, "kind": f"{ENTITY}{one.type}", "position": position, "value": one.name}

"""Stores of other memory servers, in JSON files and in SQLite databases.

Memories of other programs in JSON: mcp-memory-service, mem0, the memory server of MCP, layered lines.

Memories of other programs that keep them in SQLite: claude-mem, MemPalace, and any with a table `memories`. A file is
only read.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import Any, BinaryIO, Final

from recollect.domain.enums import Concept, FactType, ObservationType
from recollect.domain.fields import MAX_CONTENT, MAX_NAME, singular
from recollect.domain.transfer import ImportItem, ItemKind, Problem
from recollect.gate import masked
from recollect.text import layers
from recollect.transfer.reading import (
    LONGEST_LINE,
    Unreadable,
    document,
    items_of,
    labels,
    lines,
    parsed,
    set_only,
    time_of,
)

_LISTS: Final = ("results", "memories", "records")
_TEXTS: Final = ("category", "project", "session_id", "speaker", "title")
_KEY: Final = 480
_FieldsOf = Callable[[dict[str, Any]], dict[str, Any]]


def read_documents(source: BinaryIO, name: str, *, fields_of: _FieldsOf) -> Iterator[ImportItem | Problem]:
    """Yield a memory, made by `fields_of`, for each entry of the list in the document; raise `Unreadable` for none."""
    found = parsed(document(source))
    while isinstance(found, dict):
        found = next((found[one] for one in _LISTS if one in found), found.get("data"))
    if not isinstance(found, list):
        raise Unreadable("There is no list of memories in it.")
    entries = ((f"{name}, memory {number}", entry) for number, entry in enumerate(found, 1))
    return items_of(
        entries,
        lambda entry, where: [ImportItem(kind=ItemKind.MEMORY, where=where, fields=set_only(fields_of(entry)))],
    )


def of_service(entry: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of an entry of mcp-memory-service."""
    kind, tags = entry.get("memory_type"), labels(entry.get("tags"))
    word = kind.strip().lower() if isinstance(kind, str) else ""
    known = {"fact_type": word} if word in set(FactType) else {"type": word} if word in set(ObservationType) else {}
    if isinstance(kind, str) and not known:
        tags = labels([*tags, kind])
    if isinstance(source := _metadata(entry).get("source", entry.get("source")), str):
        tags = labels([*tags, f"source:{source}"])
    return _of_metadata(entry) | {"content": entry.get("content"), "tags": tags} | known | _times(entry)


def of_mem0(entry: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of an entry of mem0."""
    held = entry.get("payload") or entry.get("source_payload")
    whole = (held if isinstance(held, dict) else {}) | set_only(entry)
    content = next((whole[one] for one in ("memory", "content", "text", "data") if whole.get(one)), None)
    owners = [f"{one}:{whole[f'{one}_id']}" for one in ("user", "agent", "run", "app") if whole.get(f"{one}_id")]
    number = whole.get("id")
    named = isinstance(number, str | int) and not isinstance(number, bool)
    fields = {"content": content, "tags": labels([*labels(whole.get("categories")), *owners])}
    fields |= {"key": f"mem0:{number}"[:_KEY] if named else None, "expires_at": time_of(whole.get("expiration_date"))}
    return _of_metadata(whole) | fields | _times(whole)


def _of_metadata(entry: dict[str, Any]) -> dict[str, Any]:
    """Take out of an entry's metadata what has a field here; the rest has no home and is left behind."""
    inner = _metadata(entry)
    found: dict[str, Any] = {one: inner[one] for one in _TEXTS if isinstance(inner.get(one), str)}
    weight = inner.get("importance")
    if isinstance(weight, int | float) and not isinstance(weight, bool) and 0 <= weight <= 1:
        found["importance"] = weight
    return found


def _metadata(entry: dict[str, Any]) -> dict[str, Any]:
    metadata = entry.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _times(entry: dict[str, Any]) -> dict[str, Any]:
    created = time_of(entry.get("created_at")) or time_of(entry.get("created_at_iso"))
    updated = time_of(entry.get("updated_at")) or time_of(entry.get("updated_at_iso"))
    return {"created_at": created, "updated_at": updated or created}


_HEAD: Final = 65_536


def read_graph(source: BinaryIO, name: str) -> Iterator[ImportItem | Problem]:
    """Yield what the file holds: line by line, or as one object with both lists; raise `Unreadable` for any other."""
    whole = b'"entities"' in source.read(_HEAD)
    source.seek(0)
    names = Counter[str]()

    def item(line: dict[str, Any], where: str) -> Iterator[ImportItem]:
        if line.get("type") == "relation":
            parts = {"subject": line.get("from"), "predicate": line.get("relationType"), "object": line.get("to")}
            times = set_only({"created_at": time_of(line.get("createdAt"))})
            yield ImportItem(kind=ItemKind.FACT, where=where, fields=parts | times)
        elif line.get("type") == "entity":
            fields = _entity(line)
            names[fields["key"]] += 1
            if names[fields["key"]] > 1:  # so that none of two entities of one name overwrites the other
                fields["key"] += f"~{names[fields['key']]}"
            yield ImportItem(kind=ItemKind.MEMORY, where=where, fields=fields)
        else:
            raise Unreadable("Its `type` is neither `entity` nor `relation`.")

    return items_of(_graph(parsed(document(source)), name) if whole else lines(source, name), item)


def _graph(graph: Any, name: str) -> Iterator[tuple[str, Any]]:
    for kind, plural in (("entity", "entities"), ("relation", "relations")):
        found = graph.get(plural, []) if isinstance(graph, dict) else None
        if not isinstance(found, list):
            raise Unreadable(f"`{plural}` is no list.")
        for number, one in enumerate(found, 1):
            yield f"{name}, {kind} {number}", one | {"type": kind} if isinstance(one, dict) else one


def _entity(line: dict[str, Any]) -> dict[str, Any]:
    entity, kind = line.get("name"), line.get("entityType")
    if not isinstance(entity, str) or not entity.strip():
        raise Unreadable("The entity has no name.")
    about = f" ({kind})" if isinstance(kind, str) and kind.strip() else ""
    held = line.get("observations")
    observations = [text for one in (held if isinstance(held, list) else [held]) if (text := _observed(one))]
    fields = {
        "content": "\n".join([f"{entity.strip()}{about}", *(f"- {one}" for one in observations)]),
        "key": f"entity:{' '.join(entity.split())}"[:_KEY],
        "fact_type": "entity",
        "title": entity.strip()[:500],
        "tags": labels([kind]),
        "created_at": time_of(line.get("createdAt")),
        "updated_at": time_of(line.get("updatedAt")),
    }
    return set_only(fields)


def _observed(one: object) -> str:
    """Read an observation: a text, or in the server's descendants an object that holds it."""
    if isinstance(one, dict):
        one = one.get("content") or one.get("text")
    return one.strip() if isinstance(one, str) else ""


_CATEGORIES: Final = ("profile", "preference", "entity", "event", "case", "pattern")
_USES: Final = ("activecount", "usecount", "usagecount", "usage", "uses", "count")
_MOST_USES: Final = 2**31 - 1


def read_layered(source: BinaryIO, name: str) -> Iterator[ImportItem | Problem]:
    """Yield a memory for each line; its vector is left behind, since another model made it."""
    return items_of(lines(source, name), _layered)


def plain_names(line: dict[str, Any]) -> dict[str, Any]:
    """Name the fields without case and underscores, since its writer may name them `ActiveCount` or `active_count`."""
    return {name.replace("_", "").lower(): value for name, value in line.items()}


def _layered(line: dict[str, Any], where: str) -> list[ImportItem]:
    found = plain_names(line)
    category = found.get("category")
    if isinstance(category, str) and singular(category) not in _CATEGORIES:
        raise Unreadable("Its category is none of the six.")
    abstract, overview = found.get("abstract"), found.get("overview")
    uses = next((found[one] for one in _USES if isinstance(found.get(one), int)), 0)
    fields = {
        "content": found.get("content") or overview or abstract,
        "key": found.get("id"),
        "fact_type": category,
        "abstract": abstract,
        "overview": overview,
        "created_at": time_of(found.get("createdat")),
        "updated_at": time_of(found.get("updatedat")),
        "accessed_count": min(max(int(uses), 0), _MOST_USES) or None,
    }
    return [ImportItem(kind=ItemKind.MEMORY, where=where, fields=set_only(fields))]


MAGIC: Final = b"SQLite format 3\x00"
"""How each such file begins."""
_MOST_NAMES: Final = 1_000
_TABLES: Final = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' LIMIT ?"
_COLLECTIONS: Final = "SELECT name FROM collections LIMIT ?"


def names_in(path: Path) -> frozenset[str]:
    """Return the names of a file's tables, and of the collections if Chroma wrote it.

    Raises `Unreadable` where the file is damaged.
    """
    names = [row["name"] for row in rows(path, _TABLES, [_MOST_NAMES])]
    if "collections" in names:
        names += [row["name"] for row in rows(path, _COLLECTIONS, [_MOST_NAMES])]
    return frozenset(name for name in names if isinstance(name, str))


def rows(path: Path, query: str, values: Sequence[Any] = ()) -> Iterator[dict[str, Any]]:
    """Yield the rows of a query by the names of their columns; raise `Unreadable` where the file is damaged."""
    try:
        with closing(_opened(path)) as connection:
            cursor = connection.execute(query, values)
            columns = [column[0] for column in cursor.description]
            for row in cursor:
                yield dict(zip(columns, row, strict=True))
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorname", "") or type(error).__name__
        raise Unreadable(f"SQLite cannot read it ({code}).") from None


def _opened(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    connection.text_factory = lambda data: data.decode(errors="replace")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_LINE)
    connection.execute("PRAGMA query_only = ON")
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


CLAUDE_MEM: Final = frozenset({"observations", "session_summaries"})
"""The tables that are read_claude_mem; a file that has both is such a store."""
_PARTS: Final = ("request", "investigated", "learned", "completed", "next_steps", "notes")
_LONGEST_MEM_KEY: Final = 200


def read_claude_mem(source: BinaryIO, name: str) -> Iterator[ImportItem | Problem]:
    """Yield a memory for each observation and each summary; raise `Unreadable` where SQLite cannot read the file."""
    path = Path(source.name)
    there = names_in(path)
    for table, query, fields_of in (
        ("observations", "SELECT * FROM observations ORDER BY id", _observation),
        ("session_summaries", "SELECT * FROM session_summaries ORDER BY id", _summary),
    ):
        found = rows(path, query) if table in there else iter(())
        entries = ((f"{name}, {table} {row.get('id')}", row) for row in found)
        yield from items_of(
            entries,
            lambda row, where, fields_of=fields_of: [  # type: ignore[misc]
                ImportItem(kind=ItemKind.MEMORY, where=where, fields=set_only(_common(row) | fields_of(row)))
            ],
        )


def _common(row: dict[str, Any]) -> dict[str, Any]:
    at = time_of(row.get("created_at_epoch")) or time_of(row.get("created_at"))
    return {
        "session_id": _text(row, "memory_session_id") or _text(row, "sdk_session_id"),
        "project": _text(row, "project"),
        "tags": ["claude-mem"],
        "files_read": _listed(row.get("files_read")),
        "discovery_tokens": row.get("discovery_tokens") or None,
        "observed_at": at,
        "created_at": at,
    }


def _observation(row: dict[str, Any]) -> dict[str, Any]:
    body = [_text(row, "narrative") or _text(row, "text")]
    body += [f"- {one}" for one in _listed(row.get("facts"))]
    title, subtitle = _text(row, "title"), _text(row, "subtitle")
    named, concepts = _text(row, "type").lower(), _listed(row.get("concepts"))
    known = [one for one in concepts if one in set(Concept)]
    other = [one for one in (named, *concepts) if one not in set(ObservationType) | set(Concept)]
    return {
        "content": ("\n".join(filter(None, body)) or "\n".join(filter(None, (title, subtitle))))[:MAX_CONTENT],
        "key": _key(row, "observation"),
        "type": named if named in set(ObservationType) else None,
        "title": layers.shortened(" ".join(masked(title).split()), MAX_NAME),
        "subtitle": layers.shortened(" ".join(masked(subtitle).split()), MAX_NAME),
        "concepts": known,
        "tags": labels(["claude-mem", *other]),
        "files_modified": _listed(row.get("files_modified")),
    }


def _summary(row: dict[str, Any]) -> dict[str, Any]:
    parts = ((one, _text(row, one)) for one in _PARTS)
    said = [f"{one.replace('_', ' ').capitalize()}: {text}" for one, text in parts if text]
    return {
        "content": "\n".join(said)[:MAX_CONTENT],
        "key": _key(row, "summary"),
        "type": str(ObservationType.SESSION_SUMMARY),
        "files_modified": _listed(row.get("files_edited")),
    }


def _key(row: dict[str, Any], kind: str) -> str:
    session = _text(row, "memory_session_id") or _text(row, "sdk_session_id")
    return f"claude-mem:{session[:_LONGEST_MEM_KEY]}/{kind}-{row.get('id')}"


def _text(row: dict[str, Any], column: str) -> str:
    value = row.get(column)
    return value.strip() if isinstance(value, str) else ""


def _listed(value: object) -> list[str]:
    """Read a list of texts that stands as JSON in a column."""
    try:
        found = json.loads(value) if isinstance(value, str) else []
    except (ValueError, RecursionError):
        return []
    return [one.strip() for one in found if isinstance(one, str) and one.strip()] if isinstance(found, list) else []


_DRAWERS: Final = "mempalace_drawers"
_TRIPLES: Final = "triples"
MEMPALACE: Final = frozenset({_DRAWERS, _TRIPLES})
"""A collection and a table, either of which tells such a file."""
_DOCUMENT: Final = "chroma:document"
_LONGEST_DRAWER: Final = 480
_HELD: Final = """
SELECT held.embedding_id AS drawer, part.key AS name,
       coalesce(part.string_value, part.int_value, part.float_value, part.bool_value) AS value
FROM collections AS named
JOIN segments AS segment ON segment.collection = named.id
JOIN embeddings AS held ON held.segment_id = segment.id
JOIN embedding_metadata AS part ON part.id = held.id
WHERE named.name = ?
ORDER BY held.id
"""
_KNOWN: Final = """
SELECT triple.*, coalesce(one.name, triple.subject) AS subject_name, coalesce(other.name, triple.object) AS object_name
FROM triples AS triple
LEFT JOIN entities AS one ON one.id = triple.subject
LEFT JOIN entities AS other ON other.id = triple.object
ORDER BY triple.rowid
"""


def read_mempalace(source: BinaryIO, name: str) -> Iterator[ImportItem | Problem]:
    """Yield a memory for each drawer, a fact for each triple; raise `Unreadable` where SQLite cannot read the file."""
    path = Path(source.name)
    there = names_in(path)
    if _DRAWERS in there:
        for drawer, parts in groupby(rows(path, _HELD, [_DRAWERS]), key=lambda row: str(row["drawer"])):
            yield from _memory(drawer, {str(one["name"]): one["value"] for one in parts}, f"{name}, drawer {drawer}")
    if _TRIPLES in there:
        for number, row in enumerate(rows(path, _KNOWN), 1):
            fields = {"subject": row["subject_name"], "predicate": row["predicate"], "object": row["object_name"]}
            fields |= {one: _day(row.get(one)) for one in ("valid_from", "valid_to")}
            fields |= {"confidence": _share(row.get("confidence")), "created_at": _day(row.get("extracted_at"))}
            yield ImportItem(kind=ItemKind.FACT, where=f"{name}, triple {number}", fields=set_only(fields))


def _memory(drawer: str, parts: dict[str, Any], where: str) -> Iterator[ImportItem | Problem]:
    content, at = parts.get(_DOCUMENT), time_of(parts.get("filed_at"))
    if not isinstance(content, str) or not content.strip():
        yield Problem(where, "The drawer holds no text.")
        return
    named = (f"{one}:{parts[one]}" for one in ("wing", "room", "added_by") if parts.get(one))
    fields = {
        "content": content[:MAX_CONTENT],
        "key": f"mempalace:{drawer}"[:_LONGEST_DRAWER],
        "tags": labels(["mempalace", *named]),
        "files_read": [parts["source_file"]] if isinstance(parts.get("source_file"), str) else [],
        "created_at": at,
    }
    yield ImportItem(kind=ItemKind.MEMORY, where=where, fields=set_only(fields))


def _day(value: object) -> str | None:
    """Read a time or a day; of a month its first."""
    return time_of(value) or (time_of(f"{value}-01") if isinstance(value, str) else None)


def _share(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and 0 <= value <= 1 else None


MEMORIES: Final = "memories"
"""A table of memories, a row each, as the stores of several memory tools name it."""
_MOST_TITLE: Final = 500


def read_memories(source: BinaryIO, name: str) -> Iterator[ImportItem | Problem]:
    """Yield a memory for each row of the table `memories`, and a fact for each of `facts`.

    Of the columns only `content` must be there. Deleted rows are left out. Raises `Unreadable` where SQLite cannot read
    the file, or the table holds no `content`.
    """
    path = Path(source.name)
    there = names_in(path)
    columns = {str(row["name"]) for row in rows(path, "SELECT name FROM pragma_table_info('memories')")}
    if "content" not in columns:
        raise Unreadable("Its table `memories` has no column `content`.")
    kept = (row for row in rows(path, "SELECT * FROM memories") if not (row.get("is_deleted") or row.get("deleted_at")))
    entries = ((f"{name}, memory {row.get('id', number)}", row) for number, row in enumerate(kept, 1))
    yield from items_of(
        entries,
        lambda row, where: [ImportItem(kind=ItemKind.MEMORY, where=where, fields=set_only(_of_row(row)))],
    )
    if "facts" in there:
        for number, row in enumerate(rows(path, "SELECT * FROM facts"), 1):
            fields = {one: row.get(one) for one in ("subject", "predicate", "object")}
            fields |= {"confidence": _share(row.get("confidence")), "created_at": time_of(row.get("created_at"))}
            yield ImportItem(kind=ItemKind.FACT, where=f"{name}, fact {number}", fields=set_only(fields))


def _of_row(row: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a row of `memories`; importance may be from 0 to 1 or from 0 to 10."""
    weight, kind = row.get("importance"), _text(row, "type") or _text(row, "memory_type")
    known = {"type": kind} if kind in set(ObservationType) else {"fact_type": kind} if kind in set(FactType) else {}
    concepts = [one for one in _listed(row.get("concepts")) if one in set(Concept)]
    whole = weight / 10 if isinstance(weight, int | float) and weight > 1 else weight
    number = row.get("id")
    fields = {
        "content": row.get("content"),
        "key": f"{MEMORIES}:{number}"[:_LONGEST_DRAWER] if isinstance(number, int | str) else None,
        "importance": _share(whole),
        "trust": _share(row.get("trust")),
        "sensitivity": _text(row, "sensitivity"),
        "tags": labels(_listed(row.get("tags")) or row.get("tags")),
        "title": layers.shortened(" ".join(masked(_text(row, "title")).split()), _MOST_TITLE),
        "subtitle": layers.shortened(" ".join(masked(_text(row, "subtitle")).split()), _MOST_TITLE),
        "abstract": _text(row, "summary"),
        "concepts": concepts,
        "files_read": _listed(row.get("files_read")),
        "files_modified": _listed(row.get("files_modified")),
        "discovery_tokens": row.get("discovery_tokens") or None,
        "accessed_count": row.get("accessed_count") or row.get("access_count") or None,
        "expires_at": time_of(row.get("expires_at")),
        "created_at": time_of(row.get("created_at")),
        "updated_at": time_of(row.get("updated_at")),
    }
    return fields | known | {one: _text(row, one) for one in ("category", "session_id", "project")}

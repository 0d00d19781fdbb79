"""The store of MemPalace: its drawers in Chroma's `chroma.sqlite3`, its facts in `knowledge_graph.sqlite3`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, BinaryIO, Final

from recollect.domain.fields import MAX_CONTENT
from recollect.domain.transfer import ImportItem, ItemKind, Problem
from recollect.transfer.reading import LONGEST_KEY, labels, set_only, time_of
from recollect.transfer.sqlite_file import names_in, rows, share

_DRAWERS: Final = "mempalace_drawers"
_TRIPLES: Final = "triples"
MEMPALACE: Final = frozenset({_DRAWERS, _TRIPLES})
"""A collection and a table, either of which tells such a file."""
_DOCUMENT: Final = "chroma:document"
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
            fields |= {"confidence": share(row.get("confidence")), "created_at": _day(row.get("extracted_at"))}
            yield ImportItem(kind=ItemKind.FACT, where=f"{name}, triple {number}", fields=set_only(fields))


def _memory(drawer: str, parts: dict[str, Any], where: str) -> Iterator[ImportItem | Problem]:
    content, at = parts.get(_DOCUMENT), time_of(parts.get("filed_at"))
    if not isinstance(content, str) or not content.strip():
        yield Problem(where, "The drawer holds no text.")
        return
    named = (f"{one}:{parts[one]}" for one in ("wing", "room", "added_by") if parts.get(one))
    fields = {
        "content": content[:MAX_CONTENT],
        "key": f"mempalace:{drawer}"[:LONGEST_KEY],
        "tags": labels(["mempalace", *named]),
        "files_read": [parts["source_file"]] if isinstance(parts.get("source_file"), str) else [],
        "created_at": at,
    }
    yield ImportItem(kind=ItemKind.MEMORY, where=where, fields=set_only(fields))


def _day(value: object) -> str | None:
    """Read a time or a day; of a month its first."""
    return time_of(value) or (time_of(f"{value}-01") if isinstance(value, str) else None)

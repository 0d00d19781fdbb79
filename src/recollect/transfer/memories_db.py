"""Any SQLite file with a table `memories`, a row each, as the stores of several memory tools have it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

from recollect.domain.enums import Concept, FactType, ObservationType
from recollect.domain.transfer import ImportItem, ItemKind, Problem
from recollect.gate import masked
from recollect.text import layers
from recollect.transfer.reading import LONGEST_KEY, Unreadable, items_of, labels, time_of, without_empty
from recollect.transfer.sqlite_file import names_in, rows, share_in, text_in, texts_in

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
        lambda row, where: [ImportItem(kind=ItemKind.MEMORY, where=where, fields=without_empty(_fields_of_row(row)))],
    )
    if "facts" in there:
        for number, row in enumerate(rows(path, "SELECT * FROM facts"), 1):
            fields = {name: row.get(name) for name in ("subject", "predicate", "object")}
            fields |= {"confidence": share_in(row.get("confidence")), "created_at": time_of(row.get("created_at"))}
            yield ImportItem(kind=ItemKind.FACT, where=f"{name}, fact {number}", fields=without_empty(fields))


def _fields_of_row(row: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a row of `memories`; importance may be from 0 to 1 or from 0 to 10."""
    weight, kind = row.get("importance"), text_in(row, "type") or text_in(row, "memory_type")
    known = {"type": kind} if kind in set(ObservationType) else {"fact_type": kind} if kind in set(FactType) else {}
    concepts = [concept for concept in texts_in(row.get("concepts")) if concept in set(Concept)]
    whole = weight / 10 if isinstance(weight, int | float) and weight > 1 else weight
    number = row.get("id")
    fields = {
        "content": row.get("content"),
        "key": f"{MEMORIES}:{number}"[:LONGEST_KEY] if isinstance(number, int | str) else None,
        "importance": share_in(whole),
        "trust": share_in(row.get("trust")),
        "sensitivity": text_in(row, "sensitivity"),
        "tags": labels(texts_in(row.get("tags")) or row.get("tags")),
        "title": layers.shortened(" ".join(masked(text_in(row, "title")).split()), _MOST_TITLE),
        "subtitle": layers.shortened(" ".join(masked(text_in(row, "subtitle")).split()), _MOST_TITLE),
        "abstract": text_in(row, "summary"),
        "concepts": concepts,
        "files_read": texts_in(row.get("files_read")),
        "files_modified": texts_in(row.get("files_modified")),
        "discovery_tokens": row.get("discovery_tokens") or None,
        "accessed_count": row.get("accessed_count") or row.get("access_count") or None,
        "expires_at": time_of(row.get("expires_at")),
        "created_at": time_of(row.get("created_at")),
        "updated_at": time_of(row.get("updated_at")),
    }
    return fields | known | {name: text_in(row, name) for name in ("category", "session_id", "project")}

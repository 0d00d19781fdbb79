"""The store of claude-mem, `~/.claude-mem/claude-mem.db`: observations and the summaries of sessions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

from recollect.domain.enums import Concept, ObservationType
from recollect.domain.fields import MAX_CONTENT, MAX_NAME
from recollect.domain.transfer import ImportItem, ItemKind, Problem
from recollect.gate import masked
from recollect.text import layers
from recollect.transfer.reading import items_of, labels, time_of, without_empty
from recollect.transfer.sqlite_file import names_in, rows, text_in, texts_in

CLAUDE_MEM: Final = frozenset({"observations", "session_summaries"})
"""The tables that are read; a file that has both is such a store."""
_PARTS: Final = ("request", "investigated", "learned", "completed", "next_steps", "notes")
_LONGEST_MEM_KEY: Final = 200


def read_claude_mem(source: BinaryIO, name: str) -> Iterator[ImportItem | Problem]:
    """Yield a memory for each observation and each summary; raise `Unreadable` where SQLite cannot read the file."""
    path = Path(source.name)
    there = names_in(path)
    for table, query, fields_of in (
        ("observations", "SELECT * FROM observations ORDER BY id", _observation_fields),
        ("session_summaries", "SELECT * FROM session_summaries ORDER BY id", _summary_fields),
    ):
        found = rows(path, query) if table in there else iter(())
        entries = ((f"{name}, {table} {row.get('id')}", row) for row in found)
        yield from items_of(
            entries,
            lambda row, where, fields_of=fields_of: [  # type: ignore[misc]
                ImportItem(
                    kind=ItemKind.MEMORY, where=where, fields=without_empty(_common_fields(row) | fields_of(row))
                )
            ],
        )


def _common_fields(row: dict[str, Any]) -> dict[str, Any]:
    at = time_of(row.get("created_at_epoch")) or time_of(row.get("created_at"))
    return {
        "session_id": text_in(row, "memory_session_id") or text_in(row, "sdk_session_id"),
        "project": text_in(row, "project"),
        "tags": ["claude-mem"],
        "files_read": texts_in(row.get("files_read")),
        "discovery_tokens": row.get("discovery_tokens") or None,
        "observed_at": at,
        "created_at": at,
    }


def _observation_fields(row: dict[str, Any]) -> dict[str, Any]:
    body = [text_in(row, "narrative") or text_in(row, "text")]
    body += [f"- {fact}" for fact in texts_in(row.get("facts"))]
    title, subtitle = text_in(row, "title"), text_in(row, "subtitle")
    named, concepts = text_in(row, "type").lower(), texts_in(row.get("concepts"))
    known = [concept for concept in concepts if concept in set(Concept)]
    other = [label for label in (named, *concepts) if label not in set(ObservationType) | set(Concept)]
    return {
        "content": ("\n".join(filter(None, body)) or "\n".join(filter(None, (title, subtitle))))[:MAX_CONTENT],
        "key": _key_of_row(row, "observation"),
        "type": named if named in set(ObservationType) else None,
        "title": layers.shortened(" ".join(masked(title).split()), MAX_NAME),
        "subtitle": layers.shortened(" ".join(masked(subtitle).split()), MAX_NAME),
        "concepts": known,
        "tags": labels(["claude-mem", *other]),
        "files_modified": texts_in(row.get("files_modified")),
    }


def _summary_fields(row: dict[str, Any]) -> dict[str, Any]:
    parts = ((part, text_in(row, part)) for part in _PARTS)
    lines = [f"{part.replace('_', ' ').capitalize()}: {text}" for part, text in parts if text]
    return {
        "content": "\n".join(lines)[:MAX_CONTENT],
        "key": _key_of_row(row, "summary"),
        "type": str(ObservationType.SESSION_SUMMARY),
        "files_modified": texts_in(row.get("files_edited")),
    }


def _key_of_row(row: dict[str, Any], kind: str) -> str:
    session = text_in(row, "memory_session_id") or text_in(row, "sdk_session_id")
    return f"claude-mem:{session[:_LONGEST_MEM_KEY]}/{kind}-{row.get('id')}"

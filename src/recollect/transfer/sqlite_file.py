"""Reads another program's SQLite file: read-only, tables alone, so that nothing in its schema runs."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from recollect.transfer.reading import LONGEST_LINE, Unreadable

MAGIC: Final = b"SQLite format 3\x00"
"""How each such file begins."""
_MOST_NAMES: Final = 1_000
_TABLES: Final = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' LIMIT ?"


def names_in(path: Path) -> frozenset[str]:
    """Return the names of a file's tables; raise `Unreadable` where the file is damaged."""
    return frozenset(str(row["name"]) for row in rows(path, _TABLES, [_MOST_NAMES]))


def rows(path: Path, query: str, values: Sequence[Any] = ()) -> Iterator[dict[str, Any]]:
    """Yield the rows of a query by the names of their columns; raise `Unreadable` where the file is damaged."""
    try:
        with closing(_open_read_only(path)) as connection:
            cursor = connection.execute(query, values)
            columns = [column[0] for column in cursor.description]
            for row in cursor:
                yield dict(zip(columns, row, strict=True))
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorname", "") or type(error).__name__
        raise Unreadable(f"SQLite cannot read it ({code}).") from None


def _open_read_only(path: Path) -> sqlite3.Connection:
    """Open a database read-only, with no trust in its schema and a limit on the length of values."""
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    connection.text_factory = lambda data: data.decode(errors="replace")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_LINE)
    connection.execute("PRAGMA query_only = ON")
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


def text_in(row: dict[str, Any], column: str) -> str:
    """Return the text in a column, empty where the column is absent or holds no text."""
    value = row.get(column)
    return value.strip() if isinstance(value, str) else ""


def texts_in(value: object) -> list[str]:
    """Read a list of texts that stands as JSON in a column."""
    try:
        found = json.loads(value) if isinstance(value, str) else []
    except (ValueError, RecursionError):
        return []
    return [text.strip() for text in found if isinstance(text, str) and text.strip()] if isinstance(found, list) else []


def share_in(value: object) -> float | None:
    """Return a number from 0 to 1, None for anything else."""
    return float(value) if isinstance(value, int | float) and 0 <= value <= 1 else None

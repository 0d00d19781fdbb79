"""How files are read: lines that never fill the memory, strict UTF-8, strict JSON. What is bad gets a reason.

Reasons never repeat what stands in the file, since that may be a secret.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, BinaryIO, Final

import ijson
from pydantic import TypeAdapter, ValidationError

from recollect.domain.transfer import ImportItem, Problem
from recollect.text.utf8 import utf8_fault

LONGEST_LINE: Final = 16 * 2**20
"""Bytes: what is longer is no line of any format known here."""
LARGEST_FILE: Final = 256 * 2**20
"""Bytes: what is larger is not read as one document."""
LONGEST_KEY: Final = 480
"""Characters of a memory's key that another program's name for it may take."""
_BOM: Final = b"\xef\xbb\xbf"
DEEPEST: Final = 100
"""Levels of objects and lists in a JSON value."""
_TIME: Final = TypeAdapter(datetime)
CUT: Final = "It is not JSON, or it ends too early."


class Unreadable(ValueError):
    """A line or a file is not what it should be; the text says why."""


def items_of(
    entries: Iterable[tuple[str, Any]], read: Callable[[dict[str, Any], str], Iterable[ImportItem]]
) -> Iterator[ImportItem | Problem]:
    """Yield the item that `read` makes of each entry (a JSON value, or a line's bytes), or the problem."""
    for where, entry in entries:
        try:
            yield from read(object_of(entry), where)
        except Unreadable as error:
            yield Problem(where, str(error))


def lines(source: BinaryIO, name: str) -> Iterator[tuple[str, bytes | Unreadable]]:
    """Yield each line that is not blank with its place, `name:number`, or why it cannot be read."""
    number = 0
    while data := source.readline(LONGEST_LINE + 1):
        number += 1
        if len(data) > LONGEST_LINE:
            while data and not data.endswith(b"\n"):
                data = source.readline(LONGEST_LINE)
            yield f"{name}:{number}", Unreadable(f"The line is longer than {LONGEST_LINE // 2**20} MiB.")
        elif line := (data.removeprefix(_BOM) if number == 1 else data).strip():
            yield f"{name}:{number}", line


def read_document(source: BinaryIO) -> bytes:
    """Read a file that is one document; raise `Unreadable` where it is larger than any has reason to be."""
    data = source.read(LARGEST_FILE + 1)
    if len(data) > LARGEST_FILE:
        raise Unreadable(f"It is larger than {LARGEST_FILE // 2**20} MiB.")
    return data


def decode_utf8(data: bytes) -> str:
    """Read UTF-8, with or without a byte order mark; raise `Unreadable` where it is none."""
    if (wrong := utf8_fault(data)) is not None:
        raise Unreadable(wrong)
    return data.removeprefix(_BOM).decode()


def parse_json(data: bytes) -> Any:
    """Read strict JSON: no name twice, no NaN, no nesting without end. Raise `Unreadable` with the reason."""
    text = decode_utf8(data)
    try:
        value = json.loads(
            text, object_pairs_hook=_unique_names, parse_constant=_finite_number, parse_float=_finite_number
        )
    except json.JSONDecodeError as error:
        raise Unreadable(f"It is not JSON: {error.msg} at character {error.pos + 1}.") from None
    except RecursionError:
        raise Unreadable("It is nested too deeply.") from None
    except ValueError as error:
        raise Unreadable(str(error) if isinstance(error, Unreadable) else "It holds an endless number.") from None
    check_depth(value)
    return value


def check_json(source: BinaryIO) -> None:
    """Read a file of JSON values, of any size, to its end; raise `Unreadable` where it is damaged."""
    source.seek(len(_BOM) if source.read(len(_BOM)) == _BOM else 0)
    try:
        for _ in ijson.basic_parse(source, multiple_values=True):
            pass
    except ijson.IncompleteJSONError:
        raise Unreadable(CUT) from None
    except (ijson.JSONError, UnicodeDecodeError, RecursionError):
        raise Unreadable("It is not JSON.") from None


def check_depth(value: Any) -> None:
    """Raise `Unreadable` for a JSON value that has more levels than anything here has reason to have."""
    if _is_too_deep(value):
        raise Unreadable("It is nested too deeply.")


def object_of(entry: Any) -> dict[str, Any]:
    """Return the JSON object that an entry is, or that stands in a line; raise `Unreadable` with the reason."""
    if isinstance(entry, Unreadable):
        raise entry
    value = parse_json(entry) if isinstance(entry, bytes) else entry
    if not isinstance(value, dict):
        raise Unreadable("It is no JSON object.")
    return value


def time_of(value: object) -> str | None:
    """Return a time in ISO 8601 from seconds or milliseconds since 1970, or from ISO 8601; None for any other value."""
    plain = value.strip() if isinstance(value, str) else value
    if isinstance(plain, bool) or (isinstance(plain, str) and plain.isdecimal()):
        return None
    try:
        found = _TIME.validate_python(plain)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
    except (ValidationError, OverflowError):
        return None


def labels(value: object) -> list[str]:
    """Return labels from a list or from a text with commas between them; at most 200, and none that is too long."""
    parts = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
    plain = (str(part).strip() for part in parts if isinstance(part, str | int | float))
    return list(dict.fromkeys(label for label in plain if 0 < len(label) <= 500))[:200]


def without_empty(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields without those that say nothing."""
    return {name: value for name, value in fields.items() if value is not None and value not in ("", [])}


def _unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the pairs of an object as a dictionary; raise `Unreadable` for a name that occurs twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Unreadable("It has the same name twice in one object.")
    return found


def _finite_number(text: str) -> float:
    """Return a number; raise `Unreadable` for NaN and infinity."""
    value = float(text)
    if not math.isfinite(value):
        raise Unreadable("It holds NaN or an infinite number.")
    return value


def _is_too_deep(value: Any, levels: int = DEEPEST) -> bool:
    """Say whether something has more levels of objects and lists than anything here has reason to have."""
    if not isinstance(value, dict | list):
        return False
    parts = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_is_too_deep(part, levels - 1) for part in parts)

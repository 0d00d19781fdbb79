"""How files are read: lines that never fill the memory, strict UTF-8, strict JSON. What is bad gets a reason.

Reasons never repeat what stands in the file, since that may be a secret.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, BinaryIO, Final

LONGEST: Final = 16 * 2**20
"""Bytes: what is longer is no line of any format known here."""
_BOM: Final = b"\xef\xbb\xbf"
_MILLISECONDS: Final = 1e11  # a number above this is no second of this millennium
_DEEPEST: Final = 100


class Unreadable(ValueError):
    """A line or a file is not what it should be; the text says why."""


def numbered(source: BinaryIO) -> Iterator[tuple[int, bytes | None]]:
    """Yield each line that is not blank with its number, from 1; None in place of one that is too long to read."""
    number = 0
    while data := source.readline(LONGEST + 1):
        number += 1
        if len(data) > LONGEST:
            while data and not data.endswith(b"\n"):
                data = source.readline(LONGEST)
            yield number, None
            continue
        line = (data.removeprefix(_BOM) if number == 1 else data).strip()
        if line:
            yield number, line


def decoded(data: bytes) -> str:
    """Read UTF-8, with or without a byte order mark; raise `Unreadable` where it is none."""
    try:
        return data.removeprefix(_BOM).decode()
    except UnicodeDecodeError as error:
        raise Unreadable(f"It is not UTF-8: byte {error.start + 1} makes no sense.") from None


def parsed(data: bytes) -> Any:
    """Read strict JSON: no name twice, no NaN, no nesting without end. Raise `Unreadable` with the reason."""
    text = decoded(data)
    try:
        value = json.loads(text, object_pairs_hook=_once, parse_constant=_finite, parse_float=_float)
    except json.JSONDecodeError as error:
        raise Unreadable(f"It is not JSON: {error.msg} at character {error.pos + 1}.") from None
    except RecursionError:
        raise Unreadable("It is nested too deeply.") from None
    except ValueError as error:
        raise Unreadable(str(error) if isinstance(error, Unreadable) else "It holds an endless number.") from None
    if _deep(value):
        raise Unreadable("It is nested too deeply.")
    return value


def object_of(data: bytes | None) -> dict[str, Any]:
    """Read one line as a JSON object; raise `Unreadable` with the reason."""
    if data is None:
        raise Unreadable(f"The line is longer than {LONGEST // 2**20} MiB.")
    value = parsed(data)
    if not isinstance(value, dict):
        raise Unreadable("It is no JSON object.")
    return value


def moment(value: object) -> str | None:
    """Read a time as other programs write it, seconds or milliseconds since 1970 or ISO 8601; None when it is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        seconds = value / 1000 if abs(value) > _MILLISECONDS else value
        try:
            return datetime.fromtimestamp(seconds, UTC).isoformat()
        except (OverflowError, OSError, ValueError):
            return None
    if not isinstance(value, str):
        return None
    # Go writes nanoseconds, which `fromisoformat` refuses
    plain = re.sub(r"(\.\d{6})\d+", r"\1", value.strip())
    try:
        found = datetime.fromisoformat(plain)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
    except (ValueError, OverflowError):
        return None


def names(value: object) -> list[str]:
    """Read labels: a list, or one text with commas between them; at most 200, none longer than a name may be."""
    parts = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
    plain = (str(one).strip() for one in parts if isinstance(one, str | int | float))
    return list(dict.fromkeys(one for one in plain if 0 < len(one) <= 500))[:200]


def said(fields: dict[str, Any]) -> dict[str, Any]:
    """Leave out what says nothing."""
    return {name: value for name, value in fields.items() if value is not None and value not in ("", [])}


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Unreadable("It has the same name twice in one object.")
    return found


def _finite(_: str) -> float:
    raise Unreadable("It holds NaN or an infinite number.")


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise Unreadable("It holds NaN or an infinite number.")
    return value


def _deep(value: Any) -> bool:
    """Say whether something is nested more deeply than anything here has reason to be."""
    level = [value]
    for _ in range(_DEEPEST):
        level = [part for one in level for part in _parts(one)]
        if not level:
            return False
    return True


def _parts(value: Any) -> list[Any]:
    inside = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return [one for one in inside if isinstance(one, dict | list)]

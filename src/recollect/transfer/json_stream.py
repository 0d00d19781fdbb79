"""Large JSON documents read piece by piece with ijson, so that their size costs no memory."""

from __future__ import annotations

from collections.abc import Iterator
from io import SEEK_SET
from typing import Any, BinaryIO, Final

import ijson

from recollect.transfer.reading import CUT, DEEPEST, LARGEST_FILE, Unreadable

_SPACE: Final = b" \t\r\n"
_BOM: Final = b"\xef\xbb\xbf"
_HEAD: Final = 4_096
_BEGINS: Final = frozenset({"start_map", "start_array"})
_ENDS: Final = frozenset({"end_map", "end_array"})


class _Bounded:
    """A file of which only so many bytes are read between two pieces, as one piece stands in the memory whole."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self._left = LARGEST_FILE

    def read(self, size: int = -1) -> bytes:
        """Read bytes; raise `Unreadable` where a single value has too many."""
        self._left -= max(size, 0)
        if self._left < 0:
            raise Unreadable(f"One conversation is larger than {LARGEST_FILE // 2**20} MiB.")
        return self._source.read(size)

    def reset(self) -> None:
        """Count the bytes from here on, as a value has been read."""
        self._left = LARGEST_FILE


def objects_in(source: BinaryIO, name: str, what: str) -> Iterator[tuple[str, Any]]:
    """Yield each value of a list with its place, `name, what number`, or the single object that a document is.

    Raises `Unreadable` where it is no strict JSON; values before the fault are yielded.
    """
    head = source.read(_HEAD)
    start = len(_BOM) if head.startswith(_BOM) else 0
    source.seek(start, SEEK_SET)
    bounded = _Bounded(source)
    above = 1 if head[start:].lstrip(_SPACE).startswith(b"[") else 0
    try:
        for number, value in enumerate(_values_below(bounded, above), 1):
            bounded.reset()
            yield f"{name}, {what} {number}", value
    except ijson.IncompleteJSONError:
        raise Unreadable(CUT) from None
    except (ijson.JSONError, UnicodeDecodeError, RecursionError):
        raise Unreadable("It is not JSON.") from None


def _values_below(source: _Bounded, above: int) -> Iterator[Any]:
    """Yield each JSON value `above` levels down as soon as it is complete; raise `Unreadable` where it is too deep.

    The levels are counted as they begin: the library's own way to a value has a name as long as all that is above it,
    at each level.
    """
    level, builder = 0, ijson.ObjectBuilder()
    for event, value in ijson.basic_parse(source, use_float=True):
        begins, ends = event in _BEGINS, event in _ENDS
        level += begins - ends
        if level > above + DEEPEST:
            raise Unreadable("It is nested too deeply.")
        if (begins and level <= above) or (ends and level < above):
            continue
        builder.event(event, value)
        if level == above:
            yield builder.value
            builder = ijson.ObjectBuilder()

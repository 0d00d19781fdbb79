"""Reads the gate's tables: tokens, labels, clients and words, each a TOML file beside this module."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Lowered(str):
    """A text in lower case that knows its pieces of three letters, which tell fast what cannot stand in it."""

    __slots__ = ("pieces",)
    pieces: set[tuple[str, str, str]]


class Hinted(Generic[T]):
    """Rows of a table by the literals of which one must stand in a text."""

    def __init__(self, rows: Iterable[tuple[Iterable[str], T]]) -> None:
        """Index rows of hints and what they lead to."""
        self._rows: list[T] = []
        self._short: list[tuple[str, int]] = []
        self._long: dict[tuple[str, ...], list[tuple[str, int]]] = {}
        for number, (hints, row) in enumerate(rows):
            self._rows.append(row)
            for hint in hints:
                place = self._short if len(hint) < 3 else self._long.setdefault(tuple(hint[:3]), [])
                place.append((hint, number))

    def within(self, lowered: Lowered) -> Iterator[T]:
        """Yield the rows of which a hint stands in the text, in the table's order."""
        found = {number for hint, number in self._short if hint in lowered}
        for piece in self._long.keys() & lowered.pieces:
            found.update(number for hint, number in self._long[piece] if hint in lowered)
        yield from (self._rows[number] for number in sorted(found))


@cache
def table(name: str) -> dict[str, Any]:
    """Return one table, read once."""
    return tomllib.loads(Path(__file__).with_name(f"{name}.toml").read_text(encoding="utf-8"))


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """Return a pattern of a table; most are never needed, so each is compiled when its hint is first seen."""
    return re.compile(pattern)


def lower(text: str) -> Lowered:
    """Return the text in lower case, character by character, so that offsets stay as they are."""
    small = text.lower()
    if len(small) != len(text):
        small = "".join(one if len(one := char.lower()) == 1 else char for char in text)
    lowered = Lowered(small)
    lowered.pieces = set(zip(small, small[1:], small[2:], strict=False))
    return lowered


def either(words: Iterable[str]) -> str:
    """Return a pattern for one of several words, the longest first."""
    return "|".join(
        re.escape(word).replace(r"\ ", " ") for word in sorted(set(words), key=lambda word: (-len(word), word))
    )

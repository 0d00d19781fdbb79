"""Reads the gate's tables, each a TOML file beside this module: tokens, labels, clients, words and patterns."""

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
    pieces: set[tuple[str, ...]]


class Hinted(Generic[T]):
    """Rows of a table by literals; at least one literal of a row must stand in a text."""

    def __init__(self, rows: Iterable[tuple[Iterable[str], T]]) -> None:
        """Index rows of hints and what they lead to."""
        self._rows: list[T] = []
        self._short: list[tuple[str, int]] = []
        self._long: dict[tuple[str, ...], list[tuple[str, int]]] = {}
        for number, (hints, row) in enumerate(rows):
            self._rows.append(row)
            for hint in hints:
                (self._short if len(hint) < 3 else self._long.setdefault(tuple(hint[:3]), [])).append((hint, number))

    def within(self, lowered: Lowered) -> Iterator[T]:
        """Yield the rows of which a hint stands in the text, in the table's order."""
        found = {number for hint, number in self._short if hint in lowered}
        for piece in self._long.keys() & lowered.pieces:
            found.update(number for hint, number in self._long[piece] if hint in lowered)
        yield from (self._rows[number] for number in sorted(found))


@cache
def table(name: str) -> dict[str, Any]:
    """Return a table of words; its file is read only once."""
    return tomllib.loads(Path(__file__).with_name(f"{name}.toml").read_text(encoding="utf-8"))


@cache
def compiled_pattern(source: str) -> re.Pattern[str]:
    """Return the compiled pattern; it is compiled at its first use, as most patterns are never needed."""
    return re.compile(source)


@cache
def pattern(name: str) -> re.Pattern[str]:
    """Return a pattern of `patterns.toml`, with the words of `labels.toml` in the place of their list's name."""

    def words(match: re.Match[str]) -> str:
        group, _, name = match[1].partition(".")
        return any_word_pattern(table("labels")[group][name])

    return re.compile(re.sub("«([a-z.]+)»", words, re.sub(r"\n\s*", "", table("patterns")[name])))


def lower(text: str) -> Lowered:
    """Return the text in lower case, character by character, so that offsets stay as they are."""
    small = text.lower()
    if len(small) != len(text):
        small = "".join(lowered if len(lowered := char.lower()) == 1 else char for char in text)
    lowered = Lowered(small)
    lowered.pieces = set(zip(small, small[1:], small[2:], strict=False))
    return lowered


def any_word_pattern(words: Iterable[str]) -> str:
    """Return a pattern that matches any of the words, the longest first."""
    return "|".join(
        re.escape(word).replace(r"\ ", " ") for word in sorted(set(words), key=lambda word: (-len(word), word))
    )

"""Reads the gate's tables, each a TOML file beside this module: tokens, labels, clients, words and patterns.

Finds the words that announce a secret, of `labels.toml`, and what of the text around them is theirs.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from time import thread_time
from typing import Any, Final, Generic, NamedTuple, TypeVar

T = TypeVar("T")

_ENDS: Final[ContextVar[float]] = ContextVar("ends", default=float("inf"))


class ScanTooLong(Exception):
    """A scan has used all the processor time that it may."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Let the scans inside the block use so much processor time together; what is around the block may set less."""
    token = _ENDS.set(min(_ENDS.get(), thread_time() + seconds))
    try:
        yield
    finally:
        _ENDS.reset(token)


def check_time() -> None:
    """Raise `ScanTooLong` where the scan has used all its time."""
    if thread_time() > _ENDS.get():
        raise ScanTooLong


class Lowered(str):
    """A text in lower case that knows its pieces of three letters, which tell fast what cannot stand in it."""

    __slots__ = ("pieces",)
    pieces: set[tuple[str, ...]]


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
                (self._short if len(hint) < 3 else self._long.setdefault(tuple(hint[:3]), [])).append((hint, number))

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
def compiled(source: str) -> re.Pattern[str]:
    """Return a pattern; most of the tables' patterns are never needed, so each is compiled at its first use."""
    return re.compile(source)


@cache
def pattern(name: str) -> re.Pattern[str]:
    """Return a pattern of `patterns.toml`, with the words of `labels.toml` in the place of their list's name."""

    def words(match: re.Match[str]) -> str:
        group, _, name = match[1].partition(".")
        return either(table("labels")[group][name])

    return re.compile(re.sub("«([a-z.]+)»", words, re.sub(r"\n\s*", "", table("patterns")[name])))


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


_KINDS: Final = ("password", "key", "pin", "credentials", "login", "seed")
_SUFFIX: Final = r"(?:[_\-.]?(?:prod(?:uction)?|dev|stag(?:e|ing)|live|value|plain(?:text)?|raw|b64|base64|\d{1,2}))?"
_WINDOW: Final = 120
_MIXED: Final = re.compile(r"\d[A-Za-z]*$")
_PLAIN: Final = frozenset({"tr", "ru", "hu", "he", "ar", "hi", "asia", "ja", "ko", "zh"})  # languages without "is"


class Label(NamedTuple):
    """Where a label stands, what it announces, and from where to where its own value may stand."""

    start: int
    end: int
    kind: str  # a table of labels.toml
    text: str
    english: bool
    verb: bool  # it is the word "pass" by itself
    plain: bool  # its language says "password x" for "the password is x"
    first: int = 0
    last: int = 0

    @property
    def announces(self) -> bool:
        """Say whether a value may stand beside it without more words."""
        return self.kind in ("password", "key")

    @property
    def clear(self) -> bool:
        """Say whether an ordinary word behind it is a password all the same."""
        return self.english and len(self.text) > 4


@cache
def _labels() -> Hinted[tuple[str, str, str, bool]]:
    """Return pattern, kind, language and whether it starts a word, of each label by its hint.

    The patterns are for texts in lower case.
    """
    rows = []
    for kind in _KINDS:
        for language, words in table("labels")[kind].items():
            for entry in dict.fromkeys(map(lower, words)):
                word = entry.removeprefix("|")
                body = re.escape(word).replace(r"\ ", r"[ _\-.]{0,2}")
                ending = rf"s?{_SUFFIX}(?![a-zß-ž])" if word[-1] < "Ͱ" else ""
                rows.append(((word.partition(" ")[0],), (body + ending, kind, language, word != entry)))
    return Hinted(rows)


def labels(text: str, lowered: Lowered) -> list[Label]:
    """Return the labels of a text in their order, of those that overlap the longest."""
    found = []
    for source, kind, language, bounded in _labels().within(lowered):
        check_time()
        for match in compiled(source).finditer(lowered):
            start, end = match.span()
            before = text[start - 1 : start]
            if not (bounded and before.isalpha() and not (text[start].isupper() and before.islower())):
                verb = text[start:end] == "pass" and before not in ("_", "-", ".")
                found.append(Label(start, end, kind, match[0], language == "en", verb, language in _PLAIN))
    found.sort(key=lambda one: (one.start, -one.end, _KINDS.index(one.kind)))
    kept: list[Label] = []
    for one in found:
        near = [other for other in kept[-2:] if one.start < other.end]
        if not any(one.kind == other.kind or (one[:2] == other[:2] and one.kind in ("pin", "key")) for other in near):
            kept.append(one)
    return list(_with_room(text, kept))


def _in_a_value(text: str, name: Label) -> bool:
    """Say whether a label is a piece of a longer value, such as `Lamp7Pass` or `Pass2Lamp`, with room of its own."""
    after = text[name.end : name.end + 1]
    if text[name.end - 1].isdigit() and text[name.end : name.end + 2].lstrip(" \"')]")[:1] not in (":", "="):
        return True
    return (after.isascii() and after.isalnum()) or bool(_MIXED.search(text, max(0, name.start - 24), name.start))


def _with_room(text: str, names: list[Label]) -> Iterator[Label]:
    borders = [name for name in names if name.announces and not _in_a_value(text, name)]
    ends = [0, *(name.end for name in borders)]
    starts = [*(name.start for name in borders), len(text)]
    place = 0
    for name in names:
        border = place < len(borders) and borders[place] is name
        before, after = (ends[place], starts[place + border]) if name.announces else (0, len(text))
        place += border
        yield name._replace(first=max(before, name.start - _WINDOW), last=min(after, name.end + _WINDOW))

"""Moments: at which commands, edits and failures an agent must see a memory again, and whether one fits an action.

A moment is a line such as `run git push --force !--dry-run`. All its words must stand in the action, in any order, and
no word after a `!` may. It is no regular expression, and matching takes linear time whatever somebody wrote. A moment
such as `done make check` says the opposite: after that command has run in a session, the memory is not shown there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from typing import Final, NamedTuple

MOST: Final = 8
"""Moments of a memory."""
LONGEST: Final = 200
"""Characters of a moment."""
MOST_WORDS: Final = 1_000
"""Words of an action by which moments are looked up; the first ones count."""
ANY: Final = "*"
"""In place of a part that a moment lacks; every action has it, so that such a moment is compared with all of them."""

_FORM: Final = "a moment is `run`, `edit`, `fail` or `done` and then words, such as `run git push --force`"
_SHOWN: Final = 60  # characters of a moment that an error repeats
_WORD: Final = re.compile(r"\w+")
_STAR: Final = re.compile(r"\*+")
_LETTERS: Final = re.compile(r"[^\W_]")
_FEWEST: Final = 2  # letters or digits that a word must have


class Kind(StrEnum):
    """What happens at a moment: a command is about to run, a file about to be written, a tool has failed.

    At `DONE` a command has run without a failure, and what the memory asks for is done.
    """

    RUN = "run"
    EDIT = "edit"
    FAIL = "fail"
    DONE = "done"


class Action:
    """What an agent does or did: `parts` are the texts in which the words of moments are looked for.

    Moments have words in common, so it remembers which it holds.
    """

    __slots__ = ("_held", "text")

    def __init__(self, *parts: str) -> None:
        self.text = "\n".join(filter(None, parts)).casefold()
        self._held: dict[str, bool] = {}

    def holds(self, word: str) -> bool:
        """Say whether a casefolded word stands whole in it."""
        if word not in self._held:
            self._held[word] = _contains_word(word, self.text)
        return self._held[word]

    def leads(self, *first: str) -> list[str]:
        """Return the words by which moments that may fit it are looked up, each once; those in `first` first."""
        found: dict[str, None] = {ANY: None}
        for text in (*(word.casefold() for word in first), self.text):
            for match in _WORD.finditer(text):
                found[match[0]] = None
                if len(found) > MOST_WORDS:
                    return list(found)
        return list(found)


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment that was read: its kind, the words that must stand in the action and those that must not, casefolded."""

    kind: Kind
    words: tuple[str, ...]
    without: tuple[str, ...]

    @property
    def leads(self) -> tuple[str, str]:
        """Return the two longest parts of its words that stand in every action that it fits; `*` in place of each lack.

        By these it is looked up.
        """
        found = dict.fromkeys(piece for word in self.words for piece in _whole_pieces(word))
        first, second, *_ = (*sorted(found, key=len, reverse=True), ANY, ANY)
        return first, second

    def fits(self, action: Action) -> bool:
        """Say whether the moment fits an action."""
        return all(map(action.holds, self.words)) and not any(map(action.holds, self.without))


class Led(NamedTuple):
    """A moment that words of an action have led to: its memory, its place there, and what memories are ordered by."""

    memory_id: int
    position: int
    is_rule: bool
    at: datetime
    updated_at: datetime


def tidy_moments(texts: Iterable[str]) -> tuple[str, ...]:
    """Return moments as they are stored, each once; raise `ValueError` for an invalid moment, or for more than 8."""
    found = tuple(dict.fromkeys(line for text in texts if (line := _tidy_moment(text))))
    if len(found) > MOST:
        raise ValueError(f"must have at most {MOST} moments, not {len(found)}")
    if found and all(parse_moment(text).kind is Kind.DONE for text in found):
        raise ValueError("must have another moment beside `done`, which only says from when it is not shown any more")
    return found


@lru_cache(maxsize=16_384)
def parse_moment(text: str) -> Moment:
    """Return the moment in a line of text; raise `ValueError` with the fault and the allowed forms."""
    shown = f"`{text if len(text) <= _SHOWN else text[: _SHOWN - 1] + '…'}`"
    if len(text) > LONGEST:
        raise ValueError(f"{shown} has {len(text)} characters; a moment has at most {LONGEST}")
    first, *rest = text.casefold().split() or [""]
    if first not in set(Kind):
        raise ValueError(f"{shown} begins with none of `run`, `edit`, `fail` and `done`; {_FORM}")
    words = tuple(dict.fromkeys(_STAR.sub("*", word) for word in rest if not word.startswith("!")))
    without = tuple(dict.fromkeys(_STAR.sub("*", word[1:]) for word in rest if word.startswith("!")))
    if not rest:
        raise ValueError(f"{shown} has no words; {_FORM}")
    if not words:
        raise ValueError(f"{shown} has only words that must not be there; it needs another one, without `!`")
    if "" in without:
        raise ValueError(f"{shown} has a `!` without a word; `!word` says that a word is not there")
    if not any(len(_LETTERS.findall(word)) >= _FEWEST for word in words):
        raise ValueError(f"{shown} has no word with at least {_FEWEST} letters or digits, so it would fit too much")
    return Moment(Kind(first), words, without)


def _tidy_moment(text: str) -> str:
    """Return a moment with single spaces; without a kind it is a command that is about to run."""
    first, _, rest = " ".join(text.split()).partition(" ")
    if not first or first.lower() in set(Kind):
        return f"{first.lower()} {rest}".strip()
    return f"{Kind.RUN} {first} {rest}".strip()


def _whole_pieces(word: str) -> Iterator[str]:
    """Yield the parts of a word that stand whole in every action that has the word; `*` may lengthen the others.

    A word without two letters or digits would match too much.
    """
    for match in _WORD.finditer(word):
        beside = word[match.start() - 1 : match.start()] + word[match.end() : match.end() + 1]
        if "*" not in beside and len(_LETTERS.findall(match[0])) >= _FEWEST:
            yield match[0]


def _contains_word(word: str, action: str) -> bool:
    """Say whether a word stands whole in an action."""
    if "*" not in word:
        return any(
            _word_begins_at(word, action, at) and _word_ends_at(word, action, at + len(word))
            for at in _offsets_of(word, action)
        )
    pieces = word.split("*")
    longest = max(pieces, key=len)
    if longest not in action:
        return False
    return any(_holds_pieces(pieces, run) for run in action.split() if longest in run)


def _holds_pieces(pieces: list[str], run: str) -> bool:
    """Say whether a run of characters without spaces holds the pieces in order, the first and the last one whole."""
    first, *middle, last = pieces
    at = 0
    if first:
        begin = next((place for place in _offsets_of(first, run) if _word_begins_at(first, run, place)), -1)
        if begin < 0:
            return False
        at = begin + len(first)
    for piece in middle:
        found = run.find(piece, at)
        if found < 0:
            return False
        at = found + len(piece)
    if not last:
        return True
    option = pieces[0].startswith("-")
    return any(_word_ends_at(last, run, place + len(last), option=option) for place in _offsets_of(last, run, at))


def _offsets_of(piece: str, text: str, at: int = 0) -> Iterator[int]:
    """Yield each offset of a piece in a text, overlapping ones too."""
    while (at := text.find(piece, at)) >= 0:
        yield at
        at += 1


def _word_begins_at(word: str, text: str, at: int) -> bool:
    """Return whether a word could begin at an offset: no letter, digit or hyphen joins it to the text before it."""
    before = text[at - 1] if at else " "
    if word[0] == "-":
        return not (_is_word_character(before) or before == "-")
    return not (_is_word_character(word[0]) and _is_word_character(before))


def _word_ends_at(word: str, text: str, end: int, *, option: bool | None = None) -> bool:
    """Return whether a word could end at an offset; with `option` a hyphen after it joins it to the text."""
    after = text[end : end + 1] or " "
    if after == "-" and (word[0] == "-" if option is None else option):
        return False
    return not (_is_word_character(word[-1]) and _is_word_character(after))


def _is_word_character(character: str) -> bool:
    """Say whether a character is part of a word: a letter, a digit or an underscore."""
    return character.isalnum() or character == "_"

"""Traces of texts: whether another text holds a passage of theirs, whatever stands between its letters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

_LETTERS: Final = re.compile(r"[^\W_]+")
_PASSAGE: Final = 32  # letters and digits: some six words
_STEP: Final = 16  # so that whatever quotes 48 of them is noticed
_SHORTEST: Final = 8  # a shorter text says nothing that nobody else would say


class Traces:
    """Passages of texts, to be looked for elsewhere.

    A text shorter than a passage is found where it is a whole line.
    """

    def __init__(self) -> None:
        self._passages: set[str] = set()
        self._lines: set[str] = set()

    def __len__(self) -> int:
        return len(self._passages) + len(self._lines)

    def add(self, value: object) -> None:
        """Add every text of a value, which may be JSON."""
        for text in texts_in(value):
            for line in _squeezed_lines(text):
                if len(line) < _PASSAGE:
                    self._lines |= {line} if len(line) >= _SHORTEST else set()
                else:
                    starts = range(0, len(line) - _PASSAGE + 1, _STEP)
                    self._passages |= {line[start : start + _PASSAGE] for start in starts}

    def found_in(self, value: object) -> set[str]:
        """Return the passages and lines that stand in a text of a value, which may be JSON."""
        found: set[str] = set()
        for text in texts_in(value):
            for line in _squeezed_lines(text):
                if line in self._lines:
                    found.add(line)
                if self._passages:
                    ends = range(_PASSAGE, len(line) + 1)
                    found |= self._passages & {line[end - _PASSAGE : end] for end in ends}
        return found

    def without(self, known: Iterable[str]) -> Traces:
        """Return the traces but for those that are `known` to stand elsewhere with good reason."""
        rest, gone = Traces(), set(known)
        rest._passages, rest._lines = self._passages - gone, self._lines - gone
        return rest


def texts_in(value: object) -> Iterator[str]:
    """Yield every text in a value that is a text or JSON, the names of fields aside."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from texts_in(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from texts_in(part)


def _squeezed_lines(text: str) -> Iterator[str]:
    """Yield the letters and digits of each line of a text, letter case aside."""
    for line in text.casefold().splitlines():
        if squeezed := "".join(_LETTERS.findall(line)):
            yield squeezed

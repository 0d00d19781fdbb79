"""Where a sentence ends, in any script. A line break ends a sentence too."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_MARKS: Final = "。！？।؟۔။។"  # end a sentence without a space behind them
_END: Final = re.compile(rf"(?<=[.!?…])[^\S\n]+|\n|(?<=[{_MARKS}])(?![{_MARKS}])")
_END_OR_SEMICOLON: Final = re.compile(rf"{_END.pattern}|(?<=;)[^\S\n]+")
_LOOK_BEHIND: Final = 12  # characters before an end that tell whether it is one
_ABBREVIATION: Final = re.compile(
    r"(?:\b(?:[^\W\d_]|Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|Co|Inc|Ltd|(?i:vs|cf|ca|etc|approx|bzw|ggf))|^[^\S\n]*\d{1,3})\.\Z",
    re.MULTILINE,
)
"""What ends no sentence: an abbreviation, an initial, the number of an item of a list."""
_NUMBER_SIGN: Final = re.compile(r"\b(?:No|Nr)\.\Z", re.IGNORECASE)
"""What ends no sentence before a number."""
_OPEN: Final = re.compile(r"(?:\b\d{1,2}\.\d{1,2}\.|…)\Z")
"""What ends no sentence before a small letter: a day and its month, an ellipsis."""


def sentence_spans(text: str, *, semicolons: bool = False) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each sentence, without white space around it; with `semicolons` these end it too."""
    start = 0
    for end in (_END_OR_SEMICOLON if semicolons else _END).finditer(text):
        if end[0].isspace() and end[0] != "\n" and _continues_after(text, *end.span()):
            continue
        yield from _trimmed_span(text, start, end.start())
        start = end.end()
    yield from _trimmed_span(text, start, len(text))


def sentences(text: str, *, semicolons: bool = False) -> list[str]:
    """Return the sentences of a text in order."""
    return [text[start:end] for start, end in sentence_spans(text, semicolons=semicolons)]


def first_sentence(text: str) -> str:
    """Return the first sentence of a text, an empty text where there is none."""
    return next((text[start:end] for start, end in sentence_spans(text)), "")


def _continues_after(text: str, end: int, after: int) -> bool:
    """Return whether the sentence continues after the mark before `end`, with the character at `after`."""
    first, following = max(0, end - _LOOK_BEHIND), text[after : after + 1]
    return (
        _ABBREVIATION.search(text, first, end) is not None
        or (following.isdigit() and _NUMBER_SIGN.search(text, first, end) is not None)
        or (following.islower() and _OPEN.search(text, first, end) is not None)
    )


def _trimmed_span(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the span without the white space around it; nothing for a span of white space alone."""
    piece = text[start:end]
    if bare := piece.strip():
        start += len(piece) - len(piece.lstrip())
        yield start, start + len(bare)

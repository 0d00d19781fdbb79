"""Finds the words that announce a secret, of `labels.toml`, and which part of the text around them is theirs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Final, NamedTuple

from recollect.gate.tables import Hinted, Lowered, compiled_pattern, lower, table
from recollect.gate.time_limit import check_time

_KINDS: Final = ("password", "key", "pin", "credentials", "login", "seed")
_SUFFIX: Final = r"(?:[_\-.]?(?:prod(?:uction)?|dev|stag(?:e|ing)|live|value|plain(?:text)?|raw|b64|base64|\d{1,2}))?"
_WINDOW_CHARACTERS: Final = 120
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
        """Return whether the value may stand beside the label without a word such as "is" between them."""
        return self.kind in ("password", "key")

    @property
    def takes_ordinary_words(self) -> bool:
        """Return whether even an ordinary word after the label is a password."""
        return self.english and len(self.text) > 4


@cache
def _label_patterns() -> Hinted[tuple[str, str, str, bool]]:
    """Return the patterns of all labels, indexed by hint: pattern, kind, language, whether the label starts a word.

    The patterns match lower-case text.
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
    """Return the labels of a text in order; of overlapping labels only the longest."""
    found = []
    for source, kind, language, bounded in _label_patterns().within(lowered):
        check_time()
        for match in compiled_pattern(source).finditer(lowered):
            start, end = match.span()
            before = text[start - 1 : start]
            if not (bounded and before.isalpha() and not (text[start].isupper() and before.islower())):
                verb = text[start:end] == "pass" and before not in ("_", "-", ".")
                found.append(Label(start, end, kind, match[0], language == "en", verb, language in _PLAIN))
    found.sort(key=lambda label: (label.start, -label.end, _KINDS.index(label.kind)))
    kept: list[Label] = []
    for label in found:
        near = [other for other in kept[-2:] if label.start < other.end]
        if not any(
            label.kind == other.kind or (label[:2] == other[:2] and label.kind in ("pin", "key")) for other in near
        ):
            kept.append(label)
    return list(_with_search_limits(text, kept))


def _is_inside_value(text: str, name: Label) -> bool:
    """Return whether a label is part of a longer value, such as `Lamp7Pass` or `Pass2Lamp`."""
    after = text[name.end : name.end + 1]
    if text[name.end - 1].isdigit() and text[name.end : name.end + 2].lstrip(" \"')]")[:1] not in (":", "="):
        return True
    return (after.isascii() and after.isalnum()) or bool(_MIXED.search(text, max(0, name.start - 24), name.start))


def _with_search_limits(text: str, names: list[Label]) -> Iterator[Label]:
    """Yield each label with the first and the last offset at which its own value may stand."""
    borders = [name for name in names if name.announces and not _is_inside_value(text, name)]
    ends = [0, *(name.end for name in borders)]
    starts = [*(name.start for name in borders), len(text)]
    place = 0
    for name in names:
        border = place < len(borders) and borders[place] is name
        before, after = (ends[place], starts[place + border]) if name.announces else (0, len(text))
        place += border
        yield name._replace(
            first=max(before, name.start - _WINDOW_CHARACTERS), last=min(after, name.end + _WINDOW_CHARACTERS)
        )

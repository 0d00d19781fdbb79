"""Finds values by their label: `password = x`, `--token x`, "the password for the wiki is x", "use x as the password".

A value is searched on either side of the label, so that a harmless value hides nothing behind it. How a value must look
depends on how clearly the words between say that it is the secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias

from recollect.gate import heuristics
from recollect.gate.labels import Label
from recollect.gate.tables import pattern
from recollect.gate.time_limit import check_time

PASSWORD: Final = "password"  # noqa: S105 - a kind, not a password
KEY: Final = "API key or token"

_KEY_JUDGES: Final = (
    heuristics.has_high_entropy,
    heuristics.is_long_key,
    heuristics.looks_like_key,
    heuristics.looks_like_key,
)
_OPENING_BRACKET: Final = {")": "(", "]": "[", "}": "{"}
_PLACE_WORDS: Final = frozenset({"in", "i", "pour", "por", "from"})  # said of places too
_WINDOW_CHARACTERS: Final = 80
_JUDGED: Final = 160
_MAX_CONNECTORS: Final = 8


class Level(IntEnum):
    """How clearly the words around say that a value is the secret."""

    FAR = 0  # it stands somewhere in the label's sentence
    NEAR = 1  # it stands beside the label
    SAID = 2  # a sentence says so: "the password is x"
    STRONG = 3  # `password = x`


class Value(NamedTuple):
    """A value beside a label: its text, its offsets, whether it was quoted, and whether its line ends with it."""

    text: str
    start: int
    end: int
    quoted: bool
    last: bool = False


Candidates: TypeAlias = Iterator[tuple[Value | None, Level]]


def labelled_secrets(text: str, names: list[Label]) -> Iterator[tuple[str, int, int]]:
    """Yield kind, start and end of each secret that a label or a sentence announces."""
    for name in names:
        check_time()
        mine = not name.english and text[max(0, name.start - 4) : name.start] in ("Min ", "min ")  # "my" in the north
        before = max(0, name.start - 80)
        if name.announces and (mine or not pattern("not_a_secret").search(text, before, name.start)):
            found = (
                candidate
                for candidate, level in _labelled_candidates(text, name)
                if is_announced_secret(candidate, name, level, _is_in_code(text, name, candidate))
            )
            value = next(found, None)
            if value is not None:
                yield kind_of_secret(name), value.start, value.end


def kind_of_secret(name: Label) -> str:
    """Return the kind of secret that the label announces."""
    return PASSWORD if name.kind == "password" else KEY


def read_value(text: str, at: int) -> Value | None:
    """Return the value at an offset: the quoted text, or the text up to white space without punctuation."""
    quoted = pattern("quoted").match(text, at)
    if quoted:
        group = quoted.lastindex or 1
        return Value(quoted[group], *quoted.span(group), True)
    bare = pattern("bare").match(text, at)
    if bare is None or pattern("assignment").match(bare[0]):  # the value of another name is read in its own turn
        return None
    run = pattern("outer").sub("", pattern("unspaced").split(bare[0])[0])
    inner = pattern("inner").search(run)
    run = run if run.endswith("...") else run.rstrip(".,;:")
    while run[-1:] in _OPENING_BRACKET and _OPENING_BRACKET[run[-1]] not in run:
        run = run[:-1]
    shown = run[: inner.start()] if inner and not heuristics.mixes_classes(run) else run
    last = text[bare.end() : bare.end() + 1] in ("", "\n")
    return Value(shown, at, at + max(len(run), 1), False, last) if shown else None


def is_announced_secret(value: Value | None, name: Label, level: Level, in_code: bool = True) -> bool:
    """Return whether a value is the secret that its label announces.

    With `in_code`, brackets after the value are those of a call.
    """
    if value is None or (name.verb and level < Level.SAID):
        return False
    text = value.text[:_JUDGED].strip()
    if in_code and not value.quoted and pattern("label_name").fullmatch(text):
        return False
    strong, secret = level is Level.STRONG, name.kind == "password"
    if text.isalpha() and len(text) < 16 and not heuristics.are_random_letters(text):
        plain = strong and name.takes_ordinary_words and (value.quoted or (value.last and value.start - name.end <= 3))
        ordinary = heuristics.is_weak_password(text) or (plain and heuristics.is_unusual_word(text))
        return secret and level >= Level.SAID and ordinary
    if not value.quoted and value.start >= name.end and "(" in text:
        return secret and level >= Level.SAID and not in_code and heuristics.is_word_with_brackets(text)
    words = text.split()
    if len(words) > 1:
        phrased = heuristics.is_passphrase(text, 4) or (
            value.quoted and len(words) <= 8 and heuristics.are_passphrase_words(words)
        )
        return secret and phrased and (strong or (level is Level.SAID and "phrase" in name.text))
    named = heuristics.is_code_name(text)
    joined = named and bool(pattern("joined").search(text.strip(".:")))
    if not secret:
        whole = not joined and not text.endswith(("...", "…"))
        return (strong and value.quoted and heuristics.is_passphrase(text, 4)) or (whole and _KEY_JUDGES[level](text))
    if name.text in ("pw", "p/w") and in_code and pattern("identifier").fullmatch(text):
        return strong and heuristics.is_weak_password(text)
    if level <= Level.NEAR:
        return (heuristics.is_adjacent_password if level is Level.NEAR else heuristics.stands_out_as_password)(text)
    if heuristics.is_weak_password(text) or heuristics.is_passphrase(text, 3):
        return True
    return heuristics.looks_like_password(text) and not joined and not (named and level is Level.SAID)


def _is_in_code(text: str, name: Label, value: Value | None) -> bool:
    """Return whether a value is assigned with `=`, or is followed by a sign that only code has there."""
    return value is None or "=" in text[name.end : value.start] or text[value.end : value.end + 1] in tuple(";,){")


def _labelled_candidates(text: str, name: Label) -> Candidates:
    """Yield the values that a label may announce, each with how clearly it does."""
    for operator in ("assign", "typed", "element", "next_cell", "paired"):
        if match := pattern(operator).match(text, name.end):
            yield from _values_at(text, match.end(), Level.STRONG)
    setter = pattern("setter").search(text, max(0, name.start - 80), name.start)
    for place, level in (
        ("argument", Level.SAID if setter else Level.NEAR),
        ("quote_next", Level.STRONG),
        ("ticked", Level.SAID),
    ):
        if not name.verb and (match := pattern(place).match(text, name.end)):
            yield read_value(text, match.end()), level
    headed = bool(pattern("heading_before").search(text, max(0, name.start - 12), name.start))
    for place, level in (("next_line", Level.STRONG), ("below", Level.SAID if headed else Level.NEAR)):
        if match := pattern(place).match(text, name.end):
            yield Value(match["s"], *match.span("s"), False), level
    if pattern("option").search(text, max(0, name.start - 40), name.start) and (
        match := pattern("blank").match(text, name.end)
    ):
        yield read_value(text, match.end()), Level.STRONG
    if match := pattern("beside").match(text, name.end):
        value = read_value(text, match.end())
        yield value, Level.NEAR
        if is_announced_secret(value, name, Level.SAID) and _is_value_after_label(text, name, value):
            yield value, Level.SAID
    if name.plain and (match := pattern("of_value").match(text, name.end)):
        yield read_value(text, match.end()), Level.SAID
    if match := pattern("answered").match(text, name.end):
        yield read_value(text, match.end()), Level.SAID
    if not pattern("longer_name").match(text, name.end):
        yield from _values_after_label(text, name)
        yield from _values_before_label(text, name)


def _is_value_after_label(text: str, name: Label, value: Value | None) -> bool:
    """Return whether the text before a label, or the label's language, says that the secret follows the label."""
    start = max(name.first, name.start - 60)
    ends = value is not None and value.last
    return any(pattern(place).search(text, start, name.start) for place in ("user_before", "with_before")) or (
        ends and (name.plain or bool(pattern("directive").search(text, start, name.start)))
    )


def _values_at(text: str, at: int, level: Level) -> Candidates:
    """Yield the values at an offset: several words, a single value, or the value behind a filler or a name."""
    if several := pattern("words").match(text, at):
        yield Value(several[0], *several.span(), False), level
    if filler := pattern("filler").match(text, at):
        at = filler.end()
    value = read_value(text, at)
    if value and not value.quoted and len(value.text) < 32 and (own := pattern("own_name").match(text, value.end)):
        yield read_value(text, own.end()), Level.NEAR  # "passwords: NAS: x", "password: bob / x"
    yield value, level


def sentence_around(text: str, name: Label) -> tuple[int, int]:
    """Return the start and end of the sentence around a label, within the reach of the search."""
    stops = [stop.end() for stop in pattern("stop").finditer(text, name.first, name.start)]
    stop = pattern("stop").search(text, name.end, name.last)
    return stops[-1] if stops else name.first, stop.start() if stop else name.last


def _values_after_label(text: str, name: Label) -> Candidates:
    """Yield the values that the sentence after a label announces, each with how clearly it does."""
    stop = pattern("stop").search(text, name.end, name.last)
    tail = text[name.end : stop.end() if stop else name.last]
    for count, match in enumerate(pattern("connector").finditer(tail)):
        if count == _MAX_CONNECTORS:
            return
        changes = match["to"] and (name.english or match["to"].lower() in _PLACE_WORDS)
        if (name.english and match["foreign"]) or (changes and not _mentions_change(text, name, match.end())):
            continue
        gap = tail[: match.start()].strip(" \t\"'`*)]")
        near = bool(not gap or gap.startswith(("(", "for ", "of ")) or gap.endswith((", it", "; it")))
        near = near or bool(pattern("of_abroad" if name.verb else "of").match(gap))
        if not (near or name.english) and (
            not match["to"] or _mentions_change(text, name, match.end() + _WINDOW_CHARACTERS)
        ):
            near = bool(pattern("genitive").fullmatch(gap))
        if match["verb"] or not (near or (match["after"] and not re.search("[a-zA-Z]", gap))):
            level = Level.FAR
        else:
            level = Level.STRONG if match["op"] else Level.SAID
        yield from _values_at(text, name.end + match.end(), level)


def _mentions_change(text: str, name: Label, length: int) -> bool:
    """Return whether the text around a label mentions a change, such as "changed the password to x"."""
    return bool(pattern("changed").search(text, max(0, name.start - 60), name.end + length))


def _values_before_label(text: str, name: Label) -> Candidates:
    """Yield the values before a label, as in "use x as the password" or "x is the password"."""
    offset, _ = sentence_around(text, name)
    for place, level in (("as_label", Level.SAID), ("and_before", Level.FAR), ("verb", Level.FAR)):
        for match in pattern(place).finditer(text[offset : name.start]):
            value = read_value(text, offset + match.start("s"))
            warned = (
                value
                and heuristics.is_weak_password(value.text)
                and pattern("advice").search(text, offset, value.start)
            )
            if value and value.end <= name.start and not warned:
                yield value, level if name.kind == "password" else Level.FAR

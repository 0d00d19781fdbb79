"""Finds secrets by where they stand: in a column of a table, in a place of a call, behind an option of a client.

Undoes what hides a secret from patterns: look-alike letters, pieces, escapes, base64 and hexadecimal.

Only what decodes to plain text is scanned; an image or a digest does not.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from functools import cache
from itertools import islice
from typing import Final, TypeAlias

from recollect.gate import heuristics
from recollect.gate.keyword_context import KEY, PASSWORD, Level, Value, accepted, kind_of
from recollect.gate.labels import Label
from recollect.gate.tables import Hinted, Lowered, compiled, either, pattern, table
from recollect.gate.time_limit import check_time

Found: TypeAlias = Iterator[tuple[str, int, int]]
Spans: TypeAlias = Iterator[tuple[int, int]]

_SPLITS: Final = (
    *(rf"(?<![ \t])[ \t]*+{sign}[ \t]*" for sign in (r"\|+", ";", ",")),
    *(r"\t+", r"(?<=\S)[ ]{2,}(?=\S)"),
)
_ROWS: Final = 200
_LINE: Final = 400
_MARKS: Final = "\"'`* "


def columns(text: str, names: list[Label]) -> Found:
    """Yield kind, start and end of the values below a label that heads a column."""
    rows = range(0)
    for name in names:
        check_time()
        if not name.announces:
            continue
        below = [] if name.start in rows else list(_below(text, name))
        rows = range(below[0][0], below[-1][1]) if below else rows
        for start, end in (*below, *_html(text, name), *_inserted(text, name)):
            bare = text[start:end].strip(_MARKS)
            first = text.find(bare, start)
            if bare and accepted(Value(bare, first, first + len(bare), False), name, Level.STRONG):
                yield kind_of(name), first, first + len(bare)


def _cells(line: str, offset: int, split: re.Pattern[str]) -> list[tuple[int, int]]:
    edges = [0, *(edge for gap in split.finditer(line) for edge in gap.span()), len(line)]
    return [(offset + start, offset + end) for start, end in zip(edges[::2], edges[1::2], strict=True)]


def _below(text: str, name: Label) -> Spans:
    """Yield the cells of a label's column, where its line is the head of a table in text."""
    start = text.rfind("\n", 0, name.start) + 1
    end = text.find("\n", name.end)
    if end < 0 or end - start > _LINE:
        return
    for split in map(compiled, _SPLITS):
        heads = _cells(text[start:end], start, split)
        if len(heads) < 2 or not all(pattern("heading").fullmatch(text, *head) for head in heads):
            continue
        place = next((place for place, (first, last) in enumerate(heads) if first <= name.start < last), 0)
        at = end + 1
        for _ in range(_ROWS):
            line = text[at : at + _LINE].partition("\n")[0]
            cells = _cells(line.rstrip("\r"), at, split)
            at += len(line) + 1
            if pattern("rule").fullmatch(line):
                continue
            if len(cells) != len(heads):
                return
            yield cells[place]
        return


def _html(text: str, name: Label) -> Spans:
    if not text[max(0, name.start - 80) : name.start].rpartition("<th")[1]:
        return
    first = max(0, text.rfind("<tr", 0, name.start))
    titles = list(pattern("html_title").finditer(text, first, first + 4_000))
    place = next((place for place, title in enumerate(titles) if title.start() < name.start < title.end()), None)
    if place is not None:
        cells = pattern("html_cell").finditer(text, titles[-1].end())
        yield from (cell.span(1) for cell in islice(cells, place, _ROWS, len(titles)))


def _inserted(text: str, name: Label) -> Spans:
    opening = text.rfind("(", max(0, name.start - _LINE), name.start)
    match = pattern("inserted").match(text, opening) if opening >= 0 else None
    if match:
        place = text.count(",", opening, name.start)
        yield from islice(_items(text, match.end()), place, place + 1)


def _items(text: str, at: int) -> Spans:
    """Yield where the arguments of a call or the values of a row stand, without their quotes."""
    while match := pattern("item").match(text, at):
        yield match.span(match.lastindex or 0)
        comma = pattern("comma").match(text, match.end())
        if not comma:
            return
        at = comma.end()


def calls(text: str, lowered: Lowered) -> Found:
    """Yield the literals that stand where a call takes a password or a key."""
    for group, kind, judge in (("calls", PASSWORD, heuristics.told), ("key_calls", KEY, heuristics.long_key)):
        places = table("clients")[group]
        for match in compiled(_called(group)).finditer(lowered) if "(" in text else ():
            place = places[match[1]]
            for start, end in islice(_items(text, match.end()), place, place + 1):
                value = text[start:end]
                if text[start - 1] in "\"'" and not re.search(r"\s", value) and judge(value):
                    yield kind, start, end


@cache
def _called(group: str) -> str:
    return rf"(?<![\w\-])({either(table('clients')[group])})\s{{0,2}}=?\s{{0,2}}\("


@cache
def _clients() -> Hinted[tuple[str, str, str]]:
    rows = []
    for group, kind in (("clients", PASSWORD), ("keys", KEY)):
        for programs, between in table("clients")[group]:
            names = programs.split(",")
            lead = "" if between.startswith("[") else r"[^\n]{0,200}?"
            gap = between.replace("·", r"(?:[ \t]{1,4}|=)")
            rest = rf"{lead}(?:{gap})[\"']?(?P<s>[^\s\"'-][^\s\"']{{2,}})"
            rows.append((names, (rf"(?:{either(names)})(?=[ \t])", rest, kind)))
    return Hinted(rows)


def clients(text: str, lowered: Lowered) -> Found:
    """Yield what command lines give to a client as its password or token."""
    for names, rest, kind in _clients().within(lowered):
        for program in compiled(names).finditer(lowered):
            check_time()
            before = text[program.start() - 1 : program.start()]
            match = None if before.isalnum() or before in tuple("_-./") else compiled(rest).match(text, program.end())
            if match:
                value = match["s"].rstrip(";)")
                if (heuristics.given if kind == PASSWORD else heuristics.key)(value):
                    yield kind, match.start("s"), match.start("s") + len(value)


_SPACES: Final = re.compile(r"\s+")
_SHORTEST: Final = 12  # bytes: what happens to be text by chance is shorter
_PLAIN: Final = frozenset(range(0x20, 0x7F)) | frozenset(b"\t\r\n")
_HEAD: Final = 64  # characters that tell whether the whole is worth decoding

_LOOK_ALIKES: Final = str.maketrans(
    "аеорсухіјѕкмтвнԁԛԝһгпАВЕКМНОРСТУХІЈЅҮԚԜαογνρτικυχωΑΒΕΖΗΙΚΜΝΟΡΤΥΧıɑɡʏ",
    "aeopcyxijskmtbhdqwhrnABEKMHOPCTYXIJSYQWaoyvptikuxwABEZHIKMNOPTYXiagy",
)
_WORD: Final = re.compile(r"\w{1,256}")


def without_look_alikes(text: str) -> str:
    """Return the text with Greek and Cyrillic letters as the Latin ones they resemble, in words that mix scripts."""
    mixed = pattern("mixed_scripts").search
    if not mixed(text):
        return text
    return _WORD.sub(lambda word: word[0].translate(_LOOK_ALIKES) if mixed(word[0]) else word[0], text)


def rejoined(text: str) -> Iterator[tuple[str, list[int]]]:
    """Yield each token that stands in pieces, joined, and the offset that each character had.

    Pieces are strings side by side, items of a list, or letters with spaces between them.
    """
    for spaced in pattern("spaced").finditer(text):
        yield spaced[0].replace(" ", ""), list(range(spaced.start(), spaced.end(), 2))
    last = 0
    for glue in pattern("glue").finditer(text):
        after = pattern("piece").match(text, glue.end())
        if glue.start() < last or not after or not random_piece(after[0]):
            continue
        first = glue.start()
        while first > max(last, glue.start() - 256) and (text[first - 1].isalnum() or text[first - 1] in "_-"):
            first -= 1
        spans = [(first, glue.start()), after.span()]
        while (more := pattern("glue").match(text, spans[-1][1])) and (
            after := pattern("piece").match(text, more.end())
        ):
            spans.append(after.span())
        last = spans[-1][1]
        if first < glue.start():
            yield "".join(text[start:end] for start, end in spans), [at for span in spans for at in range(*span)]


def random_piece(piece: str) -> bool:
    """Say whether a piece may be part of a token: it has digits or many capitals."""
    return any(c.isdigit() for c in piece) or sum(c.isupper() for c in piece) > len(piece) / 4


def unescaped(text: str, spelling: str = "escape") -> tuple[str, list[int]]:
    """Return the text with escapes decoded and continued lines joined, and the offset that each character had.

    The spelling is `escape`, of code and of addresses, or `quoted_printable`, of mail.

    The offsets are empty where nothing is escaped.
    """
    pieces: list[str] = []
    origin: list[int] = []
    at = 0
    for match in pattern(spelling).finditer(text):
        char = _character(match)
        if char is None:
            continue
        pieces += [text[at : match.start()], char]
        origin.extend(range(at, match.start()))
        origin.extend([match.start()] * len(char))
        at = match.end()
    if not pieces:
        return text, []
    origin.extend(range(at, len(text) + 1))
    return "".join([*pieces, text[at:]]), origin


def encoded_texts(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and the decoded text of each run of base64 or hexadecimal that decodes to plain text."""
    for spelling, decoded in (("base64", _of_base64), ("hexadecimal", _of_hex)):
        for match in pattern(spelling).finditer(text):
            inside = decoded(match[0])
            if len(inside) >= _SHORTEST and _PLAIN.issuperset(inside):
                yield match.start(), match.end(), inside.decode("ascii")


def _character(match: re.Match[str]) -> str | None:
    """Return what an escape stands for: an empty text for a continued line, None for anything but plain text."""
    found = match.groupdict()
    if found.get("quote"):
        return match["quote"]
    if match[0][0] in "\\=" and match["hex"] is None:
        return ""
    digits = match["hex"] or match["entity"]
    code = int(digits, 16) if digits else int(match["number"])
    return chr(code) if code in _PLAIN else None


def _of_base64(found: str) -> bytes:
    """Decode both alphabets of base64; a truncated text is decoded as far as it goes."""
    body = _SPACES.sub("", found).rstrip("=").replace("-", "+").replace("_", "/")
    head = body[:_HEAD]
    if not _PLAIN.issuperset(_decoded(head[: len(head) // 4 * 4])):
        return b""
    return _decoded(body if len(body) % 4 != 1 else body[:-1])


def _decoded(body: str) -> bytes:
    try:
        return base64.b64decode(body + "=" * (-len(body) % 4))
    except (binascii.Error, ValueError):
        return b""


def _of_hex(found: str) -> bytes:
    return bytes.fromhex(found)

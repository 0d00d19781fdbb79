"""Finds secrets by where they stand: in a column of a table, in a place of a call, behind an option of a client."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import islice
from typing import Final

from recollect.gate import heuristics
from recollect.gate.keyword_context import KEY, PASSWORD, Label, Level, Value, accepted
from recollect.gate.tables import Hinted, Lowered, compiled, either, table

_SPLITS: Final = tuple(
    map(re.compile, (r"[ \t]*\|+[ \t]*", r"\t+", r"[ \t]*;[ \t]*", r"[ \t]*,[ \t]*", r"(?<=\S)[ ]{2,}(?=\S)"))
)
_RULE: Final = re.compile(r"[\s\-+|:=]+")
_HEADING: Final = re.compile(r"[ ]{0,40}[\"'`*]{0,3}[^\W_][\w .\-/()]{0,39}[\"'`*]{0,3}[ ]{0,40}|")
_TITLE: Final = re.compile(r"<th[^<>]{0,80}>([^<>]{0,80})</th>")
_CELL: Final = re.compile(r"<td[^<>]{0,80}>\s{0,8}([^<>]{0,200}?)\s{0,8}</td>")
_COLUMNS: Final = re.compile(r"\(([^()]{1,400})\)\s{0,8}VALUES\s{0,8}\(", re.IGNORECASE)
_ITEM: Final = re.compile(
    r"\s{0,8}(?:[bruN]?'((?:[^'\\\n]|\\.|''){0,400}+)'|[bru]?\"((?:[^\"\\\n]|\\.){0,400}+)\"|([^,()\n\"']{1,200}))"
)
_ROWS: Final = 200
_LINE: Final = 400
_MARKS: Final = "\"'`* "


def columns(text: str, names: list[Label]) -> Iterator[tuple[str, int, int]]:
    """Yield kind, start and end of the values below a label that heads a column."""
    rows = range(0)
    for name in names:
        if name.kind not in ("password", "key"):
            continue
        kind = PASSWORD if name.kind == "password" else KEY
        below = [] if name.start in rows else list(_below(text, name))
        rows = range(below[0][0], below[-1][1]) if below else rows
        for start, end in (*below, *_html(text, name), *_inserted(text, name)):
            bare = text[start:end].strip(_MARKS)
            first = text.find(bare, start)
            if bare and accepted(Value(bare, first, first + len(bare), False), name, Level.STRONG):
                yield kind, first, first + len(bare)


def _cells(line: str, offset: int, split: re.Pattern[str]) -> list[tuple[int, int]]:
    edges = [0, *(edge for gap in split.finditer(line) for edge in gap.span()), len(line)]
    return [(offset + start, offset + end) for start, end in zip(edges[::2], edges[1::2], strict=True)]


def _below(text: str, name: Label) -> Iterator[tuple[int, int]]:
    start = text.rfind("\n", 0, name.start) + 1
    end = text.find("\n", name.end)
    if end < 0 or end - start > _LINE:
        return
    for split in _SPLITS:
        if not split.search(text, start, end):
            continue
        heads = _cells(text[start:end], start, split)
        place = next((place for place, (first, last) in enumerate(heads) if first <= name.start < last), 0)
        if len(heads) < 2 or not all(_HEADING.fullmatch(text, *head) for head in heads):
            continue
        at = end + 1
        for _ in range(_ROWS):
            line = text[at : at + _LINE].partition("\n")[0]
            cells = _cells(line.rstrip("\r"), at, split)
            at += len(line) + 1
            if _RULE.fullmatch(line):
                continue
            if len(cells) != len(heads):
                break
            yield cells[place]
        return


def _html(text: str, name: Label) -> Iterator[tuple[int, int]]:
    if not text[max(0, name.start - 80) : name.start].rpartition("<th")[1]:
        return
    first = max(0, text.rfind("<tr", 0, name.start))
    titles = list(_TITLE.finditer(text, first, first + 4_000))
    place = next((place for place, title in enumerate(titles) if title.start() < name.start < title.end()), None)
    if place is not None:
        for number, cell in enumerate(islice(_CELL.finditer(text, titles[-1].end()), _ROWS)):
            if number % len(titles) == place:
                yield cell.span(1)


def _inserted(text: str, name: Label) -> Iterator[tuple[int, int]]:
    opening = text.rfind("(", max(0, name.start - _LINE), name.start)
    match = _COLUMNS.match(text, opening) if opening >= 0 else None
    if match:
        place = text.count(",", opening, name.start)
        yield from islice(_items(text, match.end()), place, place + 1)


def _items(text: str, at: int) -> Iterator[tuple[int, int]]:
    """Yield where the arguments of a call or the values of a row stand, without their quotes."""
    while match := _ITEM.match(text, at):
        yield match.span(match.lastindex or 0)
        at = match.end()
        comma = re.compile(r"\s{0,8},").match(text, at)
        if not comma:
            return
        at = comma.end()


def calls(text: str, lowered: Lowered) -> Iterator[tuple[str, int, int]]:
    """Yield the literals that stand where a call takes a password or a key."""
    if "(" not in text:
        return
    for name, kind in (("calls", PASSWORD), ("key_calls", KEY)):
        for match in _called(name).finditer(lowered):
            place = table("clients")[name][match["name"]]
            for start, end in islice(_items(text, match.end()), place, place + 1):
                quoted = text[start - 1 : start] in ("'", '"')
                judge = heuristics.told if kind == PASSWORD else heuristics.long_key
                if quoted and not re.search(r"\s", text[start:end]) and judge(text[start:end]):
                    yield kind, start, end


@cache
def _called(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w\-])(?P<name>{either(table('clients')[name])})\s{{0,2}}=?\s{{0,2}}\(")


@cache
def _clients() -> Hinted[tuple[str, str, str]]:
    rows = []
    for group, kind in (("clients", PASSWORD), ("pairs", PASSWORD), ("keys", KEY)):
        for programs, between in table("clients")[group]:
            names = programs.split(",")
            lead = "" if between.startswith("[") else r"[^\n]{0,200}?"
            gap = between.replace("·", r"(?:[ \t]{1,4}|=)")
            rows.append(
                (
                    names,
                    (rf"(?:{either(names)})(?=[ \t])", rf"{lead}(?:{gap})[\"']?(?P<s>[^\s\"'-][^\s\"']{{2,}})", kind),
                )
            )
    return Hinted(rows)


def clients(text: str, lowered: Lowered) -> Iterator[tuple[str, int, int]]:
    """Yield what command lines give to a client as its password or token."""
    for names, rest, kind in _clients().within(lowered):
        for program in compiled(names).finditer(lowered):
            first = program.start()
            match = (
                None
                if first and (text[first - 1].isalnum() or text[first - 1] in "_-./")
                else compiled(rest).match(text, program.end())
            )
            if match:
                start, end = match.span("s")
                end -= len(match["s"]) - len(match["s"].rstrip(";)"))
                if (heuristics.given if kind == PASSWORD else heuristics.key)(text[start:end]):
                    yield kind, start, end

"""Finds secrets by where they stand: in a column of a table, in a place of a call, behind an option of a client."""

from __future__ import annotations

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
    """Yield kind, start and end of each value below a label that heads a column."""
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
    """Yield the start and end of each argument of a call or value of a row, without its quotes."""
    while match := pattern("item").match(text, at):
        yield match.span(match.lastindex or 0)
        comma = pattern("comma").match(text, match.end())
        if not comma:
            return
        at = comma.end()


def calls(text: str, lowered: Lowered) -> Found:
    """Yield the literals that stand where a call takes a password or a key."""
    for group, kind, judge in (
        ("calls", PASSWORD, heuristics.stated_password),
        ("key_calls", KEY, heuristics.long_key),
    ):
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
    """Yield the values that command lines give to a client as its password or token."""
    for names, rest, kind in _clients().within(lowered):
        for program in compiled(names).finditer(lowered):
            check_time()
            before = text[program.start() - 1 : program.start()]
            match = None if before.isalnum() or before in tuple("_-./") else compiled(rest).match(text, program.end())
            if match:
                value = match["s"].rstrip(";)")
                if (heuristics.plausible_password if kind == PASSWORD else heuristics.key)(value):
                    yield kind, match.start("s"), match.start("s") + len(value)

"""Finds secrets by where they stand: in a column of a table, in a place of a call, behind an option of a client."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import islice
from typing import Final, TypeAlias

from recollect.gate import heuristics
from recollect.gate.keyword_context import KEY, PASSWORD, Level, Value, is_announced_secret, kind_of_secret
from recollect.gate.labels import Label
from recollect.gate.tables import Hinted, Lowered, any_word_pattern, compiled_pattern, pattern, table
from recollect.gate.time_limit import check_time

Found: TypeAlias = Iterator[tuple[str, int, int]]
Spans: TypeAlias = Iterator[tuple[int, int]]

_SPLITS: Final = (
    *(rf"(?<![ \t])[ \t]*+{sign}[ \t]*" for sign in (r"\|+", ";", ",")),
    *(r"\t+", r"(?<=\S)[ ]{2,}(?=\S)"),
)
_MAX_ROWS: Final = 200
_MAX_LINE: Final = 400
_MARKS: Final = "\"'`* "


def column_secrets(text: str, names: list[Label]) -> Found:
    """Yield kind, start and end of each secret below a label that heads a column."""
    rows = range(0)
    for name in names:
        check_time()
        if not name.announces:
            continue
        below = [] if name.start in rows else list(_text_cells_below(text, name))
        rows = range(below[0][0], below[-1][1]) if below else rows
        for start, end in (*below, *_html_cells_below(text, name), *_inserted_value(text, name)):
            bare = text[start:end].strip(_MARKS)
            first = text.find(bare, start)
            if bare and is_announced_secret(Value(bare, first, first + len(bare), False), name, Level.STRONG):
                yield kind_of_secret(name), first, first + len(bare)


def _cell_spans(line: str, offset: int, split: re.Pattern[str]) -> list[tuple[int, int]]:
    edges = [0, *(edge for gap in split.finditer(line) for edge in gap.span()), len(line)]
    return [(offset + start, offset + end) for start, end in zip(edges[::2], edges[1::2], strict=True)]


def _text_cells_below(text: str, name: Label) -> Spans:
    """Yield the cells below a label, where the label's line is the head of a table in text."""
    start = text.rfind("\n", 0, name.start) + 1
    end = text.find("\n", name.end)
    if end < 0 or end - start > _MAX_LINE:
        return
    for split in map(compiled_pattern, _SPLITS):
        heads = _cell_spans(text[start:end], start, split)
        if len(heads) < 2 or not all(pattern("heading").fullmatch(text, *head) for head in heads):
            continue
        place = next((place for place, (first, last) in enumerate(heads) if first <= name.start < last), 0)
        at = end + 1
        for _ in range(_MAX_ROWS):
            line = text[at : at + _MAX_LINE].partition("\n")[0]
            cells = _cell_spans(line.rstrip("\r"), at, split)
            at += len(line) + 1
            if pattern("rule").fullmatch(line):
                continue
            if len(cells) != len(heads):
                return
            yield cells[place]
        return


def _html_cells_below(text: str, name: Label) -> Spans:
    """Yield the cells below a label, where the label stands in the head of an HTML table."""
    if not text[max(0, name.start - 80) : name.start].rpartition("<th")[1]:
        return
    first = max(0, text.rfind("<tr", 0, name.start))
    titles = list(pattern("html_title").finditer(text, first, first + 4_000))
    place = next((place for place, title in enumerate(titles) if title.start() < name.start < title.end()), None)
    if place is not None:
        cells = pattern("html_cell").finditer(text, titles[-1].end())
        yield from (cell.span(1) for cell in islice(cells, place, _MAX_ROWS, len(titles)))


def _inserted_value(text: str, name: Label) -> Spans:
    """Yield the value at the label's place in an SQL `INSERT`."""
    opening = text.rfind("(", max(0, name.start - _MAX_LINE), name.start)
    match = pattern("inserted").match(text, opening) if opening >= 0 else None
    if match:
        place = text.count(",", opening, name.start)
        yield from islice(_argument_spans(text, match.end()), place, place + 1)


def _argument_spans(text: str, at: int) -> Spans:
    """Yield the start and end of each argument of a call, or of each value of a row, without its quotes."""
    while match := pattern("item").match(text, at):
        yield match.span(match.lastindex or 0)
        comma = pattern("comma").match(text, match.end())
        if not comma:
            return
        at = comma.end()


def call_secrets(text: str, lowered: Lowered) -> Found:
    """Yield kind, start and end of each literal that a call takes as its password or key."""
    for group, kind, judge in (
        ("calls", PASSWORD, heuristics.is_stated_password),
        ("key_calls", KEY, heuristics.is_long_key),
    ):
        places = table("clients")[group]
        for match in compiled_pattern(_call_pattern(group)).finditer(lowered) if "(" in text else ():
            place = places[match[1]]
            for start, end in islice(_argument_spans(text, match.end()), place, place + 1):
                value = text[start:end]
                if text[start - 1] in "\"'" and not re.search(r"\s", value) and judge(value):
                    yield kind, start, end


@cache
def _call_pattern(group: str) -> str:
    return rf"(?<![\w\-])({any_word_pattern(table('clients')[group])})\s{{0,2}}=?\s{{0,2}}\("


@cache
def _client_patterns() -> Hinted[tuple[str, str, str]]:
    """Return pattern and kind of each client's command line, indexed by the client's name."""
    rows = []
    for group, kind in (("clients", PASSWORD), ("keys", KEY)):
        for programs, between in table("clients")[group]:
            names = programs.split(",")
            lead = "" if between.startswith("[") else r"[^\n]{0,200}?"
            gap = between.replace("·", r"(?:[ \t]{1,4}|=)")
            rest = rf"{lead}(?:{gap})[\"']?(?P<s>[^\s\"'-][^\s\"']{{2,}})"
            rows.append((names, (rf"(?:{any_word_pattern(names)})(?=[ \t])", rest, kind)))
    return Hinted(rows)


def client_secrets(text: str, lowered: Lowered) -> Found:
    """Yield kind, start and end of each password or token in the command line of a client program."""
    for names, rest, kind in _client_patterns().within(lowered):
        for program in compiled_pattern(names).finditer(lowered):
            check_time()
            before = text[program.start() - 1 : program.start()]
            match = (
                None
                if before.isalnum() or before in tuple("_-./")
                else compiled_pattern(rest).match(text, program.end())
            )
            if match:
                value = match["s"].rstrip(";)")
                if (heuristics.is_plausible_password if kind == PASSWORD else heuristics.looks_like_key)(value):
                    yield kind, match.start("s"), match.start("s") + len(value)

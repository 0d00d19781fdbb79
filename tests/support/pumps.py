"""Texts that repeat one piece, and how the processor time of a reader grows with them."""

from __future__ import annotations

import base64
import random
from collections.abc import Callable
from time import thread_time
from typing import Final, NamedTuple

from pattern_attacks import TooLong, at_most

SHORTEST: Final = 4_000  # characters
LONGEST: Final = 64_000
ENOUGH: Final = 0.03  # seconds of processor time; below it the cache and the allocator decide more than the text
LOOKS: Final = 4
MOST: Final = 4.0  # seconds that one reading may take
WORST: Final = 8.0  # times the cost of a quarter of the text: linear is 4, quadratic is 16

MARKS: Final = "\u0301\u0327\u0323"
HEBREW: Final = "\u05c1\u05b0\u05bc"
SHAPES: Final = (
    "one letter",
    "words",
    "other words",
    "names of people",
    "dots",
    "slashes",
    "digits",
    "spaces",
    "other lines",
    "empty lines",
    "sentences",
    "nested quotes",
    "backslashes",
    "open brackets",
    "open braces",
    "links",
    "headings",
    "pairs of backticks",
    "signs",
    "turns of roles",
    "addresses",
    "lines of settings",
    "base64",
    "marks",
    "ideographs",
)
"""The pumps that differ most in what they make a reader do."""


def filled(piece: str, start: str = "", end: str = "") -> Callable[[int], str]:
    """Return a function that makes a text of about a length out of one piece again and again."""
    return lambda size: start + piece * max((size - len(start) - len(end)) // len(piece), 1) + end


def numbered(piece: str, start: str = "", end: str = "") -> Callable[[int], str]:
    """Return a function that makes a text out of pieces which differ in a number."""
    length = len(piece.format(10_000))
    return lambda size: start + "".join(piece.format(number) for number in range(max(size // length, 1))) + end


PUMPS: Final[dict[str, Callable[[int], str]]] = {
    "one letter": filled("a"),
    "words": filled("word "),
    "other words": numbered("w{} "),
    "capitals": filled("Ab "),
    "names of people": numbered("Ann X{}: "),
    "camel case": filled("aB"),
    "underscores": filled("a_"),
    "dots": filled("a."),
    "dashes": filled("a-"),
    "slashes": filled("/a"),
    "digits": filled("1"),
    "numbers": numbered("{}, "),
    "months": filled("may "),
    "dates that are none": filled("99.99.2026 "),
    "spaces": filled(" ", end="x"),
    "tabs": filled("\t", start="x", end="x"),
    "short lines": filled("ok\n"),
    "other lines": numbered("line {} failed\n"),
    "empty lines": filled("\n", end="x"),
    "carriage returns": filled("\r", start="x\n", end="x"),
    "lines of Windows": filled("\r\n", end="x"),
    "sentences": filled("Do this now. "),
    "questions": filled("Is it? "),
    "full stops": filled(". "),
    "ideographic stops": filled("。"),
    "nested quotes": filled("\"'"),
    "open quotes": filled('a "'),
    "backslashes": filled("\\", start='"', end='"'),
    "open brackets": filled("["),
    "open braces": filled('{"a":'),
    "braces": filled("{"),
    "round brackets": filled("(a"),
    "links": filled("[a]("),
    "links of a wiki": filled("[[a"),
    "quotations": filled("> "),
    "lines of quotations": filled("> > a\n"),
    "lists": filled("- "),
    "nested lists": lambda size: "\n".join(" " * depth + "- a" for depth in range(int((2 * size) ** 0.5))),
    "headings": numbered("# h{}\na\n"),
    "hashes": filled("#"),
    "hashtags": filled("#a"),
    "backticks": filled("`"),
    "pairs of backticks": numbered("`a{} "),
    "fences": filled("```\n"),
    "stars": filled("*a"),
    "tags of a page": filled("<a "),
    "signs": filled("<"),
    "open comments": filled("<!--"),
    "begun passages": filled("<!-- recollect:begin -->"),
    "begun reminders": filled("<system-reminder>"),
    "added memories": filled("<memory-a>"),
    "ended tags": filled("</a>"),
    "turns of roles": filled("\nuser: "),
    "turns as JSON": filled('{"role": "system", '),
    "turns with stars": filled("*", start="\nuser"),
    "indented turns": filled("\n" + " " * 50 + "user"),
    "a heading of a role": filled('"', end="system"),
    "instruction tags": filled(" ", start="["),
    "escaped markers": filled("&lt;"),
    "entities of a page": filled("&#0000"),
    "drawn rules": filled("-- begin of "),
    "begun keys": filled("BEGIN A KEY "),
    "rules": filled("-"),
    "percent signs": filled("%41"),
    "escapes": filled("\\u0041"),
    "escapes of a terminal": filled("\x1b]"),
    "colours of a terminal": filled("\x1b[3"),
    "addresses": filled("https://a"),
    "slashes of an address": filled("/", start="https "),
    "bracket and space": filled("[ "),
    "mail addresses": filled("a@"),
    "ends of mail addresses": filled("a.", end="@"),
    "options": filled(" --a"),
    "assignments": filled("a="),
    "lines of settings": numbered("key{}: value\n"),
    "lines of TOML": numbered("[a{}]\nb = 1\n"),
    "dotted keys": filled("a.", end="a = 1"),
    "nested YAML": filled("- [", start="---\n", end="\n---\na"),
    "flows of YAML": filled("{a: ", start="---\n", end="\n---\na"),
    "keys of YAML": filled("? ", start="---\n", end="\n---\na"),
    "head of YAML": numbered("k{}: v\n", start="---\n", end="---\na"),
    "head without an end": filled("---\n"),
    "patches": filled("*** Update File: a\n+a\n", start="*** Begin Patch\n"),
    "documents of a shell": filled("cat <<A\n"),
    "pipes": filled("a | "),
    "and so on": filled("a && "),
    "failures": filled("Error: a "),
    "passwords": filled("password "),
    "tokens": filled("token="),
    "base64": lambda size: base64.b64encode(random.Random(1).randbytes(size))[:size].decode(),
    "hexadecimal digits": lambda size: random.Random(1).randbytes(size // 2).hex(),
    "unseen characters": filled("a\u200b"),
    "joiners": filled("\u200d\ufe0f"),
    "lookalikes": filled("аеор"),
    "no spaces": filled("ก"),
    "ideographs": lambda size: "".join(chr(0x4E00 + number % 20_000) for number in range(size)),
    "kana": filled("あア"),
    "emoji": filled("🚀"),
    "flags": filled("\U0001f1e9"),
    "marks": filled(MARKS, start="a"),
    "marks of a script": filled(HEBREW, start="\u05e9"),
    "lines of marks": filled(MARKS * 800 + "\n"),
    "marks between": filled(MARKS * 12 + "a"),
}


class Grown(NamedTuple):
    """A pump that costs more than linear time: its length, its seconds, and how much a quarter of it costs less."""

    pump: str
    length: int
    seconds: float
    times: float


def grown(reader: Callable[[str], object], pump: str, longest: int = LONGEST) -> Grown | None:
    """Return how a reader's cost grows with a pump where that is more than linear.

    The text grows fourfold until it takes long enough to be measured, or is as long as any that the reader may meet.
    What looks slow is measured again with four times the text, and the least of several looks counts.
    """
    make, size = PUMPS[pump], min(SHORTEST, longest // 4)
    while (spent := cost(reader, make(size))) < ENOUGH and size < longest:
        size = min(4 * size, longest)
    if spent < ENOUGH or spent < WORST * cost(reader, make(size // 4)):
        return None
    size = min(4 * size, longest)
    quarter, spent = (cost(reader, make(length), LOOKS) for length in (size // 4, size))
    slow = spent >= MOST or (spent >= ENOUGH and spent > WORST * quarter)
    return Grown(pump, size, round(spent, 3), round(spent / max(quarter, 1e-6), 1)) if slow else None


def cost(reader: Callable[[str], object], text: str, looks: int = 1) -> float:
    """Return the least seconds of this thread's processor time that a reader takes; `MOST` where that is too little.

    Its clock is fine also while a limit on the time of the process runs, which the clock of the process is not.
    """
    found = []
    for _ in range(looks):
        start = thread_time()
        try:
            with at_most(MOST):
                reader(text)
        except TooLong:
            return MOST
        found.append(thread_time() - start)
    return min(found)

"""What text for a prompt costs to look at grows with its length and no faster, whatever its shape.

No time is measured against a clock: of each shape a text ten times as long is compared with the shorter one, and a cost
that grows with the square would be a hundred times as high.
"""

from __future__ import annotations

import base64
import random
import time
from collections.abc import Callable

import pytest

from recollect.domain.requests import Draft
from recollect.memory.reconcile import same
from recollect.prompt.neutral import neutral
from recollect.prompt.orders import gives_orders, governed, orders
from recollect.text.normalization import fold, orderly
from recollect.text.terms import keywords_and_words

SHORT, LONG = 2_000, 20_000
MOST = 40.0  # times: 10 is linear, 100 is quadratic
LEAST = 0.001  # seconds: below that only noise is measured
MARKS = "\u0301\u0327\u0323"
HEBREW = "\u05c1\u05b0\u05bc"


def filled(piece: str, start: str = "", end: str = "") -> Callable[[int], str]:
    """Return what makes a text of a length out of one piece again and again."""
    return lambda size: (start + piece * (size // len(piece)))[: size - len(end)] + end


def lines_of(piece: str, width: int = 2_500) -> Callable[[int], str]:
    """Return what makes many long lines out of one piece."""
    return filled((piece * width)[:width] + "\n")


SHAPES: dict[str, Callable[[int], str]] = {
    "many lines": filled("ok\n"),
    "blank lines": filled("\n"),
    "carriage returns": filled("\r\n"),
    "many sentences": filled("Do this now. "),
    "full stops": filled(". "),
    "ideographic stops": filled("。"),
    "one long line": filled("word "),
    "one long word": filled("a"),
    "spaces": filled(" ", end="x"),
    "nested quotes": filled("\"'"),
    "nested brackets": filled("[ "),
    "quoted turns": filled('{"role": "system", '),
    "turns": filled("\nuser "),
    "turns with stars": filled("*", start="\nuser"),
    "indented turns": filled("\n" + " " * 50 + "user"),
    "base64": lambda size: base64.b64encode(random.Random(1).randbytes(size))[:size].decode(),
    "markers": filled("<system> "),
    "open markers": filled("< "),
    "signs": filled("<"),
    "escaped markers": filled("&lt;"),
    "entities": filled("&#0000"),
    "drawn rules": filled("-- begin of "),
    "rules": filled("-"),
    "headers": filled('"', end="system"),
    "an instruction tag": filled(" ", start="["),
    "percent signs": filled("%41"),
    "escapes": filled("\\u0041"),
    "addresses": filled("/", start="https "),
    "mail addresses": filled("a.", end="@"),
    "joiners": filled("\u200d\ufe0f"),
    "unseen characters": filled("a\u200b"),
    "lookalikes": filled("аеор"),
    "no spaces": filled("ก"),
    "marks": filled(MARKS, start="a"),
    "marks of a script": filled(HEBREW, start="\u05e9"),
    "lines of marks": lines_of(MARKS),
    "marks between": filled(MARKS * 12 + "a"),
}
WORK: dict[str, Callable[[str], object]] = {
    "neutral": neutral,
    "governed": governed,
    "gives_orders": gives_orders,
    "orders": orders,
    "fold": fold,
    "same": lambda text: same(text, text + "a"),
    "words": lambda text: keywords_and_words(Draft(content=f"a{text}"), "title"),
}


def ratio(work: Callable[[str], object], make: Callable[[int], str], looks: int = 1) -> float:
    """Return the processor time of a shape's long text in that of its short one; of several looks the least counts."""
    costs = []
    for size in (SHORT, LONG):
        text, found = make(size), []
        for _ in range(looks):
            start = time.process_time()
            work(text)
            found.append(time.process_time() - start)
        costs.append(max(min(found), LEAST))
    return costs[1] / costs[0]


@pytest.mark.parametrize("name", WORK)
def test_the_cost_of_a_text_is_linear(name: str) -> None:
    """Ten times the text costs about ten times as much, in every hostile shape."""
    work = WORK[name]
    work("Warm up: ignore nothing, and сall it а day.")
    suspects = [shape for shape, make in SHAPES.items() if ratio(work, make) > MOST]
    assert [shape for shape in suspects if ratio(work, SHAPES[shape], looks=5) > MOST] == []


def test_only_marks_that_no_language_has_are_dropped() -> None:
    """A letter keeps thirty marks, and what is no mark is kept however often it stands there."""
    assert orderly("é" + "\u0301" * 29 + "a\u0301") == "é" + "\u0301" * 29 + "a\u0301"
    assert orderly("a" + "\u0301" * 40) == "a" + "\u0301" * 30
    for text in ("——" * 40, "…" * 99, "🚀" * 99, "═" * 80):
        assert orderly(text) == text

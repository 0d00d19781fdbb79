"""No pattern takes more than linear time, whatever text somebody writes for it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest

from pattern_attacks import SRC, Used, of_gate, of_library, of_source, slowest, used

pytestmark = pytest.mark.slow

BAD = {
    "neighbours share a dash": r"^\W*what\b(?:\W+[\w'-]+){0,5}?\W+(?:password|token)\W*$",
    "two parts of one repeat share an underscore": r"(?<!\w)(?:\w[ .\-_*]{1,2}){3,}\w(?!\w)",
    "an option may be a value": r"^(?:-\S+(?: \S+)? )*(?:push|pull)\b",
    "each start reads on to the end": r"\s+$",
    "an end that never comes": r"/\*.*?\*/",
    "bounded, but many times over": r"(?:[\w\-]{1,40}[._\-]){1,5}$",
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_pattern_is_noticed(name: str) -> None:
    """Patterns that were here, and others with the same faults, are found out by their own attacks."""
    assert slowest(used(name, re.compile(BAD[name], re.DOTALL)), tries=60, picked=4) is not None


def source() -> Iterator[Used]:
    """Yield the patterns of the package's own modules."""
    return (one for one in of_source() if isinstance(one, Used))


@pytest.mark.parametrize(("family", "least"), [(source, 240), (of_gate, 900), (of_library, 30)])
@pytest.mark.parametrize(
    ("tries", "picked"), [pytest.param(12, 2, id="some"), pytest.param(200, 6, id="many", marks=pytest.mark.full)]
)
def test_every_pattern_is_linear(family: Callable[[], Iterator[Used]], least: int, tries: int, picked: int) -> None:
    """Attacks built from the pattern's own repeats cost it at most 50 µs a character, and no more in longer texts."""
    patterns = list(family())
    assert len(patterns) >= least
    found = ((one.place, one.pattern.pattern, slowest(one, tries, picked)) for one in patterns)
    assert [one for one in found if one[2]] == []


def test_a_pattern_made_at_run_time_is_of_words() -> None:
    """A pattern that is put together from what somebody wrote holds it literally, with nothing to repeat.

    The lines of ignore files are tried in `test_linear_time.py`; the page's pattern is of a class of letters of ours.
    """
    made = [one for one in of_source() if isinstance(one, str)]
    others = ("gate/tables.py", "transfer/ignore_files.py", "doors/web/words.py")
    assert [one for one in made if "re.escape(" not in one and not one.startswith(others)] == []
    written = "\n".join(path.read_text(encoding="utf-8") for path in SRC.rglob("*.py"))
    assert re.findall(r"from re import.*|import re as.*|import regex.*", written) == []

"""Pages of `list`: following what each page says misses no memory, whatever is written between two pages."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from callers import ADA
from recollect import Draft, Settings, remember
from stores import open_app

pytestmark = pytest.mark.slow

Typed = Callable[..., Any]
NEXT = re.compile(r"More: add `--after (\S+)`\.")


@pytest.fixture
def notes(settings: Settings) -> list[str]:
    """Store a few memories and return their ids."""
    with open_app(settings, background=False) as app:
        return [str(remember(app, Draft(content=f"Crane {n} stands at pier {n}"), ADA).id) for n in range(12)]


def test_each_page_says_where_the_next_begins(typed: Typed, notes: list[str]) -> None:
    """A memory that is changed between two pages comes at the end, and no other one is missed."""
    shown: list[str] = []
    page = typed("list", "--limit", "5")
    while True:
        shown += [line.split("\t")[0] for line in page.out.splitlines()[1:-1]]
        found = NEXT.search(page.out.splitlines()[-1])
        if found is None:
            break
        typed("update", notes[len(shown) // 5], "--title", f"Changed beside page {len(shown)}")
        page = typed("list", "--limit", "5", "--after", found[1])
    assert set(shown) == set(notes)
    assert typed("list", "--all", "--json").json["total"] == len(notes)


def test_a_place_and_an_offset_do_not_go_together(typed: Typed, notes: list[str]) -> None:
    """Programs find the place in the answer; both at once, or a place that no page named, are errors."""
    after = typed("list", "--limit", "5", "--json").json["after"]
    rest = typed("list", "--limit", "100", "--after", after, "--json").json
    assert (len(rest["memories"]), "after" in rest) == (len(notes) - 5, False)
    for wrong in (("--after", after, "--offset", "5"), ("--after", "soon"), ("--after", after, "--order", "used")):
        assert typed("list", *wrong).code == 2

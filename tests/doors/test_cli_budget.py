"""`recall --max-tokens`: what is printed keeps to the budget, for machines to the token."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from callers import ADA
from recollect import Draft, Settings, remember
from recollect.errors import InvalidInput
from stores import open_app

pytestmark = pytest.mark.slow

Typed = Callable[..., Any]


def stock(settings: Settings) -> None:
    """Put a dozen memories of one animal into the store, one of them long."""
    with open_app(settings) as app:
        book = "The quokka handbook. " + "Keep a quokka cool, „calm“ and well fed. " * 60
        remember(app, Draft(content=book, category="books"), ADA)
        for number in range(11):
            remember(app, Draft(content=f"Quokka {number} weighs {number + 2} kilos, écrit Ada."), ADA)


def test_the_printed_json_keeps_to_the_budget(typed: Typed, settings: Settings) -> None:
    """The model's tokenizer finds at most so many tokens in what `--json` prints, and the counts add up."""
    stock(settings)
    said = {most: typed("recall", "quokka", "--json", "--max-tokens", str(most)) for most in (64, 300, 700, 4000)}
    assert {one.code for one in said.values()} == {0}
    with open_app(settings, background=False) as app:
        used = {most: len(app.embedder.spans(one.out)) for most, one in said.items()}
    assert all(0 < found <= most for most, found in used.items()), used
    for one in said.values():
        body = one.json
        assert len(body["index"]) + body["unlisted"] == len(body["details"]) + body["omitted"]
        assert body["message"].endswith(" memories found.")
    ample = said[4000].json
    assert ample["unlisted"] == 0
    assert len(ample["details"]) == min(10, len(ample["index"]))


def test_for_people_the_index_comes_first(typed: Typed, settings: Settings) -> None:
    """In a terminal the index is a table, the details follow, and what is missing is counted."""
    stock(settings)
    shown = typed("recall", "quokka handbook", "--category", "books", "--max-tokens", "350").out
    assert shown.index("Index") < shown.index("The quokka handbook.") < shown.index("found by")
    assert "passage only" in shown
    brief = typed("recall", "quokka", "--max-tokens", "100").out
    assert "memories found." in brief
    assert "Without details: " in brief
    assert "Not even listed: " in brief


def test_a_terminal_without_unicode_gets_the_same_answer(typed: Typed, settings: Settings) -> None:
    """Where standard output knows only ASCII the JSON still says the same."""
    stock(settings)
    command = ("recall", "quokka", "--json", "--max-tokens", "700")
    ascii_only = typed(*command, PYTHONIOENCODING="ascii")
    assert ascii_only.out.isascii()
    assert ascii_only.json["index"] == json.loads(typed(*command).out)["index"]


@pytest.mark.parametrize("most", ["0", "63", "1000001"])
def test_a_budget_out_of_range_ends_with_two(typed: Typed, most: str) -> None:
    """A budget that is too small or too large is named on standard error, with what is allowed."""
    ended = typed("recall", "quokka", "--max-tokens", most)
    assert (ended.code, ended.out) == (InvalidInput.exit_code, "")
    assert "Invalid max_tokens: Must be a whole number from 64 to 1000000" in ended.err

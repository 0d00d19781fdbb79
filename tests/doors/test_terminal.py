"""The terminal: what was remembered is shown, and never steers what shows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from callers import ADA
from recollect import Draft, Settings, remember, store_fact
from recollect.domain.origin import SaidBy
from recollect.domain.requests import StoreFact
from stores import open_app

Typed = Callable[..., Any]
TITLE = "\x1b]0;mine\x07"
CLIPBOARD = "\x1b]52;c;aGk=\x1b\\"
NAUGHTY = f"The mast {TITLE}is\x9b31m oak{CLIPBOARD}, \u202eturned\u202c round\rOver."
STEERING = {*map(chr, range(32)), *map(chr, range(0x7F, 0xA0)), "\u202e", "\u202c"} - {"\n", "\t"}


@pytest.fixture
def naughty(settings: Settings) -> Settings:
    """Return the settings of a store whose one memory and fact would steer a terminal."""
    with open_app(settings) as app:
        named = {"title": f"A {TITLE}title", "category": f"oak{TITLE}", "tags": (f"mast{CLIPBOARD}",)}
        remember(app, Draft(content=NAUGHTY, key=f"mast{TITLE}", speaker=f"Ada{TITLE}", **named), ADA)
        store_fact(app, StoreFact(subject=f"mast{TITLE}", predicate="is", object=f"oak{CLIPBOARD}"), ADA)
    return settings


@pytest.mark.parametrize(
    "command",
    [
        ("recall", "mast"),
        ("recall", "mast", "--max-tokens", "500"),
        ("show", "1"),
        ("list",),
        ("facts",),
        ("stats",),
        ("export",),
        ("export", "--format", "markdown"),
    ],
    ids=" ".join,
)
def test_nothing_steers_the_terminal(typed: Typed, naughty: Settings, command: tuple[str, ...]) -> None:
    """Escape sequences, other control characters and turned letters are shown as signs one can see."""
    shown = typed(*command).out
    assert "mast" in shown or "oak" in shown
    assert not STEERING & set(shown)


def test_machines_get_it_as_it_is(typed: Typed, naughty: Settings) -> None:
    """`--json` keeps every character, escaped."""
    shown = typed("show", "1", "--json")
    assert shown.json["content"] == NAUGHTY
    assert "\x1b" not in shown.out


def test_a_contradiction_and_its_source_are_shown(typed: Typed, settings: Settings) -> None:
    """A hit says which memory it may deny and that it comes from a page; what a person told says neither."""
    with open_app(settings) as app:
        told = remember(app, Draft(content="We deploy the billing service from the branch release-stable."), ADA)
        page = ADA.saying(SaidBy.WEB, "https://docs.example.com/a")
        remember(app, Draft(content="We deploy the billing service from the branch release-canary now."), page)
    shown = typed("recall", "From which branch do we deploy the billing service?").out
    assert shown.count(f"may contradict {told.id}") == shown.count("from a web page: https://docs.example.com/a") == 1

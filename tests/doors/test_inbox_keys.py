"""The inbox at a terminal: one key for each memory, and what that does to the store."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from callers import ADA
from recollect import App, Settings
from recollect.domain.enums import OnFound
from recollect.domain.origin import Authority, SaidBy
from run_operations import add, by_hand, do, listed, shown, token
from stores import open_app
from terminal import Terminal, terminal

Typing = Callable[[], AbstractContextManager[Terminal]]
WAITING = {
    "approve": ("https://a.example.com/1", "The north pier has nine lamps."),
    "reject": ("https://b.example.com/1", "The south pier has no lamp."),
    "edit": ("https://c.example.com/1", "The quay is four metres wide."),
    "always": ("https://d.example.com/1", "The crane lifts nine tonnes."),
    "always too": ("https://d.example.com/2", "The winch pulls two tonnes."),
    "never": ("https://e.example.com/1", "The dock is closed on Mondays."),
    "never too": ("https://e.example.com/2", "The lock is closed on Tuesdays."),
    "skip": ("https://f.example.com/1", "The ferry leaves at seven."),
    "a wrong key": ("https://g.example.com/1", "The harbour master is called Ruth."),
    "quit": ("https://h.example.com/1", "The beacon blinks twice."),
    "after quit": ("https://i.example.com/1", "The buoy is red."),
}
KEYS = (
    ("approve", "a"),
    ("reject", "r"),
    ("edit", "e"),
    ("always", "y"),
    ("never", "n"),
    ("skip", "s"),
    ("a wrong key", "x"),
    ("quit", "q"),
)


@pytest.fixture
def at_terminal(alone: dict[str, str], tmp_path: Path) -> Typing:
    """Return what runs `recollect inbox` at a terminal."""
    return lambda: terminal(["inbox"], alone, tmp_path)


def answer(screen: Terminal, said: str, key: str) -> None:
    """Wait until a memory is shown and asked about, and press a key."""
    assert said in screen.wait_for("[q]uit")
    screen.wait_for(": ")
    screen.type(key)


def test_each_key_does_what_it_says(app: App, settings: Settings, at_terminal: Typing) -> None:
    """One memory after the other is shown once, each key decides one or a source, and quitting leaves the others."""
    ids = {name: add(app, said, ADA.saying(SaidBy.WEB, page)) for name, (page, said) in WAITING.items()}
    app.close()
    with at_terminal() as screen:
        for name, key in KEYS:
            answer(screen, WAITING[name][1], key)
            if name == "edit":
                screen.wait_for("In your words: ")
                screen.type("The quay is five metres wide.")
        assert screen.end() == 0
    assert WAITING["after quit"][1] not in screen.shown
    assert screen.shown.count(WAITING["always too"][1]) == screen.shown.count(WAITING["never too"][1]) == 0
    check_decisions(settings, ids)


def check_decisions(settings: Settings, ids: dict[str, int]) -> None:
    """Look at what each key did to the store, and to what comes later from the same sources."""
    with open_app(settings) as app:
        hidden = {ids["reject"], ids["never"], ids["never too"]}
        assert set(listed(app)) == set(ids.values()) - hidden
        approved = ("approve", "always", "always too")
        assert [shown(app, ids[one]).review for one in approved] == ["approved"] * 3
        edited = shown(app, ids["edit"])
        assert (edited.content, edited.authority) == ("The quay is five metres wide.", Authority.TOLD)
        left = {one.id for one in do(app, "inbox").waiting}
        assert left == {ids["skip"], ids["a wrong key"], ids["quit"], ids["after quit"]}
        later = {
            host: add(app, f"Page {host} says more.", ADA.saying(SaidBy.WEB, f"https://{host}.example.com/9"))
            for host in "ade"
        }
        assert shown(app, later["d"]).speaks_unasked
        assert shown(app, later["a"]).review == "the source is not approved"
        assert later["e"] not in listed(app)


def test_what_is_in_quarantine_is_asked_about_too(app: App, settings: Settings, at_terminal: Typing) -> None:
    """A refusal of the gate is said and the next is asked about; the key for a source does nothing there."""
    one, two = add(app, "The deploy bot has an account."), add(app, "The build bot has an account.")
    for each in (one, two):
        by_hand(settings, "UPDATE memory SET content = ? WHERE id = ?", f"Bot {each} signs in with {token()}.", each)
    do(app, "rescan", on_found=OnFound.QUARANTINE)
    app.close()
    with at_terminal() as screen:
        answer(screen, f"Bot {one} signs in with", "a")
        screen.wait_for("Secret detection")
        answer(screen, f"Bot {two} signs in with", "r")
        assert screen.end() == 0
    assert token() not in screen.shown
    assert "this source" not in screen.shown
    with open_app(settings) as again:
        assert [each.id for each in do(again, "inbox").waiting] == [one]

"""Soft forgetting: hidden from every read, kept for `restore`, and gone for good only when asked."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from callers import ADA
from recollect import App, Settings
from recollect.domain.enums import OnSecret
from recollect.domain.results import WriteStatus
from recollect.domain.search import View
from recollect.errors import NotFound, SecretFound
from recollect.memory.reindex import reindex
from run_operations import OTHER, actions, add, by_hand, do, ill, listed, recalled, rows, shown, token

if TYPE_CHECKING:
    from conftest import Clock


def test_hidden_and_back(app: App) -> None:
    """A hidden memory is found by nothing until it is restored, and then by everything again."""
    one = add(app, "The mascot is a quokka named Zephyrine.", tags=("animal",), category="club")
    before = shown(app, one)
    outcome = do(app, "memory_forget", id=str(one))
    assert outcome.message == f"Memory {one} deleted."
    assert outcome.said == "The mascot is a quokka named Zephyrine."
    assert "restore" in outcome.notes[0]
    assert recalled(app, "quokka mascot") == set()
    assert do(app, "recall", query="Zephyrin").notes == ()
    assert ill(app) == []
    assert do(app, "restore", id=str(one)).message == f"Memory {one} restored."
    assert do(app, "restore", id=str(one)).status is WriteStatus.UNCHANGED
    assert recalled(app, "quokka mascot") == {one}
    after = shown(app, one)
    for name in ("content", "title", "tags", "category", "confidence", "importance", "created_at", "expires_at"):
        assert getattr(after, name) == getattr(before, name), name
    assert actions(app, one) == ["insert", "delete", "restore"]
    assert ill(app) == []


def test_hidden_twice_is_not_found(app: App) -> None:
    """What is hidden already, or foreign, or nothing, is not found; that is no error."""
    one = add(app, "The mascot is a quokka.")
    foreign = add(app, "The mascot is a heron.", OTHER)
    assert do(app, "memory_forget", id=str(one)).status is WriteStatus.DELETED
    for odd in (one, foreign, 999, "abc"):
        assert do(app, "memory_forget", id=str(odd)).status is WriteStatus.NOT_FOUND
        assert do(app, "restore", id="999" if odd == one else str(odd)).status is WriteStatus.NOT_FOUND
    assert shown(app, foreign, OTHER).content == "The mascot is a heron."


def test_hard_leaves_nothing(app: App, settings: Settings) -> None:
    """With `hard`, and by `forget`, a hidden memory too leaves no row behind but its lines in the journal."""
    ids = [add(app, f"The {animal} is hidden.") for animal in ("quokka", "heron")]
    for one in ids:
        do(app, "memory_forget", id=str(one))
    assert do(app, "memory_forget", id=str(ids[0]), hard=True).status is WriteStatus.DELETED
    assert do(app, "forget", id=str(ids[1])).status is WriteStatus.DELETED
    for table in ("memory", "label", "vector", "memory_words", "word"):
        assert rows(settings, f"SELECT * FROM {table}") == []
    assert actions(app, ids[0]) == ["insert", "delete", "delete"]
    assert do(app, "restore", id=str(ids[0])).status is WriteStatus.NOT_FOUND
    assert ill(app) == []


def test_a_restored_memory_keeps_its_term(app: App, clock: Clock) -> None:
    """What was to be kept for ten days is not kept for ever because it was hidden for one."""
    one = add(app, "The fair is on.", ttl_days=10)
    ends = shown(app, one).expires_at
    do(app, "memory_forget", id=str(one))
    clock.pass_days(1)
    do(app, "restore", id=str(one))
    assert (shown(app, one).expires_at, shown(app, one).ttl_days) == (ends, 10.0)


def test_an_expired_memory_comes_back_for_its_term(app: App, clock: Clock) -> None:
    """Restored after its time, a memory is kept for as long again."""
    one = add(app, "The fair is on.", ttl_days=2)
    clock.pass_days(5)
    do(app, "restore", id=str(one))
    assert shown(app, one).expires_at == clock.now + timedelta(days=2)


def test_the_same_text_is_a_new_memory_meanwhile(app: App) -> None:
    """Remembering what is hidden makes a new memory unless it has a key; a key brings the hidden one back."""
    plain, keyed = add(app, "The mascot is a quokka."), add(app, "The emblem is a heron.", key="emblem")
    for one in (plain, keyed):
        do(app, "memory_forget", id=str(one))
    assert add(app, "The mascot is a quokka.") != plain
    assert add(app, "The emblem is a stork.", key="emblem") == keyed
    assert recalled(app, "emblem stork") >= {keyed}
    assert ill(app) == []


def test_an_unknown_level_is_not_restored(app: App, settings: Settings) -> None:
    """A memory of a level that nobody knows does not come back, whatever is let in."""
    one = add(app, "The vault is behind the clock.")
    by_hand(settings, "UPDATE memory SET sensitivity = 'cosmic' WHERE id = ?", one)
    assert listed(app, allow_private=True, allow_secret=True) == []
    let_in = {"allow_private": True, "allow_secret": True}
    assert do(app, "restore", id=str(one), **let_in).status == "not_found"
    assert listed(app, **let_in) == []


def test_restoring_passes_the_gate(app: App, settings: Settings, open_store: Callable[..., App]) -> None:
    """A hidden secret does not come back; where secrets are masked it comes back masked, and says so."""
    one = add(app, "The deploy key is kept elsewhere.")
    do(app, "memory_forget", id=str(one))
    by_hand(settings, "UPDATE memory SET content = ? WHERE id = ?", f"The deploy key is {token()}", one)
    with pytest.raises(SecretFound):
        do(app, "restore", id=str(one))
    with pytest.raises(NotFound):
        shown(app, one)
    app.close()
    masking = open_store(on_secret=OnSecret.REDACT)
    assert do(masking, "restore", id=str(one)).notes == ("A secret was found and masked before storing.",)
    assert "[redacted:" in shown(masking, one).content


def test_a_memory_hidden_before_the_model_came_is_read_when_it_returns(open_store: Callable[..., App]) -> None:
    """A restored memory has its vectors again, and the index holds exactly those."""
    app = open_store()
    one = add(app, "The chef prefers frying onions in butter.")
    do(app, "memory_forget", id=str(one))
    do(app, "restore", id=str(one))
    app.vectors.sync()
    assert recalled(app, "culinary fat of choice in the kitchen") == {one}
    assert ill(app) == []


def test_a_rebuilt_index_leaves_it_hidden(app: App) -> None:
    """A `reindex` makes no word of what is hidden a guess again, and what is restored afterwards is found."""
    one = add(app, "The mascot is a quokka named Zephyrine.")
    add(app, "A heron stands on the pier.")
    do(app, "memory_forget", id=str(one))
    reindex(app)
    assert do(app, "recall", query="Zephyrina").notes == ()
    assert app.text.frequencies(["zephyrine", "heron"], everything_of(app)) == {"heron": 1}
    do(app, "restore", id=str(one))
    assert one in recalled(app, "Zephyrine")
    assert ill(app) == []


def everything_of(app: App) -> View:
    """Return a view of all that the caller may see."""
    return View(namespaces=ADA.namespaces(), now=app.clock())

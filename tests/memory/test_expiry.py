"""Expiry: what has passed its time leaves every read at once, and the store when it is purged."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from recollect import App, Settings
from recollect.domain.enums import Retention
from run_operations import OTHER, actions, add, by_hand, do, ill, listed, recalled, rows, shown, token
from stores import open_app

if TYPE_CHECKING:
    from conftest import Clock


def test_purging_removes_what_has_passed(app: App, settings: Settings, clock: Clock) -> None:
    """Purging removes exactly what has passed its time, says how many, is on record, and then finds nothing."""
    gone = [add(app, f"The {name} is on.", ttl_days=days) for name, days in (("fair", 1), ("market", 2))]
    stays = [add(app, "The tide is high.", ttl_days=30), add(app, "The pier is long.")]
    foreign = add(app, "The gate is shut.", OTHER, ttl_days=1)
    clock.pass_days(2)
    assert recalled(app, "fair market").isdisjoint(gone)
    assert do(app, "stats").expired == 2
    purged = do(app, "purge_expired")
    assert (purged.ids, purged.message) == (tuple(gone), "2 expired memories removed.")
    assert {one for (one,) in rows(settings, "SELECT id FROM memory")} == {*stays, foreign}
    assert actions(app, gone[0]) == ["insert", "purge"]
    assert do(app, "purge_expired").ids == ()
    assert ill(app) == []


def test_a_scope_limits_purging(app: App, clock: Clock) -> None:
    """With a scope only that namespace is purged."""
    ids = {scope: add(app, f"The {scope} fair is on.", scope=scope, ttl_days=1) for scope in ("personal", "team")}
    clock.pass_days(1)
    assert do(app, "purge_expired", scope="team").ids == (ids["team"],)
    assert do(app, "purge_expired").ids == (ids["personal"],)


def test_purging_takes_hidden_ones_and_parts_along(app: App, settings: Settings, clock: Clock) -> None:
    """What is hidden, or was merged into what goes, goes too."""
    one = add(app, "The user prefers dark mode in the editor.", ttl_days=1)
    add(app, "The user prefers dark mode in the editor. The font is Fira Code.", ttl_days=1)
    hidden = add(app, "The heron stands on the pier.", ttl_days=1)
    do(app, "memory_forget", id=str(hidden))
    clock.pass_days(1)
    assert set(do(app, "purge_expired").ids) >= {one, hidden}
    assert rows(settings, "SELECT * FROM memory") == []
    assert ill(app) == []


def test_nothing_ends_unless_it_is_told_to(app: App, clock: Clock) -> None:
    """Without a term and without a rule memories stay for ever."""
    one = add(app, "The pier is long.", importance=0.0)
    clock.pass_days(10_000)
    assert do(app, "purge_expired").ids == ()
    assert listed(app) == [one]


def test_said_again_without_a_term_it_has_none(app: App, clock: Clock) -> None:
    """What had passed its time and is said again, keeps nothing of the old term."""
    one = add(app, "The fair is on.", ttl_days=1)
    clock.pass_days(2)
    add(app, "The fair is on.")
    assert (shown(app, one).expires_at, shown(app, one).ttl_days) == (None, None)


@pytest.mark.parametrize(("importance", "days"), [(0.8, 240), (0.5, 150), (0.1, 30), (0.0, 1), (1.0, 300)])
def test_importance_gives_the_term(
    open_store: Callable[..., App], clock: Clock, importance: float, days: float
) -> None:
    """Under the rule of importance a memory is kept for thirty days for each of ten steps, at least one day."""
    app = open_store(retention=Retention.IMPORTANCE)
    one = add(app, "The pier is long.", importance=importance)
    assert shown(app, one).expires_at == clock.now + timedelta(days=days)
    clock.pass_days(days)
    assert listed(app) == []


def test_a_given_term_wins(open_store: Callable[..., App], clock: Clock) -> None:
    """A time to live wins over the rule, and another importance gives another term."""
    app = open_store(retention=Retention.IMPORTANCE)
    short = add(app, "The fair is on.", importance=1.0, ttl_days=2)
    other = add(app, "The pier is long.", importance=0.1)
    assert shown(app, short).expires_at == clock.now + timedelta(days=2)
    clock.pass_days(1)
    do(app, "update_memory", id=str(other), importance=0.9)
    assert shown(app, other).expires_at == clock.now + timedelta(days=270)
    do(app, "update_memory", id=str(other), category="town")
    assert shown(app, other).expires_at == clock.now + timedelta(days=270)


def test_use_prolongs_what_is_important(settings: Settings, clock: Clock) -> None:
    """Reading, recalling, and showing to a model that asks let an important memory live on, and no slight one."""
    with open_app(
        settings.model_copy(update={"retention": Retention.IMPORTANCE}), background=False, clock=clock
    ) as app:
        ids = [add(app, f"The {name} is long.", importance=weight) for name, weight in (("pier", 0.8), ("jetty", 0.3))]
        told = [clock.now + timedelta(days=days) for days in (240, 90)]
        for verb in ("recall", "format_for_prompt"):
            clock.pass_days(20)
            do(app, verb, query="pier jetty long")
            assert [shown(app, one).expires_at for one in ids] == [clock.now + timedelta(days=240), told[1]]
        clock.pass_days(20)
        for one in ids:
            shown(app, one)
        assert shown(app, ids[0]).expires_at == clock.now + timedelta(days=240)
        assert actions(app, ids[0]) == ["insert", "refresh", "refresh", "refresh"]
        assert actions(app, ids[1]) == ["insert"]


def test_use_prolongs_no_given_term(settings: Settings, clock: Clock) -> None:
    """Who says how long a memory is to be kept is taken at their word, however often it is used."""
    with open_app(
        settings.model_copy(update={"retention": Retention.IMPORTANCE}), background=False, clock=clock
    ) as app:
        one = add(app, "The fair is on.", importance=1.0, ttl_days=10)
        ends = shown(app, one).expires_at
        clock.pass_days(5)
        shown(app, one)
        assert shown(app, one).expires_at == ends


def test_masking_revives_nothing(app: App, settings: Settings, clock: Clock) -> None:
    """A rescan that masks a secret in what has expired leaves it expired, and what is hidden hidden."""
    ids = [add(app, f"The {name} is on.", **more) for name, more in (("fair", {"ttl_days": 1}), ("market", {}))]
    do(app, "memory_forget", id=str(ids[1]))
    clock.pass_days(2)
    by_hand(settings, "UPDATE memory SET content = ?", f"The deploy key is {token()}")
    assert do(app, "rescan", on_found="redact").changed == 2
    assert rows(settings, "SELECT count(*) FROM memory WHERE content LIKE '%[redacted%'") == [(2,)]
    assert listed(app) == []
    assert do(app, "purge_expired").ids == (ids[0],)
    assert rows(settings, "SELECT * FROM word") == []
    assert ill(app) == []

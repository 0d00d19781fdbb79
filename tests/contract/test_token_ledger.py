"""The tokens that a language model may use in an hour and a day: kept in SQL, the same on every database."""

from __future__ import annotations

import threading
from datetime import timedelta

from clock import Clock
from recollect.store.sql.database import Database
from recollect.store.sql.token_ledger import SqlTokenLedger


def test_the_budget_outlives_a_process(database: Database, clock: Clock) -> None:
    """Two ledgers of one database share the hour and the day, and each begins anew at its own time."""
    one, two = (SqlTokenLedger(database, clock, 100, 150) for _ in range(2))
    first = one.reserve(60)
    assert first is not None
    assert two.reserve(41) is None
    one.settle(first, 20)
    assert two.reserve(80) is not None
    clock.now += timedelta(hours=1)
    assert one.reserve(51) is None, "the day has 50 left"
    assert one.reserve(50) is not None
    clock.now += timedelta(days=1)
    assert two.reserve(100) is not None


def test_what_is_settled_late_counts_where_it_was_reserved(database: Database, clock: Clock) -> None:
    """An answer after the hour frees nothing of the next hour, and what a server tells beyond the bound counts."""
    ledger = SqlTokenLedger(database, clock, 100, 1_000)
    late = ledger.reserve(80)
    assert late is not None
    clock.now += timedelta(hours=1)
    ledger.settle(late, 10)
    assert (ledger.used().hour, ledger.used().day) == (0, 10)
    over = ledger.reserve(10)
    assert over is not None
    ledger.settle(over, 100)
    assert ledger.reserve(1) is None


def test_a_clock_that_goes_back_gives_no_tokens(database: Database, clock: Clock) -> None:
    """The hour that was reached stays the present one."""
    ledger = SqlTokenLedger(database, clock, 100, 100)
    assert ledger.reserve(100) is not None
    clock.now -= timedelta(days=1)
    assert ledger.reserve(1) is None


def test_many_at_once_stay_within_the_budget(database: Database, clock: Clock) -> None:
    """Threads that reserve at the same time get no more together than there is."""
    ledger = SqlTokenLedger(database, clock, 100, 100)
    got: list[object] = []
    threads = [threading.Thread(target=lambda: got.append(ledger.reserve(30))) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sum(one is not None for one in got) == 3

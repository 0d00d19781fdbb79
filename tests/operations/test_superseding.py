"""Superseding: a correction takes the place of what it puts right, which leaves recall and stays in history."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from recollect import App
from recollect.domain import Choice, Done
from told import OTHER, actions, always, do, ill, judged_by, listed, recalled, shown, tell

if TYPE_CHECKING:
    from conftest import Clock

OLD = "We use MySQL for the orders."
RIGHT = "We switched from MySQL to Postgres for the orders."


def corrected(app: App) -> tuple[int, int]:
    """Say something and put it right."""
    return tell(app, OLD), tell(app, RIGHT)


def test_a_correction_takes_the_place(app: App) -> None:
    """The older memory leaves every list and recall; by id it still says what put it right."""
    old = tell(app, OLD)
    outcome = do(app, "remember", content=RIGHT)
    assert (outcome.done, outcome.notes) == (Done.STORED, (f"It puts right memory {old}, which leaves recall.",))
    assert recalled(app, "MySQL orders") == {int(outcome.id)}
    assert listed(app) == [int(outcome.id)]
    assert recalled(app, "MySQL orders", superseded=True) == {old, int(outcome.id)}
    assert shown(app, old).superseded_by == int(outcome.id)
    assert actions(app, old) == ["insert", "update"]
    assert do(app, "stats").superseded == 1
    assert ill(app) == []


def test_a_judge_does_not_keep_what_was_put_right(app: App) -> None:
    """What is plainly a correction supersedes, whatever a judge would make of the two."""
    old = tell(app, OLD)
    for choice in (Choice.CREATE, Choice.MERGE):
        new = tell(judged_by(app, always(choice)), RIGHT)
        assert shown(app, old).superseded_by == new
        do(app, "forget", id=str(new))
        do(app, "restore", id=str(old))


def test_what_was_put_right_can_be_restored(app: App) -> None:
    """Restored, or said again, the older memory is current once more."""
    old, new = corrected(app)
    do(app, "restore", id=str(old))
    assert set(listed(app)) == {old, new}
    assert shown(app, old).superseded_by is None
    tell(app, "Correction: we do not use MySQL for the orders.")
    again = do(app, "remember", content=OLD)
    assert (again.id, shown(app, old).superseded_by) == (str(old), None)


def test_a_correction_reaches_no_other_namespace(app: App) -> None:
    """Another tenant's memory, another scope's, and a private one stand as they were."""
    ids = [(tell(app, OLD, OTHER), OTHER), (tell(app, OLD, scope="team"), None)]
    ids.append((tell(app, OLD, sensitivity="private"), None))
    tell(app, RIGHT)
    assert all(shown(app, one, caller).superseded_by is None for one, caller in ids)


def test_what_goes_soon_puts_nothing_right_for_good(app: App, clock: Clock) -> None:
    """A correction with a term does not take what has none out of recall, or nothing would be left after it."""
    old = tell(app, OLD)
    tell(app, RIGHT, ttl_days=1)
    clock.pass_days(2)
    assert listed(app) == [old]


@pytest.mark.parametrize("key", [None, "database"])
def test_a_keyed_memory_can_be_put_right(app: App, key: str | None) -> None:
    """A memory with a key is superseded too, and whoever writes to its key makes it current."""
    old = tell(app, OLD, key="orders")
    new = tell(app, RIGHT, key=key)
    assert shown(app, old).superseded_by == new
    assert tell(app, "The orders live in SQLite.", key="orders") == old
    assert old in listed(app)


def test_forgetting_a_correction_brings_back_what_it_put_right(app: App) -> None:
    """Who forgets what was wrong wants what was said before; the journal tells of it."""
    old = tell(app, "We use MySQL for orders.")
    new = tell(app, "We now use Postgres instead of MySQL for orders.")
    assert recalled(app, "which database for orders?") == {new}
    do(app, "forget", id=str(new))
    assert recalled(app, "which database for orders?") == {old}
    assert actions(app, old) == ["insert", "update", "update"]


def test_what_was_put_right_twice_stays_out_when_the_first_correction_goes(app: App) -> None:
    """Of a chain of corrections the newest holds on: without the middle one the oldest gives way to the newest."""
    texts = ("We use MySQL for the orders.", "We use Postgres instead of MySQL for the orders.")
    ids = [*map(partial(tell, app), texts), tell(app, "We no longer use Postgres for the orders.")]
    with app.records.writing("project:crew/engine", "ada") as transaction:
        transaction.supersede(ids[1], by=ids[2])
    do(app, "forget", id=str(ids[1]))
    assert listed(app) == [ids[2]]
    assert shown(app, ids[0]).superseded_by == ids[2]
    do(app, "forget", id=str(ids[2]))
    assert listed(app) == [ids[0]]
    assert ill(app) == []

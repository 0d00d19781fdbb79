"""Counts: the doctor sees when the kept counts and names are not those of the memories, and reindex mends them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from callers import ADA
from recollect import App, Draft, reindex, remember


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE held SET memories = memories + 1",
        "UPDATE held SET memories = 0",
        "INSERT INTO speaker (namespace_id, name, word) VALUES (1, 'Nobody', 'nobody')",
        "UPDATE live_size SET memories = memories + 1",
        "UPDATE live_size SET bytes = 0",
        "UPDATE memory SET speaker = 'Somebody Else'",
    ],
)
def test_the_doctor_counts(parts: Any, damage: str) -> None:
    """A count that is wrong, and a name that nobody bears any more, are noticed; a sound store has neither."""
    parts.add("Said", speaker="Ada Lovelace")
    assert "counts" not in parts.checks()
    parts.by_hand(damage)
    assert "recollect reindex" in parts.checks()["counts"].advice


def test_reindexing_mends_the_counts(open_store: Callable[..., App]) -> None:
    """After reindex the counts and names are those of the memories."""
    app = open_store()
    remember(app, Draft(content="The tide turns at noon", speaker="Ada Lovelace"), ADA)
    with app.records._database.writing() as connection:
        connection.exec_driver_sql("UPDATE held SET memories = 9")
        connection.exec_driver_sql("UPDATE live_size SET bytes = 9")
        connection.exec_driver_sql("UPDATE speaker SET name = 'Nobody'")
    assert [check.name for check in app.checks() if not check.well] == ["counts"]
    reindex(app)
    assert all(check.well for check in app.checks())

"""A deletion that is killed at any instant goes on when it is asked for again, and its receipt is whole."""

from __future__ import annotations

from contextlib import closing

import pytest

from killed_deletions import kill_deletions
from leaver import ADA, BOB, HERS, MAST, NOTED, Leaving
from recollect import Settings
from recollect.store.sql.database import open_file
from recollect.store.sql.departures import Departures
from stores import open_app

pytestmark = pytest.mark.slow

MORE = 30


def test_a_killed_deletion_is_not_half_said(settings: Settings, environment: dict[str, str]) -> None:
    """After each kill there is no receipt or a whole one; the last request ends the work, and counts all of it."""
    with open_app(settings) as app:
        leaving = Leaving(app)
        leaving.fill()
        for number in range(MORE):
            text = f"The lamp {number} of the lighthouse burns {number * 7} hours on a barrel of oil."
            leaving.do("remember", ADA, content=text, scope="personal" if number % 2 else "project", fact_type="event")
    for seed in kill_deletions(environment, range(4), 0.8):
        with closing(open_file(settings.folder / "memory.db")) as database:
            found = Departures(database).of("ada")
            assert [one.receipt is None or one.receipt["complete"] for one in found] in ([], [True]), seed
    with open_app(settings) as app:
        leaving = Leaving.__new__(Leaving)
        leaving.app = app
        if app.records.departures.unfinished("ada") or not app.records.departures.of("ada"):
            leaving.delete(erase=True)
        [signed] = leaving.administer("list_receipts", user="ada").receipts
        assert (signed.proven, signed.receipt.memories["erased"]) == (True, len(HERS) + MORE)
        assert not [text for text in (*HERS, NOTED, "of the lighthouse burns") if text in leaving.written()]
        assert leaving.listed(BOB).keys() == {MAST}
        assert leaving.ill() == []

"""Uses of memories, which are gathered and written once a second: none is lost at a clean end."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from callers import ADA
from recollect import App, Draft, Get, get_memory, remember
from recollect.errors import StoreUnusable
from recollect.store.usage_counts import UsageCounts


class Written:
    """Takes what is written in place of a database, which is `away` or not."""

    def __init__(self) -> None:
        self.uses: list[tuple[list[int], int, int]] = []
        self.away = False

    def add(self, ids: list[int], at: datetime, *, accessed: int, recalled: int) -> None:
        """Note a write, or raise `StoreUnusable`."""
        if self.away:
            raise StoreUnusable("The database cannot be used.")
        self.uses.append((ids, accessed, recalled))


def counts(written: Any, asked: list[Callable[[], None]]) -> UsageCounts:
    """Return what counts uses, writes them into `written`, and notes in `asked` that it wants to write."""
    return UsageCounts(written, asked.append)


def test_uses_of_a_second_are_one_statement(clock: Any) -> None:
    """However many reads there were, there is one write for all memories that were read equally often."""
    written, asked = Written(), list[Callable[[], None]]()
    usage = counts(written, asked)
    for _ in range(3):
        usage.add([1, 2], clock(), accessed=False)
    usage.add([3], clock(), accessed=True)
    assert len(asked) == 1
    asked[0]()
    assert written.uses == [([1, 2], 0, 3), ([3], 1, 0)]
    usage.add([], clock(), accessed=True)
    assert len(asked) == 1
    usage.add([1], clock(), accessed=True)
    assert len(asked) == 2


def test_what_could_not_be_written_is_kept(clock: Any) -> None:
    """Uses that a failing database did not take are written with the next ones, once."""
    written = Written()
    usage = counts(written, [])
    usage.add([1], clock(), accessed=False)
    written.away = True
    with pytest.raises(StoreUnusable):
        usage.write()
    usage.add([1], clock() + timedelta(seconds=1), accessed=False)
    written.away = False
    usage.write()
    usage.write()
    assert written.uses == [([1], 0, 2)]


def test_uses_are_written_behind_a_read(open_store: Callable[..., App]) -> None:
    """With work in the background a read is counted about a second later; until then reads do not show it."""
    app = open_store(background=True)
    kept = remember(app, Draft(content="The mast is pine."), ADA)
    assert get_memory(app, Get(id=kept.id), ADA).accessed_count == 0
    until = time.monotonic() + 60
    while not get_memory(app, Get(id=kept.id), ADA).accessed_count:
        assert time.monotonic() < until
        time.sleep(0.2)


def test_a_clean_end_writes_what_was_counted(open_store: Callable[..., App]) -> None:
    """A store that is closed within the second has counted every use when it is opened again."""
    app = open_store(background=True)
    kept = remember(app, Draft(content="The mast is pine."), ADA)
    for _ in range(3):
        get_memory(app, Get(id=kept.id), ADA)
    app.close()
    assert get_memory(open_store(), Get(id=kept.id), ADA).accessed_count == 3

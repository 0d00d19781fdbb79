"""Usage: what was read is counted in the background, and what is important lives longer for it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from recollect.domain import Caller, Retention
from recollect.ports import App


def used(app: App, ids: Sequence[int], at: datetime, caller: Caller, *, accessed: bool) -> None:
    """Count that these memories were read: `accessed` by id, else recalled as hits."""
    if not ids:
        return

    def count() -> None:
        app.records.touch(ids, at, accessed=accessed)
        if app.keeping.retention is Retention.IMPORTANCE:
            app.records.prolong(ids, at, caller.user)

    app.later(count)

"""Access counts: reads are counted in the background, and under the rule of importance they extend the expiry."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from recollect.domain.enums import Retention
from recollect.domain.requests import Caller
from recollect.ports.app import App


def count_use(app: App, ids: Sequence[int], at: datetime, caller: Caller, *, accessed: bool) -> None:
    """Count that these memories were read: `accessed` by id, else recalled as hits."""
    if not ids:
        return

    def count() -> None:
        app.records.touch(ids, at, accessed=accessed)
        if app.retention_rules.retention is Retention.IMPORTANCE:
            app.records.extend_expiry(ids, at, caller.user)

    app.run_later(count)

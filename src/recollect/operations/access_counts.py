"""Access counts: what was read is counted, which extends the expiry of what is important, or of what was captured.

A read by id counts at once, since it decides what gives way next in a full store; hits count in the background.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime

from recollect.app import App
from recollect.domain.enums import Retention
from recollect.domain.requests import Caller
from recollect.domain.results import Memory
from recollect.errors import StoreUnusable


def count_use(app: App, memories: Sequence[Memory], at: datetime, caller: Caller, *, accessed: bool) -> None:
    """Count that these memories were read: `accessed` by id, else recalled as hits."""
    ids = [one.id for one in memories]
    if not ids:
        return
    ending = [one.id for one in memories if one.expires_at is not None and one.ttl_days is None]

    def extend() -> None:
        if app.retention_rules.retention is Retention.IMPORTANCE:
            app.records.extend_expiry(ending, at, caller.user)
        elif ending and app.lifecycle.default_ttl_days:
            app.records.extend_expiry(ending, at, caller.user, app.lifecycle.default_ttl_days)

    def count() -> None:
        app.records.touch(ids, at, accessed=accessed)
        extend()

    if not accessed:
        app.run_later(count)
        return
    with suppress(StoreUnusable):  # what can be read is read, also where nothing can be written
        app.records.touch(ids, at, accessed=True)
    app.run_later(extend)

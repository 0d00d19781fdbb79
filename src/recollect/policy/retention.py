"""How long a memory is kept: what somebody said, else what the store's rule makes of its importance."""

from __future__ import annotations

from datetime import datetime, timedelta

from recollect.domain.enums import IMPORTANCE_DAYS, Retention
from recollect.domain.lifecycle import OBSERVED
from recollect.domain.requests import Draft
from recollect.domain.results import Memory
from recollect.policy.reconcile import lapsed

_LEAST = timedelta(days=1)  # whatever is worth storing is kept so long


def expiry(
    draft: Draft, old: Memory | None, rule: Retention, now: datetime, captured_days: float = 0.0
) -> datetime | None:
    """Return when what is stored as `draft` passes its time, or None when it never does.

    A memory that is written again keeps its term, unless a new one is given or it had passed; under the rule of
    importance another importance is another term. What is captured has a term of `captured_days` (0: none) each time.
    """
    if draft.ttl_days is not None:
        return now + timedelta(days=draft.ttl_days)
    given = draft.model_fields_set
    kept = old is not None and not lapsed(old, now) and "ttl_days" not in given
    if kept and old is not None and (old.ttl_days is not None or "importance" not in given):
        return old.expires_at
    if rule is Retention.KEEP:
        endless = kept and old is not None and old.expires_at is None
        if captured_days and draft.source in OBSERVED and not endless:
            return now + timedelta(days=captured_days)
        return old.expires_at if kept and old is not None else None
    importance = draft.importance if old is None or "importance" in given else old.importance
    return now + max(timedelta(days=importance * IMPORTANCE_DAYS), _LEAST)

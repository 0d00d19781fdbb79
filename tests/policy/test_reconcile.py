"""Reconcile: the whole table of who wins when a draft meets what is stored."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from memories import NOW, a_memory

from recollect import Draft
from recollect.policy.reconcile import Action, decide, expired, reinforced

SAME, OTHER = "hash of the draft", "hash of something else"
UNNAMED = a_memory(id=1, content_hash=SAME)
NAMED = a_memory(id=2, content_hash=SAME, key="k")
CHANGED = a_memory(id=3, content_hash=OTHER, key="k")


@pytest.mark.parametrize(
    ("key", "same_key", "same_hash", "action", "old"),
    [
        (None, None, None, Action.INSERT, None),
        ("k", None, None, Action.INSERT, None),
        ("k", CHANGED, None, Action.UPDATE, CHANGED),
        ("k", CHANGED, UNNAMED, Action.UPDATE, CHANGED),
        ("k", NAMED, NAMED, Action.REFRESH, NAMED),
        ("k", NAMED, UNNAMED, Action.REFRESH, NAMED),
        ("k", None, UNNAMED, Action.REFRESH, UNNAMED),
        (None, None, UNNAMED, Action.REFRESH, UNNAMED),
        (None, None, NAMED, Action.REFRESH, NAMED),
        ("other", None, NAMED, Action.INSERT, None),
    ],
)
def test_the_key_decides_first(key, same_key, same_hash, action, old) -> None:
    """A known key is that memory; else the same text is the same memory, unless it goes by another key."""
    decision = decide(Draft(content="x", key=key), SAME, same_key, same_hash)
    assert (decision.action, decision.old) == (action, old)


@hypothesis_settings(deadline=None, database=None)
@given(st.floats(0.0, 1.0))
def test_saying_it_again_takes_a_fifth_of_the_doubt(confidence: float) -> None:
    """Confidence grows by a fifth of what is missing, never falls and never passes one."""
    assert reinforced(confidence) == pytest.approx(confidence + (1 - confidence) * 0.2)
    assert confidence <= reinforced(confidence) <= 1.0


def test_a_memory_expires_at_its_time() -> None:
    """A memory is gone from the very moment of its expiry, or once it is deleted."""
    moment = timedelta(microseconds=1)
    assert not expired(a_memory(), NOW)
    assert not expired(a_memory(expires_at=NOW + moment), NOW)
    assert expired(a_memory(expires_at=NOW), NOW)
    assert expired(a_memory(deleted_at=NOW - moment), NOW)

"""kill -9: whatever was acknowledged holds, whatever was not is whole or absent, and all parts of the store agree."""

from __future__ import annotations

from killed_owners import kill_writers
from recollect import Settings


def test_kills_lose_nothing(settings: Settings, environment: dict[str, str]) -> None:
    """A store whose owners are killed in mid-work keeps every acknowledged write and agrees with itself."""
    ledger = kill_writers(settings, environment, range(3))
    assert ledger.kills == 3
    assert ledger.acknowledged >= 12
    assert ledger.living
    assert ledger.gone

"""The clock of tests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


class Clock:
    """A clock that stands still until it is told to move."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        """Return the time."""
        return self.now

    def pass_days(self, days: float) -> None:
        """Let some days pass."""
        self.now += timedelta(days=days)

"""How many requests a token may make in a minute. Each replica counts for itself, in memory."""

from __future__ import annotations

import time

from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import SlidingWindowCounterRateLimiter

from recollect.errors import TooManyRequests


class Rates:
    """Counts the requests of each token over the last minute; `most` of 0 is no limit."""

    def __init__(self, most: int) -> None:
        self._item = RateLimitItemPerMinute(most) if most else None
        self._limiter = SlidingWindowCounterRateLimiter(MemoryStorage())

    def take(self, token: str) -> None:
        """Count a request of the token with this prefix; raise `TooManyRequests` beyond the limit."""
        if self._item is not None and not self._limiter.hit(self._item, token):
            again = self._limiter.get_window_stats(self._item, token).reset_time
            raise TooManyRequests(max(1.0, again - time.time()))

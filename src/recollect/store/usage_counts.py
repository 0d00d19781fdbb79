"""Uses of memories, gathered in memory and written once a second, so that a read writes nothing itself.

A clean end of the process writes what is left; a kill loses the uses of one second.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from recollect.store.sql.usage_rows import UsageRows


@dataclass(slots=True)
class _Uses:
    """The number of times that one memory was read since the last write, by id and as a hit, and when last."""

    accessed: int
    recalled: int
    at: datetime


class UsageCounts:
    """Counts uses in memory; `later` is called with what writes them when there is something to write again."""

    def __init__(self, rows: UsageRows, later: Callable[[Callable[[], None]], object]) -> None:
        self._rows = rows
        self._later = later
        self._lock = threading.Lock()
        self._uses: dict[int, _Uses] = {}

    def add(self, ids: Iterable[int], at: datetime, *, accessed: bool) -> None:
        """Count one use of each memory: `accessed` by id, else recalled as a hit."""
        with self._lock:
            first = not self._uses
            self._add_uses({one: _Uses(int(accessed), int(not accessed), at) for one in ids})
            first = first and bool(self._uses)
        if first:
            self._later(self.write)

    def write(self) -> None:
        """Write what was counted, in one statement for all memories with equal counts; what fails is kept."""
        with self._lock:
            uses, self._uses = self._uses, {}
        alike: dict[tuple[int, int], list[int]] = defaultdict(list)
        for memory_id, one in uses.items():
            alike[one.accessed, one.recalled].append(memory_id)
        try:
            for (accessed, recalled), ids in alike.items():
                latest = max(uses[memory_id].at for memory_id in ids)
                self._rows.add(ids, latest, accessed=accessed, recalled=recalled)
                for memory_id in ids:
                    del uses[memory_id]
        finally:
            with self._lock:
                self._add_uses(uses)

    def _add_uses(self, uses: dict[int, _Uses]) -> None:
        """Add these uses to those counted before, by memory id."""
        for memory_id, more in uses.items():
            if (known := self._uses.get(memory_id)) is None:
                self._uses[memory_id] = more
            else:
                known.accessed += more.accessed
                known.recalled += more.recalled
                known.at = max(known.at, more.at)

"""Remove what a team keeps no longer: memories that were last written before their rule of retention keeps them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Final

from recollect.domain.enums import Sensitivity
from recollect.domain.leaving import RetentionRule
from recollect.domain.requests import Caller
from recollect.store.sql.records import Records
from recollect.store.sql.retention_rules import outlived

ACTOR: Final = "retention"
"""The actor of the lines of the journal about what a rule removed."""
_ACTION: Final = "expire"
_EVERY: Final = 3_600.0  # seconds
_AT_ONCE: Final = 200  # memories of rule transaction


class RetentionRound:
    """Applies every rule of retention once an hour, in a single process at a time, where there are any rules."""

    def __init__(self, records: Records, claiming: Callable[..., AbstractContextManager[set[str]]]) -> None:
        self._records = records
        self._claiming = claiming
        self._due_at = 0.0

    def run(self, now: datetime) -> float | None:
        """Remove what is kept no longer, if an hour has passed; return the seconds until it is due again."""
        left = self._due_at - time.monotonic()
        if left <= 0:
            if not (rules := self._records.retention_rules.of_teams()):
                return None
            with self._claiming("retention", ["rules"]) as ours:
                if ours and remove_outlived(self._records, now, rules):
                    self._records.request_sync()
            left = _EVERY
            self._due_at = time.monotonic() + left
        return left


def remove_outlived(
    records: Records, now: datetime, rules: Sequence[RetentionRule], actor: str = ACTOR, *, dry: bool = False
) -> int:
    """Delete the public memories that these rules keep no longer, but for pinned ones; return how many those are.

    What is private to somebody is theirs, and stays; so does what a legal hold keeps.
    """
    teams = dict.fromkeys(rule.team for rule in rules)
    names = [name for team in teams for name in records.retention_rules.namespaces(team)]
    return sum(_remove_in(records, name, now, rules, actor, dry=dry) for name in names)


def _remove_in(
    records: Records, name: str, now: datetime, rules: Sequence[RetentionRule], actor: str, *, dry: bool
) -> int:
    """Delete what is kept no longer in a namespace, a few in each transaction; return how many."""
    scope, _, place = name.partition(":")
    team, _, project = place.partition("/") if scope == "project" else (place, "", "")
    space = Caller(user=actor, team=team, project=project or "-").writable(name)
    conditions, gone, last = outlived(rules, name, now), 0, 0
    while True:
        with records.importing([space], actor, (Sensitivity.PUBLIC,), dry=dry) as writings:
            writing = writings[space]
            ids = [number for number in writing.retention.outlived(conditions) if number > last]
            some = ids if dry else ids[:_AT_ONCE]
            free = [number for number in some if writing.memories.hold_on(number) is None]
            gone += len(free) if dry else sum(writing.memories.delete(number, _ACTION) for number in free)
        if len(some) == len(ids):
            return gone
        last = some[-1]

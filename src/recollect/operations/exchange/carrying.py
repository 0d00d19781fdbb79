"""Carries a file to where the store is, in batches, and adds up what became of it: in this process or through a daemon.

Numbers of memories are those of the file until the store has told its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from recollect.domain import Carried, ImportBatch, Imported, Load, Problem
from recollect.operations.exchange import own
from recollect.operations.exchange.checking import COUNTS

Send = Callable[[ImportBatch], Imported]
Progress = Callable[[int], None]

_TOGETHER: Final = 1_000
_WEIGHT: Final = 4_000_000  # characters of one batch
_TOLD: Final = 200
_LINKS: Final = ("superseded_by", "merged_into")


def _silent(_: int) -> None:
    return None


@dataclass(slots=True)
class _Sum:
    counts: Counter[str] = field(default_factory=Counter)
    problems: list[Problem] = field(default_factory=list)
    untold: int = 0

    def tell(self, problems: Iterable[Problem]) -> None:
        """Keep the first problems, and count the others."""
        for one in problems:
            if len(self.problems) < _TOLD:
                self.problems.append(one)
            else:
                self.untold += 1


class Carrier:
    """Brings the things of one file to the store."""

    def __init__(self, send: Send, options: dict[str, Any], progress: Progress = _silent) -> None:
        self._send = send
        self._options = options
        self._rechained = False
        self._progress = progress
        self._sum = _Sum()
        self._ids: dict[int, int] = {}
        self._links: list[Carried] = []
        self._keys: set[tuple[str, str]] = set()
        self._tip = ""
        self._journal_ends = False

    def carry(self, things: Iterable[Carried | Problem]) -> Imported:
        """Send everything in its order, then which memory gave way to which; return what became of it all."""
        for batch in _batches(self._passing(things)):
            self._ask(batch)
        for batch in _batches(self._linked()):
            self._ask(batch)
        self._ask([], last=True)
        problems = self._sum.problems
        if self._sum.untold:
            problems = [*problems, Problem("", f"{self._sum.untold} more problems.")]
        counts: dict[str, Any] = {name: self._sum.counts[name] for name in COUNTS}
        return Imported(**counts, problems=tuple(problems))

    def _passing(self, things: Iterable[Carried | Problem]) -> Iterator[Carried]:
        for one in things:
            if isinstance(one, Problem):
                self._sum.counts["failed"] += 1
                self._sum.tell([one])
            elif one.load is Load.MEMORY and self._twice(one):
                self._sum.counts["failed"] += 1
                self._sum.tell([Problem(one.where, "Its key is that of an earlier memory in the file.")])
            elif not (one.load is Load.JOURNAL and self._journal_ends):
                yield one
            self._progress(1)

    def _twice(self, one: Carried) -> bool:
        """Say whether the key was in the file before: only one of the two can be that memory."""
        if any(one.kept.get(name) is not None for name in _LINKS):
            self._links.append(one)
        key = one.fields.get("key")
        if not isinstance(key, str):
            return False
        own = (str(one.fields.get("scope")), key.strip())
        known = own in self._keys
        self._keys.add(own)
        return known

    def _ask(self, batch: Sequence[Carried], *, last: bool = False) -> None:
        items = tuple(self._here(one) for one in batch)
        if batch and batch[0].load is Load.JOURNAL:
            self._rechained = batch[0].kept.get("chain") != own.WHOLE
        request = ImportBatch(items=items, tip=self._tip, rechained=self._rechained, last=last, **self._options)
        done = self._send(request)
        self._ids.update(done.ids)
        if batch and batch[0].load is Load.JOURNAL:
            self._journal_ends = not done.tip
        self._tip = done.tip
        self._sum.counts.update({name: getattr(done, name) for name in COUNTS})
        self._sum.tell(done.problems)

    def _here(self, one: Carried) -> Carried:
        """Let a fact name its memory by the number it has here; one that is not here has number 1 of nobody."""
        number = one.fields.get("memory_id")
        if one.load is not Load.FACT or not isinstance(number, int):
            return one
        return one.model_copy(update={"fields": one.fields | {"memory_id": self._ids.get(number, _NOBODY)}})

    def _linked(self) -> Iterator[Carried]:
        for one in self._links:
            here = self._ids.get(one.kept.get("id", 0))
            targets = {name: self._ids[one.kept[name]] for name in _LINKS if one.kept.get(name) in self._ids}
            if here is not None and targets:
                yield Carried(load=Load.LINK, where=one.where, fields={"id": here} | targets)


_NOBODY: Final = 2**31 - 1


def _batches(things: Iterable[Carried]) -> Iterator[list[Carried]]:
    """Cut what is to be sent: facts come after the numbers of all memories before them are known."""
    batch: list[Carried] = []
    weight = 0
    for one in things:
        size = sum(len(value) for value in one.fields.values() if isinstance(value, str))
        turning = batch and one.load is not batch[-1].load
        if turning or len(batch) == _TOGETHER or (batch and weight + size > _WEIGHT):
            yield batch
            batch, weight = [], 0
        batch.append(one)
        weight += size
    if batch:
        yield batch

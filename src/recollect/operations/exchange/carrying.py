"""Carries a file to where the store is, in batches, and adds up what became of it: in this process or through a daemon.

Numbers of memories are those of the file until the store has told its own.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from recollect.domain import Carried, ImportBatch, Imported, Load, Problem, Scope, folded
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


def repeated(things: Iterable[Carried | Problem]) -> frozenset[bytes]:
    """Return the marks of what stands in a file more than once."""
    counted = Counter(_mark(one) for one in things if isinstance(one, Carried))
    return frozenset(mark for mark, times in counted.items() if mark and times > 1)


class Carrier:
    """Brings the things of one file to the store.

    A dry run leaves nothing behind that a later batch could find. So what is `again` in the file goes in one batch with
    what it repeats, once everything else has been asked about.
    """

    def __init__(
        self,
        send: Send,
        options: dict[str, Any],
        progress: Progress = _silent,
        again: frozenset[bytes] = frozenset(),
    ) -> None:
        self._send = send
        self._options = options
        self._dry = bool(options.get("dry_run"))
        self._again = again if self._dry else frozenset()
        self._held: dict[bytes, list[Carried]] = defaultdict(list)
        self._rechained = False
        self._progress = progress
        self._sum = _Sum()
        self._ids: dict[int, int] = {}
        self._numbers: Counter[int] = Counter()
        self._links: list[Carried] = []
        self._keys: set[tuple[str, str]] = set()
        self._tip = ""
        self._journal_ends = False

    def carry(self, things: Iterable[Carried | Problem]) -> Imported:
        """Send everything in its order, then which memory gave way to which; return what became of it all."""
        for batch in _batches(self._passing(things)):
            if batch[0].load is Load.FACT:
                self._ask_together(Load.MEMORY)  # a fact names its memory by the number that it got
            self._ask(batch)
        for load in (Load.MEMORY, Load.FACT):
            self._ask_together(load)
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
            elif self._again and (mark := _mark(one)) in self._again:
                self._held[mark].append(one)
            elif not (one.load is Load.JOURNAL and self._journal_ends):
                yield one
            self._progress(1)

    def _twice(self, one: Carried) -> bool:
        """Say whether the key was in the file before: only one of the two can be that memory."""
        if any(one.kept.get(name) is not None for name in _LINKS):
            self._links.append(one)
        if number := _number(one.kept.get("id")):
            self._numbers[number] += 1
            if self._numbers[number] == 2:
                why = "Its number is that of an earlier memory in the file: what either gave way to is not known."
                self._sum.tell([Problem(one.where, why)])
        key = one.fields.get("key")
        if not isinstance(key, str) or not key.strip():
            return False
        scope = self._options.get("scope") or one.fields.get("scope") or Scope.PROJECT
        own = (str(scope).strip().lower(), key.strip())
        known = own in self._keys
        self._keys.add(own)
        return known

    def _ask(self, batch: Sequence[Carried], *, last: bool = False) -> None:
        done = self._asked(batch, last=last)
        self._sum.counts.update(_counts(done))
        self._sum.tell(done.problems)

    def _ask_together(self, load: Load) -> None:
        """Ask about what the file says more than once: whatever says the same goes in one batch."""
        batch: list[Carried] = []
        for mark in [mark for mark, group in self._held.items() if group[0].load is load]:
            group = self._held.pop(mark)
            pieces = list(_batches([*batch, *group]))
            if len(pieces) == 1:
                batch = pieces[0]
                continue
            self._ask(batch)
            batch, *rest = _batches(group)
            for piece in rest:
                self._ask_after(group[0], piece)
        if batch:
            self._ask(batch)

    def _ask_after(self, first: Carried, piece: Sequence[Carried]) -> None:
        """Ask about things that are too many for one batch with what they repeat: the first of it stands for all."""
        alone, done = self._asked([first]), self._asked([first, *piece])
        self._sum.counts.update(_counts(done))
        self._sum.counts.subtract(_counts(alone))
        self._sum.tell(done.problems[len(alone.problems) :])

    def _asked(self, batch: Sequence[Carried], *, last: bool = False) -> Imported:
        items = tuple(self._here(one) for one in batch)
        if batch and batch[0].load is Load.JOURNAL:
            self._rechained = batch[0].kept.get("chain") != own.WHOLE
        request = ImportBatch(items=items, tip=self._tip, rechained=self._rechained, last=last, **self._options)
        done = self._send(request)
        self._ids.update(done.ids)
        if batch and batch[0].load is Load.JOURNAL:
            self._journal_ends = not done.tip
        self._tip = done.tip
        return done

    def _here(self, one: Carried) -> Carried:
        """Let a fact name its memory by the number it has here; one that is not here has number 1 of nobody.

        In a dry run no memory is here: a fact of one that would be goes without it.
        """
        number = one.fields.get("memory_id")
        if one.load is not Load.FACT or not isinstance(number, int):
            return one
        here = self._ids.get(number)
        fields = {name: value for name, value in one.fields.items() if name != "memory_id"}
        told = {} if self._dry and here is not None else {"memory_id": here or _NOBODY}
        return one.model_copy(update={"fields": fields | told})

    def _linked(self) -> Iterator[Carried]:
        """Yield which memory gave way to which, but for numbers that two memories of the file have."""
        sole = {number for number, times in self._numbers.items() if times == 1}
        for one in self._links:
            named = {name: _number(one.kept.get(name)) for name in ("id", *_LINKS)}
            here = {name: self._ids[to] for name, to in named.items() if to in sole and to in self._ids}
            if "id" in here and len(here) > 1:
                yield Carried(load=Load.LINK, where=one.where, fields=here)


_NOBODY: Final = 2**31 - 1


def _counts(done: Imported) -> dict[str, int]:
    return {name: getattr(done, name) for name in COUNTS}


def _number(value: object) -> int | None:
    return value if type(value) is int else None


def _mark(one: Carried) -> bytes:
    """Return what is the same for all things that a store takes for the same; nothing for what is never that."""
    names = {Load.MEMORY: ("content",), Load.FACT: ("subject", "predicate", "object")}.get(one.load, ())
    said = [one.fields.get(name) for name in names]
    if not said or not all(isinstance(part, str) for part in said):
        return b""
    texts = [folded(str(part)) for part in said] if one.load is Load.FACT else said
    return hashlib.sha256(json.dumps([one.load, *texts]).encode()).digest()


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

"""The first screen: what agents learnt today, and exactly what the next session will start with."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date
from itertools import groupby
from typing import Final

from pydantic.dataclasses import dataclass

from recollect.domain.answer import LAZY, Answer
from recollect.domain.fields import MAX_LIMIT
from recollect.domain.lifecycle import Injection
from recollect.domain.page import Browsed
from recollect.domain.results import Memory, MemoryPreview
from recollect.doors.web.memories import form_of, loaded, search
from recollect.doors.web.visit import Shown, Visit
from recollect.doors.web.zones import local

_SESSION: Final = "the-next-session"  # no agent calls one so
_DAYS: Final = 3
_ENOUGH: Final = 8  # memories, after which no earlier day is shown
_EDITABLE: Final = 4_000  # characters of a memory that is edited where it stands; the form of a longer one is a screen
_LINE: Final = re.compile(r"- \[(\d{1,10})\] ")


@dataclass(frozen=True, config=LAZY)
class Day(Answer):
    """What was stored on a day of the person's calendar; `drafts` is what hooks noted and nobody has decided on."""

    day: date
    memories: tuple[MemoryPreview, ...]
    drafts: tuple[MemoryPreview, ...]


def opened(visit: Visit) -> Shown:
    """Show the answer to a question, or without a question the first screen."""
    return search(visit) if visit.value("q") else first(visit)


def first(visit: Visit) -> Shown:
    """Show the memories of today or of the last days with some, and the context of the next session."""
    recent: Browsed = visit.run("browse", limit=MAX_LIMIT, **visit.levels)
    today = local(visit.app.clock(), visit.zone).date()
    start: Injection = visit.run("preview_start", session_id=_SESSION, folder=visit.folder)
    stand_in = {str(memory.id): memory for memory in loaded(visit, start.memory_ids)}
    days = list(_latest_days(visit, recent.memories, today))
    data = {
        "days": days,
        "today": today,
        "start": start,
        "_lines": list(_lines_of_start(start, stand_in)),
        "_writable": visit.writable(),
        "_editable": _EDITABLE,
        "_by": visit.authors([memory for day in days for memory in (*day.memories, *day.drafts)]),
    }
    return Shown("first.html", data | form_of(visit))


def _latest_days(visit: Visit, memories: Sequence[Memory], today: date) -> Iterator[Day]:
    """Yield today alone if anything was stored today, else the last days with something, the latest first."""
    shown = 0
    grouped = groupby(memories, key=lambda memory: local(memory.created_at, visit.zone).date())
    for number, (day, some) in enumerate(grouped):
        found = list(some)
        drafts = tuple(memory for memory in found if memory.is_draft)
        yield Day(day, tuple(memory for memory in found if not memory.is_draft), drafts)
        shown += len(found)
        if day == today or number + 1 == _DAYS or shown >= _ENOUGH:
            return


def _lines_of_start(start: Injection, memories: dict[str, Memory]) -> Iterator[tuple[str, Memory | None]]:
    """Yield the lines of a session's first context, each with its memory or None."""
    for line in start.text.split("\n") if start.text else ():
        about = _LINE.match(line)
        yield line, memories.get(about[1]) if about else None

"""The memory that sums a session up: a checkpoint until it ends, then its summary. Both quote memories only."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from recollect.domain.enums import ObservationType as Kind
from recollect.domain.enums import Source
from recollect.domain.requests import Draft
from recollect.domain.results import Memory
from recollect.memory.condense import cited_title
from recollect.memory.summaries import session_key
from recollect.sessions.observations.trail import Trail

CATEGORY: Final = "session"
_IMPORTANCE: Final = 0.1
_MAX_TITLES: Final = 12  # titles of one heading
_HEADINGS: Final = {
    "Decided": (Kind.DECISION,),
    "Changed": (Kind.CHANGE, Kind.FEATURE, Kind.REFACTOR),
    "Fixed": (Kind.BUGFIX,),
    "Learnt": (Kind.DISCOVERY,),
}


def summary(session_id: str, at: datetime, kept: Sequence[Memory], trail: Trail) -> Draft:
    """Return the summary of a session that kept these memories."""
    return _session_draft(
        session_id, at, Kind.SESSION_SUMMARY, _lines_by_heading(kept) + _lines_under("Left open", trail.open)
    )


def checkpoint(session_id: str, at: datetime, kept: Sequence[Memory]) -> Draft:
    """Return the summary of a session so far, as a draft, before the session ends."""
    return _session_draft(session_id, at, Kind.CHECKPOINT, _lines_by_heading(kept))


def _session_draft(session_id: str, at: datetime, kind: Kind, lines: list[str]) -> Draft:
    """Return the draft of a session's summary or checkpoint, with these lines under a title."""
    name = "Checkpoint" if kind is Kind.CHECKPOINT else "Summary"
    title = f"{name} of the session of {at:%Y-%m-%d %H:%M}"
    return Draft(
        content="\n".join([f"{title}.", *lines]),
        key=session_key(session_id),
        title=title,
        type=kind,
        category=CATEGORY,
        importance=_IMPORTANCE,
        session_id=session_id,
        observed_at=at,
        source=Source.HOOK,
    )


def _lines_by_heading(kept: Sequence[Memory]) -> list[str]:
    """Return the titles of the memories as lines of Markdown, under a heading for each kind."""
    found: list[str] = []
    for heading, kinds in _HEADINGS.items():
        found += _lines_under(heading, [memory.title or memory.content for memory in kept if memory.type in kinds])
    return found


def _lines_under(heading: str, memories: Sequence[str]) -> list[str]:
    """Return a heading and at most twelve titles as a list, then how many more there are; empty without titles."""
    lines = [f"- {cited_title(memory)}" for memory in memories[:_MAX_TITLES]]
    more = [f"- and {len(memories) - _MAX_TITLES} more"] if len(memories) > _MAX_TITLES else []
    return [f"{heading}:", *lines, *more] if lines else []

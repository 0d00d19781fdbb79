"""The screens of sessions: how each began and what it learnt, what was kept and dropped, and what agents were shown."""

from __future__ import annotations

from bisect import bisect_right
from datetime import datetime
from typing import Any, Final

from recollect.domain.lifecycle import (
    CheckpointSession,
    EndSession,
    EndTurn,
    ShownSession,
    StartSession,
    SubmitPrompt,
    UseTool,
)
from recollect.domain.page import SessionGlances
from recollect.doors.web.memories import loaded
from recollect.doors.web.visit import Done, Shown, Visit

_PAGE: Final = 25
_EVENTS: Final = {
    StartSession.event: "start",
    SubmitPrompt.event: "prompt",
    UseTool.event: "tool",
    EndTurn.event: "end of a turn",
    CheckpointSession.event: "checkpoint",
    EndSession.event: "end",
}


def listed(visit: Visit) -> Shown:
    """Show a page of the sessions, the latest first, of this project or of all projects of the user."""
    offset = visit.number("offset", 0)
    everywhere = bool(visit.value("everywhere")) and not visit.team_server
    found: SessionGlances = visit.run("glance_at_sessions", limit=_PAGE, offset=offset, everywhere=everywhere)
    learnt = [memory for session in found.sessions for memory in session.learnt]
    listed = {"sessions": found.sessions, "total": found.total, "everywhere": everywhere}
    return Shown("sessions.html", listed | {"_by": visit.authors(learnt)} | visit.pages(_PAGE, found.total))


def one(visit: Visit) -> Shown:
    """Show a session in order: the outcome of each event, and the memories that were put before each prompt."""
    offset = visit.number("offset", 0)
    found: ShownSession = visit.run("show_session", session_id=visit.value("id") or None, limit=100, offset=offset)
    events: list[tuple[str, datetime, object]] = [
        ("observation", observation.at, observation) for observation in found.observations
    ]
    first, last = (events[0][1], events[-1][1]) if events else (None, None)
    for each in found.injections:
        if not offset or first is None or last is None or first <= each.at <= last:
            events.append(("injection", each.at, each))
    events.sort(key=lambda event: (event[1], event[0] != "injection"))
    put = loaded(visit, {number for each in found.injections for number in each.memory_ids})
    prompted = _before_prompts(found)
    data: dict[str, Any] = {
        "shown": found,
        "_events": events,
        "_event_words": _EVENTS,
        "_put": {memory.id: memory for memory in put},
        "_prompted": prompted,
    }
    return Shown("session.html", data | visit.pages(100, found.total))


def _before_prompts(shown: ShownSession) -> set[datetime]:
    """Return when memories were put before a prompt: nothing else was noted between that and the prompt."""
    moments = [observation.at for observation in shown.observations]
    found = set[datetime]()
    for each in shown.injections:
        last = bisect_right(moments, each.at) - 1
        if last >= 0 and shown.observations[last].event == SubmitPrompt.event:
            found.add(each.at)
    return found


def correct(visit: Visit) -> Done:
    """Keep an observation that was dropped, or forget the memory of an observation."""
    keep = visit.value("keep") == "yes"
    fields = {"session_id": visit.value("id"), "number": visit.number("number", 0), "keep": keep}
    noted = visit.run("correct_observation", **fields)
    kept = f"Observation {fields['number']} is kept as memory {noted.memory_id}."
    done = kept if keep else "What was kept of it is forgotten."
    return Done(
        visit.link("session", id=fields["session_id"], offset=visit.value("offset")), done, data={"noted": noted}
    )

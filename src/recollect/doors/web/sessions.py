"""The screens of sessions: what was kept and dropped of each, and why, and what was put before which prompt."""

from __future__ import annotations

from datetime import datetime

from recollect.domain.lifecycle import SessionList, ShownSession
from recollect.doors.web.visit import Done, Shown, Visit

_PAGE = 50


def listed(visit: Visit) -> Shown:
    """Show a page of the sessions, the latest first."""
    offset = visit.number("offset", 0)
    found: SessionList = visit.run("list_sessions", limit=_PAGE, offset=offset)
    listed = {"sessions": found.sessions, "total": found.total}
    return Shown("sessions.html", listed | visit.pages(_PAGE, found.total))


def one(visit: Visit) -> Shown:
    """Show a session in order: what became of each event, and which memories were put before each prompt."""
    offset = visit.number("offset", 0)
    found: ShownSession = visit.run("show_session", session_id=visit.said("id") or None, limit=100, offset=offset)
    events: list[tuple[str, datetime, object]] = [("observation", one.at, one) for one in found.observations]
    first, last = (events[0][1], events[-1][1]) if events else (None, None)
    for each in found.injections:
        if not offset or first is None or last is None or first <= each.at <= last:
            events.append(("injection", each.at, each))
    events.sort(key=lambda event: (event[1], event[0] != "injection"))
    return Shown("session.html", {"shown": found, "_events": events} | visit.pages(100, found.total))


def correct(visit: Visit) -> Done:
    """Keep an observation that was dropped, or forget what was kept of one."""
    keep = visit.said("keep") == "yes"
    given = {"session_id": visit.said("id"), "number": visit.number("number", 0), "keep": keep}
    noted = visit.run("correct_observation", **given)
    kept = f"Observation {given['number']} is kept as memory {noted.memory_id}."
    done = kept if keep else "What was kept of it is forgotten."
    return Done(visit.link("session", id=given["session_id"], offset=visit.said("offset")), done, data={"noted": noted})

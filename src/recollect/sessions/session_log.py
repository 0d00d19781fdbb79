"""What a person sees of sessions, and how a wrong decision is put right."""

from __future__ import annotations

from recollect.app import App
from recollect.domain.lifecycle import (
    CorrectObservation,
    Decision,
    ListSessions,
    Noted,
    Observation,
    Session,
    SessionList,
    SessionSummary,
    ShownObservation,
    ShownSession,
    ShowSession,
)
from recollect.domain.requests import Caller, Draft, Forget, ReadAccess
from recollect.domain.results import Memory
from recollect.errors import InvalidInput, NotFound
from recollect.memory.forget import forget
from recollect.memory.remember import remember
from recollect.search.visibility import unfiltered
from recollect.sessions.session_state import state_of

_BY_YOU = "by you"


def list_sessions(app: App, request: ListSessions, caller: Caller) -> SessionList:
    """List the caller's sessions in this project, the latest first."""
    found, total = app.sessions.listed(caller, request.limit, request.offset)
    return SessionList(tuple(map(_summary, found)), total)


def show_session(app: App, request: ShowSession, caller: Caller) -> ShownSession:
    """Show what was kept and dropped of a session, and why."""
    session = _found(app, request.session_id, caller)
    every = app.sessions.observations(session)
    observations = every[request.offset : request.offset + request.limit]
    ids = {one.memory_id for one in observations if one.memory_id}
    memories = app.records.load(ids, unfiltered(app, ReadAccess(), caller))
    state = state_of(session.state)
    topics = tuple(f"{one.at:%Y-%m-%d %H:%M} {', '.join(one.keywords)}" for one in state.boundaries)
    shown = tuple(_shown(one, memories.get(one.memory_id or 0)) for one in observations)
    return ShownSession(_summary(session), shown, len(every), topics, state.failures)


def correct_observation(app: App, request: CorrectObservation, caller: Caller, *, request_id: str = "") -> Noted:
    """Keep an observation that was dropped, or forget one that was kept."""
    session = _found(app, request.session_id, caller)
    one = next((each for each in app.sessions.observations(session) if each.number == request.number), None)
    if one is None:
        raise NotFound(f"The session {session.session_id} has no observation {request.number}.")
    kept = one.decision is Decision.KEPT
    if request.keep == kept:
        return Noted(session.session_id, str(one.decision), one.reason, str(one.memory_id) if one.memory_id else None)
    if request.keep:
        return _keep(app, session, one, caller, request_id)
    if one.memory_id is not None:
        forget(app, Forget(id=str(one.memory_id)), caller, request_id=request_id)
    app.sessions.decide(session, one.number, Decision.DROPPED, _BY_YOU, None)
    return Noted(session.session_id, str(Decision.DROPPED), _BY_YOU)


def _keep(app: App, session: Session, one: Observation, caller: Caller, request_id: str) -> Noted:
    if not one.draft:
        raise InvalidInput("number", f"Observation {one.number} cannot be kept: its text was not worth storing at all.")
    outcome = remember(app, Draft(**one.draft), caller, request_id=request_id)
    app.sessions.decide(session, one.number, Decision.KEPT, _BY_YOU, int(outcome.id))
    return Noted(session.session_id, str(Decision.KEPT), _BY_YOU, outcome.id)


def _found(app: App, beginning: str | None, caller: Caller) -> Session:
    session = app.sessions.find(caller, beginning)
    if session is None:
        named = f" that is or begins with {beginning}" if beginning else ""
        raise NotFound(f"There is no session{named} of yours in this project; `recollect session list` shows them.")
    return session


def _summary(session: Session) -> SessionSummary:
    return SessionSummary(
        session_id=session.session_id,
        agent=session.agent,
        started_at=session.started_at,
        last_at=session.last_at,
        ended_at=session.ended_at,
        kept=session.kept,
        dropped=session.dropped,
    )


def _shown(one: Observation, memory: Memory | None) -> ShownObservation:
    gone = one.decision is Decision.KEPT and memory is None
    its_own = memory if one.decision is Decision.KEPT else None
    said = (its_own.title or its_own.abstract) if its_own else one.summary
    return ShownObservation(
        one.number,
        one.at,
        one.event,
        one.tool,
        "(forgotten since)" if gone else said,
        str(one.decision),
        one.reason,
        one.score,
        str(one.memory_id) if one.memory_id else None,
    )

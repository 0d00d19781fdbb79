"""The log of sessions as a person sees it, and the correction of a wrong decision in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from recollect.app import App
from recollect.domain.enums import OF_SESSION
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
from recollect.domain.origin import Origin, speaker_before_stamps
from recollect.domain.page import GlanceAtSessions, SessionGlance, SessionGlances, Use, UsesOf
from recollect.domain.requests import Caller, Draft, Forget, ReadAccess
from recollect.domain.results import Memory
from recollect.errors import InvalidInput, NotFound
from recollect.memory.forget import forget
from recollect.memory.remember import remember
from recollect.prompt.fence import may_show_unasked
from recollect.search.other_projects import project_of, with_other_projects
from recollect.search.visibility import parse_id, unfiltered
from recollect.sessions.session_state import state_of

_MAX_SESSIONS: Final = 20
"""In how many sessions it is looked who was shown a memory."""
_MAX_GLANCED: Final = 12
"""How many memories of a session a list of sessions looks at."""
_MAX_MEMORIES_MADE: Final = 3
"""How many of them it shows."""

BY_YOU: Final = "by you"
"""Why something is kept or dropped that a person decided on."""


def draft_and_origin(stored: dict[str, Any]) -> tuple[Draft, Origin]:
    """Return the draft and the origin of an observation that was not kept; without an origin it follows the trust."""
    draft = Draft(**{name: value for name, value in stored.items() if name not in Origin.model_fields})
    said_by = stored.get("said_by") or speaker_before_stamps(draft.source, draft.trust)
    return draft, Origin(said_by=said_by, came_from=stored.get("came_from") or "")


def list_sessions(app: App, request: ListSessions, caller: Caller) -> SessionList:
    """List the caller's sessions in this project, the latest first."""
    found, total = app.sessions.listed(caller, request.limit, request.offset)
    return SessionList(tuple(map(_session_summary, found)), total)


def glance_at_sessions(app: App, request: GlanceAtSessions, caller: Caller) -> SessionGlances:
    """List the caller's sessions by their first prompts, with the first memories that each made, the latest first."""
    listed = app.sessions.listed_everywhere if request.everywhere else app.sessions.listed
    sessions, total = listed(caller, request.limit, request.offset)
    prompts, kept = app.sessions.first_prompts(sessions), app.sessions.kept_ids(sessions)
    view = unfiltered(app, ReadAccess(), caller)
    if request.everywhere:
        view = with_other_projects(app, view, caller, None)
    few = {row: ids[:_MAX_GLANCED] for row, ids in kept.items()}
    asked = {observation.memory_id for observation in prompts.values() if observation.memory_id}
    memories = app.records.load(asked.union(*few.values()), view)
    later = {memory.superseded_by for memory in memories.values() if memory.superseded_by} - memories.keys()
    memories |= app.records.load(later, view)
    glances = (
        SessionGlance(
            _session_summary(session),
            project_of(session.project),
            _prompt_text(prompts.get(session.id), memories),
            _memories_made(few.get(session.id, ()), memories, prompts.get(session.id)),
            len(kept.get(session.id, ())),
        )
        for session in sessions
    )
    return SessionGlances(tuple(glances), total)


def _prompt_text(observation: Observation | None, memories: Mapping[int, Memory]) -> str:
    """Return the text of a prompt; of a kept prompt the text of its memory."""
    if observation is None:
        return ""
    memory = memories.get(observation.memory_id or 0) if observation.decision is Decision.KEPT else None
    return memory.content if memory is not None else observation.summary


def _memories_made(
    ids: Iterable[int], memories: Mapping[int, Memory], prompt: Observation | None
) -> tuple[Memory, ...]:
    """Return the memories that a session made, without its first prompt: first stored ones, then rules, then drafts."""
    first = prompt.memory_id if prompt is not None else None
    now = (memories[number].superseded_by or number for number in ids if number in memories and number != first)
    found = (memories[number] for number in dict.fromkeys(now) if number in memories)
    current = [memory for memory in found if may_show_unasked(memory) and memory.type not in OF_SESSION]
    return tuple(sorted(current, key=lambda memory: (memory.is_draft, not memory.is_rule))[:_MAX_MEMORIES_MADE])


def show_session(app: App, request: ShowSession, caller: Caller) -> ShownSession:
    """Show what was kept and dropped of a session, and why."""
    session = _find_session(app, request.session_id, caller)
    every = app.sessions.observations(session)
    observations = every[request.offset : request.offset + request.limit]
    ids = {observation.memory_id for observation in observations if observation.memory_id}
    memories = app.records.load(ids, unfiltered(app, ReadAccess(), caller))
    state = state_of(session.state)
    topics = tuple((boundary.at, ", ".join(boundary.keywords)) for boundary in state.boundaries)
    lines = tuple(f"{at:%Y-%m-%d %H:%M} {words}" for at, words in topics)
    shown = tuple(
        _shown_observation(observation, memories.get(observation.memory_id or 0)) for observation in observations
    )
    return ShownSession(_session_summary(session), shown, len(every), lines, state.failures, state.injections, topics)


def uses_of(app: App, request: UsesOf, caller: Caller) -> tuple[Use, ...]:
    """Return when agents were shown a memory unasked, and before which prompt, the latest first."""
    number = parse_id(request.id) or 0
    uses: list[Use] = []
    for session in app.sessions.naming(caller, number, _MAX_SESSIONS):
        moments = [injection.at for injection in state_of(session.state).injections if number in injection.memory_ids]
        seen = app.sessions.observed_at(session, moments) if moments else {}
        memories = app.records.load(
            {use.memory_id for use in seen.values() if use.memory_id}, unfiltered(app, ReadAccess(), caller)
        )
        for at in moments:
            event = _shown_observation(seen[at], memories.get(seen[at].memory_id or 0)) if at in seen else None
            uses.append(Use(at, session.agent, session.session_id, event))
    return tuple(sorted(uses, key=lambda use: use.at, reverse=True)[: request.limit])


def correct_observation(app: App, request: CorrectObservation, caller: Caller, *, request_id: str = "") -> Noted:
    """Keep an observation that was dropped or is a draft, or forget a kept observation."""
    session = _find_session(app, request.session_id, caller)
    observation = next((each for each in app.sessions.observations(session) if each.number == request.number), None)
    if observation is None:
        raise NotFound(f"The session {session.session_id} has no observation {request.number}.")
    kept = observation.decision is Decision.KEPT
    if request.keep and kept and observation.memory_id is not None:
        _approve_draft(app, observation.memory_id, caller)
    if request.keep == kept:
        return Noted(
            session.session_id,
            str(observation.decision),
            observation.reason,
            str(observation.memory_id) if observation.memory_id else None,
        )
    if request.keep:
        return _keep_observation(app, session, observation, caller, request_id)
    if observation.memory_id is not None:
        forget(app, Forget(id=str(observation.memory_id)), caller, request_id=request_id)
    app.sessions.decide(session, observation.number, Decision.DROPPED, BY_YOU, None)
    return Noted(session.session_id, str(Decision.DROPPED), BY_YOU)


def _approve_draft(app: App, memory_id: int, caller: Caller) -> None:
    """Note that a person wants a draft kept: it is a memory like any other from now on."""
    memory = app.records.load([memory_id], unfiltered(app, ReadAccess(), caller)).get(memory_id)
    if memory is not None and memory.is_draft:
        with app.records.writing(caller.writable(memory.namespace), caller.user) as transaction:
            transaction.consolidation.stop_fading(memory_id)


def _keep_observation(app: App, session: Session, observation: Observation, caller: Caller, request_id: str) -> Noted:
    """Store an observation that was dropped, and return its memory; raise `InvalidInput` where no text is left."""
    if not observation.draft and observation.memory_id:
        known = f"it was memory {observation.memory_id}, and `recollect undo {observation.memory_id}` brings that back."
        raise InvalidInput("number", f"Observation {observation.number} cannot be kept anew: {known}")
    if not observation.draft:
        raise InvalidInput(
            "number", f"Observation {observation.number} cannot be kept: its text was not worth storing at all."
        )
    draft, origin = draft_and_origin(observation.draft)
    made = remember(app, draft, caller.saying(origin.said_by, origin.came_from), request_id=request_id).id
    app.sessions.decide(session, observation.number, Decision.KEPT, BY_YOU, int(made))
    _approve_draft(app, int(made), caller)
    return Noted(session.session_id, str(Decision.KEPT), BY_YOU, made)


def _find_session(app: App, beginning: str | None, caller: Caller) -> Session:
    """Return the caller's session whose id begins so, the latest without a beginning; raise `NotFound`."""
    session = app.sessions.find(caller, beginning)
    if session is None:
        named = f" that is or begins with {beginning}" if beginning else ""
        raise NotFound(f"There is no session{named} of yours in this project; `recollect session list` shows them.")
    return session


def _session_summary(session: Session) -> SessionSummary:
    return SessionSummary(
        session_id=session.session_id,
        agent=session.agent,
        started_at=session.started_at,
        last_at=session.last_at,
        ended_at=session.ended_at,
        kept=session.kept,
        dropped=session.dropped,
    )


def _shown_observation(observation: Observation, memory: Memory | None) -> ShownObservation:
    """Return an observation as the log shows it, with the title of its memory where it still has one."""
    gone = observation.decision is Decision.KEPT and memory is None
    its_own = memory if observation.decision is Decision.KEPT else None
    text = (its_own.title or its_own.abstract) if its_own else observation.summary
    return ShownObservation(
        observation.number,
        observation.at,
        observation.event,
        observation.tool,
        "(forgotten since)" if gone else text,
        str(observation.decision),
        observation.reason,
        observation.score,
        str(observation.memory_id) if observation.memory_id else None,
    )

"""The events of a session as operations: each goes through the stages, and what they know of it is kept."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

from recollect.app import App
from recollect.domain.enums import Scope
from recollect.domain.lifecycle import (
    BeforeTool,
    CheckpointSession,
    EndSession,
    EndTurn,
    Injection,
    Noted,
    NoteShown,
    Session,
    SessionEvent,
    StartSession,
    SubmitPrompt,
    UseTool,
)
from recollect.domain.requests import Caller
from recollect.domain.review import Inbox
from recollect.memory.inbox import inbox
from recollect.projects import filed_under
from recollect.prompt.neutral import neutral
from recollect.search.other_projects import counts_of
from recollect.sessions import ask, capture, compression, consolidation, moment, segmentation
from recollect.sessions.inject import (
    failure_text,
    inject_after_tool,
    inject_at_start,
    inject_before_tool,
    inject_for_prompt,
    note_delivered,
)
from recollect.sessions.observations.occurrence import ASSISTANT
from recollect.sessions.project_settings import settings_in
from recollect.sessions.session_state import Context, rebased, state_of

_MAX_ANSWERED: Final = 8_000
"""Characters of either end of an output by which it is answered: how it failed stands there. All of it is noted."""

_ANSWERING_STAGE: Final = "inject"
"""The module whose stages answer an event; the daemon runs the others when the agent has its answer."""
_READING_STAGES: Final = frozenset({_ANSWERING_STAGE})

E = TypeVar("E", bound=SessionEvent)

log = logging.getLogger(__name__)

KEPT_FOR: Final = timedelta(days=30)
"""How long a session is shown after it was last heard of."""

_MAX_AHEAD: Final = timedelta(days=1)
"""How far before ours the clock of an agent may be; a time beyond that is not believed."""
_LOCKS: Final = tuple(threading.Lock() for _ in range(64))


def _ends_of(output: str) -> str:
    """Return a long output without its middle."""
    return output if len(output) <= 2 * _MAX_ANSWERED else f"{output[:_MAX_ANSWERED]}\n{output[-_MAX_ANSWERED:]}"


@dataclass(frozen=True, slots=True)
class Stage:
    """One module's part in one event; a lower priority runs first."""

    module: str
    event: type[SessionEvent]
    priority: int
    run: Callable[[Context[Any]], object]


STAGES: Final[tuple[Stage, ...]] = (
    Stage("inject", StartSession, 10, inject_at_start),
    Stage("inject", NoteShown, 10, note_delivered),
    Stage("capture", StartSession, 50, capture.begin_session),
    Stage("inject", SubmitPrompt, 50, inject_for_prompt),
    Stage("boundaries", SubmitPrompt, 100, segmentation.segment_prompt),
    Stage("capture", SubmitPrompt, 150, capture.capture_prompt),
    Stage("inject", EndTurn, 50, ask.ask),
    Stage("boundaries", UseTool, 100, segmentation.segment_output),
    Stage("capture", UseTool, 150, capture.capture_output),
    Stage("inject", BeforeTool, 50, inject_before_tool),
    Stage("inject", UseTool, 50, inject_after_tool),
    Stage("capture", CheckpointSession, 100, capture.write_checkpoint),
    Stage("inject", CheckpointSession, 900, capture.forget_shown),
    Stage("capture", EndSession, 100, capture.summarize),
    Stage("consolidation", EndSession, 200, consolidation.fade_at_session_end),
    Stage("compression", EndSession, 300, compression.compress_at_session_end),
)


@dataclass(frozen=True)
class Emitted:
    """What the stages of one event gave, in order (None is left out), and which of them failed."""

    results: tuple[object, ...]
    failed: tuple[str, ...]


def session_start(app: App, request: StartSession, caller: Caller, *, request_id: str = "") -> Noted:
    """Begin a session, or resume one; sessions without an event for a month are deleted."""
    del request_id  # a session that begins twice is the same session
    app.sessions.remove_before(app.clock() - KEPT_FOR)
    return _note_of_event(*passed(app, request, caller, _stages_for(answering=False)))


def prompt_submit(app: App, request: SubmitPrompt, caller: Caller, *, request_id: str = "") -> Injection:
    """Return the text to put before a prompt: its relevant memories, fenced as data, or an empty text."""
    del request_id  # asked again, it answers again
    found = _context_to_inject(*passed(app, request, caller))
    if found.shown:
        note_shown(app, NoteShown(**_session_fields(request), **found.shown), caller)
    return found


def _session_fields(request: SessionEvent) -> dict[str, Any]:
    return {name: getattr(request, name) for name in ("session_id", "agent", "folder", "at")}


def note_shown(app: App, request: NoteShown, caller: Caller) -> Noted:
    """Note the memories that have reached the agent, so that they are not shown again."""
    return _note_of_event(*passed(app, request, caller))


def answer_prompt(app: App, request: SubmitPrompt, caller: Caller) -> Injection:
    """Do the part of `prompt_submit` that somebody waits for; `note_prompt` does the rest."""
    return _context_to_inject(*passed(app, request, caller, _stages_for(answering=True)))


def answer_start(app: App, request: StartSession, caller: Caller) -> Injection:
    """Return the index for a beginning session, and the number of memories that wait for a person's decision.

    What is filed under a name that the project had before is named too, since nothing of it is shown.
    """
    return _with_waiting_count(
        app, _context_to_inject(*passed(app, request, caller, _stages_for(answering=True))), request, caller
    )


def preview_start(app: App, request: StartSession, caller: Caller) -> Injection:
    """Return the answer that `answer_start` would give now, without a session and without a write."""
    now = app.clock()
    places = {"project": caller.namespace(Scope.PROJECT), "agent": request.agent}
    session = Session(id=0, session_id=request.session_id, started_at=now, last_at=now, **places)
    context = _new_context(app, request, caller, session, now)
    return _with_waiting_count(
        app, _context_to_inject(context, run_stages(context, _stages_for(answering=True))), request, caller
    )


def _with_waiting_count(app: App, found: Injection, request: StartSession, caller: Caller) -> Injection:
    """Add the number of memories that wait for a decision, and what is filed under a former name of the project."""
    waiting = inbox(app, Inbox(limit=1), caller)
    notices = [waiting.message] if waiting.total else []
    for name, count in counts_of(app, request.former_projects, caller).items():
        notices.append(neutral(filed_under(name, count)))
    return replace(found, text="\n".join(filter(None, (found.text, *notices)))) if notices else found


def answer_before_tool(app: App, request: BeforeTool, caller: Caller) -> Injection:
    """Return the memories whose moment it is that a tool is about to run; mostly none, and then nothing is written."""
    due = any(moment.fitting_memories(app, request, caller))
    return _context_to_inject(*passed(app, request, caller, _stages_for(answering=True))) if due else Injection()


def answer_tool(app: App, request: UseTool, caller: Caller) -> Injection:
    """Return the memories whose moment it is, and what was learnt of a failure that a tool reports."""
    request = request.model_copy(update={"output": _ends_of(request.output)})
    due = failure_text(request) or any(moment.fitting_memories(app, request, caller, failed=request.failed))
    return _context_to_inject(*passed(app, request, caller, _stages_for(answering=True))) if due else Injection()


def answer_turn(app: App, request: EndTurn, caller: Caller) -> Injection:
    """Return the question to an agent that ends a turn; mostly empty."""
    return _context_to_inject(*passed(app, request, caller, _stages_for(answering=True)))


def note_turn(app: App, request: EndTurn, caller: Caller) -> Noted:
    """Read the agent's last text of a turn as a report."""
    if not request.output.strip():
        return Noted(request.session_id)
    return tool_post(app, UseTool(**_session_fields(request), tool=ASSISTANT, output=request.output), caller)


def note_prompt(app: App, request: SubmitPrompt, caller: Caller) -> Noted:
    """Keep the memorable statements of a prompt that `answer_prompt` has answered."""
    return _note_of_event(*passed(app, request, caller, _stages_for(answering=False)))


def tool_post(app: App, request: UseTool, caller: Caller, *, request_id: str = "") -> Noted:
    """Look at what a tool wrote, and store it if it is worth a memory."""
    del request_id  # the same output again is dropped as a repeat
    return _note_of_event(*passed(app, request, caller, _stages_for(answering=False)))


def session_checkpoint(app: App, request: CheckpointSession, caller: Caller, *, request_id: str = "") -> Noted:
    """Write down what a session has learnt, before it loses its earlier messages."""
    del request_id
    return _note_of_event(*passed(app, request, caller))


def session_end(app: App, request: EndSession, caller: Caller, *, request_id: str = "") -> Noted:
    """End a session: sum it up, let what is used gain and what is unused fade, and compress what is old."""
    del request_id
    return _note_of_event(*passed(app, request, caller))


def _stages_for(*, answering: bool) -> list[Stage]:
    """Return the stages that answer, or all others."""
    return [stage for stage in STAGES if (stage.module == _ANSWERING_STAGE) is answering]


def passed(app: App, event: E, caller: Caller, stages: Iterable[Stage] = STAGES) -> tuple[Context[E], Emitted]:
    """Send an event through the stages, a single event of a session at a time, and save what the stages made of it.

    Another replica may work on the session meanwhile, and what it says may be forgotten: see `rebased`.
    """
    now = app.clock()
    at = min(event.at or now, now + _MAX_AHEAD)
    with _LOCKS[hash((caller.user, event.session_id)) % len(_LOCKS)]:
        new = not isinstance(event, EndSession)  # an agent's other commands end a session that never began
        session = app.sessions.begin(caller, event.session_id, event.agent, at, new=new)
        context = _new_context(app, event, caller, session, at)
        emitted = run_stages(context, stages)
        _save_session(context, emitted.failed)
    return context, emitted


def _new_context(app: App, event: E, caller: Caller, session: Session, at: datetime) -> Context[E]:
    """Return the context of an event, under the settings of the project around the folder that it names."""
    settings = settings_in(event.folder, app.lifecycle) if app.reads_folders else app.lifecycle
    return Context(
        app=replace(app, lifecycle=settings),
        caller=caller,
        settings=settings,
        session=session,
        state=state_of(session.state),
        event=event,
        at=at,
    )


def run_stages(context: Context[E], stages: Iterable[Stage]) -> Emitted:
    """Run those stages of the event that are on, in order; one that fails is logged and never stops the others.

    Where the caller may not write to the project, only those run that read.
    """
    writes = Scope.PROJECT in context.caller.writes
    results: list[object] = []
    failed: list[str] = []
    for stage in sorted(stages, key=lambda stage: stage.priority):
        allowed = stage.module not in context.settings.off and (writes or stage.module in _READING_STAGES)
        if not allowed or stage.event is not type(context.event):
            continue
        try:
            value = stage.run(context)
        except Exception:  # one failing stage must not stop the others
            log.exception("Stage %s failed on %s", stage.module, context.event.event)
            failed.append(stage.module)
        else:
            results.append(value)
    return Emitted(tuple(result for result in results if result is not None), tuple(failed))


def _save_session(context: Context[E], failed: Sequence[str]) -> None:
    """Save the session with the changes of this event and the failures of its stages."""
    if failed:
        context.update(failures=dict(Counter(context.state.failures) + Counter(failed)))
    ended = context.at if isinstance(context.event, EndSession) else None
    session = context.session.model_copy(update={"last_at": context.at, "ended_at": ended})
    before = state_of(context.session.state)

    def state_after(stored: dict[str, Any]) -> dict[str, Any]:
        """Return the stored state, which another event may have changed meanwhile, with what this event changed."""
        return rebased(before, context.state, state_of(stored)).model_dump(mode="json")

    context.app.sessions.save(session, context.observations, state_after)


def _context_to_inject(_: Context[E], emitted: Emitted) -> Injection:
    """Return what the hook gives the agent: the first injection of a stage, else an empty injection."""
    found = [value for value in emitted.results if isinstance(value, Injection)]
    return replace(found[0] if found else Injection(), failed=emitted.failed)


def _note_of_event(context: Context[E], emitted: Emitted) -> Noted:
    """Return the last observation of the event as the answer of the hook, and the stages that failed."""
    last = context.observations[-1] if context.observations else None
    return Noted(
        context.event.session_id,
        str(last.decision) if last else "",
        last.reason if last else "",
        str(last.memory_id) if last and last.memory_id else None,
        emitted.failed,
    )

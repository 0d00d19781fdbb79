"""The events of a session as operations: each goes through the stages, and what they know of it is kept.

Inject: puts what is remembered of a prompt's subject before the prompt, fenced as data; mostly there is nothing.

What an agent was shown since its session began, or last lost its earlier messages, is not shown again, nor what was
kept of this session since then.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, TypeVar

from recollect.app import App
from recollect.domain.enums import Scope
from recollect.domain.lifecycle import (
    BeforeTool,
    CheckpointSession,
    EndSession,
    EndTurn,
    Injected,
    Injection,
    Noted,
    NoteShown,
    Session,
    SessionEvent,
    StartSession,
    SubmitPrompt,
    UseTool,
)
from recollect.domain.requests import Caller, Draft
from recollect.domain.results import Memory
from recollect.domain.review import Inbox
from recollect.memory.inbox import inbox
from recollect.projects import filed_under
from recollect.prompt.fence import memory_context
from recollect.prompt.neutral import neutral
from recollect.search.budget import estimate
from recollect.search.other_projects import counts_of
from recollect.search.recall import count_use
from recollect.search.unasked import sure_matches
from recollect.search.visibility import unfiltered
from recollect.sessions import ask, capture, compression, consolidation, moment, segmentation
from recollect.sessions.index import read_index
from recollect.sessions.observations.notes import failure_of
from recollect.sessions.observations.occurrence import ASSISTANT, Origin, prompted, used
from recollect.sessions.project_settings import settings_in
from recollect.sessions.session_state import Context, rebased, state_of


class Scale(StrEnum):
    """How far back a memory belongs, the shortest first."""

    IMMEDIATE = "immediate"
    TASK = "task"
    SESSION = "session"
    PROJECT = "project"


ALLOCATION: Final[Mapping[Scale, int]] = MappingProxyType(
    {Scale.IMMEDIATE: 1, Scale.TASK: 2, Scale.SESSION: 1, Scale.PROJECT: 1}
)
"""Places of each scale."""

_SCALES: Final = tuple(Scale)
_ENDS: Final = (timedelta(minutes=5), timedelta(minutes=30), timedelta(hours=2))
_USES: Final = (3, 6, 12)  # from which a memory is promoted by one, two and three scales


def scale_by_age(age: timedelta) -> Scale:
    """Return the scale of an age; an age below zero, of clocks that differ, is immediate."""
    return _SCALES[sum(age >= end for end in _ENDS)]


def scale(memory: Memory, now: datetime) -> Scale:
    """Return the scale of a memory: that of its age, promoted by one each at 3, 6 and 12 uses, at most to project."""
    uses = memory.accessed_count + memory.recalled_count
    by_age = _SCALES.index(scale_by_age(now - (memory.observed_at or memory.created_at)))
    return _SCALES[min(by_age + sum(uses >= least for least in _USES), len(_SCALES) - 1)]


def balanced(ranked: Sequence[Memory], now: datetime, allocation: Mapping[Scale, int] = ALLOCATION) -> list[Memory]:
    """Return at most as many memories as there are places, in the order of `ranked` (the best first).

    Each scale fills its own places with its best. Places that stay empty go to the best that are left, of any scale.
    """
    taken: Counter[Scale] = Counter()
    chosen: set[int] = set()
    for place, memory in enumerate(ranked):
        its = scale(memory, now)
        if taken[its] < allocation.get(its, 0):
            taken[its] += 1
            chosen.add(place)
    rest = [place for place in range(len(ranked)) if place not in chosen]
    chosen.update(rest[: sum(allocation.values()) - len(chosen)])
    return [ranked[place] for place in sorted(chosen)]


_COMPACTED: Final = "compact"
_AFTER_FAILURE: Final = 3
_ANSWERED: Final = 8_000
"""Characters of either end of an output by which it is answered: how it failed stands there. All of it is noted."""
_MOST_INJECTIONS: Final = 200  # of a session that are remembered


def inject(context: Context[SubmitPrompt]) -> Injection | None:
    """Return the block to put before the prompt and the memories in it; nothing where none is relevant.

    Where the start of the session got no index, as the daemon was asleep or the agent did not wait, it comes first.
    """
    if not _injects(context):
        return None
    index = _index(context) if context.state.owes_index else None
    if prompted(context.event.prompt, typed=context.event.typed).origin is not Origin.PROMPT:
        return index
    known = _known(context) | dict.fromkeys(map(int, index.whole_ids if index else ()), context.at)
    found = sure_matches(context.app, context.event.prompt, context.caller, known)
    shown = _shown(context, _balanced(context, found))
    return _joined(index, shown) if index and shown else index or shown


def inject_at_start(context: Context[StartSession]) -> Injection | None:
    """Return the index: the rules, a line for each other memory, and after a compaction what the session learnt.

    What a person said in an earlier session and nobody stored stands below it.
    """
    capture.forget_shown(context)
    if not _injects(context):
        return None
    index, (offer, offered) = _index(context) or Injection(), ask.offer(context)
    text = "\n".join(filter(None, (index.text, offer)))
    return replace(index, text=text, offered=offered) if text else None


def inject_before_tool(context: Context[BeforeTool]) -> Injection | None:
    """Return the memories whose moment it is that a tool is about to run."""
    if not _injects(context):
        return None
    return moment.reminder(context, moment.fitting(context.app, context.event, context.caller, _reminded(context)))


def inject_after_tool(context: Context[UseTool]) -> Injection | None:
    """Return the memories whose moment it is, and what was learnt of the same failure."""
    if not _injects(context):
        return None
    event, failed = context.event, failing(context.event)
    failed_now = event.failed or bool(failed)
    due = moment.reminder(
        context, moment.fitting(context.app, event, context.caller, _reminded(context), failed=failed_now)
    )
    if not failed:
        return due
    known = _known(context) | dict.fromkeys(map(int, due.memory_ids if due else ()), context.at)
    found = sure_matches(context.app, failed, context.caller, known)
    learnt = _shown(context, found[: min(_AFTER_FAILURE, context.settings.max_inject_count)])
    return _joined(due, learnt) if due and learnt else due or learnt


def _ends_of(output: str) -> str:
    return output if len(output) <= 2 * _ANSWERED else f"{output[:_ANSWERED]}\n{output[-_ANSWERED:]}"


def failing(event: UseTool) -> str:
    """Return how a command failed, in its own words; empty where it did not."""
    one = used(event.tool, event.input, event.output, failed=event.failed)
    return failure_of(one) if one.origin is Origin.COMMAND else ""


def _index(context: Context[Any]) -> Injection | None:
    """Return the index; where there is nothing to tell, the session is not owed it any more."""
    compacted = isinstance(context.event, StartSession) and context.event.source == _COMPACTED
    found = read_index(
        context.app,
        context.caller,
        max_tokens=context.settings.token_budget,
        count=context.app.embedder.counter() or estimate,
        folder=context.event.folder if context.app.reads_folders else "",
        session_id=context.event.session_id if compacted else "",
        now=context.at,
    )
    if not found.text:
        context.update(owes_index=False)
        return None
    ids, whole = (tuple(map(str, some)) for some in (found.memory_ids, found.whole_ids))
    return Injection(found.text, ids, whole_ids=whole, index=True)


def _joined(first: Injection, shown: Injection) -> Injection:
    ids = tuple(dict.fromkeys((*first.memory_ids, *shown.memory_ids)))
    whole = (*first.whole_ids, *shown.whole_ids)
    return replace(first, text=f"{first.text}\n{shown.text}", memory_ids=ids, whole_ids=whole)


def note_delivered(context: Context[NoteShown]) -> None:
    """Note what the agent has in front of it now; only what was shown whole is not shown again."""
    event, whole = context.event, tuple(int(one) for one in context.event.whole_ids)
    ids = tuple(int(one) for one in event.memory_ids)
    reminded = dict.fromkeys((*context.state.reminded, *(int(one) for one in event.reminded_ids)))
    injections = (*context.state.injections, Injected(at=context.at, memory_ids=ids)) if ids else ()
    context.update(injected=(*context.state.injected, *(one for one in whole if one not in context.state.injected)))
    if ids:
        context.update(injections=injections[-_MOST_INJECTIONS:], reminded=tuple(reminded))
    if event.ask:
        context.update(asks=context.state.asks + 1, events=0, undecided=())
    if event.index:
        context.update(owes_index=False)
    if event.offered:
        ask.offered(context)
    if event.ask:
        return
    view = unfiltered(context.app, Draft(content="-"), context.caller)
    found = list(context.app.records.load(set(whole if event.index else ids), view).values())
    if event.index:  # that a session begins with a rule keeps it, and is no use of it
        drafts, days = [one.id for one in found if one.is_draft], context.settings.default_ttl_days
        if drafts and days:
            context.app.records.extend_expiry(drafts, context.at, context.caller.user, days)
        return
    count_use(context.app, found, context.at, context.caller, accessed=False)


def _injects(context: Context[Any]) -> bool:
    return context.has("memory.store") and context.settings.inject and context.settings.max_inject_count > 0


def _reminded(context: Context[Any]) -> dict[int, datetime]:
    """Return which memories have come up at their moment, and when; what was done without one counts as of now."""
    shown_at = context.state.shown_at
    return {one: shown_at.get(one, context.at) for one in context.state.reminded}


def _known(context: Context[Any]) -> dict[int, datetime]:
    """Return what the agent has in front of it: what it was shown, and when, and what was kept of this session."""
    shown_at = context.state.shown_at
    kept = {*context.state.kept} - {*context.state.forgotten}
    return {one: shown_at.get(one, context.at) for one in context.state.injected} | dict.fromkeys(kept, context.at)


def _shown(context: Context[Any], found: Sequence[Memory]) -> Injection | None:
    """Return the block of memories within the budget."""
    count = context.app.embedder.counter() or estimate
    text, ids = memory_context(found, context.settings.token_budget, count)
    if not ids:
        return None
    shown = tuple(map(str, ids))
    return Injection(text, shown, whole_ids=shown)


def _balanced(context: Context[SubmitPrompt], found: list[Memory]) -> list[Memory]:
    """Return as many memories as there are places, of all temporal scales where that capability is there."""
    places = context.settings.max_inject_count
    if not context.has("memory.temporal") or len(found) <= places:
        return found[:places]
    first = balanced(found, context.at)[:places]
    taken = {one.id for one in first}
    return first + [one for one in found if one.id not in taken][: places - len(first)]


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
    Stage("capture", StartSession, 50, capture.begin),
    Stage("inject", SubmitPrompt, 50, inject),
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


_ANSWERING: Final = "inject"
"""The module whose stages answer an event; the daemon runs the others when the agent has its answer."""
_READING: Final = frozenset({_ANSWERING})


@dataclass(frozen=True)
class Emitted:
    """What the stages of one event gave, in order (None is left out), and which of them failed."""

    results: tuple[object, ...]
    failed: tuple[str, ...]


E = TypeVar("E", bound=SessionEvent)

log = logging.getLogger(__name__)

KEPT_FOR: Final = timedelta(days=30)
"""How long a session is shown after it was last heard of."""

_AHEAD: Final = timedelta(days=1)
"""How far before ours the clock of an agent may be; a time beyond that is not believed."""
_LOCKS: Final = tuple(threading.Lock() for _ in range(64))


def session_start(app: App, request: StartSession, caller: Caller, *, request_id: str = "") -> Noted:
    """Begin a session, or resume one; sessions without an event for a month are deleted."""
    del request_id  # a session that begins twice is the same session
    app.sessions.remove_before(app.clock() - KEPT_FOR)
    return _noted(*passed(app, request, caller, _stages(answering=False)))


def prompt_submit(app: App, request: SubmitPrompt, caller: Caller, *, request_id: str = "") -> Injection:
    """Return what to put before a prompt: the memories that are relevant to it, fenced as data, or nothing."""
    del request_id  # asked again, it answers again
    found = _injection(*passed(app, request, caller))
    if found.shown:
        note_shown(app, NoteShown(**_about(request), **found.shown), caller)
    return found


def _about(request: SessionEvent) -> dict[str, Any]:
    return {name: getattr(request, name) for name in ("session_id", "agent", "folder", "at")}


def note_shown(app: App, request: NoteShown, caller: Caller) -> Noted:
    """Keep what has reached the agent, so that it is not shown again."""
    return _noted(*passed(app, request, caller))


def answer_prompt(app: App, request: SubmitPrompt, caller: Caller) -> Injection:
    """Do the part of `prompt_submit` that somebody waits for; `note_prompt` does the rest."""
    return _injection(*passed(app, request, caller, _stages(answering=True)))


def answer_start(app: App, request: StartSession, caller: Caller) -> Injection:
    """Return what a session that begins must not forget, and how much waits for a person's decision.

    What is filed under a name that the project had before is named too, since nothing of it is shown.
    """
    return _with_waiting(app, _injection(*passed(app, request, caller, _stages(answering=True))), request, caller)


def preview_start(app: App, request: StartSession, caller: Caller) -> Injection:
    """Return what `answer_start` would answer a session that begins now; no session begins, and nothing is written."""
    now = app.clock()
    places = {"project": caller.namespace(Scope.PROJECT), "agent": request.agent}
    session = Session(id=0, session_id=request.session_id, started_at=now, last_at=now, **places)
    context = _context(app, request, caller, session, now)
    return _with_waiting(app, _injection(context, run_stages(context, _stages(answering=True))), request, caller)


def _with_waiting(app: App, found: Injection, request: StartSession, caller: Caller) -> Injection:
    """Add how many memories wait for a person's decision, and what is filed under a former name of the project."""
    waiting = inbox(app, Inbox(limit=1), caller)
    told = [waiting.message] if waiting.total else []
    for name, count in counts_of(app, request.former_projects, caller).items():
        told.append(neutral(filed_under(name, count)))
    return replace(found, text="\n".join(filter(None, (found.text, *told)))) if told else found


def answer_before_tool(app: App, request: BeforeTool, caller: Caller) -> Injection:
    """Return the memories whose moment it is that a tool is about to run; mostly none, and then nothing is written."""
    due = any(moment.fitting(app, request, caller))
    return _injection(*passed(app, request, caller, _stages(answering=True))) if due else Injection()


def answer_tool(app: App, request: UseTool, caller: Caller) -> Injection:
    """Return the memories whose moment it is, and what was learnt of a failure that a tool reports."""
    request = request.model_copy(update={"output": _ends_of(request.output)})
    due = failing(request) or any(moment.fitting(app, request, caller, failed=request.failed))
    return _injection(*passed(app, request, caller, _stages(answering=True))) if due else Injection()


def answer_turn(app: App, request: EndTurn, caller: Caller) -> Injection:
    """Return what an agent that ends a turn is asked to do before; mostly nothing."""
    return _injection(*passed(app, request, caller, _stages(answering=True)))


def note_turn(app: App, request: EndTurn, caller: Caller) -> Noted:
    """Look at what an agent said at the end of a turn, as at a report."""
    if not request.output.strip():
        return Noted(request.session_id)
    return tool_post(app, UseTool(**_about(request), tool=ASSISTANT, output=request.output), caller)


def note_prompt(app: App, request: SubmitPrompt, caller: Caller) -> Noted:
    """Keep what is worth it of a prompt that `answer_prompt` has answered."""
    return _noted(*passed(app, request, caller, _stages(answering=False)))


def tool_post(app: App, request: UseTool, caller: Caller, *, request_id: str = "") -> Noted:
    """Look at what a tool wrote, and store it if it is worth a memory."""
    del request_id  # the same output again is dropped as a repeat
    return _noted(*passed(app, request, caller, _stages(answering=False)))


def session_checkpoint(app: App, request: CheckpointSession, caller: Caller, *, request_id: str = "") -> Noted:
    """Write down what a session has learnt, before it loses its earlier messages."""
    del request_id
    return _noted(*passed(app, request, caller))


def session_end(app: App, request: EndSession, caller: Caller, *, request_id: str = "") -> Noted:
    """End a session: sum it up, let what is used gain and what is unused fade, and compress what is old."""
    del request_id
    return _noted(*passed(app, request, caller))


def _stages(*, answering: bool) -> list[Stage]:
    return [one for one in STAGES if (one.module == _ANSWERING) is answering]


def passed(app: App, event: E, caller: Caller, stages: Iterable[Stage] = STAGES) -> tuple[Context[E], Emitted]:
    """Send an event through the stages, one event of a session at a time, and write down what they made of it.

    Another replica may work on the session meanwhile, and what it says may be forgotten: see `rebased`.
    """
    now = app.clock()
    at = min(event.at or now, now + _AHEAD)
    with _LOCKS[hash((caller.user, event.session_id)) % len(_LOCKS)]:
        new = not isinstance(event, EndSession)  # an agent's other commands end a session that never began
        session = app.sessions.begin(caller, event.session_id, event.agent, at, new=new)
        context = _context(app, event, caller, session, at)
        emitted = run_stages(context, stages)
        _save(context, emitted.failed)
    return context, emitted


def _context(app: App, event: E, caller: Caller, session: Session, at: datetime) -> Context[E]:
    """Return an event on its way, under the settings of the project around the folder that it names."""
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
    for one in sorted(stages, key=lambda stage: stage.priority):
        allowed = one.module not in context.settings.off and (writes or one.module in _READING)
        if not allowed or one.event is not type(context.event):
            continue
        try:
            value = one.run(context)
        except Exception:  # one failing stage must not stop the others
            log.exception("Stage %s failed on %s", one.module, context.event.event)
            failed.append(one.module)
        else:
            results.append(value)
    return Emitted(tuple(one for one in results if one is not None), tuple(failed))


def _save(context: Context[E], failed: Sequence[str]) -> None:
    if failed:
        context.update(failures=dict(Counter(context.state.failures) + Counter(failed)))
    ended = context.at if isinstance(context.event, EndSession) else None
    session = context.session.model_copy(update={"last_at": context.at, "ended_at": ended})
    before = state_of(context.session.state)

    def state_after(stored: dict[str, Any]) -> dict[str, Any]:
        return rebased(before, context.state, state_of(stored)).model_dump(mode="json")

    context.app.sessions.save(session, context.observations, state_after)


def _injection(_: Context[E], emitted: Emitted) -> Injection:
    found = [value for value in emitted.results if isinstance(value, Injection)]
    return replace(found[0] if found else Injection(), failed=emitted.failed)


def _noted(context: Context[E], emitted: Emitted) -> Noted:
    last = context.observations[-1] if context.observations else None
    return Noted(
        context.event.session_id,
        str(last.decision) if last else "",
        last.reason if last else "",
        str(last.memory_id) if last and last.memory_id else None,
        emitted.failed,
    )

"""Inject: puts what is remembered of a prompt's subject before the prompt, fenced as data; mostly there is nothing.

What an agent was shown since its session began, or last lost its earlier messages, is not shown again, nor what was
kept of this session since then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from recollect.domain.lifecycle import BeforeTool, Injected, Injection, NoteShown, StartSession, SubmitPrompt, UseTool
from recollect.domain.requests import Draft
from recollect.domain.results import Memory
from recollect.prompt.fence import memory_context
from recollect.search.budget import estimate
from recollect.search.recall import count_use
from recollect.search.unasked import sure_matches
from recollect.search.visibility import unfiltered
from recollect.sessions import ask, capture, moment
from recollect.sessions.index import read_index
from recollect.sessions.observations.occurrence import Origin, prompt_occurrence, tool_occurrence
from recollect.sessions.observations.trail import failure_of
from recollect.sessions.session_state import Context
from recollect.sessions.temporal_scales import balanced_by_scale

_COMPACTED: Final = "compact"
_MAX_AFTER_FAILURE: Final = 3
_MOST_INJECTIONS: Final = 200  # of a session that are remembered


def inject_for_prompt(context: Context[SubmitPrompt]) -> Injection | None:
    """Return the block to put before the prompt and the memories in it; None where none is relevant.

    Where the start of the session got no index, as the daemon was asleep or the agent did not wait, the index comes
    first.
    """
    if not _may_inject(context):
        return None
    index = _index_injection(context) if context.state.owes_index else None
    if prompt_occurrence(context.event.prompt, typed=context.event.typed).origin is not Origin.PROMPT:
        return index
    known = _already_shown(context) | dict.fromkeys(map(int, index.whole_ids if index else ()), context.at)
    found = sure_matches(context.app, context.event.prompt, context.caller, known)
    shown = _memory_block(context, _balanced_by_age(context, found))
    return _joined_injections(index, shown) if index and shown else index or shown


def inject_at_start(context: Context[StartSession]) -> Injection | None:
    """Return the index: the rules, a line for each other memory, and after a compaction what the session learnt.

    Unstored drafts of a person's words from an earlier session stand below it.
    """
    capture.forget_shown(context)
    if not _may_inject(context):
        return None
    index, (offer, offered) = _index_injection(context) or Injection(), ask.offer_of_drafts(context)
    text = "\n".join(filter(None, (index.text, offer)))
    return replace(index, text=text, offered=offered) if text else None


def inject_before_tool(context: Context[BeforeTool]) -> Injection | None:
    """Return the memories with a moment that fits the tool about to run."""
    if not _may_inject(context):
        return None
    return moment.reminder_of(
        context, moment.fitting_memories(context.app, context.event, context.caller, _reminded_memories(context))
    )


def inject_after_tool(context: Context[UseTool]) -> Injection | None:
    """Return the memories with a moment that fits, and the memories of the same failure."""
    if not _may_inject(context):
        return None
    event, failed = context.event, failure_text(context.event)
    failed_now = event.failed or bool(failed)
    due = moment.reminder_of(
        context,
        moment.fitting_memories(context.app, event, context.caller, _reminded_memories(context), failed=failed_now),
    )
    if not failed:
        return due
    known = _already_shown(context) | dict.fromkeys(map(int, due.memory_ids if due else ()), context.at)
    found = sure_matches(context.app, failed, context.caller, known)
    learnt = _memory_block(context, found[: min(_MAX_AFTER_FAILURE, context.settings.max_inject_count)])
    return _joined_injections(due, learnt) if due and learnt else due or learnt


def failure_text(event: UseTool) -> str:
    """Return the line of its output in which a command failed; empty where it succeeded."""
    call = tool_occurrence(event.tool, event.input, event.output, failed=event.failed)
    return failure_of(call) if call.origin is Origin.COMMAND else ""


def _index_injection(context: Context[Any]) -> Injection | None:
    """Return the index as an injection; None where it is empty, and the session is then not owed it any more."""
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


def _joined_injections(first: Injection, shown: Injection) -> Injection:
    """Return both injections as a single injection, the first text above the other."""
    ids = tuple(dict.fromkeys((*first.memory_ids, *shown.memory_ids)))
    whole = (*first.whole_ids, *shown.whole_ids)
    return replace(first, text=f"{first.text}\n{shown.text}", memory_ids=ids, whole_ids=whole)


def note_delivered(context: Context[NoteShown]) -> None:
    """Note the memories that reached the agent; only those shown whole are not shown again."""
    event, whole = context.event, tuple(int(memory_id) for memory_id in context.event.whole_ids)
    ids = tuple(int(memory_id) for memory_id in event.memory_ids)
    reminded = dict.fromkeys((*context.state.reminded, *(int(memory_id) for memory_id in event.reminded_ids)))
    injections = (*context.state.injections, Injected(at=context.at, memory_ids=ids)) if ids else ()
    context.update(injected=tuple(dict.fromkeys((*context.state.injected, *whole))))
    if ids:
        context.update(injections=injections[-_MOST_INJECTIONS:], reminded=tuple(reminded))
    if event.ask:
        context.update(asks=context.state.asks + 1, events=0, undecided=())
    if event.index:
        context.update(owes_index=False)
    if event.offered:
        ask.note_offered(context)
    if event.ask:
        return
    view = unfiltered(context.app, Draft(content="-"), context.caller)
    found = list(context.app.records.load(set(whole if event.index else ids), view).values())
    if event.index:  # that a session begins with a rule keeps it, and is no use of it
        drafts, days = [memory.id for memory in found if memory.is_draft], context.settings.default_ttl_days
        if drafts and days:
            context.app.records.lists.extend_expiry(drafts, context.at, context.caller.user, days)
        return
    count_use(context.app, found, context.at, context.caller, accessed=False)


def _may_inject(context: Context[Any]) -> bool:
    """Say whether memories may be added to this event: there is a store, and the settings let it."""
    return context.has("memory.store") and context.settings.inject and context.settings.max_inject_count > 0


def _reminded_memories(context: Context[Any]) -> dict[int, datetime]:
    """Return when each memory came up at its moment; memories that need no reminder count as of now."""
    shown_at = context.state.shown_at
    return {memory_id: shown_at.get(memory_id, context.at) for memory_id in context.state.reminded}


def _already_shown(context: Context[Any]) -> dict[int, datetime]:
    """Return when the agent saw each memory: those shown, and those kept of this session."""
    shown_at = context.state.shown_at
    kept = {*context.state.kept} - {*context.state.forgotten}
    return {memory_id: shown_at.get(memory_id, context.at) for memory_id in context.state.injected} | dict.fromkeys(
        kept, context.at
    )


def _memory_block(context: Context[Any], found: Sequence[Memory]) -> Injection | None:
    """Return the block of memories within the budget."""
    count = context.app.embedder.counter() or estimate
    text, ids = memory_context(found, context.settings.token_budget, count)
    if not ids:
        return None
    shown = tuple(map(str, ids))
    return Injection(text, shown, whole_ids=shown)


def _balanced_by_age(context: Context[SubmitPrompt], found: list[Memory]) -> list[Memory]:
    """Return as many memories as there are places, of all temporal scales where that capability is there."""
    places = context.settings.max_inject_count
    if not context.has("memory.temporal") or len(found) <= places:
        return found[:places]
    first = balanced_by_scale(found, context.at)[:places]
    taken = {memory.id for memory in first}
    return first + [memory for memory in found if memory.id not in taken][: places - len(first)]

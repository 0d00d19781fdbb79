"""The capture stages: what of a session is noted as a draft, what is not, and why; checkpoints and the summary.

Capture is a notebook, not a judge. What it notes is found by recall behind what people and agents stored, and goes by
itself after a while; it is never shown to an agent that did not ask, but for a rule in a person's own words. What the
agent stores takes the place of the drafts that it says better.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, Final

from recollect.domain.enums import OF_SESSION, OnSecret, Source
from recollect.domain.enums import ObservationType as Kind
from recollect.domain.fields import Request
from recollect.domain.lifecycle import (
    CheckpointSession,
    Decision,
    EndSession,
    Observation,
    StartSession,
    SubmitPrompt,
    UseTool,
)
from recollect.domain.origin import Origin as Stamp
from recollect.domain.origin import least_trusted
from recollect.domain.requests import Draft
from recollect.domain.results import Memory, Similar
from recollect.errors import RecollectError, SecretFound
from recollect.gate import clear, masked
from recollect.memory.describe import ask_later_within_budget, sum_up_session
from recollect.memory.review import outranks
from recollect.search.visibility import unfiltered
from recollect.sessions.memorability import Memorability, memorability, signs_of
from recollect.sessions.moment import note_done
from recollect.sessions.observations.kinds import importance_of
from recollect.sessions.observations.noise import REPEATED, output_digest
from recollect.sessions.observations.notes import Note, observe
from recollect.sessions.observations.occurrence import (
    ASSISTANT,
    Occurrence,
    Origin,
    prompt_occurrence,
    shown_input,
    tool_occurrence,
)
from recollect.sessions.observations.origins import outside_after, stamp_of
from recollect.sessions.observations.trail import Trail
from recollect.sessions.session_state import Context
from recollect.sessions.session_summary import checkpoint, summary
from recollect.text.layers import shortened

RESUMED: Final = "resume"
"""The source of a session that goes on with all that was before it."""
_MAX_SEEN: Final = 300  # digests of outputs that are remembered
_MAX_KEPT: Final = 1_000
_MAX_NEAREST: Final = 20
_NEARLY_SAME: Final = 0.98
_NO_STORE: Final = "there is no store"
_SUMMARIES: Final = OF_SESSION | {Kind.COMPRESSED_SUMMARY}
_MAX_SUMMARY: Final = 120
_MAX_READ: Final = 20_000  # characters of one text that the session keeps
_WORK: Final = frozenset({Origin.EDIT, Origin.COMMAND})
_WORTH_ASKING: Final = frozenset({"a rule", "passes now", "a figure"})
_STORES: Final = re.compile(r"\bremember\b")
_STORED: Final = re.compile(r"Memory (?:stored|updated) successfully (?:with ID: |\(ID: )(\d{1,18})")


def begin_session(context: Context[StartSession]) -> None:
    """Forget the earlier state of a session that begins anew."""
    forget_shown(context)
    if context.event.source in ("startup", "clear"):
        context.update(trail=Trail())


def forget_shown(context: Context[Any]) -> None:
    """Mark all memories, and the index, as not shown to the agent, because its context no longer holds them.

    After a resume only the index is marked so. Where a start reaches us as two events, this happens once.
    """
    if context.state.began_at == context.at:
        return
    context.update(began_at=context.at, owes_index=True)
    if not (isinstance(context.event, StartSession) and context.event.source == RESUMED):
        context.update(injected=(), reminded=(), forgotten=context.state.kept)


def capture_prompt(context: Context[SubmitPrompt]) -> None:
    """Keep the statements of a prompt."""
    _capture_occurrence(context, prompt_occurrence(context.event.prompt, typed=context.event.typed), "")


def capture_output(context: Context[UseTool]) -> None:
    """Keep the findings of a tool's use, or the drafts that a memory which the agent stored with it replaces."""
    event = context.event
    call = tool_occurrence(event.tool, event.input, event.output, failed=event.failed)
    if event.tool != ASSISTANT:
        context.update(events=context.state.events + 1, worked=context.state.worked or call.origin in _WORK)
    note_done(context, call)
    if call.origin is Origin.MEMORY:
        if _STORES.search(call.command or str(event.input.get("action") or event.tool)):
            _replace_drafts(context, event.output)
        if not call.text:
            return
    _capture_occurrence(context, call, event.tool)


def write_checkpoint(context: Context[CheckpointSession]) -> None:
    """Write down what the session has learnt before it loses its earlier messages."""
    if context.settings.capture and context.state.since_checkpoint:
        _store_checkpoint(context)


def summarize(context: Context[EndSession]) -> None:
    """Sum up what a session learnt, decided and left open, where it kept two memories or more."""
    if not context.settings.capture or not context.has("memory.store"):
        return
    kept = _session_memories(context)
    context.update(since_checkpoint=0)
    if len(kept) < 2:
        return
    found = _store_with_origin(
        context, summary(context.event.session_id, context.at, kept, context.state.trail), _least_trusted_origin(kept)
    )
    if found is not None:
        context.note(_new_observation(context, Decision.KEPT, "it sums up the session", memory_id=found))
        ask_later_within_budget(
            context.app, lambda: sum_up_session(context.app, found, _session_memories(context), context.caller)
        )


def _capture_occurrence(context: Context[Any], occurrence: Occurrence, tool: str) -> None:
    """Keep the notes on an occurrence that are worth it, and record the others as dropped with the reason."""
    if not context.settings.capture:
        return
    occurrence, state = masked_occurrence(occurrence), context.state
    stamp = stamp_of(occurrence, context.event.folder, state.outside)
    context.caller = context.caller.saying(stamp.said_by, stamp.came_from)
    context.update(outside=outside_after(state.outside, occurrence, stamp))
    found = observe(occurrence, state.trail, frozenset(state.seen), context.event.folder)
    context.update(trail=_masked_trail(found.trail), seen=(*state.seen, output_digest(occurrence.text))[-_MAX_SEEN:])
    again = (
        occurrence.origin is Origin.PROMPT and output_digest(occurrence.text) in state.seen
    )  # a memory may say it already
    if not found.notes:
        context.note(
            _new_observation(
                context, Decision.DROPPED, found.noise, tool, "" if again else _summary_of_occurrence(occurrence)
            )
        )
        return
    known = {memory.content for memory in _session_memories(context)} if again else ()
    gate = context.settings.memorability_threshold if context.has("memory.memorability") else 0.0
    for note in _notes_past_gate(found.notes, gate):
        _store_refresh_or_drop(context, note, occurrence, state.trail, known, tool, gate)


def _notes_past_gate(notes: Sequence[Note], gate: float) -> list[Note]:
    """Return the notes whose score reaches the gate, before they are compared with memories.

    Where none reaches it, the best note is returned alone, so that the reason for dropping it can be shown.
    """
    scores = [_score_note(note).score for note in notes]
    passing = [note for note, score in zip(notes, scores, strict=True) if score >= gate]
    return passing or [notes[scores.index(max(scores))]]


def _score_note(note: Note, near: Sequence[Similar] = ()) -> Memorability:
    """Return how memorable a note is beside its near memories; a command that passes now stands out."""
    return memorability(note.content, note.kind, (hit.cosine for hit in near), passes_now=note.proof)


def _store_refresh_or_drop(
    context: Context[Any],
    note: Note,
    occurrence: Occurrence,
    before: Trail,
    known: Collection[str],
    tool: str,
    gate: float,
) -> None:
    """Store a note that reaches the gate, refresh a memory that nearly says the same, or record the drop.

    `before` is the trail before the occurrence, `known` are the contents of the session's own memories.
    """
    score = _score_note(note)
    draft = _draft_of_note(context, note, occurrence, score)
    near = _nearest_memories(context, draft) if score.passes(gate) else []
    score = _score_note(note, near)
    seen = _new_observation(context, Decision.DROPPED, score.on_one_line(), tool, note.title)
    seen = seen.model_copy(update={"score": score.score})
    origin = context.caller.origin.model_dump(mode="json")
    unkept = seen.model_copy(update={"draft": draft.model_dump(mode="json", exclude_unset=True) | origin})
    same = next(
        (each.memory for each in near if each.cosine >= _NEARLY_SAME and _may_be_replaced(context, each.memory)), None
    )
    replaced = _failure_draft_id(context, before) if note.proof else same.id if same else 0
    if draft.content in known:
        context.note(seen.model_copy(update={"summary": "", "reason": REPEATED}))
    elif not context.has("memory.store"):
        context.note(unkept.model_copy(update={"reason": _NO_STORE}))
    elif not replaced and not score.passes(gate):
        nearest = near[0].memory.id if near and score.distinctiveness < 1 else None  # they are forgotten together
        reason = f"memory {nearest} says nearly this; {seen.reason}" if nearest else seen.reason
        context.note(unkept.model_copy(update={"reason": reason, "memory_id": nearest}))
    else:
        kept = seen.model_copy(update={"summary": "", "decision": Decision.KEPT})
        made = _store_draft(context, draft, replaced, kept)
        if made and _WORTH_ASKING.intersection(signs_of(note.content, note.kind, passes_now=note.proof)):
            context.update(undecided=(*(each for each in context.state.undecided if each != made), made))
        if made and context.state.trail.failure and context.state.trail.failure != before.failure:
            context.update(trail=context.state.trail.model_copy(update={"draft": made}))


def _failure_draft_id(context: Context[Any], before: Trail) -> int:
    """Return the id of the draft about the failure that is now solved; 0 without a draft, or where a person kept it."""
    view = unfiltered(context.app, Draft(content="-"), context.caller)
    found = context.app.records.load({before.draft} - {0}, view).get(before.draft)
    return found.id if found and _may_be_replaced(context, found) else 0


def _may_be_replaced(context: Context[Any], old: Memory) -> bool:
    """Say whether a memory is a draft that may be replaced by what this event says."""
    return old.is_draft and not outranks(old, context.caller.origin)


def _store_draft(context: Context[Any], draft: Draft, same: int, seen: Observation) -> int | None:
    """Store a draft, over the memory `same` if that is not 0; return its id, None where the gate refused it."""
    new = draft.model_copy(update={"id": str(same)}) if same else draft
    try:
        outcome = context.perform("remember", **new.model_dump(exclude_unset=True))
    except SecretFound:
        context.note(seen.model_copy(update={"decision": Decision.REFUSED, "reason": "it holds a secret"}))
        return None
    memory_id = int(outcome.id)
    reason = f"{seen.reason}; a new version of memory {same}" if same else seen.reason
    context.note(seen.model_copy(update={"memory_id": memory_id, "reason": reason}))
    kept = (*(kept_id for kept_id in context.state.kept if kept_id != memory_id), memory_id)[-_MAX_KEPT:]
    context.update(kept=kept, since_checkpoint=context.state.since_checkpoint + 1)
    if context.state.since_checkpoint >= context.settings.checkpoint_every:
        _store_checkpoint(context)
    return memory_id


def _replace_drafts(context: Context[UseTool], output: str) -> None:
    """Replace the session's drafts that say the same by the memory that the agent has just stored.

    A rule of a person is replaced by a rule alone. The agent has decided about the rest, so nobody asks about that
    again; it stays a draft.
    """
    stored = _STORED.search(output)
    context.update(undecided=())
    if stored is None or not context.has("memory.store"):
        return
    app, number = context.app, int(stored[1])
    new = app.records.load({number}, unfiltered(app, Draft(content="-"), context.caller)).get(number)
    if new is None or new.is_draft or not new.speaks_unasked:
        return
    try:
        near = context.perform(
            "find_similar",
            content=new.content,
            scope=new.scope,
            threshold=app.embedder.card.similar,
            limit=_MAX_NEAREST,
        )
    except RecollectError:  # the embedding model is not ready
        return
    drafts = [hit.memory for hit in near if hit.memory.is_draft and (new.is_rule or not hit.memory.is_rule)]
    said_now = {draft.id for draft in drafts} & {*context.state.kept}
    if said_now:
        with app.records.writing(context.caller.writable(new.namespace), context.caller.user) as transaction:
            for former in sorted(said_now):
                transaction.memories.supersede(former, by=number)
        app.run_later(app.vectors.sync)


def _nearest_memories(context: Context[Any], draft: Draft) -> list[Similar]:
    """Return the memories of the project nearest to a draft; none while the embedding model is not ready."""
    try:
        found = context.perform(
            "find_similar", content=draft.content, scope=draft.scope, threshold=0.0, limit=_MAX_NEAREST
        )
    except RecollectError:
        return []
    return [hit for hit in found if hit.memory.type not in _SUMMARIES and not hit.memory.unapproved]


def _draft_of_note(context: Context[Any], note: Note, occurrence: Occurrence, score: Memorability) -> Draft:
    """Return the draft of a note, with its secrets masked; its evidence becomes the subtitle."""
    draft = Draft(
        content=note.content,
        title=note.title,
        subtitle=note.evidence,
        type=note.kind,
        fact_type=note.fact_type,
        concepts=note.concepts,
        tags=note.tags,
        importance=importance_of(occurrence.origin, score.score),
        trust=note.trust,
        files_read=note.files_read,
        files_modified=note.files_modified,
        session_id=context.event.session_id,
        observed_at=context.at,
        source=Source.HOOK,
    )
    return clear(draft, OnSecret.REDACT).value


def _store_checkpoint(context: Context[Any]) -> None:
    """Store a summary of the session so far where it made two memories or more."""
    kept = _session_memories(context)
    if context.has("memory.store") and len(kept) >= 2:
        _store_with_origin(context, checkpoint(context.event.session_id, context.at, kept), _least_trusted_origin(kept))
    context.update(since_checkpoint=0)


def _session_memories(context: Context[Any]) -> list[Memory]:
    """Return the memories that the session made and that still hold, in order."""
    view = unfiltered(context.app, Draft(content="-"), context.caller)
    found = context.app.records.load(set(context.state.kept), view)
    kept = (found[number] for number in context.state.kept if number in found)
    return [memory for memory in kept if memory.superseded_by is None]


def _least_trusted_origin(kept: Sequence[Memory]) -> Stamp:
    """Return the origin of what sums memories up: it has no more authority than the least of them."""
    return least_trusted(memory.stamp for memory in kept)


def _store_with_origin(context: Context[Any], draft: Draft, stamp: Stamp) -> int | None:
    """Store a draft as the words of another origin than the event's."""
    attributed = replace(context, caller=context.caller.saying(stamp.said_by, stamp.came_from))
    try:
        return int(attributed.perform("remember", **draft.model_dump(exclude_unset=True)).id)
    except SecretFound:
        return None


def _masked_trail(trail: Trail) -> Trail:
    """Return the trail as the session's row may keep it."""
    if trail == Trail():
        return trail
    return Trail.model_validate(_masked_value(trail.model_dump()))


def _masked_value(value: Any) -> Any:
    """Return a value with the secrets in each of its texts masked."""
    if isinstance(value, str):
        return masked(value[:_MAX_READ])
    if isinstance(value, (list, tuple)):
        return tuple(_masked_value(element) for element in value)
    return {name: _masked_value(element) for name, element in value.items()} if isinstance(value, dict) else value


def _summary_of_occurrence(occurrence: Occurrence) -> str:
    text = occurrence.text if occurrence.origin is Origin.PROMPT else shown_input(occurrence.input) or occurrence.text
    return masked(shortened(" ".join(text[:2_000].split()), _MAX_SUMMARY))


def _new_observation(
    context: Context[Any],
    decision: Decision,
    reason: str,
    tool: str = "",
    summary: str = "",
    memory_id: int | None = None,
) -> Observation:
    """Return the observation of this event with a decision and its reason."""
    return Observation(
        at=context.at,
        event=context.event.event,
        tool=tool,
        summary=summary,
        decision=decision,
        reason=reason,
        memory_id=memory_id,
    )


class _Text(Request):
    text: str


class _ToolInput(Request):
    input: dict[str, Any]


def masked_occurrence(occurrence: Occurrence) -> Occurrence:
    """Return an occurrence with its secrets masked, before any part of it is cut or loses the words around it.

    In a text that was cut before, the gate no longer sees a secret in the `X` of `mysql --password X` or in half of a
    token.
    """
    text = clear(_Text(text=occurrence.text), OnSecret.REDACT).value.text
    return replace(
        occurrence, text=text, input=clear(_ToolInput(input=dict(occurrence.input)), OnSecret.REDACT).value.input
    )

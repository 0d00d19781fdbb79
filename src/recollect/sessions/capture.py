"""The capture stages: what of a session becomes a memory, what does not, and why; checkpoints and the summary.

Each text is judged by its structure and by what it means. While the embedding model is not loaded only what the
structure is sure of is kept; the rest waits with the session, and is judged when the model is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, Final

from recollect.domain.enums import OF_SESSION, OnSecret, Source
from recollect.domain.enums import ObservationType as Kind
from recollect.domain.fields import Request
from recollect.domain.lifecycle import (
    CheckpointSession,
    Decision,
    EndSession,
    Observation,
    Session,
    StartSession,
    SubmitPrompt,
    UseTool,
)
from recollect.domain.requests import Draft
from recollect.domain.results import Memory, Similar
from recollect.errors import RecollectError, SecretFound
from recollect.gate import clear, masked
from recollect.memory.describe import sum_up_session_later
from recollect.memory.grounding import cited
from recollect.memory.summaries import session_key
from recollect.search.visibility import unfiltered
from recollect.sessions.lessons import Trail, Wording, asked, stated
from recollect.sessions.memorability import Memorability, awaited, distinctiveness, memorability, with_meaning
from recollect.sessions.observations.noise import digest
from recollect.sessions.observations.observe import Candidate, Part, importance_of, observe, parts_of
from recollect.sessions.observations.occurrence import Occurrence, Origin, prompted, shown_input, used
from recollect.sessions.session_state import Context, state_of
from recollect.text.layers import shortened

_SEEN: Final = 300  # digests of outputs that are remembered
_KEPT: Final = 1_000
_NEAR: Final = 20
_NEARLY_SAME: Final = 0.98
_LOOKED_BACK: Final = 5  # sessions
_WAITS: Final = "it waits for the embedding model"
_NO_STORE: Final = "there is no store"
_PROMPT: Final = SubmitPrompt.event
_SUMMARIES: Final = OF_SESSION | {Kind.COMPRESSED_SUMMARY}
_SUMMARY: Final = 120
_READ: Final = 20_000  # characters of one text that the session keeps
CATEGORY: Final = "session"
_IMPORTANCE: Final = 0.1
_MOST: Final = 12  # titles of one heading
_HEADINGS: Final = {
    "Decided": (Kind.DECISION,),
    "Changed": (Kind.CHANGE, Kind.FEATURE, Kind.REFACTOR),
    "Fixed": (Kind.BUGFIX,),
    "Learnt": (Kind.DISCOVERY,),
}


def begin(context: Context[StartSession]) -> None:
    """Forget what a session did before, where it begins anew; judge what earlier sessions left waiting."""
    if context.event.source in ("startup", "clear"):
        context.update(trail=Trail())
    if context.settings.capture and context.has("memory.store") and not awaited(context.app.embedder):
        for session in context.app.sessions.listed(context.caller, _LOOKED_BACK, 0)[0]:
            if state_of(session.state).waits:
                _judge_waiting(context, session)
                context.app.sessions.mask(session, lambda state: state | {"waits": False})


def capture_prompt(context: Context[SubmitPrompt]) -> None:
    """Keep what a prompt states."""
    _capture(context, prompted(context.event.prompt), "")


def capture_output(context: Context[UseTool]) -> None:
    """Keep what the use of a tool tells."""
    event = context.event
    _capture(context, used(event.tool, event.input, event.output, failed=event.failed), event.tool)


def write_checkpoint(context: Context[CheckpointSession]) -> None:
    """Write down what the session has learnt before it loses its earlier messages."""
    if context.settings.capture and context.state.since_checkpoint:
        _checkpoint(context)


def summarize(context: Context[EndSession]) -> None:
    """Sum up what a session learnt, decided and left open, where it kept two memories or more."""
    if not context.settings.capture or not context.has("memory.store"):
        return
    _catch_up(context)
    kept = _memories(context)
    if len(kept) >= 2 and (
        found := _stored(context, summary(context.event.session_id, context.at, kept, context.state.trail))
    ):
        context.note(_observation(context, Decision.KEPT, "it sums up the session", memory_id=found))
        sum_up_session_later(context.app, found, kept, context.caller)
    context.update(since_checkpoint=0)


def _capture(context: Context[Any], one: Occurrence, tool: str) -> None:
    if not context.settings.capture:
        return
    _catch_up(context)
    one, state = masked_occurrence(one), context.state
    found = observe(one, state.trail, frozenset(state.seen), context.event.folder)
    context.update(trail=_masked_trail(found.trail), seen=(*state.seen, digest(one.text))[-_SEEN:])
    if found.candidate is None:
        again = one.origin is Origin.PROMPT and digest(one.text) in state.seen  # a memory may say it already
        context.note(_observation(context, Decision.DROPPED, found.noise, tool, "" if again else _summary(one)))
        return
    judged = _judged(context, found.candidate.parts)
    candidate = found.candidate
    if one.origin is Origin.PROMPT:
        candidate = replace(candidate, wording=judged.wording)
        context.update(trail=_masked_trail(asked(context.state.trail, judged.rest)))
    note = _observation(context, Decision.DROPPED, judged.reason, tool, judged.title or _summary(one))
    draft = _draft(context, candidate, one, judged.score)
    _settle(context, draft, judged, note.model_copy(update={"score": judged.value}))


@dataclass(frozen=True, slots=True)
class _Judged:
    """What was made of the texts of an occurrence: the best score, the sentences that state something, and the rest."""

    score: Memorability | None
    kept: bool
    waits: bool
    wording: Wording
    rest: tuple[str, ...] = ()

    @property
    def value(self) -> float | None:
        """Return the score (0–1) where there is one."""
        return round(self.score.score, 3) if self.score else None

    @property
    def reason(self) -> str:
        """Return why it is kept or not, in one line."""
        return _WAITS if self.waits else self.score.explained() if self.score else "everything is kept"

    @property
    def title(self) -> str:
        """Return the title that it would have."""
        return self.wording.title


def _judged(context: Context[Any], parts: Sequence[Part]) -> _Judged:
    """Judge the texts of an occurrence; without the model that tells what they mean some may wait for it."""
    texts = [part.text for part in parts]
    if not context.has("memory.memorability"):
        return _Judged(None, True, False, stated(texts, texts[0]))
    known = context.meanings(texts)
    scores = [memorability(part.features, known[place] if known else None) for place, part in enumerate(parts)]
    gate = context.settings.memorability_threshold
    best = max(range(len(parts)), key=lambda place: scores[place].score)
    said = [text for text, score in zip(texts, scores, strict=True) if score.passes(gate)]
    waits = not said and known is None and awaited(context.app.embedder)
    wording = stated(texts if waits else said or texts, texts[best])
    return _Judged(scores[best], bool(said), waits, wording, tuple(text for text in texts if text not in said))


def _settle(context: Context[Any], draft: Draft, judged: _Judged, note: Observation) -> int | None:
    """Store what passes the gate, refresh what says nearly the same, or note that it is dropped; return the memory."""
    unkept = note.model_copy(update={"draft": draft.model_dump(mode="json", exclude_unset=True)})
    if not judged.kept or not context.has("memory.store"):
        context.update(waits=context.state.waits or judged.waits)
        context.note(unkept if context.has("memory.store") else unkept.model_copy(update={"reason": _NO_STORE}))
        return None
    near = _near(context, draft)
    same = next(
        (each.memory for each in near if each.cosine >= _NEARLY_SAME and each.memory.source is Source.HOOK), None
    )
    score = replace(judged.score, distinct=distinctiveness(each.cosine for each in near)) if judged.score else None
    if same is None and score is not None and not score.passes(context.settings.memorability_threshold):
        said_by = near[0].memory.id  # named, so that both are forgotten together
        reason = f"memory {said_by} says nearly this; {score.explained()}"
        context.note(unkept.model_copy(update={"reason": reason, "memory_id": said_by}))
        return None
    return _store(context, draft, same, note.model_copy(update={"summary": "", "decision": Decision.KEPT}))


def _store(context: Context[Any], draft: Draft, same: Memory | None, note: Observation) -> int | None:
    new = draft if same is None else draft.model_copy(update={"id": str(same.id)})
    try:
        outcome = context.perform("remember", **new.model_dump(exclude_unset=True))
    except SecretFound:
        context.note(note.model_copy(update={"decision": Decision.REFUSED, "reason": "it holds a secret"}))
        return None
    memory_id = int(outcome.id)
    reason = f"{note.reason}; a new version of memory {same.id}" if same else note.reason
    context.note(note.model_copy(update={"memory_id": memory_id, "reason": reason}))
    kept = (*(one for one in context.state.kept if one != memory_id), memory_id)[-_KEPT:]
    context.update(kept=kept, since_checkpoint=context.state.since_checkpoint + 1)
    if context.state.since_checkpoint >= context.settings.checkpoint_every:
        _checkpoint(context)
    return memory_id


def _catch_up(context: Context[Any]) -> None:
    """Judge what waited for the embedding model, once that is there."""
    if context.state.waits and not awaited(context.app.embedder):
        _judge_waiting(context, context.session)
        context.update(waits=False)


def _judge_waiting(context: Context[Any], session: Session) -> None:
    """Judge the observations of a session that waited: what passes is kept as of then."""
    for seen in context.app.sessions.observations(session):
        if seen.reason != _WAITS or not seen.draft:
            continue
        draft = Draft(**seen.draft)
        judged = _judged_later(context, seen, draft)
        memory_id = None
        if judged.kept:
            said = {"content": judged.wording.content, "title": judged.title} if seen.event == _PROMPT else {}
            memory_id = _stored(context, draft.model_copy(update=said))
        if memory_id is not None:
            context.app.sessions.decide(session, seen.number, Decision.KEPT, judged.reason, memory_id)
        else:
            context.app.sessions.rewrite(session, seen.number, partial(_with_reason, judged.reason))


def _with_reason(reason: str, one: Observation) -> Observation:
    return one.model_copy(update={"reason": reason})


def _judged_later(context: Context[Any], seen: Observation, draft: Draft) -> _Judged:
    """Judge a draft that waited: a prompt by its sentences, what a tool told by its structure then and its meaning."""
    if seen.event == _PROMPT and (parts := parts_of(draft.content)):
        return _judged(context, parts)
    known = context.meanings([draft.content])
    score = with_meaning(seen.score or 0.0, known[0] if known else None)
    kept = score.passes(context.settings.memorability_threshold)
    return _Judged(score, kept, False, Wording(draft.title, draft.subtitle, draft.content))


def _near(context: Context[Any], draft: Draft) -> list[Similar]:
    """Return the memories of the project nearest to a draft; none while the embedding model is not ready."""
    try:
        found = context.perform("find_similar", content=draft.content, scope=draft.scope, threshold=0.0, limit=_NEAR)
    except RecollectError:
        return []
    return [one for one in found if one.memory.type not in _SUMMARIES]


def _draft(context: Context[Any], candidate: Candidate, one: Occurrence, score: Memorability | None) -> Draft:
    """Return what is stored of a candidate, with its secrets masked; its evidence is its second heading."""
    wording = candidate.wording
    draft = Draft(
        content=wording.content,
        title=wording.title,
        subtitle=wording.evidence,
        type=candidate.kind,
        fact_type=candidate.fact_type,
        concepts=candidate.concepts,
        tags=candidate.tags,
        importance=importance_of(one.origin, score.score if score else 0.5),
        trust=candidate.trust,
        files_read=candidate.files_read,
        files_modified=candidate.files_modified,
        session_id=context.event.session_id,
        observed_at=context.at,
        source=Source.HOOK,
    )
    return clear(draft, OnSecret.REDACT).value


def _checkpoint(context: Context[Any]) -> None:
    kept = _memories(context)
    if context.has("memory.store") and len(kept) >= 2:
        _stored(context, checkpoint(context.event.session_id, context.at, kept))
    context.update(since_checkpoint=0)


def _memories(context: Context[Any]) -> list[Memory]:
    """Return the memories that the session made and that still hold, in order."""
    view = unfiltered(context.app, Draft(content="-"), context.caller)
    found = context.app.records.load(set(context.state.kept), view)
    return [found[one] for one in context.state.kept if one in found and found[one].superseded_by is None]


def _stored(context: Context[Any], draft: Draft) -> int | None:
    try:
        return int(context.perform("remember", **draft.model_dump(exclude_unset=True)).id)
    except SecretFound:
        return None


def _masked_trail(trail: Trail) -> Trail:
    """Return the trail as the session's row may keep it."""
    if trail == Trail():
        return trail
    return Trail.model_validate(_each(trail.model_dump()))


def _each(value: Any) -> Any:
    if isinstance(value, str):
        return masked(value[:_READ])
    if isinstance(value, (list, tuple)):
        return tuple(_each(one) for one in value)
    return {name: _each(one) for name, one in value.items()} if isinstance(value, dict) else value


def _summary(one: Occurrence) -> str:
    said = one.text if one.origin is Origin.PROMPT else shown_input(one.input) or one.text
    return masked(shortened(" ".join(said[:2_000].split()), _SUMMARY))


def _observation(
    context: Context[Any],
    decision: Decision,
    reason: str,
    tool: str = "",
    summary: str = "",
    memory_id: int | None = None,
) -> Observation:
    return Observation(
        at=context.at,
        event=context.event.event,
        tool=tool,
        summary=summary,
        decision=decision,
        reason=reason,
        memory_id=memory_id,
    )


def summary(session_id: str, at: datetime, kept: Sequence[Memory], trail: Trail) -> Draft:
    """Return the summary of a session that kept these memories."""
    return _of_session(session_id, at, Kind.SESSION_SUMMARY, _listed(kept) + _lines("Left open", trail.open))


def checkpoint(session_id: str, at: datetime, kept: Sequence[Memory]) -> Draft:
    """Return what a session has learnt so far: the summary's memory, as it is before the session ends."""
    return _of_session(session_id, at, Kind.CHECKPOINT, _listed(kept))


def _of_session(session_id: str, at: datetime, kind: Kind, lines: list[str]) -> Draft:
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


def _listed(kept: Sequence[Memory]) -> list[str]:
    found: list[str] = []
    for heading, kinds in _HEADINGS.items():
        found += _lines(heading, [one.title or one.content for one in kept if one.type in kinds])
    return found


def _lines(heading: str, said: Sequence[str]) -> list[str]:
    lines = [f"- {cited(one)}" for one in said[:_MOST]]
    more = [f"- and {len(said) - _MOST} more"] if len(said) > _MOST else []
    return [f"{heading}:", *lines, *more] if lines else []


class _Said(Request):
    text: str


class _Given(Request):
    given: dict[str, Any]


def masked_occurrence(one: Occurrence) -> Occurrence:
    """Return an occurrence with its secrets masked, before any part of it is cut or loses the words around it.

    `mysql --password X` without its option, or the first half of a token, is no secret to the gate any more.
    """
    text = clear(_Said(text=one.text), OnSecret.REDACT).value.text
    return replace(one, text=text, input=clear(_Given(given=dict(one.input)), OnSecret.REDACT).value.given)

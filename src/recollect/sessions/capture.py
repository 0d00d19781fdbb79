"""The capture stages: what of a session becomes a memory, what does not, and why; checkpoints and the summary.

Each text is judged by its structure and by what it means. While the embedding model is not loaded only what the
structure is sure of is kept; the rest waits with the session, and is judged when the model is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
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
from recollect.domain.origin import Origin as Stamp
from recollect.domain.origin import least
from recollect.domain.requests import Draft, SoftForget
from recollect.domain.results import Memory, Similar
from recollect.errors import RecollectError, SecretFound
from recollect.gate import clear, masked
from recollect.memory.describe import ask_behind, sum_up_session
from recollect.memory.forget import memory_forget
from recollect.memory.review import outranks
from recollect.search.visibility import unfiltered
from recollect.sessions.ask import follow
from recollect.sessions.lessons import LONGEST, Trail, Wording, asked, stated
from recollect.sessions.memorability import (
    Meaning,
    Memorability,
    awaited,
    cosine,
    distinctiveness,
    memorability,
    with_meaning,
)
from recollect.sessions.observations.noise import REPEATED, digest
from recollect.sessions.observations.observe import Candidate, Part, importance_of, observe, parts_of, told_of
from recollect.sessions.observations.occurrence import Occurrence, Origin, prompted, shown_input, used
from recollect.sessions.observations.origins import outside_after, stamp_of
from recollect.sessions.second_look import look_again
from recollect.sessions.session_state import Context, drafted, state_of
from recollect.sessions.session_summary import checkpoint, summary
from recollect.text.layers import shortened

_SEEN: Final = 300  # digests of outputs that are remembered
_KEPT: Final = 1_000
_NEAR: Final = 20
_NEARLY_SAME: Final = 0.98
_LOOKED_BACK: Final = 5  # sessions
_WAITS: Final = "it waits for the embedding model"
_NO_STORE: Final = "there is no store"
_PROMPT: Final = SubmitPrompt.event
RESUMED: Final = "resume"
"""The source of a session that goes on with all that was before it."""
_TOGETHER: Final = 0.2  # cosine of two sentences that are one statement
_BESIDE: Final = 1 / 3  # of the gate: from which the sentences beside one that is kept say what that is about
_SUMMARIES: Final = OF_SESSION | {Kind.COMPRESSED_SUMMARY}
_SUMMARY: Final = 120
_READ: Final = 20_000  # characters of one text that the session keeps


def begin(context: Context[StartSession]) -> None:
    """Forget what a session did before, where it begins anew; judge what earlier sessions left waiting."""
    forget_shown(context)
    if context.event.source in ("startup", "clear"):
        context.update(trail=Trail())
    if context.settings.capture and context.has("memory.store") and not awaited(context.app.embedder):
        for session in context.app.sessions.listed(context.caller, _LOOKED_BACK, 0)[0]:
            if state_of(session.state).waits:
                _judge_waiting(context, session)
                context.app.sessions.mask(session, lambda state: state | {"waits": False})


def forget_shown(context: Context[Any]) -> None:
    """Note that the agent has none of the memories in front of it that it was shown or made before, nor the index.

    A session that is resumed lacks the index alone. The two parts of one start of a session do it once.
    """
    if context.state.began_at == context.at:
        return
    context.update(began_at=context.at, owes_index=True)
    if not (isinstance(context.event, StartSession) and context.event.source == RESUMED):
        context.update(injected=(), reminded=(), forgotten=context.state.kept)


def capture_prompt(context: Context[SubmitPrompt]) -> None:
    """Keep what a prompt states."""
    _capture(context, prompted(context.event.prompt, typed=context.event.typed), "")


def capture_output(context: Context[UseTool]) -> None:
    """Keep what the use of a tool tells; that a memory was stored tells nothing."""
    event = context.event
    follow(context)
    one = used(event.tool, event.input, event.output, failed=event.failed)
    if one.text or one.origin is not Origin.MEMORY:
        _capture(context, one, event.tool)


def write_checkpoint(context: Context[CheckpointSession]) -> None:
    """Write down what the session has learnt before it loses its earlier messages."""
    if context.settings.capture and context.state.since_checkpoint:
        _checkpoint(context)


def summarize(context: Context[EndSession]) -> None:
    """Sum up what a session learnt, decided and left open, where it kept two memories or more."""
    if not context.settings.capture or not context.has("memory.store"):
        return
    _catch_up(context)
    if found := _sum_up(context):
        context.note(_observation(context, Decision.KEPT, "it sums up the session", memory_id=found))
    context.update(since_checkpoint=0)
    ask_behind(context.app, partial(_look_again, context, found))


def _sum_up(context: Context[EndSession]) -> int | None:
    """Write the summary of a session that kept two memories or more, and return it."""
    kept = _memories(context)
    if len(kept) < 2:
        return None
    return _stored(context, summary(context.event.session_id, context.at, kept, context.state.trail), _least(kept))


def _look_again(context: Context[EndSession], summed_up: int | None) -> None:
    """Have a language model judge what was kept and what was not; then it says what is left together."""
    if context.has("memory.memorability"):
        added, removed = look_again(context.app, context.session, context.caller)
        context.update(kept=(*(one for one in context.state.kept if one not in removed), *added))
        if added or removed:
            context.app.sessions.mask(context.session, lambda state: state | {"kept": context.state.kept})
            before, summed_up = summed_up, _sum_up(context)
            if before and not summed_up:
                memory_forget(context.app, SoftForget(id=str(before)), context.caller)
    if summed_up:
        sum_up_session(context.app, summed_up, _memories(context), context.caller)


def _capture(context: Context[Any], one: Occurrence, tool: str) -> None:
    if not context.settings.capture:
        return
    _catch_up(context)
    one, state = masked_occurrence(one), context.state
    stamp = stamp_of(one, context.event.folder, state.outside)
    context.caller = context.caller.saying(stamp.said_by, stamp.came_from)
    context.update(outside=outside_after(state.outside, one, stamp))
    found = observe(one, state.trail, frozenset(state.seen), context.event.folder)
    context.update(trail=_masked_trail(found.trail), seen=(*state.seen, digest(one.text))[-_SEEN:])
    said = one.origin is Origin.PROMPT
    again = said and digest(one.text) in state.seen  # a memory may say it already
    if found.candidate is None:
        context.note(_observation(context, Decision.DROPPED, found.noise, tool, "" if again else _summary(one)))
        return
    judged, rest = _judged(context, found.candidate.parts)
    if said:
        context.update(trail=_masked_trail(asked(context.state.trail, rest)))
    known = {memory.content for memory in _memories(context)} if again else ()
    for each in judged:
        wording = each.wording if said else found.candidate.wording
        note = _observation(context, Decision.DROPPED, each.reason, tool, wording.title or _summary(one))
        draft = _draft(context, replace(found.candidate, wording=wording), one, each.score)
        note = note.model_copy(update={"score": each.value})
        if draft.content in known:
            context.note(note.model_copy(update={"summary": "", "reason": REPEATED}))
        elif found.proof:
            _prove(context, draft, each, note, state.trail.lesson)
        elif made := _settle(context, draft, each, note):
            _remember_failure(context, made, state.trail)


@dataclass(frozen=True, slots=True)
class _Judged:
    """What was made of texts of an occurrence that belong together: the best score, and the words of it."""

    score: Memorability | None
    kept: bool
    waits: bool
    wording: Wording

    @property
    def value(self) -> float | None:
        """Return the score (0–1) where there is one."""
        return round(self.score.score, 3) if self.score else None

    @property
    def reason(self) -> str:
        """Return why it is kept or not, in one line."""
        return _WAITS if self.waits else self.score.explained() if self.score else "everything is kept"


def _judged(context: Context[Any], parts: Sequence[Part]) -> tuple[list[_Judged], list[str]]:
    """Judge the texts of an occurrence; return what is made of those that belong together, and what asks for work.

    Without the model that tells what they mean some may wait for it. Where nothing passes the gate, all is one.
    """
    texts = [part.text for part in parts]
    if not context.has("memory.memorability"):
        return [_Judged(None, True, False, stated(texts, texts[0]))], texts
    known = context.meanings(parts)
    scores = [memorability(part.features, known[place] if known else None) for place, part in enumerate(parts)]
    best = max(range(len(parts)), key=lambda place: scores[place].score)
    gate = context.settings.memorability_threshold
    passing = [place for place in range(len(parts)) if scores[place].passes(gate)]
    if not passing:
        waits = known is None and awaited(context.app.embedder)
        return [_Judged(scores[best], False, waits, stated(texts, texts[best]))], texts
    groups = _together(passing, known)
    if known is not None:
        _widen(groups, texts, [one.score >= _BESIDE * gate for one in scores])
    found, taken = [], {place for group in groups for place in group}
    for group in groups:
        top = max(group, key=lambda place: scores[place].score)
        found.append(_Judged(scores[top], True, False, stated([texts[place] for place in group], texts[top])))
    return found, [text for place, text in enumerate(texts) if place not in taken]


def _together(places: Sequence[int], known: Sequence[Meaning] | None) -> list[list[int]]:
    """Return the sentences that follow each other and are about the same, as groups."""
    found: list[list[int]] = []
    for place in places:
        before = found[-1][-1] if found else None
        near = before == place - 1 and (known is None or cosine(known[before], known[place]) >= _TOGETHER)
        if near:
            found[-1].append(place)
        else:
            found.append([place])
    return found


def _widen(groups: Sequence[list[int]], texts: Sequence[str], likely: Sequence[bool]) -> None:
    """Add to each group the likely sentences right before it, then those right after it, as many as a lesson holds.

    What lies between two groups leads to the second: "Leave it there" says nothing without what stands before it.
    """
    taken = {place for group in groups for place in group}
    for step in (-1, 1):
        for group in groups:
            place = group[0] - 1 if step < 0 else group[-1] + 1
            room = LONGEST - sum(len(texts[one]) + 2 for one in group)
            while 0 <= place < len(texts) and likely[place] and place not in taken and len(texts[place]) <= room:
                group.insert(0 if step < 0 else len(group), place)
                taken.add(place)
                room -= len(texts[place]) + 2
                place += step


def _settle(context: Context[Any], draft: Draft, judged: _Judged, note: Observation) -> int | None:
    """Store what passes the gate, refresh what says nearly the same, or note that it is dropped; return the memory."""
    said = context.caller.origin.model_dump(mode="json")
    unkept = note.model_copy(update={"draft": draft.model_dump(mode="json", exclude_unset=True) | said})
    if not judged.kept or not context.has("memory.store"):
        context.update(waits=context.state.waits or judged.waits)
        context.note(unkept if context.has("memory.store") else unkept.model_copy(update={"reason": _NO_STORE}))
        return None
    near = _near(context, draft)
    same = next(
        (each.memory for each in near if each.cosine >= _NEARLY_SAME and _is_version(context, each.memory)), None
    )
    score = replace(judged.score, distinct=distinctiveness(each.cosine for each in near)) if judged.score else None
    if same is None and score is not None and not score.passes(context.settings.memorability_threshold):
        said_by = near[0].memory.id  # named, so that both are forgotten together
        reason = f"memory {said_by} says nearly this; {score.explained()}"
        context.note(unkept.model_copy(update={"reason": reason, "memory_id": said_by}))
        return None
    return _store(
        context, draft, same.id if same else 0, note.model_copy(update={"summary": "", "decision": Decision.KEPT})
    )


def _remember_failure(context: Context[Any], made: int, before: Trail) -> None:
    """Note which memory tells of the failure that a command just had."""
    trail = context.state.trail
    if trail.failure and trail.failure != before.failure:
        context.update(trail=trail.model_copy(update={"lesson": made}))


def _prove(context: Context[Any], draft: Draft, judged: _Judged, note: Observation, lesson: int) -> None:
    """Keep what was fixed and that it works, as the new version of the memory of the failure where there is one."""
    if not context.has("memory.store"):
        context.note(note.model_copy(update={"reason": _NO_STORE}))
    elif judged.kept or not lesson:
        kept = note.model_copy(update={"summary": "", "decision": Decision.KEPT})
        _store(context, draft, lesson, kept)
    elif (made := _stored(context, draft.model_copy(update={"id": str(lesson)}), context.caller.origin)) is not None:
        context.note(note.model_copy(update={"reason": f"it bears out memory {made}", "memory_id": made}))


def _is_version(context: Context[Any], old: Memory) -> bool:
    """Say whether a memory was captured, and may be replaced by what this event says."""
    return old.source is Source.HOOK and not outranks(old, context.caller.origin)


def _store(context: Context[Any], draft: Draft, same: int, note: Observation) -> int | None:
    new = draft.model_copy(update={"id": str(same)}) if same else draft
    try:
        outcome = context.perform("remember", **new.model_dump(exclude_unset=True))
    except SecretFound:
        context.note(note.model_copy(update={"decision": Decision.REFUSED, "reason": "it holds a secret"}))
        return None
    memory_id = int(outcome.id)
    reason = f"{note.reason}; a new version of memory {same}" if same else note.reason
    context.note(note.model_copy(update={"memory_id": memory_id, "reason": reason}))
    kept = (*(one for one in context.state.kept if one != memory_id), memory_id)[-_KEPT:]
    undecided = (*(one for one in context.state.undecided if one != memory_id), memory_id)
    context.update(kept=kept, undecided=undecided, since_checkpoint=context.state.since_checkpoint + 1)
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
        draft, stamp = drafted(seen.draft)
        judged = _judged_later(context, seen, draft)
        made = [
            _stored(
                context, draft.model_copy(update={"content": one.wording.content, "title": one.wording.title}), stamp
            )
            for one in judged
            if one.kept
        ]
        if made and made[0] is not None:
            context.app.sessions.decide(session, seen.number, Decision.KEPT, judged[0].reason, made[0])
        else:
            context.app.sessions.rewrite(session, seen.number, partial(_with_reason, judged[0].reason))


def _with_reason(reason: str, one: Observation) -> Observation:
    return one.model_copy(update={"reason": reason})


def _judged_later(context: Context[Any], seen: Observation, draft: Draft) -> list[_Judged]:
    """Judge a draft that waited: a prompt by its sentences, what a tool told by its structure then and its meaning."""
    if seen.event == _PROMPT and (parts := parts_of(draft.content)):
        return _judged(context, parts)[0]
    known = context.meanings([told_of(draft.content, draft.title.partition(": ")[0], {})])
    score = with_meaning(seen.score or 0.0, known[0] if known else None)
    kept = score.passes(context.settings.memorability_threshold)
    return [_Judged(score, kept, False, Wording(draft.title, draft.subtitle, draft.content))]


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
        _stored(context, checkpoint(context.event.session_id, context.at, kept), _least(kept))
    context.update(since_checkpoint=0)


def _memories(context: Context[Any]) -> list[Memory]:
    """Return the memories that the session made and that still hold, in order."""
    view = unfiltered(context.app, Draft(content="-"), context.caller)
    found = context.app.records.load(set(context.state.kept), view)
    return [found[one] for one in context.state.kept if one in found and found[one].superseded_by is None]


def _least(kept: Sequence[Memory]) -> Stamp:
    """Return the origin of what sums memories up: it has no more authority than the least of them."""
    return least(one.stamp for one in kept)


def _stored(context: Context[Any], draft: Draft, stamp: Stamp) -> int | None:
    """Store a draft as the words of another origin than the event's."""
    said = replace(context, caller=context.caller.saying(stamp.said_by, stamp.came_from))
    try:
        return int(said.perform("remember", **draft.model_dump(exclude_unset=True)).id)
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

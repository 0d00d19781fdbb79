"""The capture stages: what of a session becomes a memory, what does not, and why; checkpoints and the summary.

Memorability: whether an occurrence is worth a memory, and why.

The score is a logistic one: each feature adds its weight to the log-odds, and the sum is a number of 0–1. Features are
of three parts (how much is said, how much it matters, what it is); the fourth is how distinct it is from what is
stored. `memorability.toml` has the weights, which `scripts/fit-capture` fits so that the gate is at 0.30. Nothing here
reads a store or embeds: the caller brings how near the nearest stored memories are.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from math import exp
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from recollect.domain.enums import OF_SESSION, FactType, OnSecret, Source
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
from recollect.domain.requests import Draft
from recollect.domain.results import Memory, Similar
from recollect.errors import RecollectError, SecretFound
from recollect.gate import clear, masked
from recollect.memory.describe import sum_up_session_later
from recollect.memory.grounding import cited
from recollect.memory.summaries import session_key
from recollect.search.visibility import unfiltered
from recollect.sessions.observations.features import SUBSTANCE, TYPE_FEATURES, Feature
from recollect.sessions.observations.noise import digest
from recollect.sessions.observations.observe import Candidate, importance_of, observe
from recollect.sessions.observations.occurrence import Occurrence, Origin, Trail, prompted, shown_input, used
from recollect.sessions.observations.statements import is_about, replaced
from recollect.sessions.session_state import Context
from recollect.text.layers import shortened

GATE: Final = 0.30
"""Score from which an occurrence is kept."""


class Part(StrEnum):
    """What a score is made of."""

    SUBSTANCE = "substance"
    SALIENCE = "salience"
    DISTINCTIVENESS = "distinctiveness"
    TYPE = "type weight"


_FITTED: Final = tomllib.loads(Path(__file__).with_name("memorability.toml").read_text(encoding="utf-8"))
BIAS: Final = float(_FITTED["bias"])
"""Log-odds of an occurrence without any feature."""

WEIGHTS: Final[Mapping[Feature, float]] = MappingProxyType({one: float(_FITTED["weights"][one]) for one in Feature})
"""What each feature adds to the log-odds where it is 1."""

KNOWN: Final = -4.0
"""What is added to the log-odds of an occurrence that is stored already."""

_FAR, _SAME = 0.90, 0.98  # cosines up to which a memory is fully distinct, and from which it is not at all
_NAMED: Final = 5  # features that an explanation names


@dataclass(frozen=True, slots=True)
class Memorability:
    """What each feature adds to the log-odds of an occurrence, and how distinct it is (0–1)."""

    added: Mapping[Feature, float]
    distinct: float

    @property
    def parts(self) -> Mapping[Part, float]:
        """Return what each part adds to the log-odds."""
        sums = dict.fromkeys(Part, 0.0)
        for feature, value in self.added.items():
            sums[part_of(feature)] += value
        sums[Part.DISTINCTIVENESS] = KNOWN * (1 - self.distinct)
        return MappingProxyType(sums)

    @property
    def score(self) -> float:
        """Return how memorable the occurrence is, 0–1."""
        return 1 / (1 + exp(-(BIAS + sum(self.parts.values()))))

    def passes(self, gate: float = GATE) -> bool:
        """Return whether the score reaches the gate."""
        return self.score >= gate

    def explained(self) -> str:
        """Return the score, the features that weigh most and the sum of each part, in one line."""
        heaviest = sorted(self.added.items(), key=lambda one: -abs(one[1]))[:_NAMED]
        named = [f"{feature} {value:+.1f}" for feature, value in heaviest if abs(value) >= 0.05]
        if self.distinct < 1:
            named.append(f"near a stored memory {KNOWN * (1 - self.distinct):+.1f}")
        parts = ", ".join(f"{part} {value:+.1f}" for part, value in self.parts.items())
        return f"{self.score:.2f}: {', '.join(named) or 'nothing speaks for it'} ({parts})"


def memorability(features: Mapping[Feature, float], cosines: Iterable[float] = ()) -> Memorability:
    """Score an occurrence, given its features (0–1) and its cosines (−1 to 1) to the nearest stored memories."""
    added = {feature: WEIGHTS[feature] * value for feature, value in features.items()}
    return Memorability(MappingProxyType(added), distinctiveness(cosines))


def distinctiveness(cosines: Iterable[float]) -> float:
    """Return how new a text is (0–1): 1 up to a cosine of 0.90 to the nearest memory, and 0 from 0.98 on."""
    nearest = max(cosines, default=-1.0)
    return min(max((_SAME - nearest) / (_SAME - _FAR), 0.0), 1.0)


def part_of(feature: Feature) -> Part:
    """Return the part of the score that a feature belongs to."""
    if feature in SUBSTANCE:
        return Part.SUBSTANCE
    return Part.TYPE if feature in TYPE_FEATURES else Part.SALIENCE


_SEEN: Final = 300  # digests of outputs that are remembered
_KEPT: Final = 1_000
_NEAR: Final = 20
_NEARLY_SAME: Final = 0.98
_RELATED: Final = 0.3
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
    """Forget what a session did before, where it begins anew."""
    if context.event.source in ("startup", "clear"):
        context.update(trail=Trail())


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
    one, state = masked_occurrence(one), context.state
    opens = bool(state.boundaries) and state.boundaries[-1].at == context.at
    found = observe(one, state.trail, frozenset(state.seen), context.event.folder, opens=opens)
    context.update(trail=_masked_trail(found.trail), seen=(*state.seen, digest(one.text))[-_SEEN:])
    if found.candidate is None:
        again = one.origin is Origin.PROMPT and digest(one.text) in state.seen  # a memory may say it already
        context.note(_observation(context, Decision.DROPPED, found.noise, tool, "" if again else _summary(one)))
        return
    _judge(context, found.candidate, one, tool)


def _judge(context: Context[Any], candidate: Candidate, one: Occurrence, tool: str) -> None:
    """Store a candidate that passes the gate of memorability, refresh what says nearly the same, or drop it."""
    stores, scores = context.has("memory.store"), context.has("memory.memorability")
    alone = memorability(candidate.features) if scores else None
    draft = _draft(context, candidate, one, alone)
    near = _near(context, draft) if stores else []
    score = memorability(candidate.features, [each.cosine for each in near]) if scores else None
    threshold = context.settings.memorability_threshold
    explained = score.explained() if score else "everything is kept"
    value = round(score.score, 3) if score else None
    if not stores or (alone is not None and not alone.passes(threshold)):
        reason = explained if stores else "there is no store"
        context.note(_dropped(context, draft, reason, value, tool, one))
        return
    same = next(
        (each.memory for each in near if each.cosine >= _NEARLY_SAME and each.memory.source is Source.HOOK), None
    )
    if same is None and score is not None and not score.passes(threshold):
        said_by = near[0].memory.id
        note = _dropped(context, draft, f"memory {said_by} says nearly this; {explained}", value, tool, one)
        context.note(note.model_copy(update={"memory_id": said_by}))  # so that both are forgotten together
        return
    _store(
        context,
        draft,
        candidate,
        same,
        near,
        Observation(
            at=context.at, event=context.event.event, tool=tool, decision=Decision.KEPT, reason=explained, score=value
        ),
    )


def _store(
    context: Context[Any],
    draft: Draft,
    candidate: Candidate,
    same: Memory | None,
    near: list[Similar],
    note: Observation,
) -> None:
    new = draft if same is None else draft.model_copy(update={"id": str(same.id)})
    try:
        outcome = context.perform("remember", **new.model_dump(exclude_unset=True))
    except SecretFound:
        context.note(note.model_copy(update={"decision": Decision.REFUSED, "reason": "it holds a secret"}))
        return
    memory_id = int(outcome.id)
    reasons = [f"a new version of memory {same.id}"] if same else []
    for old in _obsolete(candidate, near, memory_id, context.at):
        context.perform("remember", **draft.model_dump(exclude_unset=True), supersedes=str(old.id))
        reasons.append(f"replaces memory {old.id}")
    _store_facts(context, candidate, memory_id, context.at)
    context.note(note.model_copy(update={"memory_id": memory_id, "reason": "; ".join([note.reason, *reasons])}))
    kept = (*(one for one in context.state.kept if one != memory_id), memory_id)[-_KEPT:]
    context.update(kept=kept, since_checkpoint=context.state.since_checkpoint + 1)
    if context.state.since_checkpoint >= context.settings.checkpoint_every:
        _checkpoint(context)


def _obsolete(candidate: Candidate, near: list[Similar], memory_id: int, at: datetime) -> list[Memory]:
    """Return the older captured memories that are about what a person says is gone."""
    gone = replaced(candidate.wording.content) if candidate.fact_type is not FactType.GENERAL else ()
    if not gone:
        return []
    return [
        each.memory
        for each in near
        if each.memory.id != memory_id
        and each.cosine >= _RELATED
        and each.memory.source is Source.HOOK
        and (each.memory.observed_at or each.memory.created_at) < at
        and is_about(f"{each.memory.title}\n{each.memory.content}", gone)
    ]


def _near(context: Context[Any], draft: Draft) -> list[Similar]:
    """Return the memories of the project nearest to a draft; none while the embedding model is not ready."""
    try:
        found = context.perform("find_similar", content=draft.content, scope=draft.scope, threshold=0.0, limit=_NEAR)
    except RecollectError:
        return []
    return [one for one in found if one.memory.type not in _SUMMARIES]


def _draft(context: Context[Any], candidate: Candidate, one: Occurrence, score: Memorability | None) -> Draft:
    """Return what is stored of a candidate, with its secrets masked."""
    wording = candidate.wording
    draft = Draft(
        content=wording.content,
        title=wording.title,
        subtitle=wording.subtitle,
        type=candidate.kind,
        fact_type=candidate.fact_type,
        concepts=candidate.concepts,
        tags=candidate.tags,
        importance=importance_of(one, score.score if score else 0.5),
        trust=candidate.trust,
        files_read=candidate.files_read,
        files_modified=candidate.files_modified,
        session_id=context.event.session_id,
        observed_at=context.at,
        source=Source.HOOK,
    )
    return clear(draft, OnSecret.REDACT).value


def _store_facts(context: Context[Any], candidate: Candidate, memory_id: int, at: datetime) -> None:
    for subject, predicate, what in candidate.facts:
        try:
            context.perform(
                "store_fact", subject=subject, predicate=predicate, object=what, memory_id=str(memory_id), valid_from=at
            )
        except RecollectError:  # a fact with a secret in it is left out
            continue


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
    texts = [trail.task, *trail.commands, *(trail.edited or ()), *(trail.failure or ()), *trail.open]
    if not any(texts):
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


def _dropped(
    context: Context[Any], draft: Draft, reason: str, score: float | None, tool: str, one: Occurrence
) -> Observation:
    note = _observation(context, Decision.DROPPED, reason, tool, draft.title or _summary(one))
    return note.model_copy(update={"score": score, "draft": draft.model_dump(mode="json", exclude_unset=True)})


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

"""Whether a draft is a new memory, a new version of one, or the same thing said again. Nothing is ever destroyed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from recollect.domain import MAX_CONTENT, POLICIES, Choice, Draft, Memory, Merge
from recollect.policy.twins import Relation, merged

_LONG = 2_000  # characters: what grows beyond is no single thing to know any more


class Action(StrEnum):
    """What a draft does to the store; the values are the journal's words."""

    INSERT = "insert"
    UPDATE = "update"
    REFRESH = "refresh"
    MERGE = "merge"
    SUPERSEDE = "supersede"


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do, and to which memory."""

    action: Action
    old: Memory | None = None


@dataclass(frozen=True, slots=True)
class Twin:
    """A stored memory near a draft in meaning, the cosine, and what the draft says beside it."""

    memory: Memory
    cosine: float
    relation: Relation


def decide(draft: Draft, content_hash: str, same_key: Memory | None, same_hash: Memory | None) -> Decision:
    """Let the key decide first, then the content: the same text is the same memory unless their keys differ."""
    if same_key is not None:
        same = same_key.content_hash == content_hash
        return Decision(Action.REFRESH if same else Action.UPDATE, same_key)
    if same_hash is not None and (draft.key is None or same_hash.key is None):
        return Decision(Action.REFRESH, same_hash)
    return Decision(Action.INSERT)


def resembles(draft: Draft) -> bool:
    """Say whether what resembles this draft matters: an event, a case or a turn of a talk is always its own memory."""
    return POLICIES[draft.fact_type].merge is not Merge.NEVER and draft.position is None


def reconcile(draft: Draft, twins: Sequence[Twin], choice: tuple[Choice, int] | None = None) -> Decision:
    """Return what becomes of a draft that has neither the key nor the content of a memory, beside its `twins`.

    Twins come nearest first, each `alike`. A profile always merges with the nearest. Else a correction supersedes;
    else a `choice` decides (about which twin, too); without one, the safe rule: what adds nothing refreshes, what adds
    is merged, and whenever a detail differs the draft is a memory of its own.
    """
    if POLICIES[draft.fact_type].merge is Merge.ALWAYS and draft.key is None:
        nearest = next((twin for twin in twins if _kept_alike(draft, twin.memory)), None)
        return Decision(Action.INSERT) if nearest is None else _joined(draft, nearest, MAX_CONTENT)
    for twin in twins:
        if twin.relation is Relation.CORRECTION and (draft.ttl_days is None or twin.memory.ttl_days is not None):
            return Decision(Action.SUPERSEDE, twin.memory)
    if draft.key is not None:
        return Decision(Action.INSERT)
    if choice is not None:
        return _chosen(draft, twins, choice)
    for twin in twins:
        if twin.relation in (Relation.SAME, Relation.MORE) and _may_join(draft, twin):
            decision = _joined(draft, twin, _LONG)
            if decision.old is not None:
                return decision
    return Decision(Action.INSERT)


def alike(draft: Draft, twins: Iterable[Twin]) -> list[Twin]:
    """Return the twins that may become one with the draft: those of its kind that are no turn of a talk."""
    return [twin for twin in twins if twin.memory.fact_type is draft.fact_type and twin.memory.position is None]


def _chosen(draft: Draft, twins: Sequence[Twin], choice: tuple[Choice, int]) -> Decision:
    """Take a judge's word, but let it destroy nothing: what it calls the same must say nothing new."""
    what, which = choice
    twin = twins[which] if 0 <= which < len(twins) else None
    if twin is None or what is Choice.CREATE or not _may_join(draft, twin):
        return Decision(Action.INSERT)
    return _joined(draft, twin, MAX_CONTENT)


def _joined(draft: Draft, twin: Twin, most: int) -> Decision:
    """Refresh what says it already, else merge, unless that makes too long a text."""
    if twin.relation is Relation.SAME:
        return Decision(Action.REFRESH, twin.memory)
    fits = len(merged(twin.memory.content, draft.content)) <= most
    return Decision(Action.MERGE, twin.memory) if fits else Decision(Action.INSERT)


def _may_join(draft: Draft, twin: Twin) -> bool:
    """Say whether nothing is lost later: whoever writes to a key writes over all that it has taken up."""
    said = twin.relation is Relation.SAME
    return _kept_alike(draft, twin.memory) and (said or twin.memory.key is None)


def _kept_alike(draft: Draft, memory: Memory) -> bool:
    """Say whether both have a term or neither: nothing goes before its time by joining another, nor outlives it."""
    return (draft.ttl_days is None) == (memory.ttl_days is None)


def reinforced(confidence: float) -> float:
    """Return the confidence after the same thing was said again: a fifth of the doubt goes."""
    return confidence + (1.0 - confidence) * 0.2


def expired(memory: Memory, now: datetime) -> bool:
    """Say whether a memory has passed its time or was deleted."""
    return memory.deleted_at is not None or lapsed(memory, now)


def lapsed(memory: Memory, now: datetime) -> bool:
    """Say whether a memory has passed its time, deleted or not."""
    return memory.expires_at is not None and memory.expires_at <= now

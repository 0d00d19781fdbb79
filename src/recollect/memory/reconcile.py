"""Decides whether a draft is new, a new version of a memory, or a repetition of one. Nothing is ever destroyed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from recollect.domain.enums import POLICIES, Choice, Merge
from recollect.domain.fields import MAX_CONTENT
from recollect.domain.origin import Authority
from recollect.domain.requests import Draft
from recollect.domain.results import Memory
from recollect.engines.reconcile import Judgement
from recollect.memory.likeness import merged_text, say_the_same, says_all


class Action(StrEnum):
    """What a draft does to the store; the values are the journal's words."""

    INSERT = "insert"
    UPDATE = "update"
    REFRESH = "refresh"
    MERGE = "merge"
    SUPERSEDE = "supersede"


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do, to which memory, and what a language model said of it."""

    action: Action
    old: Memory | None = None
    judgement: Judgement | None = None


NEW = Decision(Action.INSERT)


def decide(draft: Draft, content_hash: str, named: Memory | None, same_hash: Memory | None) -> Decision:
    """Let the memory that the draft names by id or by key decide first, then the one with the same content.

    The same content is the same memory unless their keys differ, or the draft is an event or a case.
    """
    if named is not None:
        return Decision(Action.REFRESH if named.content_hash == content_hash else Action.UPDATE, named)
    if same_hash is None or always_new(draft) or (draft.key is not None and same_hash.key is not None):
        return NEW
    return Decision(Action.REFRESH, same_hash)


def always_new(draft: Draft) -> bool:
    """Say whether the draft is of a kind that always makes a memory of its own: an event or a case."""
    return POLICIES[draft.fact_type].merge is Merge.NEVER


def refresh_if_same(draft: Draft, near: Sequence[Memory]) -> Decision:
    """Return whether one of the memories near a draft is to be refreshed because it says the same."""
    old = next((one for one in near if say_the_same(draft.content, one.content)), None)
    return NEW if old is None else Decision(Action.REFRESH, old)


def follow_judgement(draft: Draft, near: Sequence[Memory], judgement: Judgement) -> Decision:
    """Take a language model's choice, but let it destroy nothing: what it would skip although it is new is merged.

    The words of a memory in another order are nothing new where the model says so: it knows what the order means.

    Whoever writes to a key writes over its memory, so nothing is merged into that. What is trusted less than a memory
    neither becomes a part of it nor takes its place: the part would gain the trust of the whole.
    """
    old = near[judgement.which] if 0 <= judgement.which < len(near) else None
    if old is None or judgement.choice is Choice.CREATE or old.key is not None or draft.trust < old.trust:
        return replace(NEW, judgement=judgement)
    if judgement.choice is Choice.SUPERSEDE:
        return Decision(Action.SUPERSEDE, old, judgement)
    if judgement.choice is Choice.SKIP and says_all(old.content, draft.content):
        return Decision(Action.REFRESH, old, judgement)
    return replace(merge_or_refresh(draft, old), judgement=judgement)


def merge_or_refresh(draft: Draft, old: Memory) -> Decision:
    """Merge a draft into a memory, unless that says it already or both together are too long."""
    both = merged_text(old.content, draft.content)
    if both == old.content:
        return Decision(Action.REFRESH, old)
    return Decision(Action.MERGE, old) if len(both) <= MAX_CONTENT else NEW


def may_join(draft: Draft, old: Memory, rank: Authority) -> bool:
    """Say whether a memory is of the draft's kind, no turn of a talk, and kept as a draft is: for a term, or for ever.

    Its authority is that of the draft, its `rank`: a part has that of the whole. Nothing goes before its time by
    joining another, nor outlives it.
    """
    alike = old.fact_type is draft.fact_type and old.position is None
    return alike and old.authority is rank and (draft.ttl_days is None) == (old.ttl_days is None)


def reinforced_confidence(confidence: float) -> float:
    """Return the confidence after the same thing was said again: a fifth of the doubt goes."""
    return confidence + (1.0 - confidence) * 0.2


def expired(memory: Memory, now: datetime) -> bool:
    """Say whether a memory has passed its time or was deleted."""
    return memory.deleted_at is not None or lapsed(memory, now)


def lapsed(memory: Memory, now: datetime) -> bool:
    """Say whether a memory has passed its time, deleted or not."""
    return memory.expires_at is not None and memory.expires_at <= now

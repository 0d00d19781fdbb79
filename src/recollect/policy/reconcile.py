"""Whether a draft is a new memory, a new version of one, or the same thing said again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from recollect.domain import Draft, Memory


class Action(StrEnum):
    """What a draft does to the store; the values are the journal's words."""

    INSERT = "insert"
    UPDATE = "update"
    REFRESH = "refresh"


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do, and to which memory."""

    action: Action
    old: Memory | None = None


def decide(draft: Draft, content_hash: str, same_key: Memory | None, same_hash: Memory | None) -> Decision:
    """Let the key decide first, then the content: the same text is the same memory unless their keys differ."""
    if same_key is not None:
        same = same_key.content_hash == content_hash
        return Decision(Action.REFRESH if same else Action.UPDATE, same_key)
    if same_hash is not None and (draft.key is None or same_hash.key is None):
        return Decision(Action.REFRESH, same_hash)
    return Decision(Action.INSERT)


def reinforced(confidence: float) -> float:
    """Return the confidence after the same thing was said again: a fifth of the doubt goes."""
    return confidence + (1.0 - confidence) * 0.2


def expired(memory: Memory, now: datetime) -> bool:
    """Say whether a memory has passed its time or was deleted."""
    return memory.deleted_at is not None or (memory.expires_at is not None and memory.expires_at <= now)

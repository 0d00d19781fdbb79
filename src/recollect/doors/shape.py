"""How nouns look from outside: plain JSON values, the same through every door."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Any

from recollect.domain import Hit, JournalEntry, Memory, Outcome, Recalled
from recollect.policy import budget

_INNER = {"namespace", "content_hash", "deleted_at"}


def memory_json(memory: Memory) -> dict[str, Any]:
    """Return every field that is set, the id as a string, times in ISO 8601."""
    fields = {name: _plain(value) for name, value in asdict(memory).items() if name not in _INNER}
    return {"id": str(memory.id)} | {name: value for name, value in fields.items() if name != "id" and _telling(value)}


def hit_json(hit: Hit) -> dict[str, Any]:
    """Return what a reader of results needs: the memory's text and labels, its scores, and why it was found."""
    memory = hit.memory
    optional = {"key": memory.key, "category": memory.category, "tags": list(memory.tags)}
    return {
        "id": str(memory.id),
        "content": memory.content,
        "similarity": round(hit.match, 3),
        "score": round(hit.score, 3),
        "why": why_json(hit),
        "fact_type": str(memory.fact_type),
        **{name: value for name, value in optional.items() if value},
        "scope": str(memory.scope),
        "confidence": round(memory.confidence, 3),
        "updated_at": memory.updated_at.isoformat(timespec="seconds"),
    }


def why_json(hit: Hit) -> dict[str, Any]:
    """Return the score part by part (the parts sum to it) and which searchers found the memory."""
    signals = hit.signals
    searchers = {"meaning": signals.cosine > 0.2, "words": signals.bm25 > 0, "fuzzy": signals.fuzzy > signals.coverage}
    parts = {name: round(value, 3) for name, value in hit.parts.items()}
    return parts | {"found_by": [name for name, did in searchers.items() if did]}


def recalled_json(recalled: Recalled) -> dict[str, Any]:
    """Return the whole answer to a query; one with a budget has an index and details in place of the memories."""
    if recalled.index is not None:
        return budget.answer_json(recalled)
    body: dict[str, Any] = {"message": recalled.message, "memories": [hit_json(hit) for hit in recalled.hits]}
    return body | ({"notes": list(recalled.notes)} if recalled.notes else {})


def outcome_json(outcome: Outcome) -> dict[str, Any]:
    """Return how a write ended."""
    body: dict[str, Any] = {"message": outcome.message, "id": outcome.id, "outcome": str(outcome.done)}
    return body | ({"notes": list(outcome.notes)} if outcome.notes else {})


def journal_json(entry: JournalEntry) -> dict[str, Any]:
    """Return one line of a memory's history."""
    return {"at": _plain(entry.at), "actor": entry.actor, "action": entry.action, **entry.changes}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds")
    return list(value) if isinstance(value, tuple) else value


def _telling(value: Any) -> bool:
    return value is not None and value not in ("", [])

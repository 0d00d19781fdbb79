"""How nouns look from outside: plain JSON values, the same through every door."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any, Final

from recollect.domain import (
    Entity,
    Fact,
    FactsFound,
    Hit,
    JournalEntry,
    Listed,
    Memory,
    Outcome,
    Prompt,
    Purged,
    Recalled,
    Rescanned,
    Similar,
    Stats,
    Summarized,
)
from recollect.operations.table import Operation
from recollect.policy import budget
from recollect.ports import Check

_INNER = {"namespace", "content_hash", "deleted_at"}
_DEEP = {"content", "abstract", "overview"}
_IDS = {"id", "memory_id", "superseded_by", "merged_into"}
_PREVIEW = 200  # characters


def shaped(operation: Operation, result: Any) -> dict[str, Any]:
    """Return what an operation answered as one JSON object."""
    return _SHAPES[operation.answer](result)


def memory_json(memory: Memory) -> dict[str, Any]:
    """Return every field that is set, ids as strings, times in ISO 8601."""
    fields = asdict(memory) | {"entities": [entity_json(one) for one in memory.entities]}
    return _telling({name: value for name, value in fields.items() if name not in _INNER})


def entity_json(entity: Entity) -> dict[str, str]:
    """Return what a memory names, and what that is."""
    return {"entity": entity.name, "entity_type": str(entity.type)}


def preview_json(memory: Memory) -> dict[str, Any]:
    """Return a memory's metadata, and a preview of at most 200 characters in place of its content."""
    fields = {name: value for name, value in memory_json(memory).items() if name not in _DEEP}
    identity = {"id": fields.pop("id"), "title": fields.pop("title", ""), "preview": preview_of(memory.content)}
    return identity | fields


def preview_of(text: str) -> str:
    """Return the beginning of a text, at most 200 characters of it."""
    return text if len(text) <= _PREVIEW else text[: _PREVIEW - 1].rstrip() + "…"


def listed_json(listed: Listed) -> dict[str, Any]:
    """Return a page of memories without their contents, and how many there are in all."""
    return {"total": listed.total, "memories": [preview_json(one) for one in listed.memories]}


def similar_json(similar: Sequence[Similar]) -> dict[str, Any]:
    """Return what resembles something, nearest first, with the cosine of each."""
    return {"memories": [{"cosine": round(one.cosine, 3)} | preview_json(one.memory) for one in similar]}


def fact_json(fact: Fact) -> dict[str, Any]:
    """Return a triple, where it was said, and from when until when it held."""
    return _telling({name: value for name, value in asdict(fact).items() if name != "namespace"})


def facts_json(found: FactsFound) -> dict[str, Any]:
    """Return a page of facts, and how many there are in all."""
    return {"total": found.total, "facts": [fact_json(one) for one in found.facts]}


def purged_json(purged: Purged) -> dict[str, Any]:
    """Return which memories were removed for good."""
    return {"message": purged.message, "ids": [str(one) for one in purged.ids]}


def rescanned_json(rescanned: Rescanned) -> dict[str, Any]:
    """Return how much was looked at, and where each secret is stored."""
    exposed = [{**asdict(one), "id": str(one.id), "kinds": list(one.kinds)} for one in rescanned.exposed]
    return {
        "message": rescanned.message,
        "scanned": rescanned.scanned,
        "changed": rescanned.changed,
        "exposed": exposed,
    }


def summarized_json(summarized: Summarized) -> dict[str, Any]:
    """Return which summaries were written, and of how many memories."""
    ids = [str(one) for one in summarized.ids]
    return {"message": summarized.message, "ids": ids, "condensed": summarized.condensed}


def prompt_json(prompt: Prompt) -> dict[str, Any]:
    """Return the Markdown, and which memories it shows."""
    return {"text": prompt.text, "ids": [str(one) for one in prompt.ids]}


def stats_json(stats: Stats) -> dict[str, Any]:
    """Return every count."""
    return {name: _plain(value) for name, value in asdict(stats).items()}


def history_json(history: Sequence[JournalEntry]) -> dict[str, Any]:
    """Return what happened to a memory, oldest first."""
    return {"history": [journal_json(line) for line in history]}


def checks_json(checks: Sequence[Check]) -> dict[str, Any]:
    """Return the doctor's report: what was seen of each part, with advice where it is not well."""
    return {
        "checks": [
            asdict(one) if not one.well else {"name": one.name, "well": True, "seen": one.seen} for one in checks
        ]
    }


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


_SHAPES: Final[Mapping[Any, Callable[[Any], dict[str, Any]]]] = {
    FactsFound: facts_json,
    Listed: listed_json,
    Memory: memory_json,
    Outcome: outcome_json,
    Prompt: prompt_json,
    Purged: purged_json,
    Rescanned: rescanned_json,
    Recalled: recalled_json,
    Stats: stats_json,
    Summarized: summarized_json,
    list[Check]: checks_json,
    list[JournalEntry]: history_json,
    list[Similar]: similar_json,
}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds")
    return list(value) if isinstance(value, tuple) else value


def _telling(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that say something."""
    plain = {
        name: str(value) if name in _IDS and value is not None else _plain(value) for name, value in fields.items()
    }
    return {name: value for name, value in plain.items() if value is not None and value not in ("", [])}

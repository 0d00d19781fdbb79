"""A request of every operation of the table, in an order in which each has something to answer with."""

from __future__ import annotations

import json
from typing import Any, Final

import jsonschema

from recollect.doors.serializers import public_json, public_schema

_SAID: Final = "The quokka of the harbour deploys src/ship.py on Fridays."
_ITEM: Final = {"kind": "memory", "where": "line 1", "fields": {"content": "The pier is long."}}

REQUESTS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("remember", {"content": _SAID, "tags": ["ship"], "files_read": ["src/ship.py"], "concepts": ["gotcha"]}),
    ("store_memory", {"content": "The mast is pine.", "key": "mast", "observed_at": "2026-02-03T04:05:06.789+02:00"}),
    ("memory_store", {"content": "The keel is iron.", "importance": 9}),
    ("memory_remember", {"content": "The rudder broke in March.", "category": "event"}),
    ("update_memory", {"id": "2", "title": "Mast"}),
    ("recall", {"query": "quokka of the harbour", "min_score": 0.0}),
    ("recall", {"query": "quokka of the harbour", "min_score": 0.0, "max_tokens": 500}),
    ("recall", {"query": "xqzvw"}),
    ("recall_compact", {"query": "quokka of the harbour", "min_score": 0.0}),
    ("recall_compact", {"query": "xqzvw"}),
    ("search_memories", {"query": "mast", "min_score": 0.0}),
    ("memory_recall", {"query": "quokka of the harbour"}),
    ("get_memory", {"id": "2"}),
    ("list_memories", {}),
    ("search_by_file", {"file": "src/ship.py"}),
    ("search_by_concept", {"concept": "gotcha"}),
    ("get_timeline", {"order": "oldest"}),
    ("pin", {"id": "2"}),
    ("unpin", {"id": "2"}),
    ("bury", {"id": "3"}),
    ("unbury", {"id": "3"}),
    ("find_similar", {"id": "1", "threshold": -1.0}),
    ("format_for_prompt", {}),
    ("store_fact", {"subject": "mast", "predicate": "is", "object": "pine", "memory_id": "2"}),
    ("query_facts", {"subject": "mast"}),
    ("forget_fact", {"id": "1"}),
    ("memory_forget", {"id": "3"}),
    ("restore", {"id": "3"}),
    ("history", {"id": "2"}),
    ("stats", {}),
    ("count_projects", {}),
    ("rescan", {}),
    ("purge_expired", {}),
    ("summarize_old", {}),
    ("import_batch", {"items": [_ITEM], "last": True}),
    ("inbox", {}),
    ("decide", {"id": "5", "decision": "always"}),
    ("source_rules", {}),
    ("drop_source_rule", {"source": "import:line 1"}),
    ("withdraw", {"source": "line 1", "apply": True}),
    ("undo_withdrawal", {"id": "1"}),
    ("export_page", {}),
    ("extract_memories", {"messages": [{"speaker": "user", "content": "The pier is long."}]}),
    ("session_start", {"session_id": "s1", "agent": "claude-code", "source": "startup"}),
    ("prompt_submit", {"session_id": "s1", "prompt": "Who deploys src/ship.py?"}),
    ("tool_post", {"session_id": "s1", "tool": "Bash", "input": {"command": "ls"}, "output": "src"}),
    ("correct_observation", {"session_id": "s1", "number": 1, "keep": False}),
    ("session_checkpoint", {"session_id": "s1"}),
    ("session_end", {"session_id": "s1", "reason": "exit"}),
    ("list_sessions", {}),
    ("show_session", {"session_id": "s1"}),
    ("doctor", {}),
    ("move_memory", {"id": "3", "to_project": "quay"}),
    ("promote", {"id": "4"}),
    ("forget", {"id": "1"}),
    ("forget", {"id": "999999"}),
    ("delete_memory", {"id": "2"}),
)


def check_schema(name: str, kind: Any, answer: Any) -> None:
    """Check that what doors show of an answer meets the schema of its type, and has no property that is not in it."""
    schema, body = public_schema(kind), public_json(kind, answer)
    assert json.loads(json.dumps(body)) == body, name
    jsonschema.validate(body, schema, cls=jsonschema.Draft202012Validator)
    assert set(body) <= set(schema["properties"]) or schema.get("additionalProperties"), name

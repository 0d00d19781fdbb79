"""What runs each verb of `domain/verbs.py`, and the one way to run any of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from recollect.app import App
from recollect.domain import calendar
from recollect.domain.requests import Caller
from recollect.domain.verbs import BY_NAME, PARTS, Verb
from recollect.doors.current_request import note_verb
from recollect.memory.aliases import memory_recall, memory_remember, memory_store, search_memories
from recollect.memory.facts import forget_fact, query_facts, store_fact
from recollect.memory.forget import forget, memory_forget, purge_expired
from recollect.memory.inbox import decide, drop_source_rule, inbox, source_rules
from recollect.memory.listing import get_memory, get_timeline, list_memories, search_by_concept, search_by_file
from recollect.memory.move import bury, move_memory, pin, promote, unbury, unpin
from recollect.memory.prompt import format_for_prompt
from recollect.memory.remember import remember
from recollect.memory.reports import count_projects, doctor, history, stats
from recollect.memory.rescan import rescan
from recollect.memory.restore import restore_memory
from recollect.memory.similar import find_similar
from recollect.memory.summarize import summarize_old
from recollect.memory.update import update_memory
from recollect.memory.withdraw import undo_withdrawal, withdraw
from recollect.search.recall import recall, recall_compact
from recollect.search.visibility import with_ids
from recollect.sessions.extract import extract_memories
from recollect.sessions.pipeline import (
    answer_before_tool,
    answer_prompt,
    answer_start,
    answer_tool,
    answer_turn,
    note_prompt,
    note_shown,
    note_turn,
    prompt_submit,
    session_checkpoint,
    session_end,
    session_start,
    tool_post,
)
from recollect.sessions.session_log import correct_observation, list_sessions, show_session
from recollect.spans import span
from recollect.transfer.export_page import export_page
from recollect.transfer.import_batch import import_batch

HANDLERS: Final[dict[str, Callable[..., Any]]] = {
    run.__name__: run
    for run in (
        *(remember, recall, recall_compact, forget, list_memories, get_memory, update_memory),
        *(search_by_file, search_by_concept, get_timeline, find_similar, format_for_prompt),
        *(store_fact, query_facts, forget_fact, purge_expired, summarize_old),
        *(pin, unpin, bury, unbury, move_memory, promote),
        *(memory_store, memory_recall, memory_forget, memory_remember),
        *(inbox, decide, source_rules, drop_source_rule, withdraw, undo_withdrawal),
        *(history, rescan, stats, count_projects, doctor, import_batch, export_page, extract_memories),
        *(session_start, prompt_submit, tool_post, session_checkpoint, session_end),
        *(answer_prompt, note_prompt, answer_start, answer_before_tool, answer_tool, note_shown),
        *(answer_turn, note_turn),
        *(list_sessions, show_session, correct_observation),
    )
} | {"store_memory": remember, "search_memories": search_memories, "delete_memory": forget, "restore": restore_memory}
"""What runs each verb: a function of the app, the request and the caller."""


_OTHER_IDS: Final = frozenset(("forget_fact", "undo_withdrawal"))
"""The verbs whose `id` is none of a memory; elsewhere a memory's key may stand for it."""


def perform(app: App, name: str, fields: dict[str, Any], caller: Caller, request_id: str = "") -> Any:
    """Check the fields, then run the operation; every door runs every verb through this function."""
    verb = BY_NAME.get(name) or PARTS[name]
    note_verb(name)
    with span(f"verb {name}"):
        return _run(app, verb, fields, caller, request_id)


def _run(app: App, verb: Verb, fields: dict[str, Any], caller: Caller, request_id: str) -> Any:
    with calendar.in_zone(caller.calendar_zone):
        request = verb.request(**fields)
    named = request if verb.name in _OTHER_IDS else with_ids(app, request, caller)
    asked = f"{request_id}\n{request.model_dump_json(exclude_unset=True)}" if request_id else ""
    return HANDLERS[verb.name](app, named, caller, **({"request_id": asked} if verb.writes else {}))

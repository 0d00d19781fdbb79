"""Recollect: durable, searchable memory for AI agents and their teams.

Everything here is loaded on first use, so that `import recollect` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recollect.domain import (
        ByConcept,
        ByFile,
        Caller,
        Draft,
        Entity,
        Fact,
        FactQuery,
        FactsFound,
        FindSimilar,
        Forget,
        ForPrompt,
        Get,
        Hit,
        Inspect,
        JournalEntry,
        Listed,
        Listing,
        Memory,
        MemoryRecall,
        MemoryRemember,
        MemoryStore,
        Outcome,
        Prompt,
        Purge,
        Purged,
        Query,
        Recalled,
        Rescan,
        Rescanned,
        Restore,
        Scope,
        Seen,
        Similar,
        SoftForget,
        Stats,
        StoreFact,
        Summarize,
        Summarized,
        Timeline,
        Update,
    )
    from recollect.doors.daemon.link import connect
    from recollect.errors import RecollectError
    from recollect.operations.dialects import memory_recall, memory_remember, memory_store
    from recollect.operations.facts import forget_fact, query_facts, store_fact
    from recollect.operations.forget import forget, memory_forget, restore_memory
    from recollect.operations.get import get_memory, update_memory
    from recollect.operations.inspect import doctor, history
    from recollect.operations.listing import (
        find_similar,
        get_timeline,
        list_memories,
        search_by_concept,
        search_by_file,
        stats,
    )
    from recollect.operations.prompt import format_for_prompt
    from recollect.operations.recall import recall
    from recollect.operations.reindex import reindex
    from recollect.operations.remember import remember
    from recollect.operations.rescan import rescan
    from recollect.operations.retention import purge_expired, summarize_old
    from recollect.ports import App
    from recollect.settings import Settings
    from recollect.wiring import backup, open_app, restore

__all__ = [
    "App",
    "ByConcept",
    "ByFile",
    "Caller",
    "Draft",
    "Entity",
    "Fact",
    "FactQuery",
    "FactsFound",
    "FindSimilar",
    "ForPrompt",
    "Forget",
    "Get",
    "Hit",
    "Inspect",
    "JournalEntry",
    "Listed",
    "Listing",
    "Memory",
    "MemoryRecall",
    "MemoryRemember",
    "MemoryStore",
    "Outcome",
    "Prompt",
    "Purge",
    "Purged",
    "Query",
    "Recalled",
    "RecollectError",
    "Rescan",
    "Rescanned",
    "Restore",
    "Scope",
    "Seen",
    "Settings",
    "Similar",
    "SoftForget",
    "Stats",
    "StoreFact",
    "Summarize",
    "Summarized",
    "Timeline",
    "Update",
    "backup",
    "connect",
    "doctor",
    "find_similar",
    "forget",
    "forget_fact",
    "format_for_prompt",
    "get_memory",
    "get_timeline",
    "history",
    "list_memories",
    "memory_forget",
    "memory_recall",
    "memory_remember",
    "memory_store",
    "open_app",
    "purge_expired",
    "query_facts",
    "recall",
    "reindex",
    "remember",
    "rescan",
    "restore",
    "restore_memory",
    "search_by_concept",
    "search_by_file",
    "stats",
    "store_fact",
    "summarize_old",
    "update_memory",
]

_HOMES = {
    "App": "recollect.ports",
    "RecollectError": "recollect.errors",
    "Settings": "recollect.settings",
    "backup": "recollect.wiring",
    "connect": "recollect.doors.daemon.link",
    "doctor": "recollect.operations.inspect",
    "find_similar": "recollect.operations.listing",
    "forget": "recollect.operations.forget",
    "format_for_prompt": "recollect.operations.prompt",
    "get_memory": "recollect.operations.get",
    "get_timeline": "recollect.operations.listing",
    "history": "recollect.operations.inspect",
    "list_memories": "recollect.operations.listing",
    "memory_forget": "recollect.operations.forget",
    "memory_recall": "recollect.operations.dialects",
    "memory_remember": "recollect.operations.dialects",
    "memory_store": "recollect.operations.dialects",
    "open_app": "recollect.wiring",
    "purge_expired": "recollect.operations.retention",
    "forget_fact": "recollect.operations.facts",
    "query_facts": "recollect.operations.facts",
    "rescan": "recollect.operations.rescan",
    "recall": "recollect.operations.recall",
    "reindex": "recollect.operations.reindex",
    "remember": "recollect.operations.remember",
    "restore": "recollect.wiring",
    "restore_memory": "recollect.operations.forget",
    "search_by_concept": "recollect.operations.listing",
    "search_by_file": "recollect.operations.listing",
    "stats": "recollect.operations.listing",
    "store_fact": "recollect.operations.facts",
    "summarize_old": "recollect.operations.retention",
    "update_memory": "recollect.operations.get",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES.get(name, "recollect.domain")), name)


def __dir__() -> list[str]:
    return sorted(__all__)

"""The table of operations: each verb once. Every door is a projection of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from recollect.domain import (
    ByConcept,
    ByFile,
    Caller,
    Draft,
    ExportPage,
    FactQuery,
    FactsFound,
    FindSimilar,
    Forget,
    ForPrompt,
    Get,
    ImportBatch,
    Imported,
    Inspect,
    JournalEntry,
    Listed,
    Listing,
    Memory,
    MemoryRecall,
    MemoryRemember,
    MemoryStore,
    Outcome,
    Page,
    Prompt,
    Purge,
    Purged,
    Query,
    Recalled,
    Request,
    Rescan,
    Rescanned,
    Restore,
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
from recollect.operations.dialects import memory_recall, memory_remember, memory_store
from recollect.operations.exchange.exporting import export_page
from recollect.operations.exchange.importing import import_batch
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
from recollect.operations.remember import remember
from recollect.operations.rescan import rescan
from recollect.operations.retention import purge_expired, summarize_old
from recollect.ports import App, Check


@dataclass(frozen=True, slots=True)
class Operation:
    """One verb: its name, what it takes and gives, the function `(app, request, caller)`, what it does to the store.

    A function that `writes` also takes `request_id`, under which a retry gets the first answer again. A `destructive`
    one takes something away, an `idempotent` one does no more when it is called again with the same arguments.
    """

    name: str
    request: type[Request]
    answer: Any
    run: Callable[..., Any]
    writes: bool
    destructive: bool = False
    idempotent: bool = False


TABLE = (
    Operation("remember", Draft, Outcome, remember, writes=True),
    Operation("recall", Query, Recalled, recall, writes=False),
    Operation("forget", Forget, Outcome, forget, writes=True, destructive=True, idempotent=True),
    Operation("store_memory", Draft, Outcome, remember, writes=True),
    Operation("search_memories", Query, Recalled, recall, writes=False),
    Operation("list_memories", Listing, Listed, list_memories, writes=False),
    Operation("get_memory", Get, Memory, get_memory, writes=False),
    Operation("update_memory", Update, Outcome, update_memory, writes=True, destructive=True, idempotent=True),
    Operation("delete_memory", Forget, Outcome, forget, writes=True, destructive=True, idempotent=True),
    Operation("search_by_file", ByFile, Listed, search_by_file, writes=False),
    Operation("search_by_concept", ByConcept, Listed, search_by_concept, writes=False),
    Operation("get_timeline", Timeline, Listed, get_timeline, writes=False),
    Operation("store_fact", StoreFact, Outcome, store_fact, writes=True),
    Operation("query_facts", FactQuery, FactsFound, query_facts, writes=False),
    Operation("forget_fact", Forget, Outcome, forget_fact, writes=True, destructive=True, idempotent=True),
    Operation("purge_expired", Purge, Purged, purge_expired, writes=True, destructive=True, idempotent=True),
    Operation("summarize_old", Summarize, Summarized, summarize_old, writes=True, idempotent=True),
    Operation("memory_store", MemoryStore, Outcome, memory_store, writes=True),
    Operation("memory_recall", MemoryRecall, Recalled, memory_recall, writes=False),
    Operation("memory_forget", SoftForget, Outcome, memory_forget, writes=True, destructive=True, idempotent=True),
    Operation("memory_remember", MemoryRemember, Outcome, memory_remember, writes=True),
    Operation("restore", Restore, Outcome, restore_memory, writes=True, idempotent=True),
    Operation("find_similar", FindSimilar, list[Similar], find_similar, writes=False),
    Operation("format_for_prompt", ForPrompt, Prompt, format_for_prompt, writes=False),
    Operation("history", Get, list[JournalEntry], history, writes=False),
    Operation("rescan", Rescan, Rescanned, rescan, writes=True, destructive=True, idempotent=True),
    Operation("stats", Seen, Stats, stats, writes=False),
    Operation("import_batch", ImportBatch, Imported, import_batch, writes=True, destructive=True, idempotent=True),
    Operation("export_page", ExportPage, Page, export_page, writes=False),
    Operation("doctor", Inspect, list[Check], doctor, writes=False),
)

BY_NAME = {operation.name: operation for operation in TABLE}


def perform(app: App, name: str, fields: dict[str, Any], caller: Caller | None, request_id: str = "") -> Any:
    """Check the fields, then run the operation; this is the one way from any door to any verb."""
    operation = BY_NAME[name]
    request = operation.request(**fields)
    return operation.run(app, request, caller, **({"request_id": request_id} if operation.writes else {}))

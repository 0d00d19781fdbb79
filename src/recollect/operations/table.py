"""The operations of the core: each verb once. `doors/operations.py` adds those of `transfer`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, get_type_hints

from recollect.domain.fields import Request
from recollect.operations.aliases import memory_recall, memory_remember, memory_store
from recollect.operations.facts import forget_fact, query_facts, store_fact
from recollect.operations.forget import forget, memory_forget
from recollect.operations.get import get_memory
from recollect.operations.inspect import doctor, history, stats
from recollect.operations.listing import (
    get_timeline,
    list_memories,
    search_by_concept,
    search_by_file,
)
from recollect.operations.prompt import format_for_prompt
from recollect.operations.purge import purge_expired
from recollect.operations.recall import recall, recall_compact
from recollect.operations.remember import remember
from recollect.operations.rescan import rescan
from recollect.operations.restore import restore_memory
from recollect.operations.similar import find_similar
from recollect.operations.summarize import summarize_old
from recollect.operations.update import update_memory


@dataclass(frozen=True, slots=True)
class Operation:
    """One verb: its name, the function `(app, request, caller)` that runs it, and what it does to the store.

    A function that writes also takes `request_id`, under which a retry gets the first answer again. A `destructive`
    one takes something away, an `idempotent` one does no more when it is called again with the same arguments.
    """

    name: str
    run: Callable[..., Any]
    destructive: bool = False
    idempotent: bool = False

    @property
    def request(self) -> type[Request]:
        """Return the type of the request, as the function declares it."""
        request: type[Request] = list(_types(self.run).values())[1]
        return request

    @property
    def answer(self) -> Any:
        """Return the type of the answer, as the function declares it."""
        return _types(self.run)["return"]

    @property
    def writes(self) -> bool:
        """Say whether it changes the store."""
        return "request_id" in _types(self.run)


@cache
def _types(function: Callable[..., Any]) -> dict[str, Any]:
    return get_type_hints(function)


CORE = (
    Operation("remember", remember),
    Operation("recall", recall),
    Operation("recall_compact", recall_compact),
    Operation("forget", forget, destructive=True, idempotent=True),
    Operation("store_memory", remember),
    Operation("search_memories", recall),
    Operation("list_memories", list_memories),
    Operation("get_memory", get_memory),
    Operation("update_memory", update_memory, destructive=True, idempotent=True),
    Operation("delete_memory", forget, destructive=True, idempotent=True),
    Operation("search_by_file", search_by_file),
    Operation("search_by_concept", search_by_concept),
    Operation("get_timeline", get_timeline),
    Operation("store_fact", store_fact),
    Operation("query_facts", query_facts),
    Operation("forget_fact", forget_fact, destructive=True, idempotent=True),
    Operation("purge_expired", purge_expired, destructive=True, idempotent=True),
    Operation("summarize_old", summarize_old, idempotent=True),
    Operation("memory_store", memory_store),
    Operation("memory_recall", memory_recall),
    Operation("memory_forget", memory_forget, destructive=True, idempotent=True),
    Operation("memory_remember", memory_remember),
    Operation("restore", restore_memory, idempotent=True),
    Operation("find_similar", find_similar),
    Operation("format_for_prompt", format_for_prompt),
    Operation("history", history),
    Operation("rescan", rescan, destructive=True, idempotent=True),
    Operation("stats", stats),
    Operation("doctor", doctor),
)

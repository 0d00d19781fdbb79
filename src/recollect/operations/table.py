"""The table of operations: each verb once. Every door is a projection of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from recollect.domain import (
    Caller,
    Draft,
    Forget,
    Get,
    Inspect,
    JournalEntry,
    Memory,
    Outcome,
    Query,
    Recalled,
    Request,
)
from recollect.operations.forget import forget, get_memory
from recollect.operations.inspect import doctor, history
from recollect.operations.recall import recall
from recollect.operations.remember import remember
from recollect.ports import App, Check


@dataclass(frozen=True, slots=True)
class Operation:
    """One verb: its name, what it takes and gives, the function `(app, request, caller)`, what it does to the store.

    A function that `writes` also takes `request_id`, under which a retry gets the first answer again.
    """

    name: str
    request: type[Request]
    answer: Any
    run: Callable[..., Any]
    writes: bool
    destructive: bool = False


TABLE = (
    Operation("remember", Draft, Outcome, remember, writes=True),
    Operation("recall", Query, Recalled, recall, writes=False),
    Operation("forget", Forget, Outcome, forget, writes=True, destructive=True),
    Operation("get_memory", Get, Memory, get_memory, writes=False),
    Operation("history", Get, list[JournalEntry], history, writes=False),
    Operation("doctor", Inspect, list[Check], doctor, writes=False),
)

BY_NAME = {operation.name: operation for operation in TABLE}


def perform(app: App, name: str, fields: dict[str, Any], caller: Caller | None, request_id: str = "") -> Any:
    """Check the fields, then run the operation; this is the one way from any door to any verb."""
    operation = BY_NAME[name]
    request = operation.request(**fields)
    return operation.run(app, request, caller, **({"request_id": request_id} if operation.writes else {}))

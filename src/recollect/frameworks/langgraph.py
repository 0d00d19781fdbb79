"""LangGraph's `BaseStore`: each item is a memory, whose key is its namespace and its own key, and whose text is JSON.

So what one graph puts is found by every other door, and passes the gate. A search by words gives what is relevant.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Final, cast
from urllib.parse import quote, unquote

from anyio.to_thread import run_sync
from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    validate_op_namespace,
)

from recollect.client.connection import Connection
from recollect.domain.enums import Order, Profile, Scope
from recollect.domain.fields import MAX_LIMIT, MAX_TOKENS
from recollect.domain.requests import Query
from recollect.domain.results import Listed, Memory
from recollect.errors import InvalidInput

RELEVANT: Final = Query.model_fields["min_score"].default
_MINUTES: Final = 24 * 60.0  # of a day
_UNSEARCHED: Final = "unsearched"
_RESERVED: Final = re.compile(r"[%/\s\x00-\x1f\x7f]")
_EMPTY: Final = "%"  # an empty key, which no other one becomes
_OPERATORS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "$eq": lambda value, wanted: bool(value == wanted),
    "$ne": lambda value, wanted: bool(value != wanted),
    "$gt": lambda value, wanted: float(value) > float(wanted),
    "$gte": lambda value, wanted: float(value) >= float(wanted),
    "$lt": lambda value, wanted: float(value) < float(wanted),
    "$lte": lambda value, wanted: float(value) <= float(wanted),
}


class RecollectStore(BaseStore):
    """A store for graphs; stores with different names over one memory share nothing.

    Terms of items are in minutes, and begin again when an item is read, as LangGraph says. `index=False` keeps an item
    out of searches by words; any other item is searched with its whole value. What answers a query with a score below
    `min_score` (0–1) is left out; 0 lets in the nearest, however little they answer.
    """

    supports_ttl = True

    def __init__(
        self,
        memory: Connection,
        *,
        name: str = "langgraph",
        scope: Scope = Scope.PROJECT,
        ttl: TTLConfig | None = None,
        min_score: float = RELEVANT,
    ) -> None:
        self.ttl_config = ttl
        self._memory = memory
        self._scope = scope
        self._min_score = min_score
        self._root = f"{_escape(name)}/"

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations and return their results in the order of the operations; reads come before all writes.

        Of several writes to an item the last takes effect.
        """
        asked = list(ops)
        for op in asked:
            validate_op_namespace(op)
        puts = {(op.namespace, op.key): op for op in asked if isinstance(op, PutOp)}
        texts = {place: _to_text(op.value) for place, op in puts.items() if op.value is not None}
        results = [self._read_result(op) for op in asked]
        for place, op in puts.items():
            self._put_item(op, texts.get(place))
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Run `batch` in a thread, so that the event loop goes on."""
        return await run_sync(self.batch, list(ops))

    def _read_result(self, op: Op) -> Result:
        """Return the result of an operation that reads, None for a put."""
        if isinstance(op, GetOp):
            return self._get_item(op)
        if isinstance(op, SearchOp):
            return cast(Result, self._search_items(op))
        if isinstance(op, ListNamespacesOp):
            return cast(Result, self._list_namespaces(op))
        return None

    def _get_item(self, op: GetOp) -> Item | None:
        found = self._first_memories(self._key_of(op.namespace, op.key), 1)
        if not found:
            return None
        self._refresh_expiry(found, wanted=op.refresh_ttl)
        return Item(**self._item_fields(found[0]))

    def _put_item(self, op: PutOp, text: str | None) -> None:
        """Store the text of an item, or delete the item where the text is None."""
        key = self._key_of(op.namespace, op.key)
        if text is None:
            for item in self._first_memories(key, 1):
                self._memory.forget(item.id, scope=self._scope)
            return
        self._memory.remember(
            text,
            key=key,
            scope=self._scope,
            tags=[_UNSEARCHED] if op.index is False else [],
            observed_at=datetime.now(UTC),
            ttl_days=None if op.ttl is None else op.ttl / _MINUTES,
        )

    def _search_items(self, op: SearchOp) -> list[SearchItem]:
        """Return the items that answer a query, best first; without a query all items in the order of their first put.

        Neither reads nor later writes change that order, so that pages stay as they are.
        """
        prefix = self._prefix_of(op.namespace_prefix)
        _check_page(op.limit, op.offset)
        last = op.offset + op.limit
        if op.query:
            page = self._relevant_items(op, prefix, last)[op.offset : last]
        else:
            kept = (
                memory
                for memory in self._items_below(prefix, MAX_LIMIT if op.filter else last)
                if _passes_filter(memory, op.filter)
            )
            page = [(memory, None) for memory in islice(kept, op.offset, last)]
        self._refresh_expiry([memory for memory, _ in page], wanted=op.refresh_ttl)
        return [SearchItem(**self._item_fields(memory), score=score) for memory, score in page]

    def _relevant_items(self, op: SearchOp, prefix: str, last: int) -> list[tuple[Memory, float | None]]:
        """Return the items that answer the query and pass the filter, best first, each with its score."""
        asked: dict[str, Any] = {
            "key": prefix,
            "scope": self._scope,
            "superseded": True,
            "profile": Profile.RELEVANCE,
            "min_score": self._min_score,
        }
        query = op.query or ""
        hits = self._memory.recall(query, limit=MAX_LIMIT, **asked).hits
        scores: dict[int, float] = {hit.memory.id: hit.score for hit in hits}
        known = {hit.memory.id: hit.memory for hit in hits}
        if len(hits) == MAX_LIMIT and (op.filter or last > MAX_LIMIT):  # there may be more than one answer holds
            index = self._memory.recall(query, limit=1, max_tokens=MAX_TOKENS, **asked).index
            scores = {line.id: line.match for line in index.lines} if index else scores
            known = {memory.id: memory for memory in self._items_below(prefix)}
        ranked = [(known[number], score) for number, score in scores.items() if number in known]
        return [
            (memory, score)
            for memory, score in ranked
            if _UNSEARCHED not in memory.tags and _passes_filter(memory, op.filter)
        ]

    def _list_namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        """Return a page of the sorted namespaces that match the conditions, cut to the depth that is asked for."""
        _check_page(op.limit, op.offset)
        known = {self._place_of(memory)[0] for memory in self._items_below(self._root)}
        kept = {
            namespace
            for namespace in known
            if all(_matches_condition(condition, namespace) for condition in op.match_conditions or ())
        }
        cut = sorted({namespace[: op.max_depth] for namespace in kept} if op.max_depth is not None else kept)
        return cut[op.offset : op.offset + op.limit]

    def _refresh_expiry(self, found: Iterable[Memory], *, wanted: bool) -> None:
        """Start the expiry times of items anew."""
        for memory in found if wanted else ():
            if memory.ttl_days is not None:
                self._memory.update_memory(memory.id, ttl_days=memory.ttl_days)

    def _items_below(self, prefix: str, at_once: int = MAX_LIMIT) -> Iterator[Memory]:
        """Yield all items below a prefix in the order of their first put; `at_once` items are read together."""
        after = None
        while True:
            page = self._list_page(prefix, min(max(at_once, 1), MAX_LIMIT), after)
            yield from page.memories
            if (after := page.after) is None:
                return

    def _first_memories(self, key: str, limit: int) -> tuple[Memory, ...]:
        return self._list_page(key, limit).memories

    def _list_page(self, key: str, limit: int, after: str | None = None) -> Listed:
        return self._memory.list_memories(
            key=key, scope=self._scope, superseded=True, order=Order.OLDEST, limit=limit, after=after
        )

    def _prefix_of(self, namespace: tuple[str, ...]) -> str:
        return self._root + "".join(f"{_escape(label)}/" for label in namespace)

    def _key_of(self, namespace: tuple[str, ...], key: str) -> str:
        return self._prefix_of(namespace) + _escape(key)

    def _place_of(self, memory: Memory) -> tuple[tuple[str, ...], str]:
        """Return the namespace and the key of an item."""
        *labels, key = (memory.key or "").removeprefix(self._root).split("/")
        return tuple(map(unquote, labels)), "" if key == _EMPTY else unquote(key)

    def _item_fields(self, memory: Memory) -> dict[str, Any]:
        namespace, key = self._place_of(memory)
        changed = max(memory.created_at, memory.observed_at or memory.updated_at)  # a read that refreshes is no change
        dates = {"created_at": memory.created_at, "updated_at": changed}
        return {"namespace": namespace, "key": key, "value": _to_value(memory.content)} | dates


def _check_page(limit: int, offset: int) -> None:
    for name, number in (("limit", limit), ("offset", offset)):
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            raise InvalidInput(name, f"Invalid {name}: Must be a whole number from 0")


def _escape(name: str) -> str:
    """Return a label or key as a part of a key: without `/`, spaces and line breaks, which `unquote` brings back."""
    return _RESERVED.sub(lambda found: quote(found[0], safe=""), name) or _EMPTY


def _to_text(value: Mapping[str, Any]) -> str:
    """Return the value of an item as JSON; raise `InvalidInput` where JSON cannot hold it."""
    try:
        return json.dumps(dict(value), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidInput("value", f"Invalid value: Must be a mapping of what JSON can hold: {error}") from None


def _to_value(text: str) -> dict[str, Any]:
    """Return the value of an item; a text that another door wrote over it becomes its `text`."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {"text": text}
    return value if isinstance(value, dict) else {"text": text}


def _passes_filter(memory: Memory, wanted: Mapping[str, Any] | None) -> bool:
    value = _to_value(memory.content) if wanted else {}
    return all(_fits(value.get(name), expected) for name, expected in (wanted or {}).items())


def _fits(value: Any, wanted: Any) -> bool:
    """Return whether a value fits a filter: equal, equal part by part, or by the filter's operators."""
    if isinstance(wanted, Mapping):
        if any(name.startswith("$") for name in wanted):
            return all(_fits_operator(value, name, operator) for name, operator in wanted.items())
        return isinstance(value, dict) and all(_fits(value.get(name), expected) for name, expected in wanted.items())
    if isinstance(wanted, list | tuple):
        same = isinstance(value, list) and len(value) == len(wanted)
        return same and all(_fits(element, other) for element, other in zip(value, wanted, strict=True))
    return bool(value == wanted)


def _fits_operator(value: Any, operator: str, wanted: Any) -> bool:
    """Return whether a value fits an operator of a filter; raise `InvalidInput` for an unknown operator."""
    if operator not in _OPERATORS:
        names = ", ".join(f"`{name}`" for name in _OPERATORS)
        raise InvalidInput("filter", f"Invalid filter: Unknown operator `{operator}`. Must be one of {names}")
    try:
        return _OPERATORS[operator](value, wanted)
    except (TypeError, ValueError):  # no number: an item without that field, for one
        return False


def _matches_condition(condition: MatchCondition, namespace: tuple[str, ...]) -> bool:
    """Return whether a namespace begins or ends with the labels of a condition; `*` stands for any label."""
    path = condition.path
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", label) for wanted, label in zip(path, part, strict=True))

"""Retention: what has passed its time is removed, what is old is condensed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta

from recollect.domain import (
    Caller,
    Draft,
    Memory,
    Observation,
    Order,
    Purge,
    Purged,
    Source,
    Summarize,
    Summarized,
    View,
)
from recollect.errors import SecretFound
from recollect.operations.entry import entry_of, passed, ready
from recollect.operations.remember import make_room
from recollect.policy.condense import condensed
from recollect.ports import App

_PAGE = 500
_MOST = 40  # memories in one summary: what is condensed further says nothing any more


def purge_expired(app: App, request: Purge, caller: Caller | None = None, *, request_id: str = "") -> Purged:
    """Remove for good what has passed its time in the caller's namespaces; a second time removes nothing."""
    del request_id  # doing it again is no different
    caller = caller or app.caller
    gone: list[int] = []
    for namespace in app.records.existing(caller.namespaces(request.scope)):
        with app.records.writing(namespace, caller.user) as transaction:
            gone += [one for one in transaction.expired() if transaction.delete(one, "purge")]
    if gone:
        app.later(app.vectors.sync)
        app.later(app.text.scrub)
    return Purged(tuple(gone))


def summarize_old(app: App, request: Summarize, caller: Caller | None = None, *, request_id: str = "") -> Summarized:
    """Write one summary for each category of public memories that nobody touched for so long, and keep those aside.

    The summaries are made of the originals' own first sentences; `get_memory` and `history` still show the originals,
    recall with `superseded` finds them, and `restore` brings each back.
    """
    del request_id  # what was condensed is not condensed again
    caller = caller or app.caller
    namespace = caller.namespace(request.scope)
    groups: dict[str | None, list[Memory]] = defaultdict(list)
    for memory in _old(app, request, namespace):
        groups[memory.category].append(memory)
    written: list[int] = []
    done = 0
    for category, memories in sorted(groups.items(), key=lambda pair: pair[0] or ""):
        for start in range(0, len(memories), _MOST):
            some = memories[start : start + _MOST]
            if len(some) >= request.at_least and (new := _summarize(app, request, category, some, caller)) is not None:
                written.append(new)
                done += len(some)
    return Summarized(tuple(written), done)


def _old(app: App, request: Summarize, namespace: str) -> list[Memory]:
    before = app.clock() - timedelta(days=request.older_than_days)
    view = View(app.records.existing([namespace]), app.clock(), category=request.category)
    found: list[Memory] = []
    for offset in range(0, app.records.count(view), _PAGE):
        ids = app.records.listed(view, Order.OLDEST, _PAGE, offset)
        loaded = app.records.load(ids, view)
        found += [loaded[one] for one in ids if one in loaded]
    return [one for one in found if _stale(one) and (one.last_accessed_at or one.updated_at) < before > one.updated_at]


def _stale(memory: Memory) -> bool:
    """Say whether it may be condensed; the summary would outlive what somebody gave a term."""
    return memory.key is None and memory.ttl_days is None and memory.type is not Observation.COMPRESSED_SUMMARY


def _summarize(
    app: App, request: Summarize, category: str | None, some: Sequence[Memory], caller: Caller
) -> int | None:
    """Write one summary and let the originals give way; write none where one changed meanwhile or the gate refuses."""
    namespace = caller.namespace(request.scope)
    draft = Draft(
        content=condensed(category, some),
        title=f"Summary of {len(some)} memories" + (f" about {category}" if category else ""),
        scope=request.scope,
        type=Observation.COMPRESSED_SUMMARY,
        category=category,
        tags=tuple(dict.fromkeys(tag for one in some for tag in one.tags))[:50],
        importance=max(one.importance for one in some),
        trust=sum(one.trust for one in some) / len(some),
        source=Source.COMPRESSION,
    )
    try:
        one = ready(app, passed(app, draft, namespace, caller))
    except SecretFound:
        return None
    with app.records.writing(namespace, caller.user) as transaction:
        now = app.clock()
        if any(transaction.by_id(memory.id) != memory for memory in some):
            return None
        new = transaction.insert(entry_of(one, None, caller.user, now, app.keeping.retention))
        for memory in some:
            transaction.supersede(memory.id, by=new)
        if make_room(app, transaction, new):
            app.later(app.text.scrub)
    return new

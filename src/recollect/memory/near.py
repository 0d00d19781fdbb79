"""Near duplicates: pairs of stored memories that say nearly the same, and one of a pair put in the place of the other."""

from __future__ import annotations

from typing import Final

from recollect.app import App
from recollect.domain.enums import OF_SESSION, Order
from recollect.domain.page import NearPair, NearPairs, ReadNearPairs, ReplaceMemory
from recollect.domain.requests import Caller, Filters
from recollect.domain.results import Memory, Outcome, WriteStatus
from recollect.errors import InvalidInput, NotFound
from recollect.memory.reconcile import expired, merged
from recollect.search.visibility import allowed_levels, levels_of, parse_id, view_of

_LOOKED_AT: Final = 1_000
"""How many of the newest memories are compared with each other at most."""


def near_pairs(app: App, request: ReadNearPairs, caller: Caller) -> NearPairs:
    """Return the memories of which `remember` would name one beside the other, the nearest pairs first.

    Each memory is in one pair at most, so that each decision shows what is left. Drafts, summaries of sessions and
    turns of conversations are left out; both of a pair lie in one namespace that the caller may write. Pairs are found
    by the stored vectors: what waits for the model is in none.
    """
    view = view_of(app, Filters(**request.model_dump(exclude={"limit"})), caller)
    writable = {caller.namespace(scope) for scope in caller.writes}
    with app.records.snapshot():
        ids = app.records.page_after(view, Order.NEWEST, None, _LOOKED_AT)[0]
        cosines = app.vectors.near_pairs(ids, app.embedder.card.near)
        found = app.records.load({one for pair in cosines for one in pair}, view)
    taken: set[int] = set()
    pairs: list[NearPair] = []
    for pair, cosine in sorted(cosines.items(), key=lambda one: (-one[1], one[0])):
        both = [found[one] for one in pair if one in found and _is_comparable(found[one], writable)]
        if len(both) == 2 and both[0].namespace == both[1].namespace and taken.isdisjoint(pair):
            older, newer = sorted(both, key=lambda one: (one.updated_at, one.id))
            pairs.append(NearPair(older, newer, round(min(cosine, 1.0), 2), merged(older.content, newer.content)))
            taken.update(pair)
    return NearPairs(tuple(pairs[: request.limit]), len(pairs))


def _is_comparable(memory: Memory, writable: set[str]) -> bool:
    """Say whether a memory may be put in the place of another one, or give its place."""
    in_talk = memory.position is not None or memory.type in OF_SESSION
    return memory.namespace in writable and not in_talk and not memory.is_draft and not memory.unapproved


def replace_memory(app: App, request: ReplaceMemory, caller: Caller, *, request_id: str = "") -> Outcome:
    """Put a stored memory in the place of another, which is hidden until it is restored.

    Raises `NotFound` for one that the caller does not see or that is out of sight, `InvalidInput` where both are the
    same or lie in two namespaces.
    """
    del request_id  # a second request finds the memory replaced
    ids = [parse_id(one) for one in (request.id, request.by)]
    levels = levels_of(request, caller)
    homes = [app.records.namespace_of(one, caller.namespaces(), levels) if one else None for one in ids]
    for name, home in zip((request.id, request.by), homes, strict=True):
        if home is None:
            raise NotFound(f"Memory {name} not found.")
    if ids[0] == ids[1] or homes[0] != homes[1]:
        raise InvalidInput("by", "Invalid by: Must be another memory of the same scope")
    with app.records.writing(caller.writable(homes[0] or ""), caller.user, allowed_levels(request)) as transaction:
        for number in ids:
            memory = transaction.by_id(number or 0)
            if memory is None or not _is_in_sight(app, memory):
                raise NotFound(f"Memory {number} is not in sight any more.")
        transaction.supersede(ids[0] or 0, by=ids[1] or 0)
    app.records.request_sync()
    note = f"Memory {request.id} is replaced by memory {request.by}, and hidden."
    return Outcome(WriteStatus.UPDATED, str(ids[1]), (note,))


def _is_in_sight(app: App, memory: Memory) -> bool:
    gone = (memory.deleted_at, memory.superseded_by, memory.merged_into)
    return all(one is None for one in gone) and not expired(memory, app.clock())

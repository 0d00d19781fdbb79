"""Near duplicates: pairs of stored memories that say nearly the same, and what a person decides about a pair."""

from __future__ import annotations

from typing import Final

from recollect.app import App
from recollect.domain.enums import OF_SESSION, POLICIES, Merge, Order
from recollect.domain.page import NearPair, NearPairs, ReadNearPairs, ReplaceMemory, TellApart
from recollect.domain.requests import Caller, Filters
from recollect.domain.results import Memory, Outcome, WriteStatus
from recollect.errors import InvalidInput, NotFound
from recollect.memory.likeness import merged_text
from recollect.memory.reconcile import expired
from recollect.search.visibility import allowed_levels, levels_of, parse_id, view_of

_LOOKED_AT: Final = 500
"""How many of the newest memories are compared with each other at most."""


def near_pairs(app: App, request: ReadNearPairs, caller: Caller) -> NearPairs:
    """Return the memories of which `remember` would name one beside the other, the nearest pairs first.

    Each memory is in one pair at most, so that each decision shows what is left. Drafts, events, cases, summaries of
    sessions and turns of conversations are left out; both of a pair are of one level, in one namespace that the caller
    may write. Pairs are found by the stored vectors: what waits for the model is in none.
    """
    view = view_of(app, Filters(**request.model_dump(exclude={"limit"})), caller)
    writable = {caller.namespace(scope) for scope in caller.writes}
    with app.records.snapshot():
        ids = app.records.overview.page_after(view, Order.NEWEST, None, _LOOKED_AT)[0]
        near = app.vectors.near_pairs(ids, app.embedder.card.near)
        apart = app.records.overview.told_apart(list({one for pair in near for one in pair}))
        cosines = {pair: cosine for pair, cosine in near.items() if pair not in apart}
        found = app.records.load({one for pair in cosines for one in pair}, view)
    taken: set[int] = set()
    pairs: list[NearPair] = []
    for pair, cosine in sorted(cosines.items(), key=lambda one: (-one[1], one[0])):
        both = [found[one] for one in pair if one in found and _is_comparable(found[one], writable)]
        if len({(one.namespace, one.sensitivity) for one in both}) == 1 < len(both) and taken.isdisjoint(pair):
            older, newer = sorted(both, key=lambda one: (one.updated_at, one.id))
            pairs.append(NearPair(older, newer, round(min(cosine, 1.0), 2), merged_text(older.content, newer.content)))
            taken.update(pair)
    return NearPairs(tuple(pairs[: request.limit]), len(pairs))


def _is_comparable(memory: Memory, writable: set[str]) -> bool:
    """Say whether a memory may be put in the place of another one, or give its place."""
    apart = memory.position is not None or memory.type in OF_SESSION or POLICIES[memory.fact_type].merge is Merge.NEVER
    return memory.namespace in writable and not apart and not memory.is_draft and not memory.unapproved


def replace_memory(app: App, request: ReplaceMemory, caller: Caller, *, request_id: str = "") -> Outcome:
    """Put a stored memory in the place of another, which is hidden until it is restored.

    Raises `NotFound` for one that the caller does not see or that is out of sight, `InvalidInput` where both are the
    same or lie in two namespaces.
    """
    del request_id  # a second request finds the memory replaced
    namespace, goes, stays = _locate_pair(app, request, request.by, caller)
    with app.records.writing(caller.writable(namespace), caller.user, allowed_levels(request)) as writing:
        for number in (goes, stays):
            memory = writing.lookup.by_id(number)
            if memory is None or not _is_in_sight(app, memory):
                raise NotFound(f"Memory {number} is not in sight any more.")
        writing.memories.supersede(goes, by=stays)
    app.records.request_sync()
    note = f"Memory {goes} is replaced by memory {stays}, and hidden."
    return Outcome(WriteStatus.UPDATED, str(stays), (note,))


def tell_apart(app: App, request: TellApart, caller: Caller, *, request_id: str = "") -> Outcome:
    """Note that two memories are no duplicates, so that `near_pairs` does not name them as a pair any more.

    Raises what `replace_memory` raises.
    """
    del request_id  # a second request changes nothing more
    namespace, number, other = _locate_pair(app, request, request.other, caller)
    with app.records.writing(caller.writable(namespace), caller.user, allowed_levels(request)) as writing:
        memory = writing.lookup.by_id(number)
        if memory is None or not _is_in_sight(app, memory):
            raise NotFound(f"Memory {number} is not in sight any more.")
        writing.decisions.tell_apart(memory, other, undo=request.undo)
    return Outcome(WriteStatus.UPDATED, str(number))


def _locate_pair(app: App, request: ReplaceMemory | TellApart, other: str, caller: Caller) -> tuple[str, int, int]:
    """Return the namespace of two memories and the ids of both; raise `NotFound` or `InvalidInput`."""
    levels = levels_of(request, caller)
    numbers: list[int] = []
    homes: set[str] = set()
    for one in (request.id, other):
        number = parse_id(one)
        home = app.records.namespaces.of_memory(number, caller.namespaces(), levels) if number else None
        if number is None or home is None:
            raise NotFound(f"Memory {one} not found.")
        numbers.append(number)
        homes.add(home)
    if len(homes) > 1 or numbers[0] == numbers[1]:
        raise InvalidInput("id", "Invalid id: Must be two memories of the same scope")
    return homes.pop(), numbers[0], numbers[1]


def _is_in_sight(app: App, memory: Memory) -> bool:
    """Say whether a memory is neither hidden nor past its time."""
    return not memory.is_hidden and not expired(memory, app.clock())

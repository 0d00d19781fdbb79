"""What somebody decides about a memory as a whole: it is pinned or buried, or belongs somewhere else."""

from __future__ import annotations

from recollect.app import App
from recollect.domain.enums import Scope, Standing
from recollect.domain.page import SetStanding
from recollect.domain.requests import Caller, Draft, FactQuery, Mark, Move, Promote, StoreFact
from recollect.domain.results import Fact, Memory, Outcome, WriteStatus
from recollect.errors import InvalidInput, NotFound
from recollect.gate import clear
from recollect.memory.prepare_write import (
    MASKED,
    Embeddings,
    draft_of,
    journal_refusals,
    new_entry,
    prepare_draft,
    retry_with_embeddings,
)
from recollect.memory.reconcile import expired
from recollect.search.visibility import allowed_levels, levels_of, parse_id, unfiltered
from recollect.store.entries import FactEntry

_MOST_FACTS = 100


def set_standing(app: App, request: SetStanding, caller: Caller, *, request_id: str = "") -> Outcome:
    """Pin or bury a memory, or neither; raise `NotFound` for one that the caller does not see.

    What is pinned neither fades nor ends, and comes first where memories are shown unasked; what is buried is found
    by searches alone.
    """
    del request_id  # a second request changes nothing more
    return _change_standing(app, request, caller, request.standing)


def pin(app: App, request: Mark, caller: Caller, *, request_id: str = "") -> Outcome:
    """Pin a memory: keep it for good, and show it first at the start of a session.

    Raises `NotFound`.
    """
    del request_id
    note = "It is pinned: kept for good, and shown first where memories are shown unasked."
    return _change_standing(app, request, caller, Standing.PINNED, note)


def unpin(app: App, request: Mark, caller: Caller, *, request_id: str = "") -> Outcome:
    """Unpin a memory.

    Raises `NotFound`.
    """
    del request_id
    return _change_standing(app, request, caller, None, "It is no longer pinned.", only=Standing.PINNED)


def bury(app: App, request: Mark, caller: Caller, *, request_id: str = "") -> Outcome:
    """Bury a memory: searches still find it, but nothing shows it unasked.

    Raises `NotFound`.
    """
    del request_id
    note = "It is buried: searches still find it, nothing shows it unasked."
    return _change_standing(app, request, caller, Standing.BURIED, note)


def unbury(app: App, request: Mark, caller: Caller, *, request_id: str = "") -> Outcome:
    """Undo `bury`: the memory can be shown unasked again.

    Raises `NotFound`.
    """
    del request_id
    return _change_standing(app, request, caller, None, "It is no longer buried.", only=Standing.BURIED)


def _change_standing(
    app: App,
    request: SetStanding | Mark,
    caller: Caller,
    standing: Standing | None,
    *notes: str,
    only: Standing | None = None,
) -> Outcome:
    """Give a memory a standing; with `only`, take that standing away and leave any other."""
    memory_id, namespace = _locate(app, request, caller)
    with app.records.writing(caller.writable(namespace), caller.user, allowed_levels(request)) as transaction:
        old = transaction.lookup.by_id(memory_id)
        if old is None or expired(old, app.clock()):
            raise NotFound(f"Memory {request.id} not found.")
        if old.standing is not standing and only in (None, old.standing):
            transaction.decisions.set_standing(old, standing)
            if standing is Standing.PINNED:
                transaction.consolidation.stop_fading(old.id)
    return Outcome(WriteStatus.UPDATED, str(memory_id), notes)


def move_memory(app: App, request: Move, caller: Caller, *, request_id: str = "") -> Outcome:
    """Move a memory with its facts to another scope or project, where it gets another id.

    It is stored there and hidden where it was, in one transaction.

    The new one has another id, which the answer names. What a caller may do in another project, their rights there
    say. Raises `NotFound`, `InvalidInput` for the place where it is, `Forbidden` where the caller may not write,
    `SecretFound` for what today's gate refuses.
    """
    there = caller if request.to_project is None else caller.in_project(request.to_project)
    memory_id, source = _locate(app, request, caller)
    target = there.namespace(request.scope)
    if target == source:
        raise InvalidInput("scope", "Invalid scope: The memory is there already")
    places = [caller.writable(source), there.writable(target)]

    def write(made: Embeddings) -> Outcome:
        levels = allowed_levels(request)
        with (
            journal_refusals(app, target, there, levels[-1]),
            app.records.importing(places, caller.user, levels) as transactions,
        ):
            here, new_home = transactions[source], transactions[target]
            if (before := new_home.outcomes.previous("move_memory", request_id)) is not None:
                return before
            old = here.lookup.by_id(memory_id)
            if old is None or expired(old, app.clock()) or old.is_hidden:
                raise NotFound(f"Memory {request.id} not found.")
            draft = _moved_draft(old, request.scope)
            if draft.key is not None and new_home.lookup.by_key(draft.key, old.sensitivity) is not None:
                raise InvalidInput("key", f"Invalid key: Another memory there has the key `{draft.key}`")
            one = prepare_draft(app, draft, None, made)
            new = new_home.memories.insert(new_entry(app, one, caller.user, old.stamp, old.review))
            for each in _facts_of(app, request, caller, old):
                new_home.facts.insert(_fact_entry(app, each, request.scope, new, caller.user))
            here.memories.hide(old.id)
            moved = (
                f"Moved to {_place_in_words(request.scope, there)}: it has the ID {new} now; memory {old.id} is hidden."
            )
            outcome = Outcome(WriteStatus.UPDATED, str(new), (moved, *((MASKED,) if one.draft != draft else ())))
            new_home.outcomes.record("move_memory", request_id, outcome)
        return outcome

    outcome = retry_with_embeddings(app, write)
    app.records.request_sync()
    return outcome


def promote(app: App, request: Promote, caller: Caller, *, request_id: str = "") -> Outcome:
    """Move a memory of a project to your personal memories, or those of the team, which every project sees.

    Works as `move_memory` does, and with its errors.
    """
    return move_memory(app, Move(**request.model_dump()), caller, request_id=request_id)


def _place_in_words(scope: Scope, there: Caller) -> str:
    """Return the name of the scope as the answer says it, such as "the team core"."""
    match scope:
        case Scope.PERSONAL:
            return "your personal memories"
        case Scope.TEAM:
            return f"the team {there.team}"
        case _:
            return f"the project {there.project}"


def _locate(app: App, request: SetStanding | Mark | Move, caller: Caller) -> tuple[int, str]:
    """Return the id of a memory and the namespace that holds it; raise `NotFound`."""
    memory_id, levels = parse_id(request.id), levels_of(request, caller)
    namespace = app.records.namespaces.of_memory(memory_id, caller.namespaces(), levels) if memory_id else None
    if memory_id is None or namespace is None:
        raise NotFound(f"Memory {request.id} not found.")
    return memory_id, namespace


def _moved_draft(old: Memory, scope: Scope) -> Draft:
    """Return the draft that stores a memory elsewhere, dated when it happened or else when it was first stored."""
    draft = draft_of(old, ttl_days=old.ttl_days)
    return draft.model_copy(update={"scope": scope, "observed_at": old.observed_at or old.created_at})


def _facts_of(app: App, request: Move, caller: Caller, old: Memory) -> list[Fact]:
    """Return all facts of a memory, those that have ended too."""
    query = FactQuery(memory_id=str(old.id), history=True, limit=_MOST_FACTS)
    view, found = unfiltered(app, request, caller), list[Fact]()
    while some := app.records.facts.find(query.model_copy(update={"offset": len(found)}), view)[0]:
        found += some
    return found


def _fact_entry(app: App, one: Fact, scope: Scope, memory_id: int, author: str) -> FactEntry:
    """Return a fact as it is written for the moved memory, with its own dates and origin."""
    kept = {name: getattr(one, name) for name in ("subject", "predicate", "object", "confidence", "valid_to")}
    fact = StoreFact(**kept, memory_id=str(memory_id), scope=scope)
    return FactEntry(
        cleared=clear(fact, app.on_secret),
        memory_id=memory_id,
        sensitivity=one.sensitivity,
        valid_from=one.valid_from,
        at=app.clock(),
        author=author,
        stamp=one.stamp,
    )

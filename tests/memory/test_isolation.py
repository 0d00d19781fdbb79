"""Isolation: whatever is written by whom, nobody ever reads, finds or deletes what is not theirs."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import product

import pytest

from callers import ADA
from recollect import App, Caller, Draft, Forget, Get, Query, forget, get_memory, recall, remember
from recollect.domain.enums import Scope
from recollect.domain.requests import Elsewhere
from recollect.domain.results import WriteStatus
from recollect.errors import NotFound

pytestmark = pytest.mark.slow

WORDS = "ledger mascot deploy kernel teapot harbour violin comet budget glacier".split()
CALLERS = [
    Caller(user=user, team=team, project=project)
    for user, team, project in product(("ada", "crew"), ("crew", "local"), ("engine", "crew/engine"))
]


def written(app: App, dice: random.Random, count: int) -> dict[int, str]:
    """Let random callers remember random sentences in random scopes; return which namespace holds which memory."""
    truth: dict[int, str] = {}
    for _ in range(count):
        caller, scope = dice.choice(CALLERS), dice.choice(list(Scope))
        content = " ".join(dice.sample(WORDS, 4))
        key = dice.choice([None, "shared", *WORDS[:2]])
        outcome = remember(app, Draft(content=content, scope=scope, key=key), caller)
        truth[int(outcome.id)] = caller.namespace(scope)
    return truth


def test_no_read_crosses_a_namespace(app: App) -> None:
    """Over many callers and scopes, every hit lies in one of the caller's own namespaces, and none of those is lost."""
    dice = random.Random(20260301)
    truth = written(app, dice, 160)
    texts = {one: content(app, one) for one in truth}
    for caller, scope in product(CALLERS, [None, *Scope]):
        seen = caller.namespaces(scope)
        for word in dice.sample(WORDS, 3):
            hits = recall(app, Query(query=word, scope=scope, limit=100, min_score=0.0), caller).hits
            assert {truth[hit.memory.id] for hit in hits} <= set(seen)
            assert {hit.memory.namespace for hit in hits} <= set(seen)
            found = {hit.memory.id for hit in hits}
            holding = {one for one, namespace in truth.items() if namespace in seen and word in texts[one]}
            assert holding <= found


def content(app: App, memory_id: int) -> str:
    """Read a memory's content as somebody who may."""
    for caller in CALLERS:
        try:
            return get_memory(app, Get(id=str(memory_id)), caller).content
        except NotFound:
            continue
    raise AssertionError(f"nobody may read {memory_id}")


def test_no_id_opens_a_foreign_memory(app: App) -> None:
    """By id, too, a caller reads and forgets only what is theirs; a foreign id looks like one that does not exist.

    Where they may read another project that holds it, that is named.
    """
    truth = written(app, random.Random(7), 40)
    alone = [one.model_copy(update={"elsewhere": Elsewhere(role=None)}) for one in CALLERS]
    for caller, (memory_id, namespace) in product(alone, truth.items()):
        if namespace in caller.namespaces():
            assert get_memory(app, Get(id=str(memory_id)), caller).namespace == namespace
        else:
            with pytest.raises(NotFound, match=f"^Memory {memory_id} not found.$"):
                get_memory(app, Get(id=str(memory_id)), caller)
            assert forget(app, Forget(id=str(memory_id)), caller).status is WriteStatus.NOT_FOUND
            assert app.records.journal.history(memory_id, caller.namespaces()) == []
    assert all(content(app, memory_id) for memory_id in truth)


def test_a_write_never_touches_another_namespace(app: App) -> None:
    """The same key and the same content elsewhere is another memory, and forgetting one leaves the others."""
    places = {caller.namespace(scope): (caller, scope) for caller, scope in product(CALLERS, Scope)}
    ids = {
        namespace: remember(app, Draft(content="the same words", key="same", scope=scope), caller).id
        for namespace, (caller, scope) in places.items()
    }
    assert len(set(ids.values())) == len(places)
    gone, *left = places
    assert forget(app, Forget(id=ids[gone]), places[gone][0]).status is WriteStatus.DELETED
    assert all(get_memory(app, Get(id=ids[one]), places[one][0]).confidence == 0.5 for one in left)


def test_a_scope_limits_forgetting(app: App) -> None:
    """With a scope, forgetting looks only there."""
    memory_id = remember(app, Draft(content="in the team", scope=Scope.TEAM), ADA).id
    assert forget(app, Forget(id=memory_id, scope=Scope.PERSONAL), ADA).status is WriteStatus.NOT_FOUND
    assert forget(app, Forget(id=memory_id, scope=Scope.TEAM), ADA).status is WriteStatus.DELETED


def test_typos_reveal_nothing_of_others(open_store: Callable[..., App]) -> None:
    """How a misspelt word is read depends on the caller's own words only."""
    app = open_store()
    remember(app, Draft(content="the secret project is called Zerberus", scope=Scope.PERSONAL), CALLERS[0])
    recalled = recall(app, Query(query="zerberuss"), Caller(user="eve", team="other", project="other"))
    assert (recalled.hits, recalled.notes) == ((), ())

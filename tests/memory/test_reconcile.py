"""Reconcile: the whole table of who wins when a draft meets what is stored."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from ranked_memories import NOW, a_memory
from recollect import Draft
from recollect.domain.enums import Choice, FactType
from recollect.domain.fields import MAX_CONTENT
from recollect.domain.origin import Authority
from recollect.engines.reconcile import Judgement
from recollect.memory.reconcile import (
    Action,
    decide,
    expired,
    follow_judgement,
    may_join,
    refresh_if_same,
    reinforced_confidence,
)

SAME, OTHER = "hash of the draft", "hash of something else"
UNNAMED = a_memory(id=1, content_hash=SAME)
NAMED = a_memory(id=2, content_hash=SAME, key="k")
CHANGED = a_memory(id=3, content_hash=OTHER, key="k")
TEXT = "We use Redis for caching."
STORED = a_memory(id=4, content=TEXT)
KEYED = a_memory(id=5, content=TEXT, key="k")


@pytest.mark.parametrize(
    ("key", "named", "same_hash", "action", "old"),
    [
        (None, None, None, Action.INSERT, None),
        ("k", None, None, Action.INSERT, None),
        ("k", CHANGED, None, Action.UPDATE, CHANGED),
        ("k", CHANGED, UNNAMED, Action.UPDATE, CHANGED),
        ("k", NAMED, NAMED, Action.REFRESH, NAMED),
        ("k", NAMED, UNNAMED, Action.REFRESH, NAMED),
        ("k", None, UNNAMED, Action.REFRESH, UNNAMED),
        (None, None, UNNAMED, Action.REFRESH, UNNAMED),
        (None, None, NAMED, Action.REFRESH, NAMED),
        (None, CHANGED, NAMED, Action.UPDATE, CHANGED),
        ("other", None, NAMED, Action.INSERT, None),
    ],
)
def test_the_named_memory_decides_first(key, named, same_hash, action, old) -> None:
    """What the draft names is that memory; else the same text is the same memory, unless it goes by another key."""
    decision = decide(Draft(content="x", key=key), SAME, named, same_hash)
    assert (decision.action, decision.old) == (action, old)


@pytest.mark.parametrize("kind", FactType)
def test_only_events_and_cases_are_always_new(kind: FactType) -> None:
    """The same text is refreshed, but an event or a case is new however often it is told, unless it has a key."""
    told = Draft(content="x", fact_type=kind)
    new = kind in (FactType.EVENT, FactType.CASE)
    assert decide(told, SAME, None, UNNAMED).action is (Action.INSERT if new else Action.REFRESH)
    assert decide(told, SAME, NAMED, UNNAMED).action is Action.REFRESH


@pytest.mark.parametrize(
    ("content", "action"),
    [("We use Redis for caching!", Action.REFRESH), ("We use Redis.", Action.INSERT), (f"{TEXT} Now.", Action.INSERT)],
)
def test_only_the_same_is_refreshed(content: str, action: Action) -> None:
    """Of the memories near a draft the first that says the same is refreshed; more or less is another memory."""
    decision = refresh_if_same(Draft(content=content), [a_memory(id=3, content="Else."), STORED, KEYED])
    assert (decision.action, decision.old) == (action, STORED if action is Action.REFRESH else None)


@pytest.mark.parametrize(
    ("choice", "which", "content", "action"),
    [
        (Choice.CREATE, 0, "We use Kafka.", Action.INSERT),
        (Choice.MERGE, 0, "We use Kafka.", Action.MERGE),
        (Choice.SKIP, 0, "We use Kafka.", Action.MERGE),
        (Choice.SKIP, 0, "We use Redis", Action.REFRESH),
        (Choice.SKIP, 0, "For caching, we use Redis!", Action.REFRESH),
        (Choice.MERGE, 0, "For caching, we use Redis!", Action.MERGE),
        (Choice.SKIP, 0, "For caching we use Redis. We use Kafka.", Action.MERGE),
        (Choice.MERGE, 1, "We use Kafka.", Action.INSERT),
        (Choice.MERGE, 2, "We use Kafka.", Action.INSERT),
        (Choice.MERGE, -1, "We use Kafka.", Action.INSERT),
        (Choice.MERGE, 0, "x" * MAX_CONTENT, Action.INSERT),
        (Choice.SUPERSEDE, 0, "We use Kafka.", Action.SUPERSEDE),
        (Choice.SUPERSEDE, 1, "We use Kafka.", Action.INSERT),
    ],
)
def test_a_choice_destroys_nothing(choice: Choice, which: int, content: str, action: Action) -> None:
    """What a model would skip although it is new is merged; never into a key's memory, nor beyond what one holds."""
    decision = follow_judgement(Draft(content=content), [STORED, KEYED], Judgement(choice, which))
    assert (decision.action, decision.old) == (action, None if action is Action.INSERT else STORED)


@pytest.mark.parametrize("choice", [Choice.MERGE, Choice.SKIP, Choice.SUPERSEDE])
def test_a_choice_raises_no_trust(choice: Choice) -> None:
    """What is trusted less than a memory becomes no part of it, for it would be as trusted, nor hides it."""
    draft = Draft(content="We use Kafka.", trust=STORED.trust - 0.1)
    assert follow_judgement(draft, [STORED], Judgement(choice)).action is Action.INSERT


@pytest.mark.parametrize(
    ("draft", "memory", "joins"),
    [
        ({}, {}, True),
        ({"ttl_days": 1}, {}, False),
        ({}, {"ttl_days": 1.0}, False),
        ({"ttl_days": 1}, {"ttl_days": 9.0}, True),
        ({}, {"position": 3}, False),
        ({}, {"fact_type": FactType.DECISION}, False),
    ],
)
def test_only_what_is_kept_alike_joins(draft: dict[str, Any], memory: dict[str, Any], joins: bool) -> None:
    """A draft joins a memory of its kind that is no turn of a talk, where both have a term or neither."""
    assert may_join(Draft(content="x", **draft), a_memory(**memory), Authority.TOLD) is joins


@hypothesis_settings(deadline=None, database=None)
@given(st.floats(0.0, 1.0))
def test_saying_it_again_takes_a_fifth_of_the_doubt(confidence: float) -> None:
    """Confidence grows by a fifth of what is missing, never falls and never passes one."""
    assert reinforced_confidence(confidence) == pytest.approx(confidence + (1 - confidence) * 0.2)
    assert confidence <= reinforced_confidence(confidence) <= 1.0


def test_a_memory_expires_at_its_time() -> None:
    """A memory is gone from the very moment of its expiry, or once it is deleted."""
    moment = timedelta(microseconds=1)
    assert not expired(a_memory(), NOW)
    assert not expired(a_memory(expires_at=NOW + moment), NOW)
    assert expired(a_memory(expires_at=NOW), NOW)
    assert expired(a_memory(deleted_at=NOW - moment), NOW)

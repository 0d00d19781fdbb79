"""Near memories: the answer of a write names what the caller may want to replace, and nothing that is not theirs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from callers import ADA
from recollect import App, Caller
from run_operations import OTHER, add, do, shown

MAST = "The mast of the ship is made of oak."
NEW = "The mast of the ship is made of pine."
FAR = "Rice is cooked for a quarter of an hour."


def near(app: App, content: str = NEW, **fields: object) -> list[str]:
    """Remember a text and return the ids that the answer names."""
    return [one.id for one in do(app, "remember", content=content, **fields).near]


def test_the_nearest_are_named_first(app: App) -> None:
    """At most three are named, the most alike first, each with its first line and a likeness of two decimals."""
    texts = [MAST, f"{MAST} It stands near the bow.", "The mast is oak.", "The ship's mast is old.", FAR]
    ids = {text: add(app, text) for text in texts}
    found = do(app, "remember", content=NEW).near
    assert len(found) == 3
    assert found[0].id == str(ids[MAST])
    assert found[0].line == MAST
    assert [one.likeness for one in found] == sorted((one.likeness for one in found), reverse=True)
    assert all(one.likeness == round(one.likeness, 2) and 0.55 <= one.likeness <= 1.0 for one in found)
    cosines = {similar.memory.id: similar.cosine for similar in do(app, "find_similar", content=NEW, threshold=-1.0)}
    assert [one.likeness for one in found] == [pytest.approx(cosines[int(one.id)], abs=0.006) for one in found]


def test_only_what_is_near_is_named(app: App) -> None:
    """From the threshold of the model's card on a memory is named, and below it none is."""
    add(app, FAR)
    one = add(app, MAST)
    found = do(app, "remember", content=NEW)
    assert [near.id for near in found.near] == [str(one)]
    do(app, "forget", id=found.id)
    strict = replace(app, embedder=_Strict(app.embedder, found.near[0].likeness + 0.01))
    assert near(strict) == []


class _Strict:
    """The real model with a card that calls fewer memories near."""

    def __init__(self, embedder: object, threshold: float) -> None:
        self._embedder = embedder
        self.card = replace(embedder.card, near=threshold)

    def __getattr__(self, name: str) -> object:
        return getattr(self._embedder, name)


@pytest.mark.parametrize("kind", ["event", "case", "decision"])
def test_every_kind_is_named_and_names(app: App, kind: str) -> None:
    """Near is near, whatever kinds of knowledge the two are."""
    one = add(app, MAST, fact_type=kind)
    two = do(app, "remember", content=NEW, fact_type="event")
    assert [near.id for near in two.near] == [str(one)]


def test_a_write_does_not_name_itself(app: App) -> None:
    """An update by key, by id or by the same content names others only."""
    one, other = add(app, MAST, key="mast"), add(app, f"{MAST} It is old.")
    assert near(app, NEW, key="mast") == [str(other)]
    assert near(app, NEW) == [str(other)]
    assert near(app, f"{NEW} Indeed.", id=str(one)) == [str(other)]


def test_what_is_out_of_sight_is_not_named(app: App) -> None:
    """What is forgotten, replaced or of a term that is over is not named."""
    ids = [add(app, f"{MAST} It is old."), add(app, f"{MAST} It is new.")]
    do(app, "memory_forget", id=str(ids[0]))
    assert near(app, NEW, supersedes=str(ids[1])) == []


@pytest.mark.parametrize("caller", [OTHER, Caller(user="ada", team="crew", project="hull")])
def test_nothing_of_another_namespace_is_named(app: App, caller: Caller) -> None:
    """Only memories of the very namespace that is written to are named, not even the caller's own elsewhere."""
    add(app, MAST, caller)
    add(app, MAST, scope="personal")
    assert near(app) == []
    assert shown(app, add(app, f"{NEW} Yes."), ADA).superseded_by is None


@pytest.mark.parametrize("level", ["private", "secret"])
def test_nothing_above_public_is_named(app: App, level: str) -> None:
    """What a plain read does not show is not named, to a public draft or to one of that very level."""
    add(app, MAST, sensitivity=level)
    assert near(app) == []
    assert near(app, f"{NEW} Yes.", sensitivity=level) == []


def test_a_line_is_harmless(app: App) -> None:
    """The named line is one line, without control or invisible characters, and opens no frame of a conversation."""
    add(app, f"<system>{MAST}\u200b\x1b[31m\nMore of it.")
    (found,) = do(app, "remember", content=NEW).near
    assert found.line.isprintable()
    assert "<system>" not in found.line
    assert "More" not in found.line


def test_long_texts_are_near_by_any_of_their_first_parts(app: App) -> None:
    """What a later part of a long text says counts too."""
    one = add(app, MAST)
    filling = "The harbour master counts the crates on the quay every morning before breakfast. " * 12
    assert near(app, filling) == []
    assert str(one) in near(app, f"{filling}\n\n{f'{NEW} ' * 9}")


def test_a_turn_of_a_talk_names_nothing(app: App) -> None:
    """Turns are kept as they were said, by whoever writes the whole talk down: nobody reads the answers."""
    add(app, MAST)
    assert near(app, NEW, session_id="s", position=2) == []

"""Similar: what says nearly the same as a text or as a memory, nearest first, and only what the caller sees."""

from __future__ import annotations

import pytest

from recollect import App
from recollect.errors import InvalidInput, NotFound
from run_operations import OTHER, add, do

LIMITS = ("The upload limit is 5 MB.", "The upload limit is 6 MB.")


def similar(app: App, **fields: object) -> list[int]:
    """Return the ids of what resembles something."""
    return [one.memory.id for one in do(app, "find_similar", **fields)]


def test_nearest_first(app: App) -> None:
    """A text finds those that say nearly the same with their cosine; what is about something else is not among them."""
    ids = [add(app, text) for text in LIMITS]
    other = add(app, "A heron stands on the pier.")
    found = do(app, "find_similar", content=LIMITS[1])
    assert [one.memory.id for one in found] == ids[::-1]
    assert found[0].cosine == pytest.approx(1.0, abs=1e-3)
    assert found[0].cosine >= found[1].cosine >= app.embedder.card.similar
    assert other in similar(app, content=LIMITS[1], threshold=-1.0)


def test_a_memory_does_not_resemble_itself(app: App) -> None:
    """By id, all but that memory are found, as many as were asked for."""
    ids = [add(app, text) for text in LIMITS]
    assert similar(app, id=str(ids[0])) == [ids[1]]
    assert similar(app, id=str(ids[0]), threshold=-1.0, limit=1) == [ids[1]]
    assert similar(app, id=str(ids[0]), threshold=1.0) == []


def test_filters_and_levels_hold(app: App) -> None:
    """Filters narrow what is found; private ones are let in by name only; nothing is another's."""
    private = add(app, LIMITS[0], sensitivity="private")
    team = add(app, LIMITS[0], scope="team", category="ops")
    foreign = add(app, LIMITS[0], OTHER)
    assert similar(app, content=LIMITS[1]) == [team]
    assert set(similar(app, content=LIMITS[1], allow_private=True)) == {private, team}
    assert similar(app, content=LIMITS[1], category="dev") == []
    for hidden in (private, foreign):
        with pytest.raises(NotFound):
            similar(app, id=str(hidden))
    assert similar(app, id=str(private), allow_private=True) == [team]


@pytest.mark.parametrize("fields", [{}, {"id": "1", "content": "x"}, {"id": "", "content": None}])
def test_one_of_both_is_needed(app: App, fields: dict[str, object]) -> None:
    """Either a text or an id is asked about, never both."""
    with pytest.raises(InvalidInput, match=r"either `content` or `id`|together with `content`"):
        do(app, "find_similar", **fields)


@pytest.mark.parametrize("odd", ["abc", "0", "-3", "99999999999"])
def test_an_id_that_is_none_is_not_found(app: App, odd: str) -> None:
    """What cannot be an id is nobody's."""
    with pytest.raises(NotFound):
        do(app, "find_similar", id=odd)

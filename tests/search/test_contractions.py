"""Contractions: `don't` is found however its apostrophe is typed, and what it cuts off weighs nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from callers import ADA
from recollect import App, Draft, Query, recall, remember
from recollect.search.parse import parse
from stores import open_app

NOTES = (
    "We don't deploy on Fridays",
    "We won’t use Kafka for jobs",
    "The cat isn't fed on Sundays",
    "Can’t reproduce the crash on Linux",
    "L'équipe d’Anna possède la caisse",
    "The build server is in Oslo",
    "Don Quijote is the name of the printer",
    "It's the user's token that expires",
)


@pytest.fixture(params=["settings", "deployed"])
def noted(request: pytest.FixtureRequest) -> Iterator[App]:
    """Return a store on each kind of database with a few notes."""
    with open_app(request.getfixturevalue(request.param), background=False) as app:
        for content in NOTES:
            remember(app, Draft(content=content), ADA)
        yield app


@pytest.mark.parametrize(
    ("query", "note"),
    [
        ("don't", 0),
        ("don’t", 0),
        ("DON'T", 0),
        ("won't", 1),
        ("won’t", 1),
        ("isn't", 2),
        ("isn‘t", 2),
        ("can't", 3),
        ("l'équipe", 4),
        ("user’s", 7),
    ],
)
def test_a_contraction_is_found(noted: App, query: str, note: int) -> None:
    """Whichever apostrophe the query and the text have, what holds the word is a likely hit."""
    matches = {hit.memory.content: hit.match for hit in recall(noted, Query(query=query), ADA).hits}
    assert matches[NOTES[note]] >= 0.2
    assert NOTES[5] not in matches


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("don't", ("don",)),
        ("what don’t we do", ("don",)),
        ("it’s theirs, they'll and we've", ("it", "theirs", "they", "and", "we")),
        ("I'd", ("i",)),
        ("the user's", ("user",)),
        ("l’avion", ("avion",)),
        ("qu'est-ce que l'avion", ("est", "ce", "que", "avion")),
        ("what does Don eat", ("don", "eat")),
    ],
)
def test_what_an_apostrophe_cuts_off_is_no_query(query: str, words: tuple[str, ...]) -> None:
    """Endings, elisions and negations are not what was asked for; a name that looks like the half of one is."""
    assert set(parse(query).words) - {"s", "l", "qu"} == set(words)
    assert "t" not in parse(query).words


def test_a_query_of_nothing_but_negations_keeps_them() -> None:
    """Where nothing else was asked, the negation is the query, also as the text has it."""
    asked = parse("don’t")
    assert asked.words == ("don",)
    assert [one.text for one in asked.compounds] == ["don’t"]
    assert parse("don't deploy").compounds == ()

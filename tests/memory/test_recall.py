"""Recall: found by meaning, by name and by typo, explained part by part, and honest about finding nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from callers import ADA
from recollect import App, Draft, Get, Query, Recalled, Settings, get_memory, recall, remember
from recollect.domain.enums import Profile, Scope
from recollect.domain.results import NOTHING
from recollect.errors import InvalidInput
from recollect.search.scores import PROFILES, grade
from stores import open_app

if TYPE_CHECKING:
    from conftest import Clock

FACTS = {
    "strict": "We use TypeScript strict mode with noImplicitAny",
    "deploys": "Production deploys go out on Tuesday mornings, never before a weekend",
    "tests": "Integration tests run against a disposable PostgreSQL in Kubernetes",
    "coffee": "Grace drinks her espresso without sugar",
    "parser": "parse_config_file in src/loader/config.py swallows malformed YAML",
    "rate": "The public API allows 600 requests per minute and client",
    "backup": "Every night the ledger is copied to a second data centre",
    "logo": "The brand colour of the website is teal",
}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """Return a store that all tests here only read."""
    home = tmp_path_factory.mktemp("library")
    settings = Settings(home=home, user="ada", team="crew", project="engine")
    with open_app(settings, clock=lambda: datetime(2026, 3, 1, tzinfo=UTC)) as app:
        for key, content in FACTS.items():
            remember(app, Draft(content=content, key=key), ADA)
        yield app


def keys(recalled: Recalled) -> list[str | None]:
    """Return the keys of the hits, best first."""
    return [hit.memory.key for hit in recalled.hits]


@pytest.mark.parametrize(
    ("query", "key"),
    [
        ("when do we ship releases to customers?", "deploys"),
        ("how does she like her caffeine?", "coffee"),
        ("throttling of callers", "rate"),
        ("which hue does our home page have?", "logo"),
    ],
)
def test_found_by_meaning(library: App, query: str, key: str) -> None:
    """A question that shares no telling word with the memory finds it first."""
    asked = set(query.lower().strip("?").split())
    assert not {word for word in asked & set(FACTS[key].lower().split()) if len(word) > 3}
    assert keys(recall(library, Query(query=query), ADA))[0] == key


@pytest.mark.parametrize(
    ("query", "key"),
    [
        ("noImplicitAny", "strict"),
        ("NOIMPLICITANY", "strict"),
        ("parse_config_file", "parser"),
        ("src/loader/config.py", "parser"),
        ("config.py", "parser"),
        ("600", "rate"),
    ],
)
def test_found_by_identifier(library: App, query: str, key: str) -> None:
    """An exact name, path or number finds its memory first, whatever its case."""
    assert keys(recall(library, Query(query=query), ADA))[0] == key


@pytest.mark.parametrize(
    ("query", "key"),
    [
        ("kuberntes", "tests"),
        ("kubernetis cluster", "tests"),
        ("postgersql", "tests"),
        ("expresso", "coffee"),
        ("typescirpt", "strict"),
    ],
)
def test_found_by_typo(library: App, query: str, key: str) -> None:
    """A misspelt word finds its memory first, and the answer says how the word was read."""
    recalled = recall(library, Query(query=query), ADA)
    assert keys(recalled)[0] == key
    assert any(
        note.startswith("Also searched for ") and f'spelling of "{query.split()[0]}"' in note for note in recalled.notes
    )


@pytest.mark.parametrize(("query", "key"), [("noImplicit", "strict"), ("parse_con", "parser"), ("ostgres", "tests")])
def test_found_by_a_part_of_a_name(library: App, query: str, key: str) -> None:
    """A part of an identifier finds its memory first."""
    assert keys(recall(library, Query(query=query), ADA))[0] == key


def test_a_word_inside_another_does_not_drown_meaning(app: App) -> None:
    """That `ship` stands inside `relationship` makes no memory the answer to when we ship."""
    remember(app, Draft(content="a relationship about the heliport", key="inside"), ADA)
    remember(app, Draft(content=FACTS["deploys"], key="deploys"), ADA)
    assert keys(recall(app, Query(query="when do we ship releases to customers?"), ADA))[0] == "deploys"


@pytest.mark.parametrize("query", ["banana bread recipe", "who won the football world cup", "xqzvw"])
def test_nothing_relevant_is_said(library: App, query: str) -> None:
    """Where nothing is relevant, nothing is returned, and the answer says so."""
    recalled = recall(library, Query(query=query), ADA)
    assert (recalled.hits, recalled.message) == ((), NOTHING)
    assert NOTHING == "Nothing relevant found."


def test_an_empty_store_answers(app: App) -> None:
    """A store without any memory finds nothing, and says so."""
    assert recall(app, Query(query="anything"), ADA).message == NOTHING


@pytest.mark.parametrize("profile", Profile)
def test_the_explanation_sums_to_the_score(library: App, profile: Profile) -> None:
    """In every profile a hit's parts sum to its score, the match part weighs the graded match, best comes first."""
    hits = recall(library, Query(query="deploys of the website", profile=profile), ADA).hits
    assert hits
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    for hit in hits:
        assert hit.score == pytest.approx(sum(hit.parts.values()))
        graded = grade(hit.match, library.embedder.card.floor, PROFILES[profile].match)
        assert hit.parts["match"] == pytest.approx(PROFILES[profile].match * graded)
        assert 0.0 <= hit.match <= 1.0


def test_the_message_counts(library: App) -> None:
    """The message says how many were found."""
    recalled = recall(library, Query(query="noImplicitAny", limit=1), ADA)
    assert recalled.message == "1 memory found."
    many = recall(library, Query(query="deploys, tests and backup of the ledger", min_score=0.0), ADA)
    assert many.message == f"{len(many.hits)} memories found."


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_the_limit_holds(library: App, limit: int) -> None:
    """There are at most `limit` hits, the best of those that a wider limit gives."""
    wide = recall(library, Query(query="deploys, tests and backup of the ledger", min_score=0.0, limit=100), ADA)
    narrow = recall(library, Query(query="deploys, tests and backup of the ledger", min_score=0.0, limit=limit), ADA)
    assert keys(narrow) == keys(wide)[:limit]


@pytest.mark.parametrize("limit", [0, -1, 101, 2.5, "many"])
def test_limits_out_of_range_are_refused(limit: object) -> None:
    """A limit outside of 1–100 is an error that says what is allowed."""
    with pytest.raises(InvalidInput, match="Invalid limit: Must be a whole number from 1 to 100"):
        Query(query="x", limit=limit)


def test_min_score_cuts(library: App) -> None:
    """Hits below the wanted score are left out; those at or above it stay, with the same scores."""
    every = recall(library, Query(query="deploys of the ledger", min_score=0.0), ADA).hits
    middle = every[len(every) // 2].score
    kept = recall(library, Query(query="deploys of the ledger", min_score=middle), ADA).hits
    assert [(hit.memory.id, hit.score) for hit in kept] == [
        (hit.memory.id, hit.score) for hit in every if hit.score >= middle
    ]
    assert recall(library, Query(query="deploys of the ledger", min_score=1.0), ADA).hits == ()


def test_a_min_score_of_nothing_leaves_nothing_out(app: App) -> None:
    """Whoever sets it to 0 gets the best there is, however little that says; others get silence."""
    one = remember(
        app, Draft(content="The harbour pilot was given a parrot, two ropes and a lantern by the mayor"), ADA
    )
    two = remember(app, Draft(content="Production deploys go out on Tuesday mornings", importance=1.0, trust=1.0), ADA)
    asked = "which mayor signed the treaty that ended the long war over the salt mines of the northern provinces"
    assert recall(app, Query(query=asked), ADA).hits == ()
    hits = recall(app, Query(query=asked, min_score=0), ADA).hits
    assert [str(hit.memory.id) for hit in hits] == [one.id, two.id]
    assert all(hit.score < 0.35 and hit.score == pytest.approx(sum(hit.parts.values())) for hit in hits)


def test_the_same_question_has_the_same_answer(library: App) -> None:
    """Asking twice gives the same memories in the same order with the same scores."""
    query = Query(query="deploys of the website", min_score=0.0)
    first, second = recall(library, query, ADA), recall(library, query, ADA)
    assert [(hit.memory.id, hit.score) for hit in first.hits] == [(hit.memory.id, hit.score) for hit in second.hits]


@pytest.mark.parametrize("query", ['"', "NOT", "a OR", "NEAR(x, y)", "content:x", "*", "^a", "%_\\", "'; --", "((("])
def test_syntax_is_only_words(library: App, query: str) -> None:
    """Whatever looks like a query language is taken as text, never as syntax, and never fails."""
    assert recall(library, Query(query=query), ADA).message


def test_recency_halves_in_three_weeks(app: App, clock: Clock) -> None:
    """A memory's recency part halves with each 21 days since it was written."""
    remember(app, Draft(content="The mascot is a quokka"), ADA)
    parts = []
    for _ in range(3):
        parts.append(recall(app, Query(query="quokka mascot"), ADA).hits[0].parts["recency"])
        clock.pass_days(21)
    assert parts == pytest.approx([0.2, 0.1, 0.05])


def test_the_newer_of_two_equals_comes_first(app: App, clock: Clock) -> None:
    """Of two memories that match alike the newer one is first."""
    old = remember(app, Draft(content="The mascot is a quokka", key="old"), ADA).id
    clock.pass_days(60)
    new = remember(app, Draft(content="The mascot is a quokka", key="new"), ADA).id
    assert [str(hit.memory.id) for hit in recall(app, Query(query="mascot"), ADA).hits] == [new, old]


def test_importance_and_trust_count(app: App) -> None:
    """Of two memories that match alike the more important, or more trusted, one is first."""
    for name in ("importance", "trust"):
        remember(app, Draft(content=f"{name} of the mascot", key=f"low {name}", **{name: 0.1}), ADA)
        remember(app, Draft(content=f"{name} of the mascot", key=f"high {name}", **{name: 0.9}), ADA)
        assert keys(recall(app, Query(query=f"{name} of the mascot"), ADA))[0] == f"high {name}"


def test_scope_narrows(app: App) -> None:
    """Without a scope all three of the caller's namespaces are searched, with one only that."""
    for scope in Scope:
        remember(app, Draft(content=f"The {scope} mascot is a quokka", key=scope, scope=scope), ADA)
    assert set(keys(recall(app, Query(query="quokka mascot"), ADA))) == {"personal", "project", "team"}
    for scope in Scope:
        assert keys(recall(app, Query(query="quokka mascot", scope=scope), ADA)) == [scope]


def test_uses_are_counted(settings: Settings, clock: Clock) -> None:
    """Being recalled and being read are counted apart, with the time of the last use; the journal has no part in it."""
    with open_app(settings, background=False, clock=clock) as app:
        memory_id = remember(app, Draft(content="The mascot is a quokka"), ADA).id
        assert get_memory(app, Get(id=memory_id), ADA).recalled_count == 0
        clock.pass_days(1)
        for _ in range(3):
            recall(app, Query(query="quokka"), ADA)
        memory = get_memory(app, Get(id=memory_id), ADA)
        assert (memory.recalled_count, memory.accessed_count) == (3, 1)
        assert memory.last_accessed_at == clock.now
        assert len(app.records.journal.history(memory.id, ADA.namespaces())) == 1


def test_habit_prefers_what_is_used(settings: Settings, clock: Clock) -> None:
    """In the `habit` profile a memory gains by being used, in the others it does not."""
    with open_app(settings, background=False, clock=clock) as app:
        remember(app, Draft(content="The mascot is a quokka"), ADA)
        query = Query(query="quokka", profile=Profile.HABIT)
        first, second = recall(app, query, ADA).hits[0], recall(app, query, ADA).hits[0]
        assert second.parts["frequency"] > first.parts["frequency"] == 0.0
        assert "frequency" not in recall(app, Query(query="quokka"), ADA).hits[0].parts


def test_a_changed_memory_is_found_by_what_it_says_now(open_store: Callable[..., App]) -> None:
    """After an update the old words find nothing, the new ones do."""
    app = open_store()
    remember(app, Draft(content="The launch party needs a trombone", key="mascot"), ADA)
    remember(app, Draft(content="Our emblem shows a wombat", key="mascot"), ADA)
    assert recall(app, Query(query="trombone"), ADA).hits == ()
    assert keys(recall(app, Query(query="wombat"), ADA)) == ["mascot"]

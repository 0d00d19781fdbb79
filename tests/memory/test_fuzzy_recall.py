"""Fuzzy recall: damaged words, and names cut short or written another way, are found; clean queries lose nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from callers import ADA
from recollect import App, Draft, Query, Recalled, Settings, recall, remember
from recollect.domain.enums import Profile
from recollect.search.candidates import SearchTerms, search_terms
from recollect.search.parse import parse
from recollect.search.visibility import view_of
from recollect.text.short_forms import other_forms
from stores import open_app

FACTS = {
    "postgres": "We keep PostgreSQL behind pgbouncer for the database pool",
    "strict": "The compiler forbids noImplicitAny violations",
    "parser": "parse_config_file in src/loader/settings_reader.py swallows malformed YAML",
    "dashboard": "The real-time dashboard must never poll",
    "digest": "Send the e-mail digest on Fridays",
    "ticket": "PROJ-123 leaks a handle, fixed in release 4.17.2 of the importer",
    "other ticket": "PROJ-124 doubles the total, fixed in release 4.18.0 of the exporter",
    "kubernetes": "Integration tests run on a disposable kubernetes cluster",
    "thermostat": "Grace wants the thermostat in the office at nineteen degrees",
    "counselling": "Caroline is studying counselling and adoption law",
    "backup": "Every night the ledger is copied to a second data centre",
    "rollback": "A failed migration triggers an automatic rollback of the schema",
    "fork": "The upstream fork of our renderer was archived in 2024",
    "casual": "Fridays are casual: nobody wears a tie",
    "commit": "The regression came with commit 9f3c2ab1d4e5f607",
}
CLEAN = (
    "who is studying law?",
    "how warm does Grace want the office?",
    "PostgreSQL database pool",
    "real-time dashboard",
    "what happens when a migration fails?",
    "which release fixed the leaks of a handle?",
    "disposable kubernetes cluster",
    "nobody wears a tie on Fridays",
    "noImplicitAny violations",
    "src/loader/settings_reader.py",
)
UNKNOWN = (
    "what is the occupation of Caroline?",
    "which form of counselling does Caroline study?",
    "what kind of thermostat is it?",
    "the causal reason of the failed migration",
    "how do we pack the ledger at night?",
    "a fort of our renderer",
)
DAMAGED = [
    ("kubernetes", "kubernetes", ["kubrnetes", "kuberrnetes", "kubernates", "kuebrnetes", "kuberneets", "ukbernetes"]),
    ("kubernetes", "kubernetes", ["ubernetes", "lubernetes", "kubernetess", "kubernete", "kubrnetse", "kub ernetes"]),
    ("postgresql", "postgres", ["postgers", "psotgres", "opstgres", "post-gres", "ostgres", "postgre", "postgressql"]),
    ("thermostat", "thermostat", ["termostat", "thermosatt", "htermostat", "thermo stat", "thermo-stat", "themrostta"]),
    ("counselling", "counselling", ["counseling", "cuonselling", "conselling", "councelling", "counsellingg"]),
    ("rollback", "rollback", ["rolback", "roll back", "roll-back", "rollbcak", "orllback"]),
    ("real-time", "dashboard", ["realtime", "real_time", "RealTime", "real time"]),
    ("e-mail", "digest", ["email", "e_mail", "e mail", "eMail"]),
    ("database pool", "postgres", ["databasepool", "databasePool", "data base pool", "database-pool"]),
]


class Blind:
    """The text port of an app without other spellings: nothing resembles anything."""

    def __init__(self, text: Any) -> None:
        self._text = text

    def __getattr__(self, name: str) -> Any:
        return getattr(self._text, name)

    def similar(self, *_: object) -> list[Any]:
        return []


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """Return a store that all tests here only read."""
    home = tmp_path_factory.mktemp("fuzzy")
    settings = Settings(home=home, user="ada", team="crew", project="engine", daemon=False)
    with open_app(settings, clock=lambda: datetime(2026, 3, 1, tzinfo=UTC)) as app:
        for key, content in FACTS.items():
            remember(app, Draft(content=content, key=key), ADA)
        yield app


def asked(app: App, query: str) -> Recalled:
    """Recall by match alone, without a floor for the score."""
    return recall(app, Query(query=query, profile=Profile.RELEVANCE, min_score=0.0), ADA)


def first(app: App, query: str) -> str | None:
    """Return the key of the best memory, if any is relevant."""
    hits = asked(app, query).hits
    return hits[0].memory.key if hits else None


def spellings(app: App, query: str) -> dict[str, tuple[str, ...]]:
    """Return the guessed spellings of each word of a query; what it is short for is not guessed."""
    found, known = terms_of(app, query).spellings, other_forms(query)
    return {word: tuple(one.text for one in some) for word, some in found.items() if word not in known}


def ranking(app: App, query: str) -> list[tuple[str | None, float]]:
    """Return the keys and matches of what is recalled, best first."""
    return [(hit.memory.key, hit.match) for hit in asked(app, query).hits]


def terms_of(app: App, query: str) -> SearchTerms:
    """Return what the text index is asked for a query."""
    return search_terms(app, parse(query), view_of(app, Query(query=query), ADA))


@pytest.mark.parametrize(
    ("key", "typed"), [(key, typed) for _, key, every in DAMAGED for typed in every], ids=lambda part: str(part)
)
def test_a_damaged_word_finds_its_memory(library: App, key: str, typed: str) -> None:
    """Misspelt, joined, split and hyphenated words find their memory first, alone and among other words."""
    assert first(library, typed) == key
    assert first(library, f"what did we say about {typed}?") == key


@pytest.mark.parametrize(
    "typed",
    [
        *["noImplicitAny", "no_implicit_any", "no-implicit-any", "NoImplicitAny", "noimplicitany", "NO_IMPLICIT_ANY"],
        *["noImplictAny", "noImplicit", "mplicitAn", "ImplicitAny", "noimplicit"],
    ],
)
def test_a_camel_case_name_is_found_however_it_is_written(library: App, typed: str) -> None:
    """A camelCase name is found in every other style, misspelt and in part."""
    assert first(library, typed) == "strict"
    assert first(library, f"where do we speak of {typed}?") == "strict"


@pytest.mark.parametrize(
    "typed",
    [
        *["parse_config_file", "parseConfigFile", "parse-config-file", "parse config file", "parseconfigfile"],
        *["ParseConfigFile", "parse_confg_file", "parse_conf", "config_file", "rse_config_fi", "settings_reader.py"],
        *["settings_reader", "settingsReader", "loader/settings_reader", "src\\loader\\settings_reader.py"],
    ],
)
def test_a_snake_case_name_or_path_is_found_however_it_is_written(library: App, typed: str) -> None:
    """A snake_case name and a path are found in every other style, misspelt and in part."""
    assert first(library, typed) == "parser"
    assert first(library, f"where do we speak of {typed}?") == "parser"


@pytest.mark.parametrize(
    ("typed", "key"),
    [
        ("PROJ-123", "ticket"),
        ("proj 123", "ticket"),
        ("proj123", "ticket"),
        ("PROJ_124", "other ticket"),
        ("proj-124", "other ticket"),
        ("4.17", "ticket"),
        ("release 4.18", "other ticket"),
        ("9f3c2ab", "commit"),
    ],
)
def test_a_number_is_found_as_it_is(library: App, typed: str, key: str) -> None:
    """A ticket in another style, the beginning of a version and a shortened hash find their memory and no neighbour."""
    assert first(library, typed) == key


@pytest.mark.parametrize("typed", ["2023", "PROJ-125", "proj125", "proj_122", "4.19", "v4.17.3", "9f3c2ac", "af3c2ab1"])
def test_numbers_are_never_guessed(library: App, typed: str) -> None:
    """No year, ticket, version or hash is read as another."""
    assert spellings(library, typed) == {}
    assert not any(note.startswith("Also searched for") for note in asked(library, typed).notes)


@pytest.mark.parametrize(
    ("typed", "note"),
    [
        ("kubrnetes", '"kubernetes" (spelling of "kubrnetes")'),
        ("databasepool", '"database pool" (spelling of "databasepool")'),
        ("the thermosat in the ofice", '"thermostat" (spelling of "thermosat"), "office" (spelling of "ofice")'),
    ],
)
def test_the_answer_says_how_a_word_was_read(library: App, typed: str, note: str) -> None:
    """Whoever misspelt a word is told how it was read."""
    assert f"Also searched for {note}." in asked(library, typed).notes


@pytest.mark.parametrize("query", CLEAN)
def test_clean_queries_are_read_as_they_are(library: App, query: str) -> None:
    """Where every word is stored nothing is guessed, and the answer is the one without any guessing."""
    assert spellings(library, query) == {}
    blind = replace(library, text=Blind(library.text))
    assert ranking(library, query) == ranking(blind, query)


@pytest.mark.parametrize("query", UNKNOWN)
def test_words_of_the_language_are_not_corrected(library: App, query: str) -> None:
    """A word that exists, though nobody stored it, is not read as one that resembles it: the ranking stays."""
    assert spellings(library, query) == {}
    blind = replace(library, text=Blind(library.text))
    assert ranking(library, query) == ranking(blind, query)


def test_a_lone_word_of_the_language_is_read_with_doubt(library: App) -> None:
    """Where nothing of a query is stored, a word that exists is read as what resembles it, far below a true hit."""
    read = {one.text: one.weight for one in terms_of(library, "causal").spellings["causal"]}
    assert 0.0 < read["casual"] < 0.5
    assert not any(note.startswith("Also searched for") for note in asked(library, "causal").notes)
    true, doubtful = (asked(library, query).hits for query in ("casual", "causal"))
    assert true[0].memory.key == "casual"
    assert not doubtful or doubtful[0].match < true[0].match


def test_a_guess_weighs_less_than_a_hit(library: App) -> None:
    """Misspelt, a word finds its memory with a lower match than rightly spelt, and never with the weight of a word."""
    right, wrong = asked(library, "thermostat").hits[0], asked(library, "termostat").hits[0]
    assert wrong.memory.key == right.memory.key == "thermostat"
    assert wrong.match < right.match
    assert 0.0 < wrong.signals.fuzzy < 1.0
    assert all(
        term.weight < 1.0 for found in terms_of(library, "termostat realtime").spellings.values() for term in found
    )


def test_words_stored_as_they_are_written_are_not_joined(app: App) -> None:
    """Two words are read as one only where nobody stored them side by side."""
    remember(app, Draft(content="The data base of the study is small", key="apart"), ADA)
    remember(app, Draft(content="The database runs on one machine", key="joined"), ADA)
    assert spellings(app, "data base") == {}
    assert spellings(app, "base data") == {}
    remember(app, Draft(content="A work shop opened", key="apart"), ADA)
    assert spellings(app, "data base") == {"data": ("database",), "base": ("database",)}
    assert first(app, "data base") == "joined"

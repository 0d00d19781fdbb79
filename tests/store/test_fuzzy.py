"""Similar words: what was meant is found from the index however it is damaged, and numbers are never guessed at."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import OSA
from sqlalchemy import Connection, event, text

from recollect.domain.search import View
from recollect.store.sql.database import Database, open_file
from recollect.store.sql.migrations import migrate
from recollect.store.text.fts5 import SqliteText
from recollect.store.text.index import Term
from recollect.store.text.spelling import likelihood, one_edit_away

WORDS = """postgres kubernetes database occupation mailbox thermostat reserves superior assistants adoption guitar
counselling marshmallow violin sculpture quarterly invoice rollback latency throughput firewall certificate
gateway telescope umbrella whiskers xylophone yesterday zeppelin breakfast carpenter dinosaur elephant festival
harmony insurance jewellery knowledge landscape mountain november orchestra passenger quotation raspberry""".split()
LETTERS = "abcdefghijklmnopqrstuvwxyz"
OURS = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@dataclass
class Lexicon:
    """A vocabulary by hand: what is similar to a word among some words."""

    database: Database

    def similar(self, typed: str, stored: str, limit: int = 8) -> list[Term]:
        """Return what `typed` may stand for, likeliest first, where the words of `stored` are all there is."""
        with self.database.writing() as connection:
            name = {"name": f"user:{hashlib.sha256(stored.encode()).hexdigest()}"}
            connection.execute(text("INSERT INTO namespace (name) VALUES (:name) ON CONFLICT DO NOTHING"), name)
            words = [name | {"word": word} for word in stored.split()]
            connection.execute(
                text(
                    """INSERT INTO word (namespace_id, sensitivity, text, uses)
                    SELECT id, 'public', :word, 1 FROM namespace WHERE name = :name
                    ON CONFLICT DO NOTHING"""
                ),
                words,
            )
        return SqliteText(self.database).similar(typed, View(namespaces=(name["name"],), now=datetime.now(UTC)), limit)

    def guessed(self, typed: str, stored: str, limit: int = 8) -> list[str]:
        """Return the texts of what is similar."""
        return [term.text for term in self.similar(typed, stored, limit)]


@pytest.fixture(scope="module")
def lexicon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lexicon]:
    """Return one database for all vocabularies, each in a namespace of its own."""
    database = open_file(tmp_path_factory.mktemp("lexicon") / "memory.db")
    migrate(database)
    yield Lexicon(database)
    database.close()


@st.composite
def damaged(draw: st.DrawFn) -> tuple[str, str]:
    """Draw a word, and the same word with one letter missing, extra, wrong or swapped."""
    word = draw(st.sampled_from(WORDS))
    at, letter = draw(st.integers(0, len(word) - 2)), draw(st.sampled_from(LETTERS))
    typed = draw(
        st.sampled_from(
            [
                word[:at] + word[at + 1 :],
                word[:at] + letter + word[at:],
                word[:at] + letter + word[at + 1 :],
                word[:at] + word[at + 1] + word[at] + word[at + 2 :],
                word + letter,
                word[:-1],
            ]
        )
    )
    return word, typed


@OURS
@given(pair=damaged())
def test_one_wrong_letter_is_always_undone(lexicon: Lexicon, pair: tuple[str, str]) -> None:
    """Any stored word with one letter missing, extra, wrong or swapped is among the guesses, wherever the letter is."""
    word, typed = pair
    assume(typed not in WORDS)
    assert word in lexicon.guessed(typed, " ".join(WORDS), len(WORDS))


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("opstgres", "postgres"),
        ("psotgres", "postgres"),
        ("postgersq", "postgres"),
        ("aptabase", "database"),
        ("ocupatoin", "occupation"),
        ("sunpbrior", "superior"),
        ("eservs", "reserves"),
        ("kthermwostat", "thermostat"),
        ("asbsiptants", "assistants"),
        ("uninstl", "uninstall"),
        ("базза", "база"),
        ("контеинер", "контейнер"),
        ("αλφαβητω", "αλφαβητο"),
        ("noimplictany", "noimplicitany"),
        ("no_implict_any", "no_implicit_any"),
        ("kubernets12", "kubernetes12"),
    ],
)
def test_what_is_meant_comes_first(lexicon: Lexicon, typed: str, meant: str) -> None:
    """One wrong letter in a short word, two in a long one, at either end and in any alphabet, are undone."""
    more = "uninstall база контейнер αλφαβητο noimplicitany no_implicit_any kubernetes12"
    assert lexicon.guessed(typed, " ".join([*WORDS, more]))[0] == meant


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("getuser", "getusername"),
        ("username", "getusername"),
        ("etusernam", "getusername"),
        ("postg", "postgresql"),
        ("opstgres", "postgresql"),
        ("postgers", "postgresql"),
        ("9f3c2ab", "9f3c2ab1d4e5f607"),
    ],
)
def test_a_part_is_understood(lexicon: Lexicon, typed: str, meant: str) -> None:
    """A beginning, an end and a middle of a name, a misspelt beginning and a shortened hash lead to the whole."""
    assert meant in lexicon.guessed(typed, "getusername postgresql 9f3c2ab1d4e5f607 implicitly")


@pytest.mark.parametrize(
    "typed",
    [
        *["2023", "20244", "1.3", "13", "4712", "47111", "711", "proj124", "proj1235", "proj12", "v1235"],
        *["9f3c2ab2", "af3c2ab1", "9f3c2ba1", "9f32ab1", "x7k9q2", "python310", "python3111", "sha257sum"],
    ],
)
def test_numbers_and_identifiers_are_never_guessed(lexicon: Lexicon, typed: str) -> None:
    """No other year, version, ticket or hash is offered for one that is not stored, however near it is."""
    stored = "since 2024 12 of build 4711 fixes proj 1234 proj1234 v1234 in 9f3c2ab1d x7k9q1 python311 and sha256sum"
    assert lexicon.guessed(typed, stored) == []


@pytest.mark.parametrize("typed", ["", "a", "ma", "mas", "rop", "___", "____", "1234"])
def test_short_words_are_never_guessed(lexicon: Lexicon, typed: str) -> None:
    """Up to three letters resemble too much, and what holds no letter is no word."""
    assert lexicon.guessed(typed, "mast ropes mash rope 12345 _____") == []


def test_a_guess_is_never_certain(lexicon: Lexicon) -> None:
    """Every guess weighs less than a word that is stored, and less the more it differs."""
    weights = {term.text: term.weight for term in lexicon.similar("causal", "from casual casualty causally")}
    assert 0.0 < weights["casual"] < 1.0
    assert all(0.0 < likelihood("form", other) < 1.0 for other in ("from", "forms", "platform"))
    assert likelihood("kubrnetes", "kubernetes") > likelihood("kubrnets", "kubernetes") > 0.0
    assert likelihood("postgres", "postgresql") > likelihood("tgresq", "postgresql") > 0.0


def test_the_nearest_comes_first_and_no_more_than_asked_for(parts: Any) -> None:
    """Guesses come likeliest first, of equals the one more memories use, and are cut at the limit."""
    for content in ("planet", "planer", "planer again", "planar", "planets"):
        parts.add(content)
    found = parts.text.similar("planex", parts.view(), 9)
    assert [term.text for term in found] == ["planer", "planet"]
    assert parts.text.similar("planex", parts.view(), 1) == found[:1]
    weights = [term.weight for term in parts.text.similar("plane", parts.view(), 9)]
    assert weights == sorted(weights, reverse=True)
    assert len(weights) == 3


def test_a_crowd_elsewhere_hides_no_guess(parts: Any) -> None:
    """Words of other namespaces are neither guessed nor in the way, even where hundreds of them are nearer."""
    crowd = [f"lantern{one}{other}" for one in LETTERS for other in LETTERS]
    parts.add(" ".join([*crowd, "lanternfish", "alantern"]), "user:eve")
    parts.add("lanternfishing", "user:ada")
    view = parts.view("user:ada")
    for typed in ("lanternfishng", "lnternfishimg", "ternfish", "lantern", "lantrenfi"):
        assert [term.text for term in parts.text.similar(typed, view, 9)] == ["lanternfishing"]


def test_every_spelling_one_letter_away_is_tried() -> None:
    """The spellings looked up are exactly those at one optimal string alignment, in the word's own letters."""
    spellings = one_edit_away("mast")
    assert {"mast", "ast", "masts", "mxast", "must", "amst", "mats"} <= spellings
    assert all(OSA.distance("mast", one) <= 1 for one in spellings)
    assert len(spellings) == 1 + 4 + 3 + 4 * 25 + 5 * 26 - 4
    assert "база" in one_edit_away("база")
    assert not any(letter in LETTERS for one in one_edit_away("база") for letter in one)


@pytest.fixture
def plans(parts: Any) -> Iterator[list[str]]:
    """Collect how SQLite would run each query from now on."""
    found: list[str] = []

    def explain(connection: Connection, cursor: Any, statement: str, values: Any, *_: Any) -> None:
        if statement.lstrip().startswith("SELECT"):
            raw = connection.connection.dbapi_connection.cursor()
            found.extend(row[3] for row in raw.execute(f"EXPLAIN QUERY PLAN {statement}", values))

    event.listen(parts.database.engine, "before_cursor_execute", explain)
    yield found
    event.remove(parts.database.engine, "before_cursor_execute", explain)


@pytest.mark.parametrize("typed", ["mastt", "kuberntes", "kubrnets", "opstgres", "intergalactic", "x" * 60])
def test_guessing_never_scans_the_vocabulary(parts: Any, plans: list[str], typed: str) -> None:
    """Every query behind a guess reads the vocabulary through an index, never from one end to the other."""
    parts.add(" ".join(WORDS))
    plans.clear()
    parts.text.similar(typed, parts.view(), 8)
    through = "uq_word_namespace_id_sensitivity_text (namespace_id=? AND sensitivity=? AND text>? AND text<?)"
    assert any(through in plan for plan in plans)
    assert any("SCAN word_trigram VIRTUAL TABLE INDEX 0:M" in plan for plan in plans)
    assert not [plan for plan in plans if plan.startswith("SCAN word") and "VIRTUAL TABLE INDEX 0:M" not in plan]


def test_the_cost_does_not_follow_the_vocabulary(parts: Any) -> None:
    """With twenty times the words a guess takes at most three times the steps of the database."""
    chance = random.Random(1)
    parts.add("straightforward")
    with parts.database.reading() as connection:
        number = connection.execute(text("SELECT id FROM namespace")).scalar_one()
    words = ["".join(chance.choices("aeiourstlnbcd", k=chance.randint(4, 12))) for _ in range(40_000)]
    steps = []
    for some in (words[:2_000], words[2_000:]):
        with parts.database.writing() as connection:
            put = """INSERT INTO word (namespace_id, sensitivity, text, uses) VALUES (:number, 'public', :word, 1)
                ON CONFLICT DO NOTHING"""
            connection.execute(text(put), [{"number": number, "word": word} for word in some])
        steps.append(sum(counted(parts, typed) for typed in ("straightforwrd", "intrgalactc", "stra", "rustle")))
    assert steps[1] <= 3 * steps[0]


def counted(parts: Any, typed: str) -> int:
    """Return how many steps, in hundreds, SQLite's machine takes to find the words similar to `typed`."""
    ticks = 0

    def tick() -> int:
        nonlocal ticks
        ticks += 1
        return 0

    with parts.database.reading() as connection:
        raw = connection.connection.dbapi_connection
        raw.set_progress_handler(tick, 100)
        parts.text.similar(typed, parts.view(), 8)
        raw.set_progress_handler(None, 0)
    return ticks

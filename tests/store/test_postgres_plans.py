"""Plans: how many pages PostgreSQL reads for the words of a query, whether it knows how many rows there are or not."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import psycopg
import pytest
from sqlalchemy import event, text

from callers import EVERY_LEVEL
from entries import AT, make_entry
from recollect.domain.search import View
from recollect.store.sql.database import Database, open_server
from recollect.store.sql.records import Records
from recollect.store.text.postgres import PostgresText

NAMESPACE = "project:crew/engine"
VIEW = View(namespaces=(NAMESPACE,), now=AT, sensitivities=EVERY_LEVEL)
STORED = 8_000  # words
MOST_PAGES = 500
ASKED = ["straightforward", "straitforward", "lantern", "keeper", "reading", "settings", "harbour", "tunes"]

_STORED = text("""INSERT INTO word (namespace_id, sensitivity, text, uses)
    SELECT id, 'public', unnest(CAST(:words AS text[])), 1 FROM namespace ON CONFLICT DO NOTHING""")


@pytest.fixture(params=["counted", "uncounted"])
def database(migrated_postgres_url: str, request: pytest.FixtureRequest) -> Iterator[Database]:
    """Return a database with many words, once as VACUUM ANALYZE leaves it, and once before the first."""
    chance = random.Random(1)
    words = ["".join(chance.choices("aeiourstlnbcd", k=chance.randint(4, 12))) for _ in range(STORED)]
    with closing(open_server(migrated_postgres_url)) as opened:
        with Records(opened, lambda: AT, lambda: None).writing(NAMESPACE, "ada") as transaction:
            transaction.memories.insert(make_entry("A straightforward sentence"))
        with opened.writing(NAMESPACE) as connection:
            connection.execute(_STORED, {"words": words})
        if request.param == "counted":
            with psycopg.connect(migrated_postgres_url.replace("+psycopg", ""), autocommit=True) as connection:
                connection.execute("VACUUM ANALYZE word")
        yield opened


def plans_of(database: Database, call: Callable[[], object]) -> list[dict[str, Any]]:
    """Return the plan of each statement that a call runs, as it is run again."""
    asked: list[tuple[str, Any]] = []
    listener = lambda *told: asked.append(told[2:4])  # noqa: E731
    event.listen(database.engine, "before_cursor_execute", listener)
    call()
    event.remove(database.engine, "before_cursor_execute", listener)
    statements = [one for one in asked if one[0].startswith("SELECT")]
    with database.reading() as connection:
        explained = [
            connection.exec_driver_sql(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement}", values).scalar_one()
            for statement, values in statements
        ]
    return [one[0]["Plan"] for one in explained]


def test_words_are_looked_up_without_their_trigrams(database: Database) -> None:
    """The counts of a query's words and of the spellings of a misspelt one are read from a few pages."""
    records, index = Records(database, lambda: AT, lambda: None), PostgresText(database)
    counts = plans_of(database, lambda: records.query_facts(ASKED, ["ada"], VIEW))
    counts += plans_of(database, lambda: index.frequencies(ASKED, VIEW))
    guesses = plans_of(database, lambda: index.similar("straightforwrd", VIEW, 8))
    assert len(counts) >= 2
    assert len(guesses) >= 2
    assert all("ix_word_text_trigram" not in str(plan) for plan in counts)
    pages = [plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] for plan in (*counts, *guesses)]
    assert max(pages) <= MOST_PAGES, pages
    assert [term.text for term in index.similar("straightforwrd", VIEW, 1)] == ["straightforward"]


@pytest.mark.parametrize("database", ["counted"], indirect=True)
def test_a_piece_is_looked_for_among_trigrams(database: Database) -> None:
    """The words that hold a piece are found by the index of trigrams, which has the expression that is asked for."""
    plans = plans_of(database, lambda: PostgresText(database).similar("aightforw", VIEW, 8))
    assert any("ix_word_text_trigram" in str(plan) for plan in plans)


def test_no_statement_is_compiled(migrated_postgres_url: str) -> None:
    """Reads and writes run without the compiler of PostgreSQL, which takes longer than they do."""
    asked = text("SHOW jit")
    with closing(open_server(migrated_postgres_url)) as database:
        with database.reading() as connection:
            assert connection.execute(asked).scalar() == "off"
        with database.writing(NAMESPACE) as connection:
            assert connection.execute(asked).scalar() == "off"

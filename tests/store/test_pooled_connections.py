"""A pooler between us and PostgreSQL, which lends each transaction another session; and what an address may say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import psycopg
import pytest
from sqlalchemy import text

from callers import ADA
from pgbouncer import PgBouncer
from recollect import App, Draft, Forget, Get, Query, forget, get_memory, recall, remember
from recollect.errors import InvalidInput
from recollect.store.sql.database import Database, open_server

_CALLERS = 8
_CALLS = 6  # of each caller
_PREPARED = text("SELECT count(*) FROM pg_prepared_statements")
_SEVERAL_TIMES = 12


@pytest.fixture
def pooled_url(pgbouncer: PgBouncer, migrated_postgres_url: str) -> str:
    """Return the address of an empty database through a pooler in transaction mode."""
    return pgbouncer.address(migrated_postgres_url)


@pytest.fixture
def pooled(pooled_url: str) -> Iterator[Database]:
    """Return an empty database through a pooler in transaction mode."""
    with closing(open_server(pooled_url)) as database:
        yield database


def test_calls_at_once_all_succeed(pooled_url: str, open_store: Callable[..., App]) -> None:
    """Writes, reads, searches and deletions of several callers at once all succeed, and nothing is damaged."""
    app = open_store(database_url=pooled_url)

    def calls(caller: int) -> None:
        for number in range(_CALLS):
            draft = Draft(content=f"Crane {caller}-{number} lifts {number} tonnes", scope="personal")
            kept = remember(app, draft, ADA)
            assert get_memory(app, Get(id=kept.id), ADA).content == draft.content
            assert recall(app, Query(query=f"what does crane {caller}-{number} lift"), ADA).hits
            if number % 4 == 0:
                forget(app, Forget(id=kept.id), ADA)

    with ThreadPoolExecutor(_CALLERS) as pool:
        list(pool.map(calls, range(_CALLERS)))
    app.vectors.sync()
    assert [check for check in app.checks(deep=True) if not check.well] == []


def test_limits_are_those_of_a_transaction(pooled: Database, pooled_url: str) -> None:
    """Each of our transactions has its limit of time and no compiler; whoever gets the session next has none of it."""
    asked = text("SHOW statement_timeout")
    with pooled.reading() as connection:
        assert connection.execute(asked).scalar() == "10min"
    with pooled.writing("personal:ada") as connection:
        assert connection.execute(asked).scalar() == "10min"
    with pooled.exclusive() as connection:
        assert connection.execute(asked).scalar() == "0"
    with pooled.reading() as connection:
        assert connection.execute(text("SHOW jit")).scalar() == "off"
    with psycopg.connect(pooled_url) as other:
        assert other.execute("SHOW statement_timeout").fetchone() == ("0",)
        assert other.execute("SHOW jit").fetchone() == ("on",)


def test_nothing_stays_in_a_session(pooled: Database, pooled_url: str) -> None:
    """After writes, reads by pages, claims and locks no statement, cursor, lock or table of ours is in a session."""
    for _ in range(_SEVERAL_TIMES):
        with pooled.writing("personal:ada") as connection:
            connection.execute(text("SELECT 1"))
        with pooled.indexing(["personal:ada"]), pooled.claiming("purge", ["personal:ada"]) as ours:
            assert ours == {"personal:ada"}
        with pooled.reading() as connection:
            rows = connection.execution_options(yield_per=10).execute(text("SELECT generate_series(1, 100)"))
            assert len(rows.scalars().all()) == 100
    left = (
        "SELECT (SELECT count(*) FROM pg_prepared_statements WHERE name != '') + (SELECT count(*) FROM pg_cursors"
        " WHERE name != '') + (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database ="
        " (SELECT oid FROM pg_database WHERE datname = current_database()))"
        " + (SELECT count(*) FROM pg_class WHERE relpersistence = 't')"
    )
    with psycopg.connect(pooled_url) as other:
        assert other.execute(left).fetchone() == (0,)


@pytest.mark.parametrize(
    ("option", "prepared"), [("", True), ("?prepare_threshold=0", False), ("?prepare_threshold=1", True)]
)
def test_statements_are_prepared_in_a_session_of_ours(migrated_postgres_url: str, option: str, prepared: bool) -> None:
    """Without a pooler a statement that is used often is prepared, unless the address says never."""
    with closing(open_server(migrated_postgres_url + option)) as database, database.reading() as connection:
        for _ in range(_SEVERAL_TIMES):
            count = connection.execute(_PREPARED).scalar_one()
    assert (count > 0) is prepared


@pytest.mark.parametrize(
    "option",
    [
        "prepare_threshold=often",
        "prepare_threshold=-1",
        "prepare_threshold=1&prepare_threshold=2",
        "autocommit=true",
        "row_factory=dict_row",
        "pgbouncer=true",
        "sslmode=disable&sslmode=prefer",
    ],
)
def test_an_address_with_an_unknown_option_is_refused(migrated_postgres_url: str, option: str) -> None:
    """What libpq does not know, or knows once only, is one sentence that names the option."""
    with pytest.raises(InvalidInput, match=rf"\AInvalid database_url: [^\n]*`{option.partition('=')[0]}`[^\n]*\.\Z"):
        open_server(f"{migrated_postgres_url}?{option}")

"""Connections to PostgreSQL that the server has ended: nobody notices, where nothing was written on them yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import psycopg
import pytest
from sqlalchemy import text

from callers import ADA
from recollect import App, Draft, Get, Query, get_memory, recall, remember
from recollect.errors import StoreUnusable
from recollect.store.sql.database import Database, open_server

_ONE = text("SELECT 1 AS one")


@pytest.fixture
def database(migrated_postgres_url: str) -> Iterator[Database]:
    """Return an empty database of a server."""
    with closing(open_server(migrated_postgres_url)) as database:
        yield database


def end_all(url: str) -> int:
    """End every other session of a database; return how many there were."""
    ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid != %s"
    with psycopg.connect(url) as connection:
        return len(connection.execute(ended, [connection.info.backend_pid]).fetchall())


def test_a_lost_connection_is_replaced(database: Database, migrated_postgres_url: str) -> None:
    """After the server has ended all sessions the next query, read, write and claim succeed, with several pooled."""
    with database.reading(), database.writing("user:ada"), database.claiming("purge", ["user:ada"]):
        pass
    assert end_all(migrated_postgres_url) > 1
    assert database.rows(_ONE)[0].one == 1
    end_all(migrated_postgres_url)
    with database.reading() as connection:
        assert connection.execute(_ONE).scalar() == 1
    for begun in (lambda: database.writing("user:ada"), database.exclusive):
        end_all(migrated_postgres_url)
        with begun() as connection:
            assert connection.execute(_ONE).scalar() == 1
    end_all(migrated_postgres_url)
    with database.claiming("purge", ["user:ada"]) as ours:
        assert ours == {"user:ada"}


def test_a_transaction_that_has_begun_is_not_run_again(database: Database, migrated_postgres_url: str) -> None:
    """Where the session ends in the midst of a transaction, that one fails, and nothing of it is stored."""
    with database.writing() as connection:
        connection.execute(text("CREATE TABLE tried (number integer)"))

    def write() -> None:
        with database.writing() as connection:
            connection.execute(text("INSERT INTO tried VALUES (1)"))
            end_all(migrated_postgres_url)
            connection.execute(text("INSERT INTO tried VALUES (2)"))

    with pytest.raises(StoreUnusable):
        write()
    assert database.rows(text("SELECT count(*) AS many FROM tried"))[0].many == 0


def test_operations_go_on_after_sessions_ended(migrated_postgres_url: str, open_store: Callable[..., App]) -> None:
    """Remember, get and recall succeed at once after the server has ended every session."""
    app = open_store(database_url=migrated_postgres_url)
    for number in range(3):
        end_all(migrated_postgres_url)
        kept = remember(app, Draft(content=f"Crane {number} lifts {number} tonnes", scope="personal"), ADA)
        end_all(migrated_postgres_url)
        assert get_memory(app, Get(id=kept.id), ADA).content.startswith(f"Crane {number}")
        end_all(migrated_postgres_url)
        assert recall(app, Query(query=f"what does crane {number} lift"), ADA).hits

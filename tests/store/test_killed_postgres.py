"""A PostgreSQL that is killed and started again under an open store, and how long anybody waits for one."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from sqlalchemy import text

from callers import ADA
from postgres_cluster import Cluster
from recollect import App, Draft, Get, get_memory, remember
from recollect.errors import StoreUnusable
from recollect.store.sql import postgres
from recollect.store.sql.database import Database, open_server

pytestmark = pytest.mark.slow


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """Return a server that runs."""
    one = Cluster()
    one.start()
    yield one
    one.close()


def test_a_store_outlives_its_database(
    cluster: Cluster, open_store: Callable[..., App], monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the database is away or frozen one sentence says so; what was acknowledged is there later, once."""
    app = open_store(database_url=f"{cluster.url}?connect_timeout=2")
    kept = remember(app, Draft(content="The harbour opens at six", scope="personal"), ADA)
    cluster.kill()
    late = Draft(content="The quay is closed on Mondays", scope="personal")
    for _ in range(2):
        with pytest.raises(StoreUnusable, match=r"\AThe database cannot be used: [^\n\d]+[^.]\.\Z"):
            remember(app, late, ADA)
    cluster.start()
    assert get_memory(app, Get(id=kept.id), ADA).content == "The harbour opens at six"
    remember(app, late, ADA)
    monkeypatch.setattr(postgres, "_SILENCE", 0.3)
    with cluster.frozen(), pytest.raises(StoreUnusable, match=r"\AThe database cannot be used: it does not answer\.\Z"):
        remember(app, late, ADA)
    app.vectors.sync()
    assert [one for one in app.checks(deep=True) if not one.well] == []


def test_no_statement_runs_for_ever(migrated_postgres_url: str) -> None:
    """The server ends a statement after ten minutes, but none of one that holds the whole store."""
    database = open_server(migrated_postgres_url)
    asked = text("SHOW statement_timeout")
    with database.reading() as connection:
        assert connection.execute(asked).scalar() == "10min"
    with database.exclusive() as connection:
        assert connection.execute(asked).scalar() == "0"
    with database.writing("personal:ada") as connection:
        assert connection.execute(asked).scalar() == "10min"
    database.close()


def test_a_pool_that_is_empty_is_one_sentence(migrated_postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where every connection is taken for too long, or cannot be used any more, the answer is one to try again."""
    database = Database(migrated_postgres_url, 1)
    monkeypatch.setattr(database.engine.pool, "_timeout", 0.01)
    taken = pytest.raises(StoreUnusable, match="every connection to it is taken")
    with database.writing(), database.writing(), taken, database.writing():
        pass
    database.close()


def test_the_address_may_say_how_long_to_wait(migrated_postgres_url: str) -> None:
    """What stands in the address of the database wins over our own patience."""
    database = Database(f"{migrated_postgres_url}?connect_timeout=2")
    with database.reading() as connection:
        told = connection.connection.driver_connection.info.get_parameters()  # type: ignore[union-attr]
    database.close()
    assert (told["connect_timeout"], told["tcp_user_timeout"]) == ("2", "30000")

"""pgvector as the index of a deployment: PostgreSQL alone is asked, and what it cannot do is said at the start."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import psycopg
import pytest
from sqlalchemy import event

from postgres import Postgres
from recollect import App, Settings
from recollect.domain.enums import IndexKind
from recollect.errors import InvalidInput, StoreUnusable
from recollect.store.sql.database import Database, open_server
from recollect.store.vectors.index import IndexBroken, chunk_id
from recollect.store.vectors.pgvector import PgvectorIndex
from run_operations import OTHER, add, do, ill, recalled
from stores import open_app
from team_process import Asking, serving_team

if TYPE_CHECKING:
    from recollect.engines.embedder import Vector

pytestmark = pytest.mark.slow

HERE = "project:crew/engine"
SAID = "The quokka of the harbour deploys the billing service on Fridays."
TURNED = """UPDATE {} SET embedding = CAST(
    (SELECT array_agg(-one) FROM unnest(CAST(embedding AS real[])) AS one) AS public_vectors.vector)"""
MEANT = "who ships invoices before the weekend?"


@pytest.fixture
def settings(unused_settings: Settings, migrated_pgvector_url: str) -> Settings:
    """Return settings of a deployment without Chroma."""
    return unused_settings.model_copy(
        update={"database_url": migrated_pgvector_url, "vector_index": IndexKind.PGVECTOR}
    )


@pytest.fixture
def replica(settings: Settings, clock: Any) -> Iterator[Callable[[], App]]:
    """Return a function that opens one more replica of the deployment."""
    opened: list[App] = []

    def opening() -> App:
        opened.append(open_app(settings, clock=clock))
        opened[-1].vectors.sync()
        return opened[-1]

    yield opening
    for one in opened:
        one.close()


@pytest.fixture
def database(migrated_pgvector_url: str) -> Iterator[Database]:
    """Return the database of a deployment, open."""
    with closing(open_server(migrated_pgvector_url)) as opened:
        yield opened


@pytest.fixture
def role(pgvector: Postgres, settings: Settings) -> Iterator[str]:
    """Return a role that may use the tables of the store, and make nothing."""
    name = "plain"
    with psycopg.connect(settings.database_url) as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN")
        connection.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {name}")
        connection.execute(f"GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO {name}")
    yield name
    with psycopg.connect(settings.database_url) as connection:
        connection.execute(f"DROP OWNED BY {name} CASCADE")
        connection.execute(f"DROP ROLE {name}")


def tables(settings: Settings) -> list[str]:
    """Return the names of the tables of vectors."""
    with psycopg.connect(settings.database_url) as connection:
        found = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public_vectors'")
        return [row[0] for row in found]


def unit(many: int, dimensions: int) -> list[Vector]:
    """Return so many vectors of length 1 in any direction."""
    made = np.random.default_rng(7).standard_normal((many, dimensions)).astype(np.float32)
    return list(made / np.linalg.norm(made, axis=1, keepdims=True))


def test_replicas_read_each_others_writes(replica: Callable[[], App], settings: Settings) -> None:
    """What a replica stores or forgets is so for the other at once; other projects see none of it, and all is well."""
    one, two = replica(), replica()
    written = add(one, SAID)
    for noise in ("The heron keeps the keys of the cupboard.", "Tests run in parallel on the old machine."):
        add(one, noise)
    one.vectors.sync()
    assert one.vectors.waiting() == 0
    assert next(iter(do(two, "recall", query=MEANT).hits)).memory.id == written
    assert do(two, "recall", OTHER, query=MEANT).hits == ()
    assert [ill(app) for app in (one, two)] == [[], []]
    assert len(tables(settings)) == 1
    do(two, "forget", id=str(written))
    assert written not in recalled(one, MEANT)
    assert [ill(app) for app in (one, two)] == [[], []]


@pytest.mark.parametrize("damage", ["DROP TABLE {}", "DELETE FROM {}", TURNED])
def test_a_damaged_table_is_built_again(replica: Callable[[], App], settings: Settings, damage: str) -> None:
    """A repair brings back what somebody removed from the vectors or changed in them."""
    app = replica()
    written = add(app, SAID)
    app.vectors.sync()
    (table,) = tables(settings)
    with psycopg.connect(settings.database_url) as connection:
        connection.execute(damage.format(f'public_vectors."{table}"').encode())
    assert app.vectors.differing(None) == {written}
    app.vectors.repair()
    assert app.vectors.differing(None) == set()
    assert ill(app) == []
    assert written in recalled(app, MEANT)


def test_a_team_is_served_without_chroma(settings: Settings, tmp_path: Path) -> None:
    """Several workers of `serve` recall by meaning, with nothing but PostgreSQL beside them."""
    servers = {
        "RECOLLECT_DATABASE_URL": settings.database_url,
        "RECOLLECT_VECTOR_INDEX": "pgvector",
        "RECOLLECT_REQUESTS_PER_MINUTE": "0",
    }
    with serving_team(tmp_path / "home", tmp_path / "log", "--workers", "2", **servers) as process:
        ask = Asking(process.url, process.init())
        process.start()
        written = ask("remember", content=SAID, scope="personal")["id"]
        ask("remember", content="The heron keeps the keys of the cupboard.", scope="personal")
        assert ask("recall", query=MEANT, scope="personal")["hits"][0]["memory"]["id"] == written
        assert process.stop() == 0
    assert len(tables(settings)) == 1
    assert not (tmp_path / "home" / "chroma").exists()


def test_a_graph_is_made_once_it_pays(database: Database) -> None:
    """A namespace of many vectors is searched by a graph, whose best ten are nearly those of a comparison with all."""
    index, vectors = PgvectorIndex(database, "m1", scanned=100), unit(1_500, 32)
    ids = [chunk_id(number, 0) for number in range(len(vectors))]
    index.put(HERE, ids[:100], vectors[:100])
    graphs = "SELECT count(*) FROM pg_indexes WHERE indexdef LIKE '%hnsw%'"
    with psycopg.connect(database.url.set(drivername="postgresql").render_as_string(False)) as connection:
        assert connection.execute(graphs).fetchall() == [(0,)]
        index.put(HERE, ids[100:], vectors[100:])
        connection.commit()
        assert connection.execute(graphs).fetchall() == [(1,)]
    asked = list[tuple[str, Any]]()
    event.listen(database.engine, "before_cursor_execute", lambda *call: asked.append((call[2], call[3])))
    found = 0
    for query in unit(20, 32):
        found += len(set(np.argsort(-(np.stack(vectors) @ query))[:10].tolist()) & set(index.query(HERE, query, 10)))
    assert found >= 0.97 * 200
    ((query, values), *_) = [one for one in asked if "ORDER BY" in one[0]]
    with database.reading() as connection:
        connection.exec_driver_sql("SET LOCAL enable_seqscan = off")  # so few rows are sorted sooner
        assert "using graph_" in " ".join(connection.exec_driver_sql(f"EXPLAIN {query}", values).scalars())
    assert len(index.query(HERE, vectors[0], 1_400)) == 1_400, "more than a graph returns"


def test_vectors_that_no_graph_takes_are_compared(database: Database) -> None:
    """A model of very many dimensions is served too."""
    index, vectors = PgvectorIndex(database, "m1", scanned=0), unit(3, 3_072)
    index.put(HERE, ["1.0", "2.0", "3.0"], vectors)
    assert index.query(HERE, vectors[1], 1) == {2: pytest.approx(1.0, abs=1e-5)}


def test_a_failure_leaves_the_readers_transaction_alive(database: Database) -> None:
    """Whoever asks in a transaction of theirs goes on in it when the index fails, or has no table."""
    index = PgvectorIndex(database, "m1")
    index.put(HERE, ["1.0"], unit(1, 4))
    with database.reading() as connection:
        with pytest.raises(IndexBroken, match="different vector dimensions"):
            index.query(HERE, unit(1, 5)[0], 3)
        assert index.query("user:nobody", unit(1, 4)[0], 3) == {}
        assert connection.exec_driver_sql("SELECT 1").scalar_one() == 1


def test_whoever_may_not_make_the_extension_is_told_who_can(settings: Settings, role: str) -> None:
    """What a superuser then runs, as the error has it, is enough."""
    plain = settings.model_copy(update={"database_url": settings.database_url.replace("postgres@", f"{role}@")})
    with pytest.raises(InvalidInput, match=r"permission denied") as caught:
        open_app(plain)
    with psycopg.connect(settings.database_url) as connection:
        connection.execute(str(caught.value).partition("in the database: ")[2].encode())
    with closing(open_app(plain)) as app:
        written = add(app, SAID)
        app.vectors.sync()
        assert app.vectors.state == "ready"
        assert app.vectors.waiting() == 0
        assert written in recalled(app, MEANT)


def test_an_extension_in_the_way_of_our_tables_is_refused(pgvector: Postgres, unused_settings: Settings) -> None:
    """The error says what moves it, and that is enough."""
    url = pgvector.create()
    with psycopg.connect(url) as connection:
        connection.execute("CREATE EXTENSION vector")
    settings = unused_settings.model_copy(update={"database_url": url, "vector_index": IndexKind.PGVECTOR})
    with pytest.raises(StoreUnusable, match="pgvector is in the schema `public`") as caught:
        open_app(settings)
    with psycopg.connect(url) as connection:
        connection.execute(str(caught.value).partition("in the database: ")[2].encode())
    with closing(open_app(settings)) as app:
        written = add(app, SAID)
        app.vectors.sync()
        assert (app.vectors.state, ill(app)) == ("ready", [])
        assert written in recalled(app, MEANT)
    pgvector.drop(url)


def test_a_server_without_pgvector_is_refused(unused_settings: Settings, migrated_postgres_url: str) -> None:
    """The error names the setting and what to install; the database is as it was."""
    changes = {"database_url": migrated_postgres_url, "vector_index": IndexKind.PGVECTOR}
    with pytest.raises(InvalidInput, match=r"RECOLLECT_VECTOR_INDEX is `pgvector`.*extension.*Install pgvector"):
        open_app(unused_settings.model_copy(update=changes))
    with psycopg.connect(migrated_postgres_url) as connection:
        assert connection.execute("SELECT to_regnamespace('public_vectors')").fetchall() == [(None,)]


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ({}, "set RECOLLECT_DATABASE_URL"),
        ({"database_url": "postgresql://a/b", "chroma_url": "http://c"}, "unset RECOLLECT_CHROMA_URL"),
    ],
)
def test_settings_that_contradict_are_refused(others: dict[str, str], message: str) -> None:
    """pgvector needs a PostgreSQL, and is no second index beside Chroma."""
    with pytest.raises(InvalidInput, match=f"RECOLLECT_VECTOR_INDEX: .*{message}"):
        Settings(vector_index="pgvector", **others)


def test_an_unknown_index_is_refused() -> None:
    """The error names those that there are."""
    with pytest.raises(InvalidInput, match=r"RECOLLECT_VECTOR_INDEX.*'chroma' or 'pgvector'"):
        Settings(vector_index="faiss")

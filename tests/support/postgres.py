"""The real PostgreSQL: empty databases of a test's own, and one migrated database that tests empty after use."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import sqlalchemy
from sqlalchemy import Engine, text

from recollect.store.sql.database import Database
from recollect.store.sql.migrations import migrate

ADDRESS = os.environ.get("RECOLLECT_TEST_POSTGRES_URL", "postgresql://postgres@127.0.0.1:5432/test")
_SCHEMA = """SELECT md5(string_agg(part, ',' ORDER BY part)) FROM (
    SELECT 'relation ' || oid || relname FROM pg_class WHERE relnamespace = 'public'::regnamespace
    UNION ALL SELECT 'column ' || attrelid || attname || atttypid || attnotnull || atthasdef || attisdropped
        FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid AND relnamespace = 'public'::regnamespace
    UNION ALL SELECT 'trigger ' || oid || tgenabled::text FROM pg_trigger
    UNION ALL SELECT 'constraint ' || oid || conname FROM pg_constraint WHERE connamespace = 'public'::regnamespace
    UNION ALL SELECT 'function ' || oid || prosrc FROM pg_proc WHERE pronamespace = 'public'::regnamespace
    UNION ALL SELECT 'revision ' || version_num FROM alembic_version
) AS schema(part)"""
_EMPTIED = """SELECT 'DELETE FROM "' || tablename || '"' FROM pg_tables
        WHERE schemaname = 'public' AND tablename != 'alembic_version'
    UNION ALL SELECT 'ALTER SEQUENCE "' || sequencename || '" RESTART' FROM pg_sequences WHERE schemaname = 'public'"""


class Postgres:
    """One server, for one run of tests."""

    def __init__(self, url: str) -> None:
        patience = {"connect_timeout": 5}
        self._server = sqlalchemy.create_engine(url, isolation_level="AUTOCOMMIT", connect_args=patience)
        self._made: list[str] = []
        self._template = ""
        self._idle: list[tuple[str, str]] = []

    def create(self, template: str = "template1") -> str:
        """Make a database, empty or like `template`, and return its address."""
        name = f"recollect_{uuid.uuid4().hex}"
        try:
            with self._server.connect() as connection:
                connection.execute(text(f"CREATE DATABASE {name} TEMPLATE {template}"))
        except sqlalchemy.exc.OperationalError as error:
            pytest.skip(f"no PostgreSQL answers at {self._server.url.render_as_string()}: {error.orig}")
        self._made.append(name)
        return self._server.url.set(database=name).render_as_string(hide_password=False)

    def drop(self, url: str) -> None:
        """Drop a database, whoever uses it."""
        name = str(sqlalchemy.make_url(url).database)
        with self._server.connect() as connection:
            connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
        self._made.remove(name)

    @contextmanager
    def migrated(self) -> Iterator[str]:
        """Lend an empty database at the newest revision; it is lent again only if its schema is as it was."""
        url, schema = self._idle.pop() if self._idle else self._like_template()
        yield url
        if _emptied(url, schema):
            self._idle.append((url, schema))
        else:
            self.drop(url)

    def close(self) -> None:
        """Drop whatever was made."""
        for name in list(self._made):
            self.drop(self._server.url.set(database=name).render_as_string(hide_password=False))
        self._server.dispose()

    def _like_template(self) -> tuple[str, str]:
        if not self._template:
            made = Database(self.create())
            migrate(made)
            made.close()
            self._template = str(made.url.database)
        url = self.create(self._template)
        return url, _in(url, _SCHEMA)[0]


def _emptied(url: str, schema: str) -> bool:
    """Delete every row and start every sequence anew; say whether the schema is still `schema`."""
    engine = sqlalchemy.create_engine(url, poolclass=sqlalchemy.NullPool)
    with engine.begin() as connection:
        if connection.execute(text(_SCHEMA)).scalar_one() != schema:
            return False
        # As a replica the session fires no triggers: the journal's own forbid deleting.
        emptying = ["SET LOCAL session_replication_role = replica", *connection.execute(text(_EMPTIED)).scalars()]
        connection.exec_driver_sql(";".join(emptying))
    return True


def _in(url: str, *statements: str) -> list[str]:
    """Run statements in one transaction and return the first column of the last one's rows."""
    engine: Engine = sqlalchemy.create_engine(url, poolclass=sqlalchemy.NullPool)
    with engine.begin() as connection:
        for statement in statements:
            done = connection.execute(text(statement))
        return [str(row[0]) for row in done] if done.returns_rows else []

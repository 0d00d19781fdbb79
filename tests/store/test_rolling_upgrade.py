"""Replicas of two versions on one PostgreSQL: one of them migrates, and who was there before goes on."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import closing
from typing import Any

import pytest
import sqlalchemy
from sqlalchemy import text

from recollect import Settings
from recollect.errors import StoreUnusable
from recollect.store.sql.database import Database
from recollect.store.sql.migrations import HEAD, revision
from run_operations import add, ill, recalled
from stores import open_app

pytestmark = pytest.mark.slow

STARTING = """
import sys
from recollect.store.sql.database import open_server
from recollect.store.sql.migrations import migrate
database = open_server(sys.argv[1])
migrate(database)
database.close()
"""
WAITING = """SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = database
    WHERE datname = current_database() AND locktype = 'advisory' AND NOT granted"""
NEWER = (
    "CREATE TABLE of_the_next_version (id bigint PRIMARY KEY)",
    "ALTER TABLE memory ADD COLUMN of_the_next_version text",
    "UPDATE alembic_version SET version_num = '9999'",
)


def test_of_two_replicas_that_start_at_once_one_migrates(postgres_url: str) -> None:
    """Two processes find an empty database and wait for the lock of the store; one makes the tables, both go on."""
    with closing(Database(postgres_url)) as database:
        with database.exclusive() as connection:
            command = [sys.executable, "-c", STARTING, postgres_url]
            starting = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)]
            while connection.execute(text(WAITING)).scalar_one() < len(starting):
                assert [one.poll() for one in starting] == [None, None]
                time.sleep(0.02)
        told = [one.communicate()[1] for one in starting]
        assert [one.returncode for one in starting] == [0, 0], told
        assert revision(database) == HEAD


def test_an_old_replica_goes_on_beside_a_newer_schema(deployed: Settings, clock: Any) -> None:
    """What a newer version adds to the tables ends no replica that runs; one that starts anew is told what to do."""
    with open_app(deployed, clock=clock) as old:
        before = add(old, "The quokka of the harbour deploys the billing service on Fridays.")
        newer = sqlalchemy.create_engine(deployed.database_url)
        with newer.begin() as connection:
            for statement in NEWER:
                connection.execute(text(statement))
        newer.dispose()
        after = add(old, "The heron keeps the keys of the release cupboard.")
        assert (recalled(old, "quokka"), recalled(old, "heron")) == ({before}, {after})
        assert ill(old) == []
        with pytest.raises(StoreUnusable, match=r"schema 9999, .* start that version here too"):
            open_app(deployed, clock=clock)

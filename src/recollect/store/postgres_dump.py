"""Dump and restore a PostgreSQL store by PostgreSQL's own programs, and make databases that are dropped afterwards."""

from __future__ import annotations

import secrets
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from sqlalchemy import URL, make_url, text
from sqlalchemy.exc import ProgrammingError

from recollect import process
from recollect.errors import StoreUnusable
from recollect.store.sql.database import Database, open_server
from recollect.store.sql.dialect import ALONE
from recollect.store.sql.postgres import without_prepare

_SCRATCH: Final = "recollect_drill_"
_FORBIDDEN: Final = "42501"
"""The state of PostgreSQL's error where a role may not do something."""


def dump(url: str, file: Path, snapshot: str) -> None:
    """Write the database at `url` into `file` as of an exported snapshot; raise `StoreUnusable` where that fails."""
    options = ("--format=custom", "--no-owner", f"--snapshot={snapshot}", f"--file={file}")
    _run_program("pg_dump", url, *options)


def restore(url: str, file: Path) -> None:
    """Restore a dump into the empty database at `url`, whole or not at all; raise `StoreUnusable` where that fails."""
    options = ("--exit-on-error", "--single-transaction", "--no-owner", "--no-privileges", str(file))
    _run_program("pg_restore", url, *options)
    with closing(open_server(url)) as database:
        _run_alone(database, "ANALYZE")


@contextmanager
def scratch_database(url: str) -> Iterator[str]:
    """Make an empty database beside that at `url`, yield its address, and drop it afterwards.

    Raises `StoreUnusable` where the role may make none.
    """
    name = f"{_SCRATCH}{secrets.token_hex(6)}"
    with closing(open_server(url)) as database:
        try:
            _run_alone(database, f"CREATE DATABASE {name} ENCODING 'UTF8' TEMPLATE template0")
        except ProgrammingError as error:
            if getattr(error.orig, "sqlstate", "") != _FORBIDDEN:
                raise
            raise StoreUnusable(
                "The role of the store may make no database to restore into. Let it (`ALTER ROLE … CREATEDB`), or "
                "restore the backup yourself, name that database in RECOLLECT_DRILL_DATABASE_URL and add --restored."
            ) from None
        try:
            yield make_url(url).set(database=name).render_as_string(hide_password=False)
        finally:
            _run_alone(database, f"DROP DATABASE {name} WITH (FORCE)")


def size_of(database: Database) -> int:
    """Return how many bytes a database takes on the server's disk."""
    with database.reading() as connection:
        return int(connection.execute(text("SELECT pg_database_size(current_database())")).scalar_one())


def _run_alone(database: Database, statement: str) -> None:
    """Run a statement that may be in no transaction."""
    with database.engine.connect() as connection:
        connection.execution_options(**{ALONE: True}).execute(text(statement))


def _run_program(name: str, url: str, *options: str) -> None:
    """Run a program of PostgreSQL on the database at `url`; raise `StoreUnusable` with its reason where it fails.

    The password is in its environment alone, since others can read the arguments of a process.
    """
    program = shutil.which(name)
    if program is None:
        raise StoreUnusable(
            f"`{name}` is not installed here: install PostgreSQL's programs in the version of the server. Or restore "
            "the backup elsewhere, name that database in RECOLLECT_DRILL_DATABASE_URL and add --restored."
        )
    address, _ = without_prepare(make_url(url))
    plain = URL.create(
        "postgresql", address.username, None, address.host, address.port, address.database, address.query
    )
    password = {"PGPASSWORD": str(address.password)} if address.password else {}
    done = subprocess.run(  # noqa: S603 - a program of PostgreSQL
        [program, f"--dbname={plain.render_as_string()}", *options],
        env=process.inherited() | password,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        reason = done.stderr.strip().splitlines()
        raise StoreUnusable(f"{reason[0] if reason else f'{name} ended with {done.returncode}'}.")

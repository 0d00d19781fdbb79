"""What only PostgreSQL needs: its locks, its ids and its triggers.

Nothing outlives a transaction: a pooler such as PgBouncer may lend each transaction another session of the server.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, ClassVar, Final, TypeAlias

from sqlalchemy import URL, Connection, Engine, Table, create_engine, event, make_url, text
from sqlalchemy.dialects import postgresql

from recollect.errors import InvalidInput
from recollect.store.sql import limit_schema
from recollect.store.sql.dialect import ALONE, INDEX, WRITE, Dialect, begun
from recollect.store.text import postgres_schema

_STORE: Final = 7_236_001  # the advisory lock that every writer shares, and that excludes all of them
_MOST_SKIPPED: Final = 100_000  # ids; a file whose numbers lie further apart gets new ones
_PATIENCE: Final[Mapping[str, Any]] = {  # seconds, and milliseconds for the last; a server's address may say others
    "connect_timeout": 5,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
_SEVERAL: Final = ("host", "port")  # options that may stand in an address more than once
_SILENCE: Final = 30.0  # seconds until a server that does not answer is asked whether it is there
_PREPARE: Final = "prepare_threshold"  # the option of psycopg that a server's address may hold
_OWN_SESSION: Final = 5  # times that a statement is sent before it is prepared, where the session is ours
_POOLED: Final = "pooled"  # what is known of a connection: whether its transactions run in sessions of a pooler
_TIMEOUT: Final = "10min"
# The server ends what we wait for too long, and lets go of the locks of a replica that is cut off. It knows the session
# by another number than a pooler gave us; then the limits end with this transaction, and `_begin_transaction` sets them
# in each. Our statements take milliseconds, and to compile one may take a second.
_LIMITS: Final = """SELECT pooled, set_config('statement_timeout', %s, pooled),
    set_config('tcp_keepalives_idle', '30', pooled), set_config('tcp_keepalives_interval', '10', pooled),
    set_config('tcp_keepalives_count', '3', pooled), set_config('jit', 'off', pooled)
    FROM (SELECT pg_backend_pid() <> %s AS pooled) AS session"""
_LIMITED: Final = f"SELECT set_config('statement_timeout', '{_TIMEOUT}', true), set_config('jit', 'off', true)"
_UNLIMITED = text("SET LOCAL statement_timeout = 0")  # a migration or a restored backup may take long
_SNAPSHOT: Final = "snapshot"  # the option of a connection whose transaction sees one state
_BEGIN: Final = "BEGIN"
_BEGIN_SNAPSHOT: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ"
_AS_BYTES: Final = "as_bytes"  # the option of a connection that reads
_LOCK = text("SELECT pg_advisory_xact_lock(:key)")
_SHARE_AND_LOCK = text("SELECT pg_advisory_xact_lock_shared(:store), pg_advisory_xact_lock(:key)")
_CLAIM = text("SELECT key FROM unnest(CAST(:keys AS bigint[])) AS key WHERE pg_try_advisory_xact_lock(key)")
_SEQUENCE = "CAST(pg_get_serial_sequence(:table, 'id') AS regclass)"
_LAST_ID = text(f"SELECT coalesce(pg_sequence_last_value({_SEQUENCE}), 0)")
_SET_ID = text(f"SELECT setval({_SEQUENCE}, :highest)")
_NEXT_IDS = text(
    f"SELECT id FROM (SELECT nextval({_SEQUENCE}) AS id FROM generate_series(1, :count)) AS claimed ORDER BY id"  # noqa: S608 - our own text
)


_Call: TypeAlias = Generator[Any, Any, Any]


_SIZES = text(
    "SELECT relname, pg_total_relation_size(oid) FROM pg_class WHERE relkind = 'r' "
    "AND relnamespace = current_schema()::regnamespace"
)


class Postgres(Dialect):
    """The `Dialect` of PostgreSQL. Writers of different namespaces do not wait for each other."""

    schema = (
        "CREATE INDEX ix_label_kind_folded ON label (kind, lower(value), memory_id)",
        """CREATE FUNCTION journal_append_only() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'the journal is append-only'; END $$""",
        """CREATE TRIGGER journal_no_change BEFORE UPDATE OR DELETE ON journal
        FOR EACH ROW EXECUTE FUNCTION journal_append_only()""",
        """CREATE TRIGGER journal_no_truncate BEFORE TRUNCATE ON journal
        FOR EACH STATEMENT EXECUTE FUNCTION journal_append_only()""",
        *postgres_schema.POSTGRES_SCHEMA,
        *limit_schema.SCHEMA["postgresql"],
    )

    insert = staticmethod(postgresql.insert)
    reading: ClassVar[Mapping[str, Any]] = {_SNAPSHOT: True, _AS_BYTES: True}
    row_lock: ClassVar[str] = "FOR UPDATE"

    def engine(self, url: str, connections: int) -> Engine:
        """Return an engine that notices when the server was away, and waits for nothing for ever.

        Raises `InvalidInput` for an option in the address that libpq does not know.
        """
        pool = {"pool_size": connections, "max_overflow": connections}
        address, prepare = without_prepare(make_url(url))
        patience = {name: value for name, value in _PATIENCE.items() if name not in address.query}
        patience[_PREPARE] = None  # until it is known whose session it is
        # The driver begins no transaction of its own: `_begin_transaction` does, where a lost connection then shows.
        alone = {"isolation_level": "AUTOCOMMIT", "hide_parameters": True}
        engine = create_engine(address, connect_args=patience, **alone, **pool)
        _check_options(engine)
        event.listen(engine, "connect", partial(_begin_session, prepare))
        event.listen(engine, "begin", _begin_transaction)
        event.listen(engine, "before_cursor_execute", _read_as_bytes)
        event.listen(engine, "connect", partial(_watch_connection, engine, patience))
        return engine

    @contextmanager
    def writing(self, engine: Engine, namespaces: Sequence[str] | None) -> Iterator[Connection]:
        """Open a write transaction that holds the locks of `namespaces`, or with None that of the whole store.

        They are taken in one order, so that two writers of several namespaces never wait for each other.
        """
        with begun(engine, {WRITE: True}) as connection:
            if namespaces is None:
                connection.execute(_LOCK, {"key": _STORE})
                connection.execute(_UNLIMITED)
            elif namespaces:
                first, *others = sorted({_lock_of(name) for name in namespaces})
                connection.execute(_SHARE_AND_LOCK, {"store": _STORE, "key": first})
                for key in others:
                    connection.execute(_LOCK, {"key": key})
            yield connection

    def lock(self, connection: Connection, name: str) -> None:
        """Let a transaction that writes also exclude others that lock this name, until it ends.

        It has the locks of its namespaces by then, and takes several names in their order, so that no two wait for each
        other.
        """
        connection.execute(_LOCK, {"key": _lock_of(name)})

    @contextmanager
    def indexing(self, engine: Engine, namespaces: Iterable[str]) -> Iterator[None]:
        """Keep other replicas from writing to the vector index of `namespaces` until the block ends.

        Writers of the memories do not wait for it, so that a slow index costs no write.
        """
        with begun(engine, {}) as connection:
            for key in sorted({_lock_of(f"{INDEX} {name}") for name in namespaces}):
                connection.execute(_LOCK, {"key": key})
            yield

    @contextmanager
    def claiming(self, engine: Engine, kind: str, names: Iterable[str]) -> Iterator[set[str]]:
        """Give those of `names` that no other process works on until the block ends; nobody is waited for.

        No row is locked, so that no writer waits. A claim ends with its connection, and so with its process.
        """
        keys = {_lock_of(f"{kind} {name}"): name for name in names}
        with begun(engine, {}) as connection:
            yield {keys[one] for one in connection.execute(_CLAIM, {"keys": list(keys)}).scalars()} if keys else set()

    def claim_ids(self, connection: Connection, table: Table, wanted: Sequence[int | None]) -> list[int]:
        """Return ids for new rows: those `wanted` that no row ever had, and new ones beyond all of these.

        The sequence gives each number to one transaction only, so a wanted one is ours once we have drawn it.
        """
        named = [one for one in wanted if one is not None]
        last = connection.execute(_LAST_ID, {"table": table.name}).scalar_one() if named else 0
        skipped = max((one - last for one in named if one - last <= _MOST_SKIPPED), default=0)
        drawn = set(self._next_ids(connection, table, skipped)) if skipped > 0 else set[int]()
        kept: list[int | None] = []
        for one in wanted:
            kept.append(one if one in drawn else None)
            drawn.discard(one or 0)
        fresh = iter(self._next_ids(connection, table, kept.count(None)))
        return [next(fresh) if one is None else one for one in kept]

    def sizes(self, connection: Connection) -> dict[str, int]:
        """Return the size of each table with its indexes, in bytes."""
        return {name: int(size) for name, size in connection.execute(_SIZES)}

    def highest_id(self, connection: Connection, table: Table) -> int:
        """Return the highest id that a row of `table` has, or may have had."""
        return int(connection.execute(_LAST_ID, {"table": table.name}).scalar_one())

    def begin_ids_after(self, connection: Connection, table: Table, highest: int) -> None:
        """Let the next id of `table` be above `highest`."""
        if highest > self.highest_id(connection, table):
            connection.execute(_SET_ID, {"table": table.name, "highest": highest})

    def text_damage(self, connection: Connection) -> str:
        """Return the name of a text index that does not agree with the memories, or an empty string."""
        return "posting" if connection.exec_driver_sql(postgres_schema.DIFFERS).scalar() else ""

    def _next_ids(self, connection: Connection, table: Table, count: int) -> list[int]:
        return list(connection.execute(_NEXT_IDS, {"table": table.name, "count": count}).scalars())


def without_prepare(url: URL) -> tuple[URL, int | None]:
    """Return an address for libpq, and after how many uses a statement is prepared, which the address may say.

    None leaves it to the session, and 0 is never. Raises `InvalidInput` for anything but a whole number.
    """
    named = url.query.get(_PREPARE)
    if named is None:
        return url, None
    if not (isinstance(named, str) and named.isascii() and named.isdecimal()):
        raise InvalidInput("database_url", f"Invalid database_url: `{_PREPARE}` must be a whole number; 0 is never.")
    return url.difference_update_query([_PREPARE]), int(named)


def _check_options(engine: Engine) -> None:
    """Raise `InvalidInput` for an option of the address that libpq does not know, or that stands in it twice.

    psycopg takes options of its own too, which are no text and change what a transaction is.
    """
    driver: Any = engine.dialect.loaded_dbapi
    known = {option.keyword.decode() for option in driver.pq.Conninfo.get_defaults()}
    for name, value in engine.url.query.items():
        if name not in known:
            raise InvalidInput("database_url", f"Invalid database_url: PostgreSQL knows no option `{name}`.")
        if not isinstance(value, str) and name not in _SEVERAL:
            raise InvalidInput("database_url", f"Invalid database_url: `{name}` stands in it more than once.")


def _begin_session(prepare: int | None, connection: Any, record: Any) -> None:
    """Set limits, and prepare statements, only where the session is ours as long as the connection lasts."""
    with connection.cursor() as cursor:
        cursor.execute(_LIMITS, [_TIMEOUT, connection.info.backend_pid])
        record.info[_POOLED] = pooled = cursor.fetchone()[0]
    connection.commit()
    times = (None if pooled else _OWN_SESSION) if prepare is None else prepare
    connection.prepare_threshold = times or None  # psycopg prepares at once at 0, and never with None


def _begin_transaction(connection: Connection) -> None:
    """Begin a transaction with the options of the connection; a single statement needs none."""
    options = connection.get_execution_options()
    if options.get(ALONE):
        return
    connection.exec_driver_sql(_BEGIN_SNAPSHOT if options.get(_SNAPSHOT) else _BEGIN)
    if connection.info.get(_POOLED):
        connection.exec_driver_sql(_LIMITED)


def _read_as_bytes(
    _connection: object, cursor: Any, _statement: str, _values: object, context: Any, _many: bool
) -> None:
    """Have what our reads find sent as bytes: as text a vector is twice as long and takes three times as long to read.

    SQLAlchemy reads the catalogue as text.
    """
    if context.execution_options.get(_AS_BYTES):
        cursor.format = 1


def _watch_connection(engine: Engine, patience: Mapping[str, Any], connection: Any, _record: object) -> None:
    """End calls of a connection with an error when the server no longer takes new connections."""
    _, given = engine.dialect.create_connect_args(engine.url)
    driver: Any = engine.dialect.loaded_dbapi

    def answers() -> bool:
        """Say whether the server takes a connection; only a timeout says that it does not."""
        try:
            driver.connect(**{**given, **patience}).close()
        except driver.OperationalError as error:
            return not isinstance(error, driver.errors.ConnectionTimeout)
        return True

    _end_when_silent(connection, answers, driver.OperationalError)


def _lock_of(namespace: str) -> int:
    """Return the number of a namespace's advisory lock; two that share one by chance only wait for each other."""
    return int.from_bytes(hashlib.sha256(namespace.encode()).digest()[:8], signed=True)


def _end_when_silent(connection: Any, answers: Callable[[], bool], failure: type[Exception]) -> None:
    """Let calls of a connection (psycopg's) end with `failure` when the server is silent and no longer `answers`.

    `answers` is asked whenever nothing was heard for half a minute: a statement may take its time. The machine of a
    server that is frozen still confirms what we send, so that no limit of TCP ends such a wait.
    """
    wait = connection.wait

    def watched(call: _Call, *given: Any, **named: Any) -> Any:
        """Wait for the server, and look now and then whether it is there."""
        return wait(_watch_call(call, lost), *given, **named)

    def lost() -> None:
        """Break the connection off and raise where the server is silent."""
        if not answers():
            connection.pgconn.finish()
            raise failure("the server is silent")

    connection.wait = watched


def _watch_call(call: _Call, lost: Callable[[], None]) -> _Call:
    """Run a call step by step, and call `lost` each time that the connection was silent for half a minute."""
    ready, until = None, time.monotonic() + _SILENCE
    while True:
        try:
            wanted = call.send(ready)
        except StopIteration as ended:
            return ended.value
        ready = yield wanted
        if not ready and time.monotonic() > until:
            lost()
        if ready or time.monotonic() > until:
            until = time.monotonic() + _SILENCE

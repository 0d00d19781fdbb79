"""What limits are measured by: the size of each namespace, kept by triggers, and the requests of each user and team.

A memory is live until it is forgotten, replaced by another or merged into it; triggers count it whoever writes, so that
replicas of an older version count too. When each request may come is of use for a day at most: PostgreSQL keeps that
without its log, and a crash forgets it.
"""

from __future__ import annotations

from typing import Final

_LIVE: Final = "{row}.deleted_at IS NULL AND {row}.merged_into IS NULL AND {row}.superseded_by IS NULL"
LIVE: Final = _LIVE.format(row="memory")
"""The condition for a memory that counts, but for its expiry."""
_COLUMNS: Final = "content, namespace_id, deleted_at, merged_into, superseded_by"
_BYTES: Final = {"sqlite": "length(CAST({row}.content AS BLOB))", "postgresql": "octet_length({row}.content)"}
"""The bytes of a content as UTF-8, by the name of the database."""
BYTES: Final = {name: counted.format(row="memory") for name, counted in _BYTES.items()}

_SIZE: Final = (
    "CREATE TABLE live_size (namespace_id {whole} PRIMARY KEY, memories {big} NOT NULL, bytes {big} NOT NULL)"
)
_RATE: Final = (
    "CREATE {kind} request_rate (subject text PRIMARY KEY, minute_at bigint NOT NULL, day_at bigint NOT NULL)"
)
_PUT: Final = (
    "INSERT INTO live_size VALUES ({row}.namespace_id, 1, {bytes}) ON CONFLICT (namespace_id) DO UPDATE "
    "SET memories = live_size.memories + 1, bytes = live_size.bytes + excluded.bytes;"
)
_TAKE: Final = (
    "UPDATE live_size SET memories = memories - 1, bytes = bytes - {bytes} WHERE namespace_id = {row}.namespace_id"
)
_PUT_NEW: Final = (
    f"WHEN {_LIVE.format(row='new')} BEGIN {_PUT.format(row='new', bytes=_BYTES['sqlite'].format(row='new'))} END"
)
_TAKE_OLD: Final = (
    f"WHEN {_LIVE.format(row='old')} BEGIN {_TAKE.format(row='old', bytes=_BYTES['sqlite'].format(row='old'))}; END"
)
_POSTGRES_COUNT: Final = f"""CREATE FUNCTION memory_counted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF TG_OP <> 'INSERT' AND {_LIVE.format(row="OLD")} THEN
        {_TAKE.format(row="OLD", bytes=_BYTES["postgresql"].format(row="OLD"))};
    END IF;
    IF TG_OP <> 'DELETE' AND {_LIVE.format(row="NEW")} THEN
        {_PUT.format(row="NEW", bytes=_BYTES["postgresql"].format(row="NEW"))}
    END IF;
    RETURN NULL; END $$"""

SCHEMA: Final = {
    "sqlite": (
        _SIZE.format(whole="INTEGER", big="INTEGER"),
        _RATE.format(kind="TABLE"),
        f"CREATE TRIGGER live_size_insert AFTER INSERT ON memory {_PUT_NEW}",
        f"CREATE TRIGGER live_size_delete AFTER DELETE ON memory {_TAKE_OLD}",
        f"CREATE TRIGGER live_size_leave AFTER UPDATE OF {_COLUMNS} ON memory {_TAKE_OLD}",
        f"CREATE TRIGGER live_size_enter AFTER UPDATE OF {_COLUMNS} ON memory {_PUT_NEW}",
    ),
    "postgresql": (
        _SIZE.format(whole="integer", big="bigint"),
        _RATE.format(kind="UNLOGGED TABLE"),
        _POSTGRES_COUNT,
        f"""CREATE TRIGGER memory_counted AFTER INSERT OR DELETE OR UPDATE OF {_COLUMNS} ON memory
        FOR EACH ROW EXECUTE FUNCTION memory_counted()""",
    ),
}
"""The statements that make tables and triggers, by the name of the database."""

_STATED: Final = {
    name: f"SELECT namespace_id, count(*), sum({size}) FROM memory WHERE {LIVE} GROUP BY namespace_id"  # noqa: S608 - our own text
    for name, size in BYTES.items()
}
_STORED: Final = "SELECT namespace_id, memories, bytes FROM live_size WHERE memories != 0 OR bytes != 0"
FILLED: Final = {
    name: ("DELETE FROM live_size", f"INSERT INTO live_size {counted}") for name, counted in _STATED.items()
}
"""The statements that count everything again, by the name of the database."""
DIFFERS: Final = {
    name: f"SELECT EXISTS ({_STORED} EXCEPT {counted}) OR EXISTS ({counted} EXCEPT {_STORED})"
    for name, counted in _STATED.items()
}
"""Says whether the sizes are not those of the memories, by the name of the database."""

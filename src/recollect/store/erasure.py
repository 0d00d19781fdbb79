"""Look for a person who was deleted in every place of a store: its tables, its indexes, its files, and copies of it.

A receipt says only what this look has found. Ids and names are looked for in every table, passages of the deleted texts
wherever a text can stand.
"""

from __future__ import annotations

import sqlite3
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Table, false, func, or_, select, text

from recollect.domain.enums import own_levels
from recollect.domain.leaving import Choice, Copy, Place
from recollect.domain.limits import Holder, HolderKind
from recollect.errors import RecollectError
from recollect.store.backup import unpacked
from recollect.store.kept_files import KEPT_DAYS, kept_aside
from recollect.store.sql import tables
from recollect.store.sql.child_tables import UNASKED
from recollect.store.sql.database import Database
from recollect.store.sql.departures import DepartureState
from recollect.store.sql.person_rows import MADE, OF_MEMORY, of_person
from recollect.store.sql.request_rates import RATES, rows_of
from recollect.store.sql.statements import in_batches, select_in
from recollect.store.sql.tables import (
    account,
    fact,
    held,
    journal,
    label,
    level_of,
    memory,
    memory_words,
    namespace,
    observation,
    outbox,
    request_outcome,
    session,
    source_rule,
    speaker,
    store_metadata,
    usage_limit,
    withdrawal,
    word,
)
from recollect.store.text.fts5_schema import DELETED_TEXT
from recollect.store.vectors.index import IndexBroken, VectorIndex
from recollect.text.traces import Traces

KEPT: Final = {
    "journal": "Its lines are chained by hashes and stay. They hold names, ids, fields and times, and no text.",
    "namespace": "The name of the personal namespace stays, and nothing in it.",
    "legal_hold": "Who set a hold, and on whom, stays.",
    "retention_rule": "Who set a rule stays.",
    "departure": "The choice, the counts and this receipt stay.",
    "team": "It names no person.",
    "team_project": "It names no person.",
}
"""The tables of which nothing is removed, and why."""
_OF_ACCOUNT: Final = ("token", "identity", "membership", "project_membership")
_TEXT_INDEX: Final = {
    True: ("memory_text_docsize WHERE id", "memory_trigram_docsize WHERE id", "text_length WHERE memory_id"),
    False: ("posting WHERE memory_id",),
}
_SIZES: Final = text("SELECT count(*) FROM text_size WHERE sensitivity IN (:departure, :two)")
_PAGE: Final = 1_000
_BLOCK: Final = 1 << 20  # characters of a file
_OVERLAP: Final = 400
_LOG_FOLDER: Final = "logs"
_ROTTEN: Final = (sqlite3.DatabaseError, RecollectError, OSError, zipfile.BadZipFile)


@dataclass(frozen=True, slots=True)
class Found:
    """What a look has found: each place, each copy, and how many rows of others have the same words."""

    places: tuple[Place, ...]
    copies: tuple[Copy, ...]
    same_words: int


@dataclass(frozen=True)
class StorePlaces:
    """The places of a store: `file` and `folder` of a local store, the journal's mirror, and the folder of backups.

    `backup_days` is how long a backup is kept, 0 where that is not known.
    """

    database: Database
    index: VectorIndex
    file: Path | None
    folder: Path
    mirror: Path | None
    backups: Path | None
    backup_days: float

    def look(self, departure: DepartureState, ids: Sequence[int], namespaces: Sequence[str], traces: Traces) -> Found:
        """Look for a person, for the memories of these ids, and for traces of their texts, in every place."""
        with self.database.reading() as connection:
            known = _others_words(connection, traces)
            rest = traces.without(known.words)
            places = [
                _look_at_table(connection, table, departure, ids, rest) for table in tables.metadata.sorted_tables
            ]
            asked = rows_of(connection, Holder(HolderKind.USER, departure.user))
            places.append(Place(RATES, departure.done.get(RATES, 0), asked))
            places.append(self._look_at_text_index(connection, departure, ids))
        places.append(self._look_at_vectors(departure, ids, namespaces))
        places += self._look_at_files(rest)
        return Found(tuple(places), tuple(self._copies(departure, ids)), known.rows)

    def _look_at_text_index(self, connection: Connection, departure: DepartureState, ids: Sequence[int]) -> Place:
        """Count what the text index holds of these memories, and the sums of the person's own levels."""
        left = 0
        for batch in in_batches(ids):
            numbers = ", ".join(map(str, batch))
            for where in _TEXT_INDEX[self.database.file is not None]:
                left += connection.execute(text(f"SELECT count(*) FROM {where} IN ({numbers})")).scalar_one()  # noqa: S608 - our own ids
        private, secret = own_levels(departure.user)
        left += connection.execute(_SIZES, {"departure": private, "two": secret}).scalar_one()
        due = connection.execute(select(func.count()).where(store_metadata.c.name == DELETED_TEXT)).scalar_one()
        note = "Its files are not rewritten yet, as a reader needs them." if due else ""
        return Place("text index", departure.done.get("memory_words", 0), left + due, note)

    def _look_at_vectors(self, departure: DepartureState, ids: Sequence[int], namespaces: Sequence[str]) -> Place:
        """Count the ids in the collections of the vector index; None where it does not answer."""
        gone, left = set(ids), 0
        try:
            self.index.open()
            for name in namespaces:
                held_ids = self.index.ids(name)
                personal = name == f"user:{departure.user}"
                left += sum(personal or int(chunk.partition(".")[0]) in gone for chunk in held_ids)
        except IndexBroken:
            return Place("vector index", departure.done.get("vector", 0), None, "It did not answer.")
        return Place("vector index", departure.done.get("vector", 0), left)

    def _look_at_files(self, traces: Traces) -> Iterator[Place]:
        """Look for passages in the logs, and in the mirror of the journal."""
        logs = [path for path in sorted((self.folder / _LOG_FOLDER).glob("*")) if path.is_file()]
        yield _look_into_files("log files", logs, traces)
        if self.mirror is not None and self.mirror.is_file():
            yield _look_into_files("journal mirror", [self.mirror], traces)

    def _copies(self, departure: DepartureState, ids: Sequence[int]) -> Iterator[Copy]:
        """Look into the databases that were put aside, and into the backups in their folder."""
        for path, since in kept_aside(self.file).items() if self.file is not None else ():
            yield Copy(str(path), since, _holds(path, departure.user, ids), since + timedelta(days=KEPT_DAYS))
        if self.backups is None or not self.backups.is_dir():
            return
        for path in sorted(path for path in self.backups.rglob("*") if path.is_file()):
            made_at = datetime.fromtimestamp(path.stat().st_mtime, UTC)
            until = made_at + timedelta(days=self.backup_days) if self.backup_days else None
            yield Copy(str(path), made_at, _backup_holds(path, departure.user, ids), until)


@dataclass(frozen=True, slots=True)
class _OthersWords:
    """The traces that stand in what others wrote, and in how many rows."""

    words: frozenset[str]
    rows: int


def _others_words(connection: Connection, traces: Traces) -> _OthersWords:
    """Find the passages that others wrote too: in memories, facts and sessions of theirs."""
    words: set[str] = set()
    rows = 0
    theirs = memory.c.type.is_(None) | memory.c.type.not_in(MADE)
    queries = (
        select(memory.c.content, memory.c.title, memory.c.subtitle, memory.c.abstract, memory.c.overview).where(theirs),
        select(fact.c.subject, fact.c.predicate, fact.c.object),
        select(observation.c.summary, observation.c.draft),
        select(session.c.state),
    )
    for query in queries if len(traces) else ():
        for row in connection.execute(query.execution_options(yield_per=_PAGE)):
            found = traces.found_in(list(row))
            words |= found
            rows += bool(found)
    return _OthersWords(frozenset(words), rows)


def _look_at_table(
    connection: Connection, table: Table, departure: DepartureState, ids: Sequence[int], traces: Traces
) -> Place:
    """Count the rows of a table that are of the person or of these memories, or hold a trace of a text."""
    left = sum(
        connection.execute(select(func.count()).select_from(table).where(condition)).scalar_one()
        for condition in conditions_of(table, departure)
    )
    column = table.c.id if table is memory else table.c.get("memory_id")
    if table in (*OF_MEMORY, memory) and column is not None:
        many = select(func.count()).select_from(table)
        left += sum(row[0] for row in select_in(connection, many, column, ids))
    elif table is request_outcome:
        many = select(func.count()).select_from(table)
        left += sum(row[0] for row in select_in(connection, many, table.c.memory_id, map(str, ids)))
    for query in _texts_of(table) if len(traces) else ():
        rows = connection.execute(query.execution_options(yield_per=_PAGE))
        left += sum(bool(traces.found_in(list(row))) for row in rows)
    return Place(table.name, departure.done.get(table.name, 0), left, KEPT.get(table.name, ""))


def conditions_of(table: Table, departure: DepartureState) -> Sequence[ColumnElement[bool]]:
    """Return the conditions that select what a table still has of a person; none where it never has anything of them.

    What they wrote for others counts where the choice was to erase it.
    """
    user, erased = departure.user, departure.choice is Choice.ERASE
    personal = select(namespace.c.id).where(namespace.c.name == f"user:{user}").scalar_subquery()
    levels = own_levels(user)
    counted = [f"{beginning}{level}" for beginning in ("", UNASKED) for level in levels]
    theirs: Mapping[Table, ColumnElement[bool]] = {
        memory: of_person(user) if erased else _own(memory, personal, levels),
        fact: (fact.c.author == user if erased else false()) | _own(fact, personal, levels),
        held: (held.c.namespace_id == personal) & (held.c.memories != 0) | held.c.sensitivity.in_(levels),
        word: (word.c.namespace_id == personal) | word.c.sensitivity.in_(counted),
        memory_words: memory_words.c.sensitivity.in_(levels),
        speaker: speaker.c.namespace_id == personal,
        session: session.c.owner == f"user:{user}",
        source_rule: (source_rule.c.author == user if erased else false()) | (source_rule.c.namespace_id == personal),
        withdrawal: (withdrawal.c.actor == user if erased else false()) | (withdrawal.c.namespace_id == personal),
        outbox: outbox.c.namespace_id == personal,
        account: account.c.name == user,
        usage_limit: (usage_limit.c.kind == str(HolderKind.USER)) & (usage_limit.c.name == user),
        store_metadata: store_metadata.c.value.endswith(f" user:{user}", autoescape=True),
    }
    if table.name in _OF_ACCOUNT:
        mine = select(account.c.id).where(account.c.name == user)
        return [table.c.account_id.in_(mine)]
    if table is observation:
        mine = select(session.c.id).where(session.c.owner == f"user:{user}")
        return [observation.c.session_row.in_(mine)]
    return [theirs[table]] if table in theirs else []


def _own(table: Table, personal: Any, levels: Sequence[str]) -> ColumnElement[bool]:
    """Select the rows of a personal namespace, and those of levels that are a person's alone."""
    return or_(table.c.namespace_id == personal, level_of(table).in_(levels))


def _texts_of(table: Table) -> Iterator[Any]:
    """Yield a query of the texts of a table in which nothing of a deleted text may stand."""
    if table is memory:
        made = memory.c.type.in_(MADE)
        yield select(memory.c.content, memory.c.title, memory.c.abstract, memory.c.overview).where(made)
    elif table is label:
        yield select(label.c.value).where(label.c.kind == "member")
    elif table is withdrawal:
        yield select(withdrawal.c.undo)
    elif table is request_outcome:
        yield select(request_outcome.c.notes)
    elif table is journal:
        yield select(journal.c.changes)
    elif table is store_metadata:
        yield select(store_metadata.c.value)


def _look_into_files(name: str, paths: Sequence[Path], traces: Traces) -> Place:
    """Count the files that hold a trace, and name them."""
    holding = [path.name for path in paths if len(traces) and _file_holds(path, traces)]
    return Place(name, 0, len(holding), ", ".join(holding))


def _file_holds(path: Path, traces: Traces) -> bool:
    """Say whether a file of text holds a trace; it is read in parts that overlap."""
    with path.open(encoding="utf-8", errors="replace") as stream:
        before = ""
        while block := stream.read(_BLOCK):
            if traces.found_in(before + block):
                return True
            before = block[-_OVERLAP:]
    return False


def _holds(path: Path, user: str, ids: Sequence[int]) -> bool | None:
    """Say whether a database of ours holds something of a person, or these memories; None if it cannot be read."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as database:
            private, secret = own_levels(user)
            query = "SELECT 1 FROM memory WHERE author = ? OR sensitivity IN (?, ?) LIMIT 1"
            if database.execute(query, (user, private, secret)).fetchone() is not None:
                return True
            if database.execute("SELECT 1 FROM session WHERE owner = ? LIMIT 1", (f"user:{user}",)).fetchone():
                return True
            named = "SELECT 1 FROM memory WHERE id IN ({}) LIMIT 1"
            return any(
                database.execute(named.format(", ".join(map(str, batch)))).fetchone() is not None
                for batch in in_batches(ids)
            )
    except sqlite3.DatabaseError:
        return None


def _backup_holds(path: Path, user: str, ids: Sequence[int]) -> bool | None:
    """Say whether a backup of ours holds what a person wrote; None for a file of another kind."""
    try:
        if not zipfile.is_zipfile(path):
            return None
        with unpacked(path) as database:
            return _holds(database, user, ids)
    except _ROTTEN:
        return None

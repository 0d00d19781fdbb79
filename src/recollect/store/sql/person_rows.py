"""What the store holds of a person: where they wrote, how much, and what of it is to be deleted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    case,
    delete,
    func,
    literal_column,
    or_,
    select,
    text,
    union,
    update,
)

from recollect.domain.enums import OF_SESSION, ObservationType, Sensitivity, own_levels
from recollect.domain.limits import Resource
from recollect.store.sql import tables
from recollect.store.sql.database import Database
from recollect.store.sql.limit_schema import BYTES
from recollect.store.sql.statements import in_batches, select_in
from recollect.store.sql.tables import (
    fact,
    held,
    level_of,
    memory,
    namespace,
    observation,
    request_outcome,
    session,
    source_rule,
    withdrawal,
)
from recollect.store.sql.transaction import Transaction
from recollect.store.sql.visibility import alive

OF_MEMORY: Final = tuple(
    table
    for table in tables.metadata.sorted_tables
    if "memory_id" in table.c and table not in (tables.journal, tables.request_outcome)
)
"""The tables whose rows belong to a memory, or name it."""
MADE: Final = (*sorted(map(str, OF_SESSION)), str(ObservationType.COMPRESSED_SUMMARY))
"""The types of what is made of other memories."""
_TEXTS: Final = tuple(memory.c[name] for name in ("content", "title", "subtitle", "abstract", "overview"))
_DROP_SIZES: Final = text("DELETE FROM text_size WHERE memories = 0 AND sensitivity = :level")


@dataclass(frozen=True, slots=True)
class Written:
    """How many memories a person has in a namespace: that others may see there, and that are theirs alone."""

    namespace: str
    shared: int
    private: int


@dataclass(frozen=True, slots=True)
class PersonRows:
    """Reads what a database holds of people."""

    _database: Database

    def written(self, user: str) -> list[Written]:
        """Return how much a person has in each namespace, by its name; all in their personal namespace is theirs."""
        name, own = namespace.c.name, level_of(memory).in_(own_levels(user))
        counts = (func.sum(case((own, 1), else_=0)).label("private"), func.count().label("number"))
        query = select(name, *counts).join(memory, memory.c.namespace_id == namespace.c.id)
        rows = self._database.rows(query.where(of_person(user)).group_by(name).order_by(name))
        return [Written(row.name, row.number - int(row.private), int(row.private)) for row in rows]

    def namespaces(self, user: str) -> list[str]:
        """Return the namespaces in which a person wrote anything that is there now, and their personal namespace."""
        rules = select(source_rule.c.namespace_id).where(source_rule.c.author == user)
        stated = select(fact.c.namespace_id).where(facts_of_person(user))
        wrote = select(memory.c.namespace_id).where(of_person(user))
        away = select(withdrawal.c.namespace_id).where(withdrawal.c.actor == user)
        counted = select(held.c.namespace_id).where(held.c.sensitivity.in_(own_levels(user)))
        mine = or_(namespace.c.id.in_(union(wrote, stated, rules, away, counted)), namespace.c.name == f"user:{user}")
        query = select(namespace.c.name).where(mine).order_by(namespace.c.name)
        return [row.name for row in self._database.rows(query)]

    def authors(self, user: str) -> list[tuple[str, str, str]]:
        """Return namespace, author and level, as it is stored, of all memories and facts of a person, each once.

        Somebody else wrote what was handed over to the person.
        """
        found: set[tuple[str, str, str]] = set()
        for table, mine in ((memory, of_person(user)), (fact, facts_of_person(user))):
            columns = (namespace.c.name, table.c.author, level_of(table).label("level"))
            query = select(*columns).join(table, table.c.namespace_id == namespace.c.id).where(mine).distinct()
            found |= {(row.name, row.author, row.level) for row in self._database.rows(query)}
        return sorted(found)

    def to_hand_over(self, user: str, now: datetime) -> int:
        """Count the public memories of a person's personal namespace that neither are hidden nor have expired."""
        personal = namespace.c.name == f"user:{user}"
        public = memory.c.sensitivity == str(Sensitivity.PUBLIC)
        query = select(func.count()).select_from(memory).join(namespace, memory.c.namespace_id == namespace.c.id)
        return int(self._database.rows(query.where(personal, public, alive(now)))[0][0])

    def size_to_hand_over(self, user: str, now: datetime) -> dict[Resource, int]:
        """Return how much a hand-over of a person's personal namespace adds to what its heir holds."""
        size = literal_column(BYTES[self._database.engine.dialect.name], Integer())
        counts = (func.count().label("memories"), func.coalesce(func.sum(size), 0).label("size"))
        query = select(*counts).select_from(memory)
        personal = select(namespace.c.id).where(namespace.c.name == f"user:{user}").scalar_subquery()
        counted = (memory.c.sensitivity == str(Sensitivity.PUBLIC), alive(now), memory.c.superseded_by.is_(None))
        row = self._database.rows(query.where(memory.c.namespace_id == personal, *counted))[0]
        return {Resource.MEMORIES: int(row.memories), Resource.BYTES: int(row.size)}

    def sessions(self, user: str) -> list[str]:
        """Return the project of each session of a person, as a namespace."""
        query = select(session.c.project).where(session.c.owner == f"user:{user}")
        return [row.project for row in self._database.rows(query)]

    def authored(self, user: str) -> set[int]:
        """Return the ids of the memories that name a person as their author, wherever they are."""
        return {row.id for row in self._database.rows(select(memory.c.id).where(memory.c.author == user))}

    def facts(self, user: str) -> int:
        """Count the facts that a person stated."""
        return int(self._database.rows(select(func.count()).select_from(fact).where(facts_of_person(user)))[0][0])


@dataclass(frozen=True, slots=True)
class PersonWriting:
    """Deletes what a person has in the namespace of an open write transaction."""

    _transaction: Transaction

    def memories(self, user: str) -> list[int]:
        """Return the ids of a person's memories of the transaction's levels, whatever their state."""
        query = select(memory.c.id).where(self._transaction.here(), of_person(user)).order_by(memory.c.id)
        return list(self._transaction.execute(query).scalars())

    def summaries_of_others(self, user: str) -> list[int]:
        """Return the ids of the public summaries that a person has had made of what several people wrote."""
        own = self._transaction
        summing = memory.c.type == str(ObservationType.COMPRESSED_SUMMARY)
        shared = (memory.c.author == user) & (memory.c.sensitivity == str(Sensitivity.PUBLIC)) & summing
        return list(own.execute(select(memory.c.id).where(own.here(), shared)).scalars())

    def whole(self, ids: Iterable[int]) -> list[int]:
        """Return the ids with those of everything that was merged into these memories."""
        found, new = dict.fromkeys(ids), list(ids)
        while new:
            parts = select(memory.c.id)
            rows = select_in(self._transaction.connection, parts, memory.c.merged_into, new)
            new = [row.id for row in rows if row.id not in found]
            found |= dict.fromkeys(new)
        return list(found)

    def texts(self, ids: Collection[int]) -> list[str]:
        """Return the texts of these memories."""
        rows = select_in(self._transaction.connection, select(*_TEXTS), memory.c.id, ids)
        return [value for row in rows for value in row if value]

    def count_rows(self, ids: Collection[int]) -> Counter[str]:
        """Count the rows of each table that are of these memories."""
        connection = self._transaction.connection
        counts = Counter[str]({memory.name: len(ids)})
        for table in OF_MEMORY:
            many = select(func.count()).select_from(table)
            counts[table.name] += sum(row[0] for row in select_in(connection, many, table.c.memory_id, ids))
        return counts

    def take_over(self, memory_id: int) -> None:
        """Let a summary of what others wrote, which a person has had made, be that of the actor."""
        own = self._transaction
        own.execute(update(memory).where(memory.c.id == memory_id).values(author=own.actor))
        own.journal("update", (memory_id, Sensitivity.PUBLIC, {"fields": ["author"]}))

    def drop_facts(self, user: str) -> int:
        """Delete the facts of the transaction's levels that a person stated; return how many."""
        own = self._transaction
        levels = fact.c.namespace_id == own.known_id, level_of(fact).in_(own.levels), facts_of_person(user)
        rows = own.execute(select(fact.c.id, level_of(fact)).where(*levels)).all()
        for batch in in_batches(row.id for row in rows):
            own.execute(delete(fact).where(fact.c.id.in_(batch)))
        own.journal("erase", *((None, row.level, {"fact": row.id}) for row in rows))
        return len(rows)

    def drop_outcomes(self, ids: Iterable[int]) -> int:
        """Delete what is kept of requests about these memories; return how many that were."""
        gone = 0
        for batch in in_batches(map(str, ids)):
            there = delete(request_outcome).where(request_outcome.c.memory_id.in_(batch))
            gone += self._transaction.execute(there).rowcount
        return gone

    def drop_decisions(self, user: str, *, all_of_them: bool) -> Counter[str]:
        """Delete a person's rules for sources and withdrawals, or only take their name from them; count both."""
        own, counts = self._transaction, Counter[str]()
        for table, column in ((source_rule, source_rule.c.author), (withdrawal, withdrawal.c.actor)):
            here = (table.c.namespace_id == own.known_id) & (column == user)
            wanted = delete(table).where(here) if all_of_them else update(table).where(here).values({column.name: ""})
            counts[table.name] = own.execute(wanted).rowcount
        return counts

    def drop_levels(self, user: str) -> int:
        """Delete the counts of the levels that are a person's alone, once nothing is held there."""
        own = self._transaction
        empty = (held.c.namespace_id == own.known_id) & (held.c.memories == 0)
        for level in own_levels(user):
            own.execute(_DROP_SIZES, {"level": level})
        return own.execute(delete(held).where(empty, held.c.sensitivity.in_(own_levels(user)))).rowcount


def drop_sessions(connection: Connection, user: str, seen: Callable[[object], None]) -> Counter[str]:
    """Delete the sessions of a person with what they noted, also where a withdrawal could bring it back; count them.

    `seen` first gets their texts.
    """
    mine = session.c.owner == f"user:{user}"
    texts = select(observation.c.summary, observation.c.draft).join(session, session.c.id == observation.c.session_row)
    for row in connection.execute(texts.where(mine)):
        seen([row.summary, row.draft])
    rows = set(connection.execute(select(session.c.id).where(mine)).scalars())
    counts = Counter[str]({"session": len(rows)})
    noted = select(func.count()).select_from(observation)
    counts["observation"] = sum(row[0] for row in select_in(connection, noted, observation.c.session_row, rows))
    for row in connection.execute(select(withdrawal.c.id, withdrawal.c.undo)).all():
        if any(noted[0] in rows for noted in row.undo.get("texts", ())):
            left = row.undo | {"texts": [noted for noted in row.undo["texts"] if noted[0] not in rows]}
            connection.execute(update(withdrawal).where(withdrawal.c.id == row.id).values(undo=left))
    connection.execute(delete(session).where(mine))
    return counts


def forget_members(connection: Connection, user: str) -> None:
    """Take what a person wrote out of what withdrawals would bring back into summaries."""
    for row in connection.execute(select(withdrawal.c.id, withdrawal.c.undo)).all():
        left = [member for member in row.undo.get("members", ()) if member[1].get("author") != user]
        if len(left) < len(row.undo.get("members", ())):
            undo = row.undo | {"members": left}
            connection.execute(update(withdrawal).where(withdrawal.c.id == row.id).values(undo=undo))


def of_person(user: str) -> ColumnElement[bool]:
    """Select the memories that a person wrote, that are theirs alone, or that lie in their personal namespace."""
    personal = select(namespace.c.id).where(namespace.c.name == f"user:{user}").scalar_subquery()
    own = level_of(memory).in_(own_levels(user))
    return or_(memory.c.author == user, own, memory.c.namespace_id == personal)


def facts_of_person(user: str) -> ColumnElement[bool]:
    """Select the facts that a person stated, that are theirs alone, or that lie in their personal namespace."""
    personal = select(namespace.c.id).where(namespace.c.name == f"user:{user}").scalar_subquery()
    return or_(fact.c.author == user, level_of(fact).in_(own_levels(user)), fact.c.namespace_id == personal)

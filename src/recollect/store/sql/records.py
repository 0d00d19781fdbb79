"""The canonical records in SQL, on SQLite and PostgreSQL alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any, TypeVar

from sqlalchemy import (
    ColumnElement,
    Connection,
    Executable,
    Integer,
    Row,
    Select,
    bindparam,
    delete,
    false,
    func,
    insert,
    select,
)

from recollect.domain.enums import ObservationType, Sensitivity, owned
from recollect.domain.requests import WritableNamespace
from recollect.domain.results import Entity, JournalEntry, Memory, Outcome
from recollect.domain.search import View
from recollect.store.entries import Chunk, UnembeddedMemory
from recollect.store.sql import mapping, store_metadata, tables
from recollect.store.sql.candidate_rows import CandidateRows
from recollect.store.sql.child_tables import held_memories, mark_embedded, replace_chunks, replace_entities
from recollect.store.sql.column_types import UtcDateTime
from recollect.store.sql.consolidation import Consolidation
from recollect.store.sql.database import Database
from recollect.store.sql.dialect import Dialect
from recollect.store.sql.expressions import any_of
from recollect.store.sql.facts import Facts
from recollect.store.sql.list_queries import Lists
from recollect.store.sql.moments import Moments
from recollect.store.sql.overview import CountedViews, Overview
from recollect.store.sql.query_facts import QueryFacts, query_facts
from recollect.store.sql.reviews import Reviews
from recollect.store.sql.statements import count, in_batches, insert_all, select_in
from recollect.store.sql.tables import memory
from recollect.store.sql.visibility import (
    HERE,
    LEVELS,
    inside,
    namespace_ids,
    of_levels,
    of_lines,
    passing,
    run_visible,
    shown,
    values_of,
    visible,
)
from recollect.store.sql.writing import OF_NOTHING, Writing, previous_outcome

N = TypeVar("N", bound=str)

_FLOAT = 4  # bytes
_EMBEDDING = "embedding"  # what is claimed of a memory
PUBLIC_ONLY = (str(Sensitivity.PUBLIC),)

_by_id = any_of(memory.c.id, mapping.IDS)
_MEMORIES = mapping.MEMORIES.where(_by_id)
_CONTENTS, _ABSTRACTS = (select(memory.c.id, one).where(_by_id) for one in (memory.c.content, memory.c.abstract))
_queued = tables.outbox.c.memory_id
_waiting = select(_queued).join(memory, memory.c.id == _queued).where(tables.outbox.c.embedded.is_(False))
_waiting = _waiting.group_by(_queued).order_by(_queued).limit(bindparam("limit"))
_waiting_here = _waiting.where(any_of(tables.outbox.c.namespace_id, HERE), any_of(memory.c.sensitivity, LEVELS))
_unembedded = select(memory.c.id, memory.c.content, memory.c.content_hash).order_by(memory.c.id)
_UNEMBEDDED, _UNEMBEDDED_HERE = (_unembedded.where(memory.c.id.in_(one)) for one in (_waiting, _waiting_here))
_WAITING = _waiting.where(_queued > bindparam("after"))
_claimed = select(_queued).where(tables.outbox.c.embedded.is_(False), any_of(_queued, mapping.IDS))
_CLAIMED = _unembedded.where(memory.c.id.in_(_claimed))


@lru_cache
def _counting(dialect: Dialect) -> Executable:
    """Return the statement that adds `accessed` and `recalled` to what is counted of the memories `ids`."""
    numbers = (bindparam(name, type_=Integer) for name in ("accessed", "recalled"))
    known = select(memory.c.id, *numbers, bindparam("at", type_=UtcDateTime)).where(_by_id).order_by(memory.c.id)
    names = ["memory_id", "accessed_count", "recalled_count", "last_accessed_at"]
    held = known.with_for_update(read=True, key_share=True, skip_locked=True)
    counted = dialect.insert(tables.usage).from_select(names, held)
    more = {name: tables.usage.c[name] + counted.excluded[name] for name in names[1:3]}
    latest = {"last_accessed_at": counted.excluded["last_accessed_at"]}
    statement: Executable = counted.on_conflict_do_update(index_elements=["memory_id"], set_=more | latest)
    return statement


@dataclass(eq=False)
class Records:
    """Reads memories and opens transactions that write them.

    `clock` dates what is written, `written` is called after each commit that left work.

    `model` is what the store must be stamped with for our vectors to be stored; without it that is not looked at.

    What else is read lies with its subject: `lists`, `overview`, `moments`, `facts`, `consolidation` and `reviews`.
    """

    _database: Database
    _clock: Callable[[], datetime]
    _written: Callable[[], None]
    _model: Mapping[str, str] | None = None
    lists: Lists = field(init=False)
    overview: Overview = field(init=False)
    moments: Moments = field(init=False)
    facts: Facts = field(init=False)
    consolidation: Consolidation = field(init=False)
    reviews: Reviews = field(init=False)

    def __post_init__(self) -> None:
        counted = CountedViews()
        self.lists, self.moments, self.facts = Lists(self._database), Moments(self._database), Facts(self._database)
        self.consolidation = Consolidation(self._database)
        self.overview, self.reviews = Overview(self._database, counted), Reviews(self._database, counted)

    @contextmanager
    def writing(
        self, namespace: WritableNamespace, actor: str, levels: Sequence[str] = PUBLIC_ONLY
    ) -> Iterator[Writing]:
        """Open one write transaction on `namespace`; nothing of it exists before the block has ended well.

        What is of none of the `levels` of sensitivity does not exist for it.
        """
        with self._database.writing(namespace) as connection:
            transaction = self._open(connection, namespace, actor, levels)
            yield transaction
        if transaction.changed:
            self._written()

    @contextmanager
    def importing(
        self,
        namespaces: Sequence[WritableNamespace],
        actor: str,
        levels: Sequence[str] = PUBLIC_ONLY,
        *,
        dry: bool = False,
    ) -> Iterator[dict[str, Writing]]:
        """Open one write transaction on several namespaces, by their names; a `dry` one leaves nothing behind."""
        with self._database.writing(*namespaces) as connection, connection.begin_nested() as inner:
            yield {name: self._open(connection, name, actor, levels) for name in namespaces}
            if dry:
                inner.rollback()

    def request_sync(self) -> None:
        """Have embeddings, vector index and journal file follow what was imported, soon and in the background."""
        self._written()

    def _open(self, connection: Connection, namespace: str, actor: str, levels: Sequence[str] = ()) -> Writing:
        embeds = store_metadata.embeds(connection, self._model)
        own = [owned(level, actor) for level in levels]
        return Writing(connection, self._database.dialect, namespace, actor, own, self._clock(), embeds)

    def snapshot(self) -> AbstractContextManager[object]:
        """Let all reads of this thread, share one transaction until the block ends."""
        return self._database.reading()

    def refuse(
        self,
        namespace: WritableNamespace,
        actor: str,
        field: str,
        kinds: Sequence[str],
        level: str = Sensitivity.PUBLIC,
    ) -> None:
        """Journal that the gate refused a write of this level: the field and the kinds, never a value."""
        with self._database.writing(namespace) as connection:
            self._open(connection, namespace, actor).refuse(field, kinds, level)
        self._written()

    def previous_outcome(
        self, namespaces: Sequence[str], actor: str, operation: str, request_id: str
    ) -> Outcome | None:
        """Return how this very request ended in one of these namespaces; None for an empty id."""
        with self._database.reading() as connection:
            return previous_outcome(connection, namespaces, actor, operation, request_id)

    def known_hashes(self, namespace: str, hashes: Iterable[str], levels: Sequence[str] = PUBLIC_ONLY) -> set[str]:
        """Return those of `hashes` that are the content of a memory of this namespace and of these levels."""
        with self._database.reading() as connection:
            let_in = of_levels(memory.c.sensitivity, levels, away=True)
            query = select(memory.c.content_hash).where(inside(connection, [namespace]), let_in)
            return {row.content_hash for row in select_in(connection, query, memory.c.content_hash, hashes)}

    def load(self, ids: Iterable[int], view: View) -> dict[int, Memory]:
        """Read those memories of `ids` that `view` may see; this is the authority on what leaves the store."""
        with self._database.reading() as connection:
            found = self._seen(_MEMORIES, ids, view)
            return {one.id: one for one in mapping.memories(connection, found, view.sensitivities)}

    def query_facts(self, words: Collection[str], names: Collection[str], view: View) -> QueryFacts:
        """Read what a view may know of the words of a query, and of the speakers who have one of the folded `names`."""
        with self._database.reading() as connection:
            return query_facts(connection, words, names, view)

    def candidates(self, view: View) -> CandidateRows:
        """Return no rows yet of what a recall ranks, and `view` may see."""
        return CandidateRows(view)

    def read_candidates(self, rows: CandidateRows, ids: Collection[int], far: Collection[int]) -> None:
        """Add to `rows` these memories and what stands beside them, up to two places away from the `far`."""
        with self._database.reading() as connection:
            rows.read(connection, ids, far)

    def contents(self, ids: Iterable[int], view: View) -> dict[int, str]:
        """Read the content of those memories of `ids` that `view` may see, and nothing else of them."""
        return dict(map(tuple, self._seen(_CONTENTS, ids, view)))

    def abstracts(self, ids: Iterable[int], view: View) -> dict[int, str]:
        """Read the one-line abstract of those memories of `ids` that `view` may see, and nothing else of them."""
        return dict(map(tuple, self._seen(_ABSTRACTS, ids, view)))

    def merged_from(self, memory_id: int, view: View) -> tuple[int, ...]:
        """Return the ids of what was merged into a memory, as far as `view` may see that, oldest first."""
        parts = select(memory.c.id).where(memory.c.merged_into == memory_id).order_by(memory.c.id)
        with self._database.reading() as connection:
            return tuple(connection.execute(parts.where(visible(connection, view))).scalars())

    def _seen(self, query: Select[Any], ids: Iterable[int], view: View) -> Sequence[Row[Any]]:
        """Read what `view` may see of the memories of `ids`."""
        with self._database.reading() as connection:
            return run_visible(connection, query, view, ids=ids).all()

    def existing_namespaces(self, namespaces: Sequence[N]) -> tuple[N, ...]:
        """Return those of `namespaces` in which something was ever stored."""
        with self._database.reading() as connection:
            found = namespace_ids(connection, namespaces)
        return tuple(one for one in namespaces if one in found)

    def project_namespaces(self, team: str) -> tuple[str, ...]:
        """Return the namespaces of all projects of a team in which something was ever stored, by their names."""
        name = tables.namespace.c.name
        mine = select(name).where(name.startswith(f"project:{team}/", autoescape=True)).order_by(name)
        with self._database.reading() as connection:
            return tuple(connection.execute(mine).scalars())

    def newest(self, view: View, limit: int) -> list[int]:
        """Return those `limit` memories that `view` may see and that were stored last."""
        with self._database.reading() as connection:
            query = passing(view).order_by(memory.c.id.desc()).limit(limit)
            return list(connection.execute(query, values_of(connection, view)).scalars())

    def count(self, view: View) -> int:
        """Count the memories that `view` may see."""
        with self._database.reading() as connection:
            return count(connection, memory, visible(connection, view), inside(connection, view.namespaces))

    def counts(self, view: View) -> Counter[str]:
        """Count the memories that `view` may see in each of its namespaces, in one query."""
        name = tables.namespace.c.name
        each = select(name, func.count()).join(memory, memory.c.namespace_id == tables.namespace.c.id).group_by(name)
        with self._database.reading() as connection:
            here = each.where(visible(connection, view), inside(connection, view.namespaces))
            return Counter(dict(map(tuple, connection.execute(here))))

    def namespace_of(
        self, memory_id: int, namespaces: Sequence[str], levels: Sequence[str] = PUBLIC_ONLY
    ) -> str | None:
        """Return the one of `namespaces` that holds the memory, whatever its state, if it is of one of `levels`."""
        found = self._home(memory_id, of_levels(memory.c.sensitivity, levels, away=True))
        return found if found in namespaces else None

    def touch(self, ids: Sequence[int], at: datetime, *, accessed: int = 0, recalled: int = 0) -> None:
        """Add so many uses to each memory; no writer is waited for, and one that is being deleted is left out."""
        values = {"ids": ids, "accessed": accessed, "recalled": recalled, "at": at}
        with self._database.writing() as connection:
            connection.execute(_counting(self._database.dialect), values)

    def drop_outcomes(self, before: datetime) -> None:
        """Drop the outcomes of requests older than `before`: nobody retries those any more.

        Those that name no memory stay: they say that something was done once and for all.
        """
        kept = tables.request_outcome
        with self._database.writing() as connection:
            connection.execute(delete(kept).where((kept.c.at < before) & (kept.c.memory_id != OF_NOTHING)))

    def history(
        self, memory_id: int, namespaces: Sequence[str], levels: Sequence[str] = PUBLIC_ONLY
    ) -> list[JournalEntry]:
        """Return the journal of one memory, oldest first, as far as it lies in `namespaces` and was of these levels."""
        mine = (tables.journal.c.memory_id == memory_id) & tables.journal.c.namespace.in_(namespaces)
        with self._database.reading() as connection:
            return mapping.lines(connection, mine & of_lines(levels))

    def unembedded(self, limit: int, view: View | None = None) -> list[UnembeddedMemory]:
        """Return memories, all or what the view may know of, that were written before the model was ready, in order."""
        with self._database.reading() as connection:
            here = {} if view is None else values_of(connection, view)
            query = _UNEMBEDDED if view is None else _UNEMBEDDED_HERE
            found = connection.execute(query, here | {"limit": limit}).all()
            ours = found and store_metadata.embeds(connection, self._model)
            return [UnembeddedMemory(*row) for row in found] if ours else []

    @contextmanager
    def claiming_unembedded(self, limit: int) -> Iterator[list[UnembeddedMemory]]:
        """Give the next memories that wait for the model; no other process is given them until the block ends.

        None are given where all that wait are with others. Writers wait for nobody's claim.
        """
        after = 0
        while True:
            with self._database.reading() as connection:
                waiting = list(connection.execute(_WAITING, {"after": after, "limit": limit}).scalars())
            if not waiting:
                yield []
                return
            with self._database.claiming(_EMBEDDING, map(str, waiting)) as ours:
                with self._database.reading() as connection:  # another may have embedded some of them since
                    found = connection.execute(_CLAIMED, {"ids": [int(one) for one in ours]}).all() if ours else []
                    known = store_metadata.embeds(connection, self._model)
                if found or not known:
                    yield [UnembeddedMemory(*row) for row in found] if known else []
                    return
            after = waiting[-1]

    def store_vectors(self, one: UnembeddedMemory, chunks: tuple[Chunk, ...]) -> None:
        """Store the vectors of a memory, unless its content has changed since it was read."""
        namespace = self._home(one.id)
        if namespace is None:
            return
        with self._database.writing(namespace) as connection:
            found = connection.execute(select(memory.c.content_hash).where(memory.c.id == one.id)).scalar()
            if found == one.content_hash and store_metadata.embeds(connection, self._model):
                replace_chunks(connection, one.id, chunks, one.content_hash)
                mark_embedded(connection, one.id)
        self._written()

    def stamp(self, name: str) -> str | None:
        """Return what the store knows of itself under `name`."""
        with self._database.reading() as connection:
            return store_metadata.read(connection).get(name)

    def set_stamps(self, values: Mapping[str, str]) -> None:
        """Write several stamps at once."""
        with self._database.exclusive() as connection:
            store_metadata.write(connection, values)

    def recount(self, words_of: Callable[[str], frozenset[str]]) -> None:
        """Count the memories of every namespace again, and file its speakers under the words of their names."""
        named = memory.c.speaker.is_not(None)
        speakers = select(memory.c.namespace_id, memory.c.speaker).where(named).distinct()
        with self._database.exclusive() as connection:
            connection.execute(delete(tables.held))
            counted = (
                {"namespace_id": number, "sensitivity": level, "memories": many}
                for (number, level), many in held_memories(connection).items()
            )
            insert_all(connection, tables.held, counted)
            connection.execute(delete(tables.speaker))
            values = [
                {"namespace_id": number, "name": name, "word": word}
                for number, name in connection.execute(speakers)
                for word in sorted(words_of(name))
            ]
            insert_all(connection, tables.speaker, values)

    def replace_entities(self, entities_of: Callable[[str], Sequence[Entity]]) -> None:
        """Note anew what each memory names, in short steps so that writers get by.

        A summary goes on naming what its members name.
        """
        other = func.coalesce(memory.c.type, "") != str(ObservationType.COMPRESSED_SUMMARY)
        with self._database.reading() as connection:
            ids = connection.execute(select(memory.c.id).where(other).order_by(memory.c.id)).scalars().all()
        for batch in in_batches(ids):
            with self._database.exclusive() as connection:
                mine = select(memory.c.id, memory.c.content).where(memory.c.id.in_(batch))
                for memory_id, content in connection.execute(mine).all():
                    replace_entities(connection, memory_id, entities_of(content))

    def queue_unembedded(self, dimensions: int) -> tuple[int, int]:
        """Queue each memory without vectors of this size; return how many memories wait, and how many there are."""
        vector, outbox = tables.vector.c, tables.outbox.c
        mine = select(func.count()).where(vector.memory_id == memory.c.id)
        held, sound = mine.scalar_subquery(), func.length(vector.embedding) == dimensions * _FLOAT
        fit = mine.where(sound).scalar_subquery()
        waiting = select(outbox.memory_id).where(outbox.embedded.is_(False))
        lacking = select(memory.c.id, memory.c.namespace_id, held, false()).where(
            shown(), (held == 0) | (fit < held), memory.c.id.not_in(waiting)
        )
        columns = ["memory_id", "namespace_id", "chunks", "embedded"]
        with self._database.exclusive() as connection:
            connection.execute(insert(tables.outbox).from_select(columns, lacking))
            queued = select(func.count(outbox.memory_id.distinct())).where(outbox.embedded.is_(False))
            return connection.execute(queued).scalar_one(), count(connection, memory, shown())

    def _home(self, memory_id: int, *conditions: ColumnElement[bool]) -> str | None:
        """Return the namespace of a memory that meets the conditions."""
        query = select(tables.namespace.c.name).join(memory, memory.c.namespace_id == tables.namespace.c.id)
        with self._database.reading() as connection:
            return connection.execute(query.where(memory.c.id == memory_id, *conditions)).scalar()

"""The canonical records in SQL, on SQLite and PostgreSQL alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime

from sqlalchemy import Connection, delete, false, func, insert, select, update

from recollect.domain import (
    Entity,
    Fact,
    FactQuery,
    JournalEntry,
    Memory,
    Order,
    Sensitivity,
    Standing,
    Stats,
    View,
)
from recollect.ports import Chunk, Unembedded
from recollect.store import facts, journal, lists, rows, stamps
from recollect.store.children import mark_embedded, name_anew, replace_chunks
from recollect.store.database import Database
from recollect.store.writing import SqlWriting

_FLOAT = 4  # bytes


class SqlRecords:
    """The `Records` port; `clock` dates what is written, `written` is told after each commit that left work.

    `model` is what the store must be stamped with for our vectors to be stored; without it that is not looked at.
    """

    def __init__(
        self,
        database: Database,
        clock: Callable[[], datetime],
        written: Callable[[], None],
        model: Mapping[str, str] | None = None,
    ) -> None:
        self._database = database
        self._clock = clock
        self._written = written
        self._model = model

    @contextmanager
    def writing(self, namespace: str, actor: str) -> Iterator[SqlWriting]:
        """Open one write transaction on `namespace`; nothing of it exists before the block has ended well."""
        with self._database.writing() as connection:
            embeds = self._embeds(connection)
            transaction = SqlWriting(connection, namespace, actor, self._clock(), embeds=embeds)
            yield transaction
        if transaction.changed:
            self._written()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let all reads of this thread, through whatever port, share one transaction until the block ends."""
        with self._database.reading():
            yield

    def refuse(self, namespace: str, actor: str, field: str, kinds: Sequence[str]) -> None:
        """Journal that the gate refused a write: the field and the kinds, never a value."""
        with self._database.writing() as connection:
            journal.append(
                connection,
                at=self._clock(),
                actor=actor,
                namespace=namespace,
                action="refuse",
                memory_id=None,
                changes={"field": field, "kinds": list(kinds)},
            )
        self._written()

    def load(self, ids: Iterable[int], view: View) -> dict[int, Memory]:
        """Read those memories of `ids` that `view` may see; this is the authority on what leaves the store."""
        with self._database.reading() as connection:
            seen = rows.visible(view, rows.namespace_ids(connection, view.namespaces).values())
            found = (rows.load(connection, rows.memory.c.id.in_(batch) & seen) for batch in rows.in_batches(ids))
            return {memory.id: memory for part in found for memory in part}

    def existing(self, namespaces: Sequence[str]) -> tuple[str, ...]:
        """Return those of `namespaces` in which something was ever stored."""
        with self._database.reading() as connection:
            return tuple(rows.namespace_ids(connection, namespaces))

    def speakers(self, view: View, words: Iterable[str]) -> list[str]:
        """Return who said or did something in the view's namespaces and has one of `words`, folded, in their name."""
        found: set[str] = set()
        with self._database.reading() as connection:
            mine = rows.speaker.c.namespace_id.in_(rows.namespace_ids(connection, view.namespaces).values())
            for batch in rows.in_batches(words):
                query = select(rows.speaker.c.name).where(mine, rows.speaker.c.word.in_(batch))
                found.update(connection.execute(query).scalars())
        return sorted(found)

    def standings(self, ids: Iterable[int], view: View) -> list[Standing]:
        """Read what ranking needs of those memories of `ids` that `view` may see."""
        with self._database.reading() as connection:
            seen = rows.visible(view, rows.namespace_ids(connection, view.namespaces).values())
            found = (rows.standings(connection, rows.memory.c.id.in_(batch) & seen) for batch in rows.in_batches(ids))
            return [one for part in found for one in part]

    def contents(self, ids: Iterable[int], view: View) -> dict[int, str]:
        """Read the content of those memories of `ids` that `view` may see, and nothing else of them."""
        return self._column("content", ids, view)

    def abstracts(self, ids: Iterable[int], view: View) -> dict[int, str]:
        """Read the one-line abstract of those memories of `ids` that `view` may see, and nothing else of them."""
        return self._column("abstract", ids, view)

    def _column(self, name: str, ids: Iterable[int], view: View) -> dict[int, str]:
        found: dict[int, str] = {}
        with self._database.reading() as connection:
            seen = rows.visible(view, rows.namespace_ids(connection, view.namespaces).values())
            for batch in rows.in_batches(ids):
                query = select(rows.memory.c.id, rows.memory.c[name]).where(rows.memory.c.id.in_(batch) & seen)
                found |= {row[0]: row[1] for row in connection.execute(query)}
        return found

    def neighbours(self, ids: Iterable[int], view: View, reach: int = 1) -> dict[int, tuple[int, ...]]:
        """Return for each memory of `ids` what `view` may see up to `reach` places from it in its session.

        The nearest come first, and of those as near the earlier one; a memory without neighbours is absent.
        """
        found: dict[int, tuple[int, ...]] = {}
        with self._database.reading() as connection:
            seen = rows.visible(view, rows.namespace_ids(connection, view.namespaces).values())
            for batch in rows.in_batches(ids):
                for one, neighbour in rows.neighbours(connection, batch, reach, seen):
                    found[one] = (*found.get(one, ()), neighbour)
        return found

    def newest(self, view: View, limit: int) -> list[int]:
        """Return those `limit` memories that `view` may see and that were stored last."""
        with self._database.reading() as connection:
            passing = rows.passing(view, rows.namespace_ids(connection, view.namespaces).values())
            return list(connection.execute(passing.order_by(rows.memory.c.id.desc()).limit(limit)).scalars())

    def count(self, view: View) -> int:
        """Count the memories that `view` may see."""
        with self._database.reading() as connection:
            numbers = rows.namespace_ids(connection, view.namespaces).values()
            seen = rows.visible(view, numbers) & rows.inside(numbers)
            return connection.execute(select(func.count()).select_from(rows.memory).where(seen)).scalar_one()

    def locate(self, memory_id: int, namespaces: Sequence[str]) -> str | None:
        """Return the one of `namespaces` that holds the memory, whatever its state."""
        query = (
            select(rows.namespace.c.name)
            .join(rows.memory, rows.memory.c.namespace_id == rows.namespace.c.id)
            .where(rows.memory.c.id == memory_id, rows.namespace.c.name.in_(namespaces))
        )
        with self._database.reading() as connection:
            return connection.execute(query).scalar()

    def touch(self, ids: Sequence[int], at: datetime, *, accessed: bool) -> None:
        """Count one use of each memory: read by id (`accessed`), or recalled as a hit."""
        column = rows.usage.c.accessed_count if accessed else rows.usage.c.recalled_count
        with self._database.writing() as connection:
            known = set(connection.execute(select(rows.memory.c.id).where(rows.memory.c.id.in_(ids))).scalars())
            used = set(
                connection.execute(select(rows.usage.c.memory_id).where(rows.usage.c.memory_id.in_(ids))).scalars()
            )
            if fresh := known - used:
                zero = {"accessed_count": 0, "recalled_count": 0}
                connection.execute(insert(rows.usage), [{"memory_id": one} | zero for one in sorted(fresh)])
            mine = rows.usage.c.memory_id.in_(known)
            connection.execute(update(rows.usage).where(mine).values({column: column + 1, "last_accessed_at": at}))

    def listed(self, view: View, order: Order, limit: int, offset: int) -> list[int]:
        """Return one page of what `view` may see, in `order`."""
        with self._database.reading() as connection:
            return lists.page(connection, view, order, limit, offset)

    def stats(self, view: View) -> Stats:
        """Count what the view's namespaces hold."""
        with self._database.reading() as connection:
            return lists.stats(connection, view)

    def facts(self, query: FactQuery, view: View) -> tuple[list[Fact], int]:
        """Return one page of the facts that `view` may see and `query` asks for, and how many there are."""
        with self._database.reading() as connection:
            return facts.search(connection, query, view)

    def prolong(self, ids: Sequence[int], at: datetime, actor: str) -> None:
        """Let those of `ids` that are important, and expire because of their importance, live on from `at`."""
        with self._database.writing() as connection:
            lists.prolong(connection, ids, at, actor)

    def forget_answers(self, before: datetime) -> None:
        """Drop the outcomes of requests older than `before`: nobody retries those any more."""
        with self._database.writing() as connection:
            connection.execute(delete(rows.answered).where(rows.answered.c.at < before))

    def history(
        self, memory_id: int, namespaces: Sequence[str], levels: Sequence[Sensitivity] = tuple(Sensitivity)
    ) -> list[JournalEntry]:
        """Return the journal of one memory, oldest first, as far as it lies in `namespaces` and `levels` let it in."""
        with self._database.reading() as connection:
            return journal.history(connection, memory_id, namespaces, levels)

    def unembedded(self, limit: int, namespaces: Sequence[str] | None = None) -> list[Unembedded]:
        """Return memories, of `namespaces` or of all, that were written before the model was ready, oldest first."""
        queued = rows.outbox.c.memory_id
        waiting = (
            select(queued)
            .join(rows.memory, rows.memory.c.id == queued)
            .where(rows.outbox.c.embedded.is_(False))
            .group_by(queued)
            .order_by(queued)
            .limit(limit)
        )
        columns = (rows.memory.c.id, rows.memory.c.content, rows.memory.c.content_hash)
        with self._database.reading() as connection:
            if namespaces is not None:
                numbers = rows.namespace_ids(connection, namespaces).values()
                waiting = waiting.where(rows.outbox.c.namespace_id.in_(numbers))
            query = select(*columns).where(rows.memory.c.id.in_(waiting)).order_by(rows.memory.c.id)
            return [Unembedded(*row) for row in connection.execute(query)] if self._embeds(connection) else []

    def attach(self, one: Unembedded, chunks: tuple[Chunk, ...]) -> None:
        """Store the vectors of a memory, unless its content has changed since it was read."""
        with self._database.writing() as connection:
            mine = rows.memory.c.id == one.id
            found = connection.execute(select(rows.memory.c.content_hash).where(mine)).scalar()
            if found == one.content_hash and self._embeds(connection):
                replace_chunks(connection, one.id, chunks)
                mark_embedded(connection, one.id)
        self._written()

    def stamp(self, name: str) -> str | None:
        """Return what the store knows of itself under `name`."""
        with self._database.reading() as connection:
            return connection.execute(select(rows.stamp.c.value).where(rows.stamp.c.name == name)).scalar()

    def set_stamps(self, values: Mapping[str, str]) -> None:
        """Write several stamps at once."""
        with self._database.writing() as connection:
            stamps.write(connection, values)

    def recount(self, words_of: Callable[[str], frozenset[str]]) -> None:
        """Count the memories of every namespace again, and file its speakers under the words of their names."""
        memory, held = rows.memory.c, rows.memory.c.namespace_id == rows.namespace.c.id
        speakers = select(memory.namespace_id, memory.speaker).where(memory.speaker.is_not(None)).distinct()
        with self._database.writing() as connection:
            count = select(func.count()).select_from(rows.memory).where(held).scalar_subquery()
            connection.execute(update(rows.namespace).values(memories=count))
            connection.execute(delete(rows.speaker))
            values = [
                {"namespace_id": number, "name": name, "word": word}
                for number, name in connection.execute(speakers)
                for word in sorted(words_of(name))
            ]
            for batch in rows.in_batches(values):
                connection.execute(insert(rows.speaker), batch)

    def name_entities(self, entities_of: Callable[[str], Sequence[Entity]]) -> None:
        """Note anew what each memory names, in short steps so that writers get by."""
        with self._database.reading() as connection:
            ids = connection.execute(select(rows.memory.c.id).order_by(rows.memory.c.id)).scalars().all()
        for batch in rows.in_batches(ids):
            with self._database.writing() as connection:
                mine = select(rows.memory.c.id, rows.memory.c.content).where(rows.memory.c.id.in_(batch))
                for memory_id, content in connection.execute(mine).all():
                    name_anew(connection, memory_id, entities_of(content))

    def queue_unread(self, dimensions: int) -> tuple[int, int]:
        """Queue each memory that has no vectors, or some of another size; return how many wait, and how many there are.

        Both count memories; what was queued already waits too.
        """
        memory, vector = rows.memory.c, rows.vector.c
        mine = select(func.count()).where(vector.memory_id == memory.id)
        held, sound = mine.scalar_subquery(), func.length(vector.embedding) == dimensions * _FLOAT
        fit = mine.where(sound).scalar_subquery()
        waiting = select(rows.outbox.c.memory_id).where(rows.outbox.c.embedded.is_(False))
        lacking = select(memory.id, memory.namespace_id, held, false()).where(
            rows.shown(), (held == 0) | (fit < held), memory.id.not_in(waiting)
        )
        with self._database.writing() as connection:
            columns = ["memory_id", "namespace_id", "chunks", "embedded"]
            connection.execute(insert(rows.outbox).from_select(columns, lacking))
            queued = select(func.count(rows.outbox.c.memory_id.distinct())).where(rows.outbox.c.embedded.is_(False))
            every = select(func.count()).select_from(rows.memory).where(rows.shown())
            return connection.execute(queued).scalar_one(), connection.execute(every).scalar_one()

    def _embeds(self, connection: Connection) -> bool:
        """Say whether the store is still of the model that this process reads with."""
        return stamps.embeds(connection, self._model)

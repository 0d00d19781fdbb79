"""The canonical records in SQL, on SQLite and PostgreSQL alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime

from sqlalchemy import Connection, delete, false, func, insert, select, update

from recollect.domain import JournalEntry, Memory, Standing, View
from recollect.ports import Chunk, Unembedded
from recollect.store import journal, rows
from recollect.store.database import Database
from recollect.store.writing import SqlWriting, mark_embedded, replace_chunks


class SqlRecords:
    """The `Records` port; `clock` dates what is written, `written` is told after each commit that left work."""

    def __init__(self, database: Database, clock: Callable[[], datetime], written: Callable[[], None]) -> None:
        self._database = database
        self._clock = clock
        self._written = written

    @contextmanager
    def writing(self, namespace: str, actor: str) -> Iterator[SqlWriting]:
        """Open one write transaction on `namespace`; nothing of it exists before the block has ended well."""
        with self._database.writing() as connection:
            transaction = SqlWriting(connection, namespace, actor, self._clock())
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

    def forget_answers(self, before: datetime) -> None:
        """Drop the outcomes of requests older than `before`: nobody retries those any more."""
        with self._database.writing() as connection:
            connection.execute(delete(rows.answered).where(rows.answered.c.at < before))

    def history(self, memory_id: int, namespaces: Sequence[str]) -> list[JournalEntry]:
        """Return the journal of one memory, oldest first, as far as it lies in `namespaces`."""
        with self._database.reading() as connection:
            return journal.history(connection, memory_id, namespaces)

    def unembedded(self, limit: int) -> list[Unembedded]:
        """Return memories that were written before the embedding model was ready, oldest first."""
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
        query = select(*columns).where(rows.memory.c.id.in_(waiting)).order_by(rows.memory.c.id)
        with self._database.reading() as connection:
            return [Unembedded(*row) for row in connection.execute(query)]

    def attach(self, one: Unembedded, chunks: tuple[Chunk, ...]) -> None:
        """Store the vectors of a memory, unless its content has changed since it was read."""
        with self._database.writing() as connection:
            mine = rows.memory.c.id == one.id
            if connection.execute(select(rows.memory.c.content_hash).where(mine)).scalar() == one.content_hash:
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
            _stamp(connection, values)

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

    def forget_vectors(self, stamps: Mapping[str, str]) -> int:
        """Drop every vector, queue every memory for embedding and stamp the store; return how many are queued."""
        held = select(func.count()).where(rows.vector.c.memory_id == rows.memory.c.id).scalar_subquery()
        everything = select(rows.memory.c.id, rows.memory.c.namespace_id, held, false())
        waiting = rows.outbox.c.memory_id.in_(select(rows.memory.c.id))
        with self._database.writing() as connection:
            connection.execute(update(rows.outbox).where(waiting).values(embedded=False))
            columns = ["memory_id", "namespace_id", "chunks", "embedded"]
            connection.execute(insert(rows.outbox).from_select(columns, everything))
            queued = connection.execute(select(func.count()).select_from(rows.memory)).scalar_one()
            connection.execute(delete(rows.vector))
            _stamp(connection, stamps)
        self._written()
        return queued


def _stamp(connection: Connection, values: Mapping[str, str]) -> None:
    connection.execute(delete(rows.stamp).where(rows.stamp.c.name.in_(values)))
    connection.execute(insert(rows.stamp), [{"name": name, "value": value} for name, value in values.items()])

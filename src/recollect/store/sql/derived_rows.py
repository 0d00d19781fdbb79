"""Rows that are made of memories and can be made anew: their numbers, the words of speakers' names, and entities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlalchemy import delete, func, select, text

from recollect.domain.enums import ObservationType
from recollect.domain.results import Entity
from recollect.store.sql import limit_schema, tables
from recollect.store.sql.child_tables import count_by_namespace_and_level, replace_entities
from recollect.store.sql.database import Database
from recollect.store.sql.statements import in_batches, insert_all
from recollect.store.sql.tables import memory


@dataclass(frozen=True, slots=True)
class DerivedRows:
    """Derives rows again from the memories."""

    _database: Database

    def recount(self, words_of: Callable[[str], frozenset[str]]) -> None:
        """Count the memories of every namespace again, and file its speakers under the words of their names."""
        named = memory.c.speaker.is_not(None)
        speakers = select(memory.c.namespace_id, memory.c.speaker).where(named).distinct()
        with self._database.exclusive() as connection:
            connection.execute(delete(tables.held))
            counted = (
                {"namespace_id": number, "sensitivity": level, "memories": many}
                for (number, level), many in count_by_namespace_and_level(connection).items()
            )
            insert_all(connection, tables.held, counted)
            for statement in limit_schema.FILLED[connection.dialect.name]:
                connection.execute(text(statement))
            connection.execute(delete(tables.speaker))
            values = [
                {"namespace_id": number, "name": name, "word": word}
                for number, name in connection.execute(speakers)
                for word in sorted(words_of(name))
            ]
            insert_all(connection, tables.speaker, values)

    def replace_entities(self, entities_of: Callable[[str], Sequence[Entity]]) -> None:
        """Derive the entities of every memory again, in short steps so that writers wait little.

        A summary keeps the entities of its members.
        """
        other = func.coalesce(memory.c.type, "") != str(ObservationType.COMPRESSED_SUMMARY)
        with self._database.reading() as connection:
            ids = connection.execute(select(memory.c.id).where(other).order_by(memory.c.id)).scalars().all()
        for batch in in_batches(ids):
            with self._database.exclusive() as connection:
                mine = select(memory.c.id, memory.c.content).where(memory.c.id.in_(batch))
                for memory_id, content in connection.execute(mine).all():
                    replace_entities(connection, memory_id, entities_of(content))

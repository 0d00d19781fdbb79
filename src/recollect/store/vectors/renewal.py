"""Vectors of an older version of the store's own model: they are dropped, and every memory waits to be embedded anew.

Words answer meanwhile. It is for a store with one owner, who has its model; on servers, where replicas of two versions
may run at once, `reindex` builds the new vectors beside the old ones.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import delete, false, insert, literal, select

from recollect.store.sql import store_metadata, tables
from recollect.store.sql.database import Database
from recollect.store.sql.visibility import shown

_WAITING = ["memory_id", "namespace_id", "chunks", "embedded"]


def renew(database: Database, model: Mapping[str, str]) -> bool:
    """Drop the vectors of another version of `model`, in one transaction; return whether there were any to drop.

    A store of another model, and one that has no model yet, are left as they are.
    """
    with database.reading() as connection:
        if not _is_older_version(store_metadata.model_of(store_metadata.read(connection)), model):
            return False
    with database.exclusive() as connection:
        known = store_metadata.read(connection)
        for table in (tables.vector, tables.vector_shadow, tables.outbox):
            connection.execute(delete(table))
        memory = tables.memory.c
        every = select(memory.id, memory.namespace_id, literal(0), false()).where(shown())
        connection.execute(insert(tables.outbox).from_select(_WAITING, every))
        stamps = {**model, store_metadata.GENERATION: store_metadata.next_generation(known, model)}
        store_metadata.erase(connection, [name for name in known if name.startswith(store_metadata.SHADOW)])
        store_metadata.write(connection, stamps)
    return True


def _is_older_version(found: Mapping[str, str], model: Mapping[str, str]) -> bool:
    same = ("model", "dimensions")
    return all(found.get(name) == model[name] for name in same) and found != model

"""What the store knows of itself: its embedding model, the generation of its index, and the one under construction."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, delete, select

from recollect.store.sql import tables
from recollect.store.sql.database import Database
from recollect.store.sql.statements import insert_all, once

MODEL = ("model", "revision", "dimensions")
GENERATION = "generation"
OWN_ID = "store"
"""The entry that says by which name this store is known among others on a server."""
SHADOW = "shadow."
"""What the names of the stamps of a generation under construction begin with."""

STAMPS = "stamps"
"""The key by which `once` keeps every stamp."""
_ALL = select(tables.store_metadata.c.name, tables.store_metadata.c.value)


@dataclass(frozen=True, slots=True)
class Stamps:
    """What the store knows of itself, by name."""

    _database: Database

    def get(self, name: str) -> str | None:
        """Return what the store knows of itself under `name`."""
        with self._database.reading() as connection:
            return read(connection).get(name)

    def set(self, values: Mapping[str, str]) -> None:
        """Write several stamps at once."""
        with self._database.exclusive() as connection:
            write(connection, values)


def read(connection: Connection) -> dict[str, str]:
    """Return every stamp."""
    return dict(once(connection, STAMPS, lambda: dict(map(tuple, connection.execute(_ALL)))))


def write(connection: Connection, values: Mapping[str, str]) -> None:
    """Write several stamps, over those of the same names."""
    erase(connection, values)
    insert_all(connection, tables.store_metadata, ({"name": name, "value": value} for name, value in values.items()))


def own_id(connection: Connection) -> str:
    """Return the name by which this store is known among others that share a server, made at the first call."""
    found = read(connection).get(OWN_ID, "")
    if not found:
        found = secrets.token_hex(4)
        write(connection, {OWN_ID: found})
    return found


def erase(connection: Connection, names: Iterable[str]) -> None:
    """Take stamps away; those that are absent are no error."""
    connection.execute(delete(tables.store_metadata).where(tables.store_metadata.c.name.in_(list(names))))


def erase_unchanged(connection: Connection, values: Mapping[str, str]) -> None:
    """Take away those stamps that still have these values."""
    for name, value in values.items():
        same = (tables.store_metadata.c.name == name) & (tables.store_metadata.c.value == value)
        connection.execute(delete(tables.store_metadata).where(same))


def model_of(known: Mapping[str, str], prefix: str = "") -> dict[str, str]:
    """Return the model that the store is stamped with, or with a prefix another one; empty for a new store."""
    return {name: known[prefix + name] for name in MODEL if prefix + name in known}


def embeds(connection: Connection, model: Mapping[str, str] | None) -> bool:
    """Say whether the store is still of this model, so that its vectors are of use; None is always taken for that."""
    return model is None or is_model(read(connection), model)


def is_model(known: Mapping[str, str], model: Mapping[str, str] | None) -> bool:
    """Say whether the stamps are those of a store of this model, or of a new store; None is always taken for that."""
    return model is None or model_of(known) in ({}, model)


def generation_of(known: Mapping[str, str]) -> str:
    """Return the name under which the index keeps the vectors of the store's model."""
    return known.get(GENERATION) or first_generation(known)


def first_generation(model: Mapping[str, str]) -> str:
    """Return the name under which a new store's index keeps this model's vectors."""
    return f"m{model.get('revision', '')[:12]}"


def next_generation(known: Mapping[str, str], model: Mapping[str, str]) -> str:
    """Return a name for this model's vectors that the store's present ones do not have."""
    first = first_generation(model)
    return first if generation_of(known) != first else f"{first}b"

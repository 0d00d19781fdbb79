"""What the store knows of a query before it is searched for, read in one statement: each round trip has its price."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Select,
    bindparam,
    cast,
    column,
    exists,
    func,
    literal_column,
    select,
    table,
    union_all,
)

from recollect.domain.search import View
from recollect.store.sql import store_metadata
from recollect.store.sql.expressions import Listed, any_of
from recollect.store.sql.statements import keep, once
from recollect.store.sql.tables import held, memory, namespace, outbox, speaker, word
from recollect.store.sql.tables import store_metadata as stamps
from recollect.store.sql.visibility import HERE, LEVELS, SUMS_UP_SESSION, keep_namespaces, kept_as, values_of

_TEXT_SIZE: Final = table(
    "text_size", column("namespace_id"), column("sensitivity"), column("memories"), column("length")
)
"""How many texts a namespace holds at each level, and their length; the text index of every database keeps it."""
_EMPTY: Final[ColumnElement[str]] = literal_column("''")
_SIZES = select(func.sum(_TEXT_SIZE.c.memories), func.sum(_TEXT_SIZE.c.length)).where(
    any_of(_TEXT_SIZE.c.namespace_id, HERE), any_of(_TEXT_SIZE.c.sensitivity, LEVELS)
)
_QUEUED = select(outbox.c.memory_id).where(outbox.c.embedded.is_(True), any_of(outbox.c.namespace_id, HERE))
_named = any_of(namespace.c.name, bindparam("namespaces", type_=Listed()))
_here = select(namespace.c.id).where(_named)
_says = (memory.c.namespace_id == speaker.c.namespace_id) & (memory.c.speaker == speaker.c.name)
_unembedded = (
    select(outbox.c.memory_id)
    .join(memory, memory.c.id == outbox.c.memory_id)
    .where(outbox.c.embedded.is_(False), outbox.c.namespace_id.in_(_here), any_of(memory.c.sensitivity, LEVELS))
    .limit(1)
    .subquery("waiting")
)


@dataclass(frozen=True, slots=True)
class QueryFacts:
    """In how many memories each word stands, unknown ones aside; who is named; whether memories wait for the model."""

    uses: dict[str, int]
    speakers: list[str]
    unembedded: bool


def query_facts(connection: Connection, words: Collection[str], names: Collection[str], view: View) -> QueryFacts:
    """Read what a view may know of these words, and of the speakers who have one of the folded `names`.

    The numbers of its namespaces, and what the searches need of these besides, are kept where they look for it.
    """
    values = {"words": words, "names": names, "namespaces": view.namespaces, "levels": list(view.sensitivities)}
    found: dict[str, list[tuple[str, str, int]]] = defaultdict(list)
    for kind, name, value, number in connection.execute(_FACTS, values).all():
        found[kind].append((name, value, number))
    keep_namespaces(connection, view.namespaces, {name: number for name, _, number in found["namespace"]})
    keep(connection, store_metadata.STAMPS, {name: value for name, value, _ in found["stamp"]})
    keep(connection, kept_as("size", view), sum(number or 0 for _, _, number in found["size"]))
    keep(connection, kept_as("of_session", view), [number for _, _, number in found["session"]])
    keep(connection, kept_as("texts", view), tuple(found[kind][0][2] or 0 for kind in ("texts", "length")))
    keep(connection, kept_as("queued", view), [number for _, _, number in found["queued"]])
    return QueryFacts(
        {name: number for name, _, number in found["word"]},
        sorted(name for name, _, _ in found["speaker"]),
        bool(found["unembedded"]),
    )


def texts(connection: Connection, view: View) -> tuple[int, int]:
    """Return how many texts the view's namespaces hold at its levels, and how many characters in all."""
    return once(connection, kept_as("texts", view), lambda: _count_texts(connection, view))


def queued(connection: Connection, view: View) -> list[int]:
    """Return the memories of the view's namespaces whose vectors the index may not have yet."""
    return once(connection, kept_as("queued", view), lambda: _queued_ids(connection, view))


def _count_texts(connection: Connection, view: View) -> tuple[int, int]:
    """Return how many texts the view's namespaces hold at its levels, and how many characters."""
    memories, length = connection.execute(_SIZES, values_of(connection, view)).one()
    return int(memories or 0), int(length or 0)


def _queued_ids(connection: Connection, view: View) -> list[int]:
    """Return the ids of the memories of a view that wait for the vector index."""
    return list(connection.execute(_QUEUED, values_of(connection, view)).scalars())


def _select_facts(
    kind: str,
    name: ColumnElement[str] = _EMPTY,
    value: ColumnElement[str] = _EMPTY,
    number: ColumnElement[Any] | int = 0,
) -> Select[str, str, str, int]:
    """Select facts of one kind."""
    of_kind: ColumnElement[str] = literal_column(f"'{kind}'")
    return select(of_kind, name, value, cast(number, BigInteger))


def _of_view(rows: Any) -> ColumnElement[bool]:
    """Select rows of the namespaces and levels of a view."""
    mine: ColumnElement[bool] = rows.c.namespace_id.in_(_here) & any_of(rows.c.sensitivity, LEVELS)
    return mine


_FACTS = union_all(
    _select_facts("word", word.c.text, number=func.sum(word.c.uses))
    .where(_of_view(word), any_of(word.c.text, bindparam("words", type_=Listed())))
    .group_by(word.c.text),
    _select_facts("speaker", speaker.c.name)
    .where(speaker.c.namespace_id.in_(_here), any_of(speaker.c.word, bindparam("names", type_=Listed())))
    .where(exists().where(_says, any_of(memory.c.sensitivity, LEVELS)))
    .distinct(),
    _select_facts("size", number=func.sum(held.c.memories)).where(_of_view(held)),
    _select_facts("texts", number=func.sum(_TEXT_SIZE.c.memories)).where(_of_view(_TEXT_SIZE)),
    _select_facts("length", number=func.sum(_TEXT_SIZE.c.length)).where(_of_view(_TEXT_SIZE)),
    _select_facts("session", number=memory.c.id).where(memory.c.namespace_id.in_(_here), SUMS_UP_SESSION),
    _select_facts("stamp", stamps.c.name, stamps.c.value),
    _select_facts("queued", number=outbox.c.memory_id).where(
        outbox.c.embedded.is_(True), outbox.c.namespace_id.in_(_here)
    ),
    _select_facts("namespace", namespace.c.name, number=namespace.c.id).where(_named),
    _select_facts("unembedded", number=_unembedded.c.memory_id),
)

"""The rows that a recall ranks: what was found and what stands beside it, in one statement, and no object for each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import fields
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Text,
    bindparam,
    case,
    cast,
    func,
    select,
    type_coerce,
    union,
)

from recollect.domain.enums import ObservationType
from recollect.domain.origin import APPROVED, Authority, authority, speaker_before_stamps
from recollect.domain.search import RankingRow, View
from recollect.store.sql.expressions import Listed, any_of
from recollect.store.sql.mapping import IDS
from recollect.store.sql.tables import memory, memory_words, usage
from recollect.store.sql.visibility import run_visible

FIELDS: Final = tuple(field.name for field in fields(RankingRow))
"""The fields of a row, in their order; the number of its namespace follows."""
_PLACES: Final = {name: place for place, name in enumerate((*FIELDS, "namespace_id"))}
_MOMENTS: Final = ("updated_at", "observed_at")
_MEMBERS: Final = ("fact_type", "type", "source", "said_by")
_COUNTED: Final[dict[str, ColumnElement[Any]]] = {
    "accessed_count": func.coalesce(usage.c.accessed_count, 0),
    "recalled_count": func.coalesce(usage.c.recalled_count, 0),
    "words": func.coalesce(memory_words.c.words, ""),
}
# As the database has them: to make moments and members of those that nobody asks for costs more than to read them.
_COLUMNS: Final[dict[str, ColumnElement[Any]]] = {
    **{name: memory.c[name] for name in FIELDS if name not in _COUNTED},
    **{name: type_coerce(memory.c[name], Text) for name in (*_MOMENTS, *_MEMBERS)},
    **_COUNTED,
}
_found, _beside = memory.alias("found"), memory.alias("beside")
# The last position there can be, and one more, is no INTEGER.
_reach = cast(case((any_of(_found.c.id, bindparam("far", type_=Listed())), 2), else_=1), BigInteger)
_EVERY: Final = union(
    select(_found.c.id).where(any_of(_found.c.id, IDS)),
    select(_beside.c.id)
    .join_from(
        _found,
        _beside,
        (_beside.c.namespace_id == _found.c.namespace_id) & (_beside.c.session_id == _found.c.session_id),
    )
    .where(any_of(_found.c.id, IDS))
    .where(_beside.c.position.between(_found.c.position - _reach, _found.c.position + _reach)),
)
_ROWS: Final = (
    select(
        *(_COLUMNS[name] for name in FIELDS),
        memory.c.namespace_id,
    )
    .outerjoin_from(memory, memory_words, memory_words.c.memory_id == memory.c.id)
    .outerjoin(usage, usage.c.memory_id == memory.c.id)
    .where(memory.c.id.in_(_EVERY))
)


class CandidateRows(Mapping[int, RankingRow]):
    """Rows by memory id; a `RankingRow` is made only when a row is asked for."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._stored: dict[int, tuple[Any, ...]] = {}
        self._made: dict[int, RankingRow] = {}

    def __getitem__(self, one: int) -> RankingRow:
        """Return the row of a memory."""
        if one not in self._made:
            self.make([one])
        return self._made[one]

    def __contains__(self, one: object) -> bool:
        """Say whether a memory is among them."""
        return one in self._stored

    def __iter__(self) -> Iterator[int]:
        """Return the ids."""
        return iter(self._stored)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._stored)

    def read(self, connection: Connection, ids: Collection[int], far: Collection[int]) -> None:
        """Read these memories and what stands beside them in their sessions, up to two places away from the `far`."""
        rows = run_visible(connection, _ROWS, self._view, ids=ids, far=far).all()
        self._stored |= {row[0]: row for row in map(tuple, rows)}

    @property
    def ids(self) -> Set[int]:
        """Return the ids."""
        return self._stored.keys()

    def make(self, ids: Sequence[int]) -> dict[int, RankingRow]:
        """Make the rows of these memories."""
        columns = {name: self.column(name, ids) for name in FIELDS}
        for name in _MOMENTS:
            columns[name] = _read_moments(columns[name])
        for name in _MEMBERS:
            members = {value: _enum_member(name, value) for value in frozenset(columns[name])}
            columns[name] = [members[value] for value in columns[name]]
        made = dict(zip(ids, map(RankingRow, *columns.values()), strict=True))
        self._made |= made
        return made

    def column(self, name: str, ids: Iterable[int]) -> list[Any]:
        """Return one field of each of these memories, as it is stored."""
        place = _PLACES[name]
        return [self._stored[one][place] for one in ids]

    def authority(self, ids: Sequence[int]) -> dict[int, Authority]:
        """Return what each of these memories may do unasked."""
        origins = zip(*(self.column(name, ids) for name in ("said_by", "source", "trust")), strict=True)
        return {
            one: _authority_of(said_by, source, None if said_by else trust)
            for one, (said_by, source, trust) in zip(ids, origins, strict=True)
        }

    def unapproved(self, ids: Sequence[int]) -> frozenset[int]:
        """Return those of these memories that came from outside and that nobody approved."""
        ranks, reviews = self.authority(ids), self.column("review", ids)
        pairs = zip(ids, reviews, strict=True)
        return frozenset([one for one, review in pairs if review != APPROVED and ranks[one] is Authority.OUTSIDE])

    def drop(self, kind: ObservationType) -> None:
        """Drop what is of one type."""
        place = _PLACES["type"]
        self._stored = {one: row for one, row in self._stored.items() if row[place] != kind}

    def keep(self, ids: Collection[int]) -> None:
        """Drop all others."""
        self._stored = {one: self._stored[one] for one in ids}

    def neighbours(self, ids: Iterable[int]) -> dict[int, tuple[int, ...]]:
        """Return what stands beside each of these memories in its session, the nearest first, as far as it was read.

        Of those as near the earlier one comes first; a memory without neighbours is absent.
        """
        number, session, position = (_PLACES[name] for name in ("namespace_id", "session_id", "position"))
        there: dict[tuple[int, str, int], list[int]] = defaultdict(list)
        for one in sorted(self._stored):
            row = self._stored[one]
            if row[session] is not None and row[position] is not None:
                there[row[number], row[session], row[position]] += [one]
        found: dict[int, tuple[int, ...]] = {}
        for one in ids:
            row = self._stored[one]
            if row[session] is not None and row[position] is not None:
                at = row[position]
                places = [(row[number], row[session], place) for place in (at, at - 1, at + 1)]
                if beside := [two for place in places if place in there for two in there[place] if two != one]:
                    found[one] = (*beside,)
        return found


@lru_cache(maxsize=256)
def _authority_of(said_by: str | None, source: str, trust: float | None) -> Authority:
    """Return the authority of the speaker; where none is stored, that which follows from source and trust."""
    speaker = _enum_member("said_by", said_by) or speaker_before_stamps(_enum_member("source", source), trust or 0.0)
    return authority(speaker)


def _read_moments(stored: Sequence[Any]) -> list[datetime | None]:
    """Return moments as PostgreSQL gives them, or as SQLite has them in texts."""
    texts = {value: f"{value}+00:00" for value in stored if value.__class__ is str}
    read = dict(zip(texts, map(datetime.fromisoformat, texts.values()), strict=True))
    return [read[value] if value in read else value for value in stored]  # noqa: SIM401


@lru_cache(maxsize=256)
def _enum_member(name: str, stored: str | None) -> Any:
    """Return the member of an enumeration that a column stores as text."""
    kind: Any = memory.c[name].type
    return kind.process_result_value(stored, None)

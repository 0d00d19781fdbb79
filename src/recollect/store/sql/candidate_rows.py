"""The rows that a recall ranks: what was found and what stands beside it, in one statement, and no object for each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import fields
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

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

if TYPE_CHECKING:
    import numpy as np

    from recollect.engines.signal_columns import Numbers
else:
    from recollect.engines import arrays as np

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
        if not ids:
            return {}
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

    def numbers(self, name: str, ids: Iterable[int]) -> Numbers:
        """Return one field of each of these memories that is a number: float64[n]."""
        return np.array(self.column(name, ids), dtype=np.float64)

    def seconds(self, ids: Iterable[int]) -> Numbers:
        """Return when each of these memories was true, in seconds since 1970: float64[n]."""
        observed, updated = _PLACES["observed_at"], _PLACES["updated_at"]
        rows = [self._stored[one] for one in ids]
        moments = [row[updated] if row[observed] is None else row[observed] for row in rows]
        if moments and isinstance(moments[0], str):
            return np.array(moments, dtype="datetime64[us]").astype(np.int64) / 1e6
        return np.array(list(map(datetime.timestamp, moments)))

    def authority(self, ids: Sequence[int]) -> dict[int, Authority]:
        """Return what each of these memories may do unasked."""
        columns = (self.column(name, ids) for name in ("said_by", "source", "trust"))
        origins = [
            (said_by, source, None if said_by else trust) for said_by, source, trust in zip(*columns, strict=True)
        ]
        known = {origin: _authority_of(*origin) for origin in frozenset(origins)}
        return {one: known[origin] for one, origin in zip(ids, origins, strict=True)}

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
        there: dict[tuple[int, str, int], tuple[int, ...]] = defaultdict(tuple)
        for one in sorted(self._stored):
            row = self._stored[one]
            if row[session] is not None and row[position] is not None:
                place = row[number], row[session], row[position]
                there[place] += (one,)
        found: dict[int, tuple[int, ...]] = {}
        for one in ids:
            row = self._stored[one]
            if row[session] is None or row[position] is None:
                continue
            of, at = (row[number], row[session]), row[position]
            same, before, after = (*of, at), (*of, at - 1), (*of, at + 1)
            beside = there[before] + there[after]
            if len(there[same]) > 1:
                beside = (*[two for two in there[same] if two != one], *beside)
            if beside:
                found[one] = beside
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

"""The signals of a query's candidates as columns, which the fusion reads; an object is made only where it is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from recollect.domain.search import NeighbourSignals, Signals

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]  # float64[n], one value for each candidate
else:
    from recollect.engines import arrays as np

_SIDES: Final = ("before", "after")
_NEIGHBOUR_FIELDS: Final = tuple(one.name for one in fields(NeighbourSignals))
_FIELDS: Final = tuple(one.name for one in fields(Signals))
_OWN_FIELDS: Final = tuple(name for name in _FIELDS if name not in _SIDES)
_EXACT: Final = {"speaker_named": bool, "in_session": bool, "length": int}


class LateInteraction(NamedTuple):
    """How near memories are, each column float64[n]: the cosines and late interactions (about -1–1) of best chunks.

    `late` counts every query token alike, `rare` by the weight that it has; both are NaN where the memory's tokens are
    not stored yet.
    """

    ids: list[int]
    cosine: Numbers
    late: Numbers
    rare: Numbers

    @classmethod
    def none(cls) -> LateInteraction:
        """Return the columns of no memory."""
        return cls([], np.zeros(0), np.zeros(0), np.zeros(0))


@dataclass(frozen=True, slots=True)
class SignalColumns:
    """The fields of `Signals` of n candidates, each as float64[n]; `late` and `rare` are NaN where they are None."""

    cosine: Numbers
    bm25: Numbers
    coverage: Numbers
    fuzzy: Numbers
    speaker_named: Numbers
    late: Numbers
    rare: Numbers
    passage: Numbers
    phrase: Numbers
    around: Numbers
    before_bm25: Numbers
    before_cosine: Numbers
    before_late: Numbers
    after_bm25: Numbers
    after_cosine: Numbers
    after_late: Numbers
    in_session: Numbers
    questions: Numbers
    questions_before: Numbers
    length: Numbers
    rarest: Numbers
    identifier: Numbers

    def __len__(self) -> int:
        """Return the number of candidates."""
        return len(self.cosine)

    @classmethod
    def of(cls, found: Sequence[Signals]) -> SignalColumns:
        """Return the columns of these signals."""
        own = {name: np.array([getattr(one, name) for one in found], dtype=np.float64) for name in _OWN_FIELDS}
        beside = {
            f"{side}_{name}": np.array([getattr(getattr(one, side), name) for one in found], dtype=np.float64)
            for side in _SIDES
            for name in _NEIGHBOUR_FIELDS
        }
        return cls(**own, **beside)

    @property
    def _all_columns(self) -> tuple[Numbers, ...]:
        """Return all columns, in the order of the fields."""
        found: tuple[Numbers, ...] = attrgetter(*self.__slots__)(self)
        return found

    @property
    def held(self) -> Numbers:
        """Return the share (0–1) of the query that each candidate holds, other spellings included."""
        return np.maximum(self.coverage, self.fuzzy)

    def at(self, places: Sequence[int]) -> SignalColumns:
        """Return the columns of the candidates at these places."""
        chosen = np.asarray(places, dtype=np.intp)
        return SignalColumns(*(column[chosen] for column in self._all_columns))

    def signals(self, places: Sequence[int]) -> list[Signals]:
        """Return the signals of the candidates at these places."""
        columns = dict(zip(self.__slots__, np.array(self._all_columns)[:, list(places)].tolist(), strict=True))
        for name in ("late", "rare"):
            columns[name] = [None if value != value else value for value in columns[name]]
        for name, kind in _EXACT.items():
            columns[name] = list(map(kind, columns[name]))
        for side in _SIDES:
            columns[side] = list(map(NeighbourSignals, *[columns.pop(f"{side}_{name}") for name in _NEIGHBOUR_FIELDS]))
        return list(map(Signals, *[columns[name] for name in _FIELDS]))

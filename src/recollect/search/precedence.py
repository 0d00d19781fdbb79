"""Moves memories within an order: a newer version before an older one, what was told before what came from outside."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence


def in_order(
    order: Sequence[int], newer: Mapping[int, int], *, past: bool = False, fits: Mapping[int, float] | None = None
) -> list[int]:
    """Return `order` with each memory that comes before others moved up to the first of those.

    The newer comes before the older. With `past` the older comes before the newer, and so it does where it fits the
    period that the query names better, by `fits` (0–1).
    """
    fits = fits or {}
    ahead: dict[int, list[int]] = {}
    for older, new in newer.items():
        earlier, later = fits.get(older, 0.0), fits.get(new, 0.0)
        first, second = (older, new) if earlier > later or (past and earlier == later) else (new, older)
        ahead.setdefault(second, []).append(first)
    found: dict[int, None] = {}

    def place(one: int) -> None:
        leaders = set(ahead.pop(one, ()))
        for leader in (two for two in order if two in leaders):
            place(leader)
        found.setdefault(one)

    for one in order:
        place(one)
    return list(found)


def behind(order: Sequence[int], ahead: Mapping[int, Collection[int]]) -> list[int]:
    """Return `order` with each memory moved back behind the last of those that go ahead of it."""
    places = {one: place for place, one in enumerate(order)}
    last = {one: max((places[high] for high in ahead.get(one, ()) if high in places), default=0) for one in order}
    return sorted(order, key=lambda one: (max(places[one], last[one]), last[one] > places[one], places[one]))

"""Visibility: what a read or a write may see, from its caller, its filters and the levels of sensitivity it allows."""

from __future__ import annotations

from recollect.app import App
from recollect.domain.enums import Order, Scope, Sensitivity, owned
from recollect.domain.requests import Caller, Draft, Filters, Levels, StoreFact
from recollect.domain.results import Memory
from recollect.domain.search import FILTERS, View

_LARGEST = 2**31 - 1


def view_of(app: App, filters: Filters, caller: Caller) -> View:
    """Return what a filtered read may see: in the caller's namespaces, what is public or of a level it allows.

    What a summary was made of is seen too; recall puts it below the summary.
    """
    return View(
        namespaces=app.records.existing_namespaces(caller.namespaces(filters.scope)),
        now=app.clock().astimezone(caller.calendar_zone),
        sensitivities=levels_of(filters, caller),
        superseded=filters.superseded,
        condensed=True,
        **{name: getattr(filters, name) for name in FILTERS},
    )


def unfiltered(app: App, request: Levels, caller: Caller, scope: Scope | None = None) -> View:
    """Return what an unfiltered read may see, superseded memories included."""
    namespaces = app.records.existing_namespaces(caller.namespaces(scope))
    return View(namespaces=namespaces, now=app.clock(), sensitivities=levels_of(request, caller), superseded=True)


def allowed_levels(request: Levels) -> tuple[Sensitivity, ...]:
    """Return the levels of sensitivity that a request allows; any other value in a row is denied."""
    allowed = (Sensitivity.PRIVATE,) * request.allow_private + (Sensitivity.SECRET,) * request.allow_secret
    return (Sensitivity.PUBLIC, *allowed)


def levels_of(request: Levels, caller: Caller) -> tuple[str, ...]:
    """Return the levels that a request allows as they are stored: beside what is public, the caller's own."""
    return tuple(owned(level, caller.user) for level in allowed_levels(request))


def levels_with(request: Levels, *named: Sensitivity | None) -> tuple[Sensitivity, ...]:
    """Return the levels that a write may see: those it allows, and those at which it says that it writes."""
    known = (*allowed_levels(request), *named)
    return tuple(level for level in Sensitivity if level in known)


def given_level(request: Draft | StoreFact) -> Sensitivity | None:
    """Return the level that a request names, None where it leaves that open."""
    return request.sensitivity if "sensitivity" in request.model_fields_set else None


def load_page(app: App, view: View, order: Order, limit: int, offset: int = 0) -> list[Memory]:
    """Return one page of the memories in a view, in the given order."""
    ids = app.records.list_ids(view, order, limit, offset)
    found = app.records.load(ids, view)
    return [found[one] for one in ids if one in found]


def parse_id(text: str) -> int | None:
    """Return an id as a number, None where it is not a positive one that SQL can hold."""
    digits = text.strip()
    number = int(digits) if digits.isascii() and digits.isdecimal() and len(digits) <= 10 else 0
    return number if 0 < number <= _LARGEST else None

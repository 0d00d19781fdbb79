"""Visibility: what a read or a write may see, from its caller, its filters and the levels of sensitivity it allows."""

from __future__ import annotations

from typing import Final, TypeVar

from recollect.app import App
from recollect.domain.enums import Order, Scope, Sensitivity, owned
from recollect.domain.fields import Request
from recollect.domain.requests import Caller, Draft, Filters, Levels, StoreFact
from recollect.domain.results import Memory
from recollect.domain.search import FILTERS, View
from recollect.errors import InvalidInput

_LARGEST = 2**31 - 1
_SCOPES: Final = 10  # a key is unique in each, and at each level of sensitivity
_NAMES: Final = ("id", "supersedes")
T = TypeVar("T", bound=Request)


def view_of(app: App, filters: Filters, caller: Caller, *, existing: bool = True) -> View:
    """Return what a filtered read may see: in the caller's namespaces, what is public or of a level it allows.

    What a summary was made of is seen too; recall puts it below the summary. Whoever needs not only the `existing`
    namespaces spares a look at the store.
    """
    namespaces = caller.namespaces(filters.scope)
    return View(
        namespaces=app.records.namespaces.existing(namespaces) if existing else namespaces,
        now=app.clock().astimezone(caller.calendar_zone),
        sensitivities=levels_of(filters, caller),
        superseded=filters.superseded,
        condensed=True,
        **{name: getattr(filters, name) for name in FILTERS},
    )


def unfiltered(app: App, request: Levels, caller: Caller, scope: Scope | None = None) -> View:
    """Return what an unfiltered read may see, superseded memories included."""
    namespaces = app.records.namespaces.existing(caller.namespaces(scope))
    return View(namespaces=namespaces, now=app.clock(), sensitivities=levels_of(request, caller), superseded=True)


def allowed_levels(request: Levels) -> tuple[Sensitivity, ...]:
    """Return the levels of sensitivity that a request allows; any other value in a row is denied."""
    allowed = (Sensitivity.PRIVATE,) * request.allow_private + (Sensitivity.SECRET,) * request.allow_secret
    return (Sensitivity.PUBLIC, *allowed)


def levels_of(request: Levels, caller: Caller) -> tuple[str, ...]:
    """Return the levels that a request allows as they are stored: beside what is public, the caller's own."""
    return tuple(owned(level, caller.user) for level in allowed_levels(request))


def levels_of_write(request: Levels, *named: Sensitivity | None) -> tuple[Sensitivity, ...]:
    """Return the levels that a write may see: those it allows, and the level that it names for what it writes."""
    known = (*allowed_levels(request), *named)
    return tuple(level for level in Sensitivity if level in known)


def given_level(request: Draft | StoreFact) -> Sensitivity | None:
    """Return the level that a request names, None where it leaves that open."""
    return request.sensitivity if "sensitivity" in request.model_fields_set else None


def load_page(app: App, view: View, order: Order, limit: int, offset: int = 0) -> list[Memory]:
    """Return one page of the memories in a view, in the given order."""
    ids = app.records.lists.ids(view, order, limit, offset)
    found = app.records.load(ids, view)
    return [found[one] for one in ids if one in found]


def with_ids(app: App, request: T, caller: Caller) -> T:
    """Return a request in which the id of a memory stands where its key was written.

    What reads as a number is an id, also where a memory has it as its key. A key that no memory has stays, and is not
    found as an id. Raises `InvalidInput` for a key that memories of several scopes have.
    """
    named = {name: text for name in _NAMES if (text := getattr(request, name, None)) and parse_id(text) is None}
    found = {name: number for name, text in named.items() if (number := _id_of_key(app, request, caller, text, name))}
    return request.model_copy(update=found) if found else request


def _id_of_key(app: App, request: Request, caller: Caller, key: str, name: str) -> str | None:
    """Return the id of the memory with this key, None where the caller sees none; raise `InvalidInput` for several."""
    allowed = request if isinstance(request, Levels) else Levels()
    scope = getattr(request, "scope", None) if "scope" in request.model_fields_set else None
    view = unfiltered(app, allowed, caller, scope).model_copy(update={"key": key.strip()})
    if not view.namespaces:
        return None
    hidden = view.model_copy(update={"hidden": True})
    memories = load_page(app, view, Order.NEWEST, _SCOPES) or load_page(app, hidden, Order.NEWEST, _SCOPES)
    if len(memories) > 1:
        ids = " and ".join(f"{one.id} ({one.scope})" for one in memories)
        raise InvalidInput(name, f"Invalid {name}: Several memories have the key `{key}`: {ids}. Give the id of one")
    return str(memories[0].id) if memories else None


def parse_id(text: str) -> int | None:
    """Return an id as a number, None where it is not a positive one that SQL can hold."""
    digits = text.strip()
    number = int(digits) if digits.isascii() and digits.isdecimal() and len(digits) <= 10 else 0
    return number if 0 < number <= _LARGEST else None

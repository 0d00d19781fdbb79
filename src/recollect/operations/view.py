"""View: what a read may see, from who asks and what it asks to be let in on."""

from __future__ import annotations

from recollect.domain import FILTERS, Caller, Filters, Get, Scope, Seen, Sensitivity, View
from recollect.ports import App

_LARGEST = 2**31 - 1


def view_of(app: App, asked: Filters, caller: Caller) -> View:
    """Return what these filters may see: the caller's namespaces, public memories, what they ask to be let in on."""
    return View(
        namespaces=app.records.existing(caller.namespaces(asked.scope)),
        now=app.clock(),
        sensitivities=levels(asked),
        superseded=asked.superseded,
        **{name: getattr(asked, name) for name in FILTERS},
    )


def everything(app: App, asked: Seen | Get, caller: Caller, scope: Scope | None = None) -> View:
    """Return what an unfiltered read may see, what was put right later included."""
    namespaces = app.records.existing(caller.namespaces(scope))
    return View(namespaces, app.clock(), levels(asked), superseded=True)


def levels(asked: Seen | Get) -> tuple[Sensitivity, ...]:
    """Return the levels of sensitivity that are let in; nothing but these names is."""
    allowed = (Sensitivity.PRIVATE,) * asked.allow_private + (Sensitivity.SECRET,) * asked.allow_secret
    return (Sensitivity.PUBLIC, *allowed)


def number_of(text: str) -> int | None:
    """Read an id; anything else than a positive number that SQL can hold is nobody's id."""
    plain = text.strip()
    number = int(plain) if plain.isascii() and plain.isdecimal() and len(plain) <= 10 else 0
    return number if 0 < number <= _LARGEST else None

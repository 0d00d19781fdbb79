"""Addresses of every screen of the page with something on it, drawn from the list of its screens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from page_store import SESSION
from recollect.doors.web.site import SCREENS

_EXAMPLES: Final[dict[str, dict[str, str]]] = {
    "/": {
        "first": "",
        "search": "?q=when+do+we+deploy+the+harbour+service",
        "nothing-relevant": "?q=recipe+for+zebra+pancakes",
    },
    "/browse": {"browse": "browse", "hidden": "browse?hidden=1", "tagged": "browse?tags=crane"},
    "/memory/{id}": {
        "memory": "memory/{new}",
        "hostile-memory": "memory/{hostile}",
        "hidden-memory": "memory/{hidden}",
        "replaced-memory": "memory/{old}",
    },
    "/memory/{id}/edit": {"edit": "memory/{pool}/edit"},
    "/memory/{id}/move": {"move": "memory/{pool}/move"},
    "/act": {"confirm": "act?do=forget&id={pool}&id={login}"},
    "/session": {"session": "session?id={session}"},
    "/start": {"first-steps": "start"},
}
"""By a name for each; a screen that is not among them is shown by its address alone."""


def screens(ids: Mapping[str, str]) -> dict[str, str]:
    """Return an address of each screen, or several, by a name; `ids` are those that `page_store.fill` returns."""
    shown = [one.path for one in SCREENS if one.show is not None]
    examples = {path: _EXAMPLES.get(path, {path[1:]: path[1:]}) for path in shown}
    known = {"session": SESSION, **ids}
    return {name: address.format(**known) for some in examples.values() for name, address in some.items()}

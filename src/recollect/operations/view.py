"""View: what a query may see, from who asks and what it asks to be let in on."""

from __future__ import annotations

from recollect.domain import FILTERS, Caller, Query, Sensitivity, View
from recollect.ports import App


def view_of(app: App, query: Query, caller: Caller) -> View:
    """Return what this query may see: the caller's namespaces, public memories, and what it asks to be let in on."""
    allowed = (Sensitivity.PRIVATE,) * query.allow_private + (Sensitivity.SECRET,) * query.allow_secret
    return View(
        namespaces=app.records.existing(caller.namespaces(query.scope)),
        now=app.clock(),
        sensitivities=(Sensitivity.PUBLIC, *allowed),
        **{name: getattr(query, name) for name in FILTERS},
    )

"""What many memories are together: pages of them with counts, and their journal."""

from __future__ import annotations

from typing import Final

from recollect.app import App
from recollect.domain.page import (
    Browse,
    Browsed,
    Counted,
    Facets,
    JournalLine,
    JournalPage,
    ReadJournal,
)
from recollect.domain.requests import Caller
from recollect.search.visibility import levels_of, parse_id, view_of

_COUNTED: Final = 10_000
"""How many memories are counted by their fields at most: reading all of more takes too long for a page."""


def browse(app: App, request: Browse, caller: Caller) -> Browsed:
    """Return the page of memories behind `after`, in the order asked for; or these memories, or what one replaces."""
    view = view_of(app, request, caller).model_copy(update={"hidden": request.hidden})
    with app.records.snapshot():
        if request.ids:
            ids, after = [number for one in request.ids if (number := parse_id(one))], None
        elif request.replaced_by is not None:
            ids, after = app.records.overview.replaced_by(parse_id(request.replaced_by) or 0, request.limit), None
        else:
            ids, after = app.records.overview.page_after(view, request.order, request.after, request.limit)
        found = app.records.load(ids, view)
    return Browsed(tuple(found[one] for one in ids if one in found), after)


def facets(app: App, request: Facets, caller: Caller) -> Counted:
    """Count the memories by kind, scope, author, source, tag and month; of very many, the newest."""
    view = view_of(app, request, caller).model_copy(update={"hidden": request.hidden})
    with app.records.snapshot():
        total, counts = app.records.overview.facets(view, _COUNTED)
        return Counted(total, min(total, _COUNTED), counts, app.records.overview.states(view) if request.states else {})


def read_journal(app: App, request: ReadJournal, caller: Caller) -> JournalPage:
    """Return lines of the journal, the newest first, of what the caller may see."""
    namespaces, levels = caller.namespaces(request.scope), levels_of(request, caller)
    found = app.records.overview.journal_before(
        namespaces, levels, request.before, request.limit + 1, actor=request.actor, action=request.action
    )
    more, shown = len(found) > request.limit, found[: request.limit]
    return JournalPage(tuple(map(JournalLine.of, shown)), shown[-1].id if more else None)

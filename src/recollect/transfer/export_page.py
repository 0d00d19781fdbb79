"""Export: everything of the caller's namespaces as JSON lines that can be imported again, or as Markdown for people.

The journal's lines come along for information: an import passes them over. `backup` is what copies a whole store.
Levels of sensitivity above public leave only when they are let in by name; expired memories never do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from recollect.app import App
from recollect.domain.enums import Sensitivity, owned, sensitivity_of
from recollect.domain.requests import Caller
from recollect.domain.search import View
from recollect.domain.transfer import ExportPage, Page
from recollect.search.visibility import levels_of
from recollect.transfer.recollect_jsonl import NAME, VERSION, line_of

_LINES_A_PAGE: Final = 500
_NEXT: Final = {"memory": "fact:0", "fact": "journal:0", "journal": ""}
_FIRST: Final = ExportPage.model_fields["after"].default


def export_page(app: App, request: ExportPage, caller: Caller) -> Page:
    """Return the next lines of an export; the first page begins with the header."""
    namespaces = caller.namespaces(request.scope)
    view = View(namespaces=namespaces, now=app.clock(), sensitivities=levels_of(request, caller))
    part, _, number = request.after.partition(":")
    reader = app.export_reader
    reads: dict[str, Callable[[View, int, int], Sequence[Any]]]
    reads = {"memory": reader.memories, "fact": reader.facts, "journal": reader.lines}
    with app.records.snapshot():
        header = [_header_line(app, request, view, caller)] if request.after == _FIRST else []
        found = reads[part](view, int(number), _LINES_A_PAGE)
    lines = (line_of(part, record) for record in found)
    after = f"{part}:{found[-1].id}" if len(found) == _LINES_A_PAGE else _NEXT[part]
    return Page((*header, *lines), after, reader.take_unreadable())


def pages(
    request: ExportPage, ask: Callable[[ExportPage], Page], unreadable: list[str] | None = None
) -> Iterator[dict[str, Any]]:
    """Yield every line of an export, asking for a page after the other; add unreadable memories to `unreadable`."""
    after = request.after
    while after:
        page = ask(request.model_copy(update={"after": after}))
        if unreadable is not None:
            unreadable += page.unreadable
        yield from page.lines
        after = page.after


def _header_line(app: App, request: ExportPage, view: View, caller: Caller) -> dict[str, Any]:
    """Return the first line of an export: its version, its scope, and how many lines follow."""
    return {
        "format": NAME,
        "version": VERSION,
        "exported_at": view.now.isoformat(),
        "model": app.export_reader.stamps(),
        "scope": request.scope,
        "sensitivities": [sensitivity_of(level) for level in view.sensitivities],
        **app.export_reader.counts(view),
        "left_out": _counts_left_out(app, view, caller),
    }


def _counts_left_out(app: App, view: View, caller: Caller) -> dict[str, int]:
    """Return how many of the caller's own memories the export leaves out, by the level that was not let in."""
    levels = {level: owned(level, caller.user) for level in Sensitivity}
    views = {
        level: view.model_copy(update={"sensitivities": (stored,)})
        for level, stored in levels.items()
        if stored not in view.sensitivities
    }
    counts = {str(level): app.export_reader.counts(view).get("memories", 0) for level, view in views.items()}
    return {level: count for level, count in counts.items() if count}

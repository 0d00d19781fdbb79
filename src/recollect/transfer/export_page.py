"""Export: everything of the caller's namespaces as JSON lines that can be imported again, or as Markdown for people.

The journal's lines come along for information: an import passes them over. `backup` is what copies a whole store.
Levels of sensitivity above public leave only when they are let in by name; expired memories never do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from recollect.domain.requests import Caller
from recollect.domain.search import View
from recollect.domain.transfer import ExportPage, Page
from recollect.operations.visibility import allowed_levels
from recollect.ports.app import App
from recollect.transfer import recollect_jsonl as jsonl

_LINES_A_PAGE: Final = 500
_NEXT: Final = {"memory": "fact:0", "fact": "journal:0", "journal": ""}
_FIRST: Final = ExportPage.model_fields["after"].default


def export_page(app: App, request: ExportPage, caller: Caller) -> Page:
    """Return the next lines of an export; the first page begins with the header."""
    namespaces = caller.namespaces(request.scope)
    view = View(namespaces=namespaces, now=app.clock(), sensitivities=allowed_levels(request))
    part, _, number = request.after.partition(":")
    reader = app.export_reader
    reads: dict[str, Callable[[View, int, int], Sequence[Any]]]
    reads = {"memory": reader.memories, "fact": reader.facts, "journal": reader.lines}
    with app.records.snapshot():
        header = [_header(app, request, view)] if request.after == _FIRST else []
        found = reads[part](view, int(number), _LINES_A_PAGE)
    lines = (jsonl.line_of(part, one) for one in found)
    return Page((*header, *lines), f"{part}:{found[-1].id}" if len(found) == _LINES_A_PAGE else _NEXT[part])


def export(app: App, request: ExportPage, caller: Caller) -> Iterator[dict[str, Any]]:
    """Yield every line of an export as a JSON object, all of one moment."""
    with app.records.snapshot():
        yield from pages(request, lambda page: export_page(app, page, caller))


def pages(request: ExportPage, ask: Callable[[ExportPage], Page]) -> Iterator[dict[str, Any]]:
    """Yield every line, asking for one page after the other."""
    after = request.after
    while after:
        page = ask(request.model_copy(update={"after": after}))
        yield from page.lines
        after = page.after


def _header(app: App, request: ExportPage, view: View) -> dict[str, Any]:
    return {
        "format": jsonl.NAME,
        "version": jsonl.VERSION,
        "exported_at": view.now.isoformat(),
        "model": app.export_reader.stamps(),
        "scope": request.scope,
        "sensitivities": [str(level) for level in view.sensitivities],
        **app.export_reader.counts(view),
    }

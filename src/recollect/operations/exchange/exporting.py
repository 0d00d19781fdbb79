"""Export: everything of the caller's namespaces as JSON lines that can be imported again, or as Markdown for people.

Levels of sensitivity above public leave only when they are let in by name; expired memories never do.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

from recollect.domain import Caller, Export, ExportPage, Page, Sensitivity, View
from recollect.operations.exchange import own
from recollect.ports import App

_PAGE: Final = 500
_NEXT: Final = {"journal": "memory", "memory": "fact", "fact": ""}


def export_page(app: App, request: ExportPage, caller: Caller | None = None) -> Page:
    """Return the next lines of an export; the first page begins with the header."""
    caller = caller or app.caller
    view = _view(app, request, caller)
    part, _, number = request.after.partition(":")
    with app.records.snapshot():
        lines = [_header(app, request, view)] if request.after == ExportPage().after else []
        found, last = _READ[part](app, view, int(number))
    following = f"{part}:{last}" if len(found) == _PAGE else f"{_NEXT[part]}:0" if _NEXT[part] else ""
    return Page((*lines, *found), following)


def export(app: App, request: Export, caller: Caller | None = None) -> Iterator[dict[str, Any]]:
    """Yield every line of an export as a JSON object, all of one moment."""
    with app.records.snapshot():
        yield from pages(request, lambda page: export_page(app, page, caller))


def pages(request: Export, ask: Callable[[ExportPage], Page]) -> Iterator[dict[str, Any]]:
    """Yield every line, asking for one page after the other."""
    after = ExportPage().after
    given = {name: getattr(request, name) for name in Export.model_fields}
    while after:
        page = ask(ExportPage(**given, after=after))
        yield from page.lines
        after = page.after


def dumped(line: dict[str, Any]) -> str:
    """Write a line as it stands in the file."""
    return json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n"


def _view(app: App, request: Export, caller: Caller) -> View:
    allowed = (Sensitivity.PRIVATE,) * request.allow_private + (Sensitivity.SECRET,) * request.allow_secret
    return View(caller.namespaces(request.scope), app.clock(), (Sensitivity.PUBLIC, *allowed))


def _header(app: App, request: Export, view: View) -> dict[str, Any]:
    counts = app.leaving.counts(view)
    whole = counts.pop("all") == counts["journal"]
    return {
        "format": own.NAME,
        "version": own.VERSION,
        "exported_at": view.now.isoformat(),
        "model": app.leaving.stamps(),
        "scope": request.scope,
        "sensitivities": [str(level) for level in view.sensitivities],
        **counts,
        "chain": own.WHOLE if whole else "part",
    }


def _journal(app: App, view: View, after: int) -> tuple[list[dict[str, Any]], int]:
    found = app.leaving.lines(view, after, _PAGE)
    return [own.journal_line(one) for one in found], found[-1].id if found else after


def _memories(app: App, view: View, after: int) -> tuple[list[dict[str, Any]], int]:
    found = app.leaving.memories(view, after, _PAGE)
    return [own.memory_line(one) for one in found], found[-1].id if found else after


def _facts(app: App, view: View, after: int) -> tuple[list[dict[str, Any]], int]:
    found = app.leaving.facts(view, after, _PAGE)
    return [own.fact_line(one) for one in found], found[-1].id if found else after


_READ: Final = {"journal": _journal, "memory": _memories, "fact": _facts}

"""Summarize: old memories are condensed into one for each category."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta

from recollect.app import App
from recollect.domain.enums import Order
from recollect.domain.requests import Caller, Summarize
from recollect.domain.results import Memory, Summarized
from recollect.domain.search import View
from recollect.memory.condense import MOST, condensed_text, may_condense
from recollect.memory.summaries import write_summary
from recollect.search.visibility import load_page

_PAGE = 500


def summarize_old(app: App, request: Summarize, caller: Caller, *, request_id: str = "") -> Summarized:
    """Summarise old public memories, one summary for each category; the originals then rank below it.

    A summary consists of the originals' first sentences. What the originals say beyond that is found as before, and
    `restore` makes each current again. How many memories are left as they are, because there are too few in their
    category, is told.
    """
    del request_id  # what was condensed is not condensed again
    namespace = caller.writable(caller.namespace(request.scope))
    groups: dict[str | None, list[Memory]] = defaultdict(list)
    for memory in _memories_to_summarize(app, request, namespace):
        groups[memory.category].append(memory)
    written: list[int] = []
    done = left = 0
    for category, memories in sorted(groups.items(), key=lambda pair: pair[0] or ""):
        for start in range(0, len(memories), MOST):
            some = memories[start : start + MOST]
            if len(some) < request.at_least:
                left += len(some)
            elif (new := _write_category_summary(app, request, category, some, caller)) is not None:
                written.append(new)
                done += len(some)
    return Summarized(tuple(written), done, left)


def _memories_to_summarize(app: App, request: Summarize, namespace: str) -> list[Memory]:
    """Return the namespace's memories that may be condensed and were neither changed nor read within the age limit."""
    before = app.clock() - timedelta(days=request.older_than_days)
    view = View(namespaces=app.records.namespaces.existing([namespace]), now=app.clock(), category=request.category)
    pages = (load_page(app, view, Order.OLDEST, _PAGE, start) for start in range(0, app.records.count(view), _PAGE))
    found = (one for page in pages for one in page if may_condense(one))
    return [one for one in found if (one.last_accessed_at or one.updated_at) < before > one.updated_at]


def _write_category_summary(
    app: App, request: Summarize, category: str | None, some: Sequence[Memory], caller: Caller
) -> int | None:
    """Write one summary in place of these memories of a category; return its id, None where none was written."""
    title = f"Summary of {len(some)} memories" + (f" about {category}" if category else "")
    return write_summary(app, request.scope, condensed_text(category, some), title, category, some, caller)

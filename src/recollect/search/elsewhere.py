"""The other projects of somebody's own store: looked at on request, and named where nothing is found in this one.

In a store that several share, and for whoever may not read every scope, there are none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from recollect.app import App
from recollect.domain.enums import Scope
from recollect.domain.requests import Caller, Query
from recollect.domain.results import ELSEWHERE, Memory
from recollect.domain.search import View
from recollect.errors import InvalidInput
from recollect.prompt.neutral import neutral
from recollect.search.ranking import ranking_of
from recollect.text import layers

_LOOKED_AT: Final = 100  # hits
_NAMED: Final = 5  # projects
_LINE: Final = 80  # characters


def other_projects(app: App, caller: Caller, scope: Scope | None = None) -> tuple[str, ...]:
    """Return the namespaces of the other projects that this caller may read, where `scope` lets them in."""
    if app.capabilities.shared or set(caller.reads) != set(Scope) or scope not in (None, Scope.PROJECT):
        return ()
    own = caller.namespace(Scope.PROJECT)
    return tuple(one for one in app.records.project_namespaces(caller.team) if one != own)


def widened(app: App, view: View, caller: Caller, scope: Scope | None) -> View:
    """Return a view that also sees the other projects; raise `InvalidInput` where several share the store."""
    if app.capabilities.shared:
        raise InvalidInput(
            "everywhere", "Invalid everywhere: Several people share this store, and each request names its project"
        )
    return view.model_copy(update={"namespaces": (*view.namespaces, *other_projects(app, caller, scope))})


def with_project(memory: Memory, caller: Caller) -> Memory:
    """Name in a memory of another project that project, unless its own field `project` says something."""
    project = _project_of(memory.namespace)
    if memory.project or not project or memory.namespace == caller.namespace(Scope.PROJECT):
        return memory
    return memory.model_copy(update={"project": project})


def note_of_hits(app: App, query: Query, view: View, caller: Caller) -> tuple[str, ...]:
    """Say how many memories of which other projects answer a query that found nothing here, and the best of each."""
    others = () if query.everywhere else other_projects(app, caller, query.scope)
    if not others:
        return ()
    wide = query.model_copy(update={"limit": _LOOKED_AT, "max_tokens": None})
    hits = ranking_of(app, wide, view.model_copy(update={"namespaces": others})).hits
    best = {hit.memory.namespace: hit.memory for hit in reversed(hits)}
    return _note(Counter(hit.memory.namespace for hit in hits), best)


def note_of_counts(app: App, view: View, caller: Caller, scope: Scope | None) -> tuple[str, ...]:
    """Say how many memories of which other projects such a view sees."""
    others = other_projects(app, caller, scope)
    return _note(Counter({one: app.records.count(view.model_copy(update={"namespaces": (one,)})) for one in others}))


def project_with(app: App, memory_id: int, view: View, caller: Caller) -> str:
    """Return the other project that holds a memory, an empty text where none does."""
    others = other_projects(app, caller)
    found = app.records.load([memory_id], view.model_copy(update={"namespaces": others})) if others else {}
    return _project_of(found[memory_id].namespace) if memory_id in found else ""


def _note(counts: Counter[str], best: Mapping[str, Memory] | None = None) -> tuple[str, ...]:
    named: Sequence[tuple[str, int]] = [(one, count) for one, count in counts.most_common(_NAMED) if count]
    parts = []
    for namespace, count in named:
        line = layers.shortened(" ".join(best[namespace].abstract.split()), _LINE).rstrip(".") if best else ""
        parts.append(f"{count} in {_project_of(namespace)}" + (f', nearest: "{line}"' if line else ""))
    return (neutral(f"{ELSEWHERE}{'; '.join(parts)}."),) if parts else ()


def _project_of(namespace: str) -> str:
    """Return the name of the project whose namespace this is, an empty text for another scope."""
    scope, _, name = namespace.partition(":")
    return name.partition("/")[2] if scope == "project" else ""

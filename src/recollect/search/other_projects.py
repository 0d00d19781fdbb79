"""The other projects that the caller may read: looked at on request, and named where nothing is found in this one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from recollect.app import App
from recollect.domain.enums import Scope
from recollect.domain.requests import Caller, Query
from recollect.domain.results import ELSEWHERE, Memory
from recollect.domain.search import View
from recollect.prompt.neutral import neutral
from recollect.search.hits import ranking_of
from recollect.text import layers

_LOOKED_AT: Final = 100  # hits
_NAMED: Final = 5  # projects
_MOST_PROJECTS: Final = 50  # that are searched unasked, since each has an index of its own
_LINE: Final = 80  # characters


def other_projects(app: App, caller: Caller, scope: Scope | None = None) -> tuple[str, ...]:
    """Return the namespaces of the team's projects, except the current project, that the caller may read.

    Return none where `scope` names a scope other than the project.
    """
    if scope not in (None, Scope.PROJECT):
        return ()
    own = caller.namespace(Scope.PROJECT)
    others = (one for one in app.records.namespaces.of_team(caller.team) if one != own)
    return tuple(one for one in others if caller.elsewhere.role_in(project_of(one)) is not None)


def with_other_projects(app: App, view: View, caller: Caller, scope: Scope | None) -> View:
    """Return a view that also sees the other projects that the caller may read."""
    return view.model_copy(update={"namespaces": (*view.namespaces, *other_projects(app, caller, scope))})


def with_project(memory: Memory, caller: Caller) -> Memory:
    """Name in a memory of another project that project, unless its own field `project` says something."""
    project = project_of(memory.namespace)
    if memory.project or not project or memory.namespace == caller.namespace(Scope.PROJECT):
        return memory
    return memory.model_copy(update={"project": project})


def note_of_hits(app: App, query: Query, view: View, caller: Caller) -> tuple[str, ...]:
    """Say how many memories of which other projects answer a query that found nothing here, and the best of each."""
    others = () if query.everywhere else other_projects(app, caller, query.scope)
    if not others:
        return ()
    if len(others) > _MOST_PROJECTS:
        counts = app.records.namespaces.counts(view.model_copy(update={"namespaces": others}))
        others = tuple(namespace for namespace, _ in counts.most_common(_MOST_PROJECTS))
    wide = query.model_copy(update={"limit": _LOOKED_AT, "max_tokens": None})
    hits = ranking_of(app, wide, view.model_copy(update={"namespaces": others})).hits
    best = {hit.memory.namespace: hit.memory for hit in reversed(hits)}
    return _note_on_projects(caller, Counter(hit.memory.namespace for hit in hits), best)


def note_of_counts(app: App, view: View, caller: Caller, scope: Scope | None) -> tuple[str, ...]:
    """Say how many memories of which other projects such a view sees."""
    others = other_projects(app, caller, scope)
    everywhere = view.model_copy(update={"namespaces": others})
    return _note_on_projects(caller, app.records.namespaces.counts(everywhere)) if others else ()


def counts_of(app: App, projects: Sequence[str], caller: Caller) -> dict[str, int]:
    """Return how many memories each of these projects holds that the caller may read, without those that hold none."""
    if not projects:
        return {}
    others = tuple(one for one in other_projects(app, caller) if project_of(one) in projects)
    counts = app.records.namespaces.counts(View(namespaces=others, now=app.clock())) if others else {}
    return {project_of(namespace): count for namespace, count in counts.items()}


def project_with(app: App, memory_id: int, view: View, caller: Caller) -> str:
    """Return the other project that holds a memory, an empty text where none does."""
    others = other_projects(app, caller)
    found = app.records.load([memory_id], view.model_copy(update={"namespaces": others})) if others else {}
    return project_of(found[memory_id].namespace) if memory_id in found else ""


def _note_on_projects(
    caller: Caller, counts: Counter[str], best: Mapping[str, Memory] | None = None
) -> tuple[str, ...]:
    """Return the note with the number of memories in each project and the nearest in `best`; empty without any."""
    here = f"Not in project {caller.project}, but " if Scope.PROJECT in caller.reads else "But "
    named: Sequence[tuple[str, int]] = [(one, count) for one, count in counts.most_common(_NAMED) if count]
    parts = []
    for namespace, count in named:
        line = layers.shortened(" ".join(best[namespace].abstract.split()), _LINE).rstrip(".") if best else ""
        parts.append(f"{count} in {project_of(namespace)}" + (f', nearest: "{line}"' if line else ""))
    return (neutral(f"{here}{ELSEWHERE}{'; '.join(parts)}."),) if parts else ()


def project_of(namespace: str) -> str:
    """Return the name of the project whose namespace this is, an empty text for another scope."""
    scope, _, name = namespace.partition(":")
    return name.partition("/")[2] if scope == "project" else ""

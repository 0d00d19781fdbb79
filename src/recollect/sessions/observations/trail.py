"""The trail: what a session did just before, as far as that tells what an output means."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from pydantic import BaseModel, ConfigDict

from recollect.sessions.observations.command_lines import first_work
from recollect.sessions.observations.lines import Line, from_both_ends, read_failures, without_frame
from recollect.sessions.observations.occurrence import Occurrence, Origin
from recollect.text.layers import shortened

LONGEST_LINE: Final = 160
"""Characters of a line that is quoted."""
_MAX_EDITS: Final = 3  # files that a trail remembers
_MAX_STEPS: Final = 12  # of a plan
_PASSED: Final = re.compile(r"^(?!.*\b\d+ (?:failed|errors?)\b).*\b\d+ passed\b|\btest result: ok\b|^OK$|^PASS\b")


class Trail(BaseModel):
    """What a session did just before.

    `failure` is the command that failed last and how, `draft` the memory that tells of it (0 for none), `edits` are the
    files that were changed since then, `open` is what the agent's plan has not done yet.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    failure: tuple[str, str] | None = None
    draft: int = 0
    edits: tuple[str, ...] = ()
    open: tuple[str, ...] = ()


def trail_after(trail: Trail, occurrence: Occurrence, lines: Sequence[Line], folder: str = "") -> Trail:
    """Return the trail after the use of a tool."""
    if occurrence.origin is Origin.PLAN:
        return trail.model_copy(update={"open": _open_steps(occurrence)})
    if occurrence.origin is Origin.EDIT:
        path = relative_path(occurrence.path, folder)
        return trail.model_copy(update={"edits": tuple(dict.fromkeys((*trail.edits, path)))[-_MAX_EDITS:]})
    if occurrence.origin is not Origin.COMMAND:
        return trail
    if failed := failure_line(occurrence, lines):
        return trail.model_copy(update={"failure": (first_work(occurrence.command), failed), "draft": 0, "edits": ()})
    if trail.failure is None or passes_now(occurrence, lines, trail):
        return trail.model_copy(update={"failure": None, "draft": 0, "edits": ()})
    return trail


def failure_line(occurrence: Occurrence, lines: Sequence[Line]) -> str:
    """Return the line of an output that reports its failure, empty where it succeeded."""
    found = [line for line in lines if "failure" in line.signs]
    if found and (occurrence.failed or not any(_PASSED.search(line.text) for line in lines)):
        return without_frame(max(found, key=lambda line: line.worth).text)[:LONGEST_LINE]
    return without_frame(lines[-1].text)[:LONGEST_LINE] if occurrence.failed and lines else ""


def failure_of(occurrence: Occurrence) -> str:
    """Return the line in which an output reports failure, as `failure_line` does, from likely lines alone."""
    return _failure_in(occurrence.text, occurrence.failed)


@lru_cache(maxsize=16)
def _failure_in(text: str, failed: bool) -> str:
    """Return the line of an output that reports its failure, '' where it succeeded."""
    lines = from_both_ends(text.split("\n"))
    if not failed and any(map(_PASSED.search, lines)):
        return ""
    return failure_line(Occurrence(Origin.COMMAND, text, failed=failed), read_failures(lines))


def passes_now(occurrence: Occurrence, lines: Sequence[Line], trail: Trail) -> bool:
    """Say whether a command passes now although it failed before; it may have run more of the same tests, or fewer."""
    if trail.failure is None or failure_line(occurrence, lines):
        return False
    before, now = trail.failure[0].split(), first_work(occurrence.command).split()
    return before[:2] == now[:2] or (before[:1] == now[:1] and 1 in (len(before), len(now)))


def proves(occurrence: Occurrence, lines: Sequence[Line], trail: Trail) -> bool:
    """Say whether a command passes now that failed before an edit."""
    return occurrence.origin is Origin.COMMAND and bool(trail.edits) and passes_now(occurrence, lines, trail)


def relative_path(path: str, folder: str) -> str:
    """Return a path relative to a folder; a path elsewhere stays as it is."""
    inside = folder and path.startswith(folder.rstrip("/") + "/")
    return path[len(folder.rstrip("/")) + 1 :] if inside else path


def _open_steps(occurrence: Occurrence) -> tuple[str, ...]:
    """Return the open steps of a plan."""
    listed = next(
        (found for name in ("todos", "plan", "items") if isinstance(found := occurrence.input.get(name), list)), []
    )
    steps = [
        step
        for step in listed
        if isinstance(step, dict) and step.get("status") not in ("completed", "done", "cancelled")
    ]
    texts = [str(step.get("content") or step.get("step") or step.get("title") or "") for step in steps]
    return tuple(shortened(text, LONGEST_LINE) for text in texts if text)[:_MAX_STEPS]

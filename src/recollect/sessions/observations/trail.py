"""The trail: what a session did just before, as far as it tells what an output means.

The trail is a value that its owner writes as JSON and reads back, as the window of topics is.
"""

from __future__ import annotations

import re
from typing import Final

from pydantic import BaseModel, ConfigDict

from recollect.sessions.observations.lines import Line
from recollect.sessions.observations.occurrence import Occurrence, Origin, programs
from recollect.sessions.observations.statements import asked
from recollect.text.layers import shortened

_COMMANDS: Final = 12
_LONGEST: Final = 160
_TASK: Final = 200
_TRIVIAL: Final = frozenset(
    "cd echo export source set sed grep rg head tail sleep cat sort uniq wc cut tr awk xargs tee jq true for do done "
    "if then "
    "fi else while [ test".split()
)
_FAILS: Final = frozenset(["message", "status"])
_WORD: Final = re.compile(r"[\w./:-]+")


class Trail(BaseModel):
    """The task, the last edit since a command ran, the commands that ran and the last failure.

    `task` is what the person asked for last, `edited` a file with what was written into it, `failure` what failed and
    how, `open` what the agent's own plan has not done yet.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    task: str = ""
    edited: tuple[str, str] | None = None
    commands: tuple[str, ...] = ()
    failure: tuple[str, str] | None = None
    open: tuple[str, ...] = ()


def followed(trail: Trail, one: Occurrence, lines: list[Line], *, opens: bool = False) -> Trail:
    """Return the trail after an occurrence; `opens` says that it opens a topic."""
    if one.origin is Origin.PROMPT:
        task = asked(one.text, opens=opens)
        return trail.model_copy(update={"task": shortened(task, _TASK), "failure": None} if task else {})
    if one.origin is Origin.EDIT:
        return trail.model_copy(update={"edited": (one.path, change(one))})
    if one.origin is Origin.PLAN:
        return trail.model_copy(update={"open": _undone(one)})
    if one.origin is not Origin.COMMAND:
        return trail
    made = work(one.command)
    failed = failure(lines)
    changes: dict[str, object] = {"commands": (*trail.commands, made)[-_COMMANDS:], "edited": None}
    if failed:
        changes["failure"] = (made, failed)
    elif trail.failure and trail.failure[0] == made:
        changes["failure"] = None
    return trail.model_copy(update=changes)


def _undone(one: Occurrence) -> tuple[str, ...]:
    """Return what a plan has not done yet."""
    listed = next((found for name in ("todos", "plan", "items") if isinstance(found := one.input.get(name), list)), [])
    steps = [
        step
        for step in listed
        if isinstance(step, dict) and step.get("status") not in ("completed", "done", "cancelled")
    ]
    said = [str(step.get("content") or step.get("step") or step.get("title") or "") for step in steps]
    return tuple(shortened(one, _LONGEST) for one in said if one)[:_COMMANDS]


def work(command: str) -> str:
    """Return the first that a command line runs: two commands of one work measure or try the same."""
    return next(iter(works(command)), "")


def works(command: str) -> list[str]:
    """Return what a command line runs, each with its first words and without options and what only shows or filters."""
    found = []
    for name, rest in programs(command):
        if name not in _TRIVIAL:
            words = [word for word in _WORD.findall(rest) if not word.startswith("-")]
            found.append(" ".join([name, *words[:2]])[:_LONGEST])
    return found


def failure(lines: list[Line]) -> str:
    """Return the line of an output that tells how it failed, empty where it did not."""
    found = [line for line in lines if not line.noise and not line.signs.isdisjoint(_FAILS)]
    return max(found, key=lambda line: line.worth).text.strip()[:_LONGEST] if found else ""


def change(one: Occurrence) -> str:
    """Return the line of an edit that says most of what it changed."""
    before = {line.strip() for line in one.removed.split("\n")}
    new = [line.strip() for line in one.written.split("\n") if line.strip() and line.strip() not in before]
    return max(new, key=lambda line: min(len(line), _LONGEST), default="")[:_LONGEST]

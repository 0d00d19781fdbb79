"""Kept answers, and what an arm reaches with them.

Answers lie in a folder for each arm, in a file for each player: a player is one run of a language model over the tasks.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import Any, Final

import numpy as np
from pydantic import BaseModel, ConfigDict, TypeAdapter

from evaluation.worth.answers import Answer, Judgement, judge
from evaluation.worth.arms import AT_START, TOOL, Arm, Place, digest_of
from evaluation.worth.use import CAT, GREP, RECALL, changes_of, is_finished, read_form
from evaluation.worth.workspaces import FilePath, Task, Workspace, read_file, tasks_of
from recollect.errors import InvalidInput

ROUNDS: Final = 2_000
"""Draws of a bootstrap."""
_Z: Final = 1.96  # of 95 %
_REQUESTS: Final = frozenset({CAT, GREP, RECALL})


class Kept(BaseModel):
    """An answer with what its agent had read; `files` maps a path to its new text, or to None where it went.

    `tool_tokens` describe the tool; `start_tokens` of memory came before the work began, `later_tokens` afterwards: by
    what the agent asked for (`requests`), and by what it did. `reached` says whether what the task needs was among it.
    `digest` changes with the request and the repository.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    files: dict[FilePath, str | None] = {}
    commands: tuple[str, ...] = ()
    question: str = ""
    reply: str = ""
    tool_tokens: int
    start_tokens: int
    later_tokens: int
    requests: tuple[str, ...] = ()
    reached: bool = False
    digest: str

    @property
    def tokens(self) -> int:
        """Return the tokens of memory that were read."""
        return self.start_tokens + self.later_tokens


Answers = Mapping[str, Mapping[str, Kept]]
"""The answers of an arm: by player, then by task."""
_FILE: Final = TypeAdapter(dict[str, Kept])


@dataclass(frozen=True)
class Outcome:
    """What became of an answer to a task in an arm."""

    arm: Arm
    player: str
    workspace: str
    name: str
    task: Task
    kept: Kept
    judgement: Judgement


@dataclass(frozen=True)
class Share:
    """A share of tasks, 0–1, with its 95 % interval (Wilson) and the number of tasks; None where there is none."""

    value: float | None
    low: float
    high: float
    count: int


@dataclass(frozen=True)
class Difference:
    """The difference between two arms in points, with its 95 % interval by a bootstrap over workspaces."""

    value: float
    low: float
    high: float


def task_digest(workspace: Workspace, task: Task) -> str:
    """Return what changes with the request of a task and the files of its repository."""
    files = workspace.repository.files
    return digest_of(task.request, *(text for path in sorted(files) for text in (path, files[path])))


def gather(places: Sequence[Place]) -> tuple[dict[str, Kept], list[str]]:
    """Return the finished answers by task, and the names of the tasks that are not finished."""
    found = {place.name: _kept(place) for place in places if is_finished(place)}
    return found, [place.name for place in places if place.name not in found]


def write_answers(folder: Path, arm: Arm, player: str, answers: Mapping[str, Kept]) -> Path:
    """Add answers of a player to those of the folder; return the file."""
    file = folder / arm / f"{player}.json"
    known = read_file("answers", file, _FILE.validate_json) if file.exists() else {}
    file.parent.mkdir(parents=True, exist_ok=True)
    merged = dict(sorted((known | dict(answers)).items()))
    file.write_bytes(_FILE.dump_json(merged, indent=1) + b"\n")
    return file


def read_answers(folder: Path) -> Mapping[Arm, Answers]:
    """Read the answers of all arms; raise `InvalidInput` where there is none, or where a file is wrong."""
    found = {
        arm: {file.stem: read_file("answers", file, _FILE.validate_json) for file in files}
        for arm in Arm
        if (files := sorted((folder / arm).glob("*.json")))
    }
    if not found:
        raise InvalidInput("answers", f"{folder} holds no answers: they lie in {folder / Arm.NONE} and so on.")
    return found


def judge_all(workspaces: list[Workspace], answers: Mapping[Arm, Answers]) -> tuple[list[Outcome], list[str]]:
    """Judge all answers; return the outcomes, and a sentence for each answer with a problem.

    It is missing, or was written to another request or repository than now, or the check of its task fails on it.
    """
    outcomes, remarks = [], []
    for arm, players in answers.items():
        for player, rows in players.items():
            for workspace, task in tasks_of(workspaces):
                name = workspace.task_name(task)
                kept = rows.get(name)
                if kept is None or kept.digest != task_digest(workspace, task):
                    remarks.append(f"{arm}, {player}: {name} has {'no' if kept is None else 'an outdated'} answer.")
                    continue
                answer = Answer(workspace.repository.files, kept.files, kept.commands, kept.question, kept.reply)
                found = judge(task, answer)
                if found.problem:
                    remarks.append(f"{arm}, {player}: {name}: {found.problem}")
                outcomes.append(Outcome(arm, player, workspace.name, name, task, kept, found))
    return outcomes, remarks


def figures(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Return a row for each arm: shares of tasks, and tokens read."""
    rows = []
    for arm in Arm:
        own = [each for each in outcomes if each.arm is arm]
        if not own:
            continue
        needing = [each for each in own if each.task.needs_memory]
        repeatable = [each for each in needing if each.task.detects_repeats]
        shares = {
            "right": _share(own, _is_right),
            "right_needing": _share(needing, _is_right),
            "right_nothing": _share([each for each in own if not each.task.needs_memory], _is_right),
            "repeated": _share(repeatable, lambda each: each.judgement.repeats),
            "asked": _share(own, lambda each: each.judgement.asks),
            "reached": _share(needing, lambda each: each.kept.reached),
        }
        rows.append(
            {"arm": arm, "players": len({each.player for each in own})}
            | shares
            | {name: _mean(own, name) for name in ("tokens", "start_tokens", "tool_tokens")}
            | {"requests": round(statistics.mean(len(each.kept.requests) for each in own), 1)}
        )
    return rows


def by_kind(outcomes: Sequence[Outcome]) -> dict[str, dict[Arm, Share]]:
    """Return the share of right answers of each kind of task and arm."""
    kinds = sorted({each.task.kind for each in outcomes})
    return {
        kind: {
            arm: share
            for arm in Arm
            if (share := _share([o for o in outcomes if o.arm is arm and o.task.kind is kind], _is_right)).count
        }
        for kind in kinds
    }


def difference(outcomes: Sequence[Outcome], arm: Arm, other: Arm, *, needing: bool) -> Difference | None:
    """Return by how much more an arm has right than another, over the tasks that both answered; None without any.

    Whole workspaces are drawn, as the tasks of one are not independent.
    """
    means: dict[Arm, dict[str, float]] = {}
    homes = {each.name: each.workspace for each in outcomes}
    for one in (arm, other):
        rights: dict[str, list[bool]] = {}
        for each in outcomes:
            if each.arm is one and each.task.needs_memory is needing:
                rights.setdefault(each.name, []).append(each.judgement.right)
        means[one] = {name: statistics.mean(map(float, values)) for name, values in rights.items()}
    shared = sorted(means[arm].keys() & means[other].keys())
    if not shared:
        return None
    gains = np.array([means[arm][name] - means[other][name] for name in shared])
    names, drawn = np.unique([homes[name] for name in shared], return_inverse=True)
    counts, sums = np.bincount(drawn), np.bincount(drawn, weights=gains)
    picked = np.random.default_rng(1).multinomial(len(names), np.full(len(names), 1 / len(names)), size=ROUNDS)
    low, high = np.percentile(100 * (picked @ sums) / (picked @ counts), [2.5, 97.5])
    return Difference(round(100 * float(gains.mean()), 1), round(float(low), 1), round(float(high), 1))


def wilson(hits: float, count: int) -> tuple[float, float]:
    """Return the ends of Wilson's 95 % interval of a share, 0–1."""
    share = hits / count
    middle = share + _Z**2 / (2 * count)
    reach = _Z * sqrt(share * (1 - share) / count + _Z**2 / (4 * count**2))
    scale = 1 + _Z**2 / count
    return max(0.0, (middle - reach) / scale), min(1.0, (middle + reach) / scale)


def _mean(outcomes: Sequence[Outcome], name: str) -> int:
    return round(statistics.mean(float(getattr(each.kept, name)) for each in outcomes))


def _is_right(outcome: Outcome) -> bool:
    return outcome.judgement.right


def _share(outcomes: Sequence[Outcome], holds: Callable[[Outcome], bool]) -> Share:
    """Return the share of tasks for which something holds; of several players of a task the mean counts, once."""
    if not outcomes:
        return Share(None, 0.0, 1.0, 0)
    tasks: dict[str, list[float]] = {}
    for each in outcomes:
        tasks.setdefault(each.name, []).append(float(holds(each)))
    hits = sum(map(statistics.mean, tasks.values()))
    return Share(hits / len(tasks), *wilson(hits, len(tasks)), len(tasks))


def _kept(place: Place) -> Kept:
    form, log = read_form(place), place.log()
    tokens = {by: sum(row.tokens for row in log if row.by == by) for by in (TOOL, AT_START)}
    requests = [row for row in log if row.by in _REQUESTS]
    return Kept(
        files=changes_of(place),
        commands=form.commands,
        question=form.question,
        reply=form.reply,
        tool_tokens=tokens[TOOL],
        start_tokens=tokens[AT_START],
        later_tokens=sum(row.tokens for row in log) - sum(tokens.values()),
        requests=tuple(f"{row.by} {row.subject}".strip() for row in requests),
        reached=any(row.has_clue for row in log),
        digest=task_digest(place.workspace, place.task),
    )

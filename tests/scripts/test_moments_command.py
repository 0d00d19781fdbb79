"""`scripts/moments` counts which calls got a memory that they want, before and at all, and which others got a line."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from recollect import App

MEMORIES = [
    {"id": "m1", "content": "Never force a push.", "fact_type": "decision", "said_by": "person"},
    {"id": "m2", "content": "Start redis first.", "said_by": "assistant"},
]
WHEN = [{"id": "m1", "when": ["run git push --force"]}, {"id": "m2", "when": ["fail ECONNREFUSED"]}]


def call(number: int, command: str, *wants: str, output: str = "", failed: bool = False) -> dict[str, Any]:
    """Return a call of a set."""
    given = {"tool": "Bash", "input": {"command": command}, "output": output, "failed": failed}
    return {"n": number, "session": f"s{number}", "folder": "/home/dev/x", "wants": list(wants)} | given


def test_calls_are_counted_by_what_they_got(app: App, module: Callable[[str], ModuleType]) -> None:
    """A line before and after counts where it is wanted; a miss and a line that nobody wants are named."""
    moments = module("evaluation.moments")
    calls = [
        call(1, "git push --force", "m1"),
        call(2, "make test", "m2", output="connect ECONNREFUSED", failed=True),
        call(3, "git push origin +main", "m1"),
        call(4, "git push --force"),
        call(5, "ls"),
    ]
    found = moments.played(app, calls, moments.remember(app, MEMORIES, WHEN))
    assert (found.wanting, found.before, found.got) == (3, 1, 2)
    assert (found.others, found.disturbed) == (2, 1)
    assert [one["n"] for one, _ in found.missed] == [3]
    assert [(one["n"], got) for one, got in found.wrong] == [(4, ["m1"])]
    assert len(found.milliseconds) == 6


def test_each_set_is_whole(module: Callable[[str], ModuleType]) -> None:
    """Each set that is committed has moments for each of its memories, in their order, that can be read."""
    moments = module("evaluation.moments")
    for folder in sorted(one for one in moments.SETS.iterdir() if one.is_dir()):
        memories, when = (moments.lines_of(folder / f"{name}.jsonl") for name in ("memories", "when"))
        assert [one["id"] for one in memories] == [one["id"] for one in when], folder.name

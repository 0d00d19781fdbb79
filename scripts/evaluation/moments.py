"""Measure which uses of a tool get the memories that an agent should see at that moment, and which others get a line.

A set is a folder with memories, their moments (`when.jsonl`, by an author who saw no call) and calls in their order.
Each is played through a store of its own, by the operations that the hooks of an agent run.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console

import recollect
from recollect import App, Caller, Settings
from recollect.doors.handlers import perform
from recollect.engines.embedding import open_embedder

CALLER: Final = Caller(user="eval", team="eval", project="moments")
SETS: Final = Path(__file__).parent / "data" / "moments"
_FIELDS: Final = ("content", "title", "fact_type", "type")
_SHOWN: Final = 300  # characters of a call that are printed

Lines = list[dict[str, Any]]


@dataclass
class Result:
    """What the calls of a set got: how many that want a memory got it before and at all, and how many others a line.

    `early` are those others whose line is a memory that a later call of the session wants. `milliseconds` are those of
    each answer, `missed` and `wrong` the calls themselves with what they got.
    """

    wanting: int = 0
    before: int = 0
    got: int = 0
    others: int = 0
    disturbed: int = 0
    early: int = 0
    milliseconds: list[float] = field(default_factory=list)
    missed: list[tuple[Mapping[str, Any], list[str]]] = field(default_factory=list)
    wrong: list[tuple[Mapping[str, Any], list[str]]] = field(default_factory=list)


@contextmanager
def store() -> Iterator[App]:
    """Open an empty store that goes when the block ends."""
    given = Settings()
    embedder = open_embedder(given.model, given.models_dir)
    embedder.warm()
    with tempfile.TemporaryDirectory(prefix="recollect-moments-") as home:
        settings = Settings(home=Path(home), user=CALLER.user, team=CALLER.team, project=CALLER.project, daemon=False)
        settings = settings.model_copy(update={"models_dir": given.models_dir})
        with recollect.open_app(settings, embedder=embedder, background=False) as app:
            yield app


def lines_of(file: Path) -> Lines:
    """Read a file of JSON objects, one a line."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]


def remember(app: App, memories: Lines, moments: Lines) -> dict[str, str]:
    """Store the memories with their moments; return what each id of the store is called in the set."""
    when = {one["id"]: one["when"] for one in moments}
    names: dict[str, str] = {}
    for one in memories:
        fields = {name: one[name] for name in _FIELDS if one.get(name)} | {"when": when.get(one["id"], [])}
        caller = CALLER.saying(one["said_by"]) if one.get("said_by") else CALLER
        names[perform(app, "remember", fields, caller).id] = one["id"]
    return names


def played(app: App, calls: Lines, names: Mapping[str, str]) -> Result:
    """Send each call before it runs and after it, and count what it got."""
    result = Result()
    for place, one in enumerate(calls):
        event = {name: one[name] for name in ("folder", "tool", "input")} | {"session_id": one["session"]}
        first = [names[number] for number in _shown(app, "answer_before_tool", event, result)]
        then = []
        if one["failed"]:
            after = event | {"output": one["output"], "failed": True}
            then = [names[number] for number in _shown(app, "answer_tool", after, result)]
        else:
            perform(app, "tool_post", event | {"output": one["output"], "failed": False}, CALLER)
        _count(result, one, first, then)
        later = {number for each in calls[place:] if each["session"] == one["session"] for number in each["wants"]}
        result.early += bool(not one["wants"] and later & {*first, *then})
    return result


def _shown(app: App, name: str, event: dict[str, Any], result: Result) -> tuple[str, ...]:
    """Return the memories that came up at a moment, and note that they have reached the agent."""
    began = time.perf_counter()
    found = perform(app, name, event, CALLER)
    result.milliseconds.append((time.perf_counter() - began) * 1_000)
    if found.shown:
        perform(app, "note_shown", {"session_id": event["session_id"], **found.shown}, CALLER)
    return tuple(found.reminded_ids)


def _count(result: Result, call: Mapping[str, Any], first: list[str], then: list[str]) -> None:
    wanted, got = set(call["wants"]), [*first, *then]
    if not wanted:
        result.others += 1
        result.disturbed += bool(got)
    else:
        result.wanting += 1
        result.before += bool(wanted & set(first))
        result.got += bool(wanted & set(got))
    if wanted and not wanted & set(got):
        result.missed.append((call, got))
    elif not wanted and got:
        result.wrong.append((call, got))


def measured(memories: Path, moments: Path, calls: Path) -> Result:
    """Play a set in a store of its own."""
    with store() as app:
        return played(app, lines_of(calls), remember(app, lines_of(memories), lines_of(moments)))


def report(name: str, result: Result, out: Console, *, show: bool) -> None:
    """Print what a set came to; with `show` also each miss, and each line that nobody wanted."""
    spent = result.milliseconds
    out.print(
        f"{name}: of {result.wanting} calls that want a memory {result.before} got it before, {result.got} before or "
        f"after; of {result.others} others {result.disturbed} got a line, {result.early} of them that of a later call; "
        f"median {statistics.median(spent):.1f} ms, most {max(spent):.1f} ms"
    )
    for what, some in (("missed", result.missed), ("not wanted", result.wrong)) if show else ():
        for call, got in some:
            given = json.dumps(call["input"], ensure_ascii=False)[:_SHOWN]
            about = f"  {what} {call['n']}: wants {call['wants']}, got {got}: {call['tool']} {given}"
            out.print(about, markup=False, soft_wrap=True)
            if call["failed"]:
                out.print(f"    {call['output'][:_SHOWN]!r}", markup=False, soft_wrap=True)


def main(
    names: Annotated[list[str] | None, typer.Argument(help="Sets; without any all that have moments.")] = None,
    when: Annotated[
        Path | None, typer.Option("--when", help="Folder with a folder for each set that holds its `when.jsonl`.")
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Also print each miss, and each line nobody wanted.")] = False,
) -> None:
    """Play sets of calls, and print which of them got the memories that they want."""
    out = Console(highlight=False)
    for name in names or sorted(one.name for one in SETS.iterdir() if one.is_dir()):
        moments = (when or SETS) / name / "when.jsonl"
        if not moments.is_file():
            out.print(f"{name}: no {moments}", markup=False)
            continue
        here = SETS / name
        report(name, measured(here / "memories.jsonl", moments, here / "calls.jsonl"), out, show=show)


if __name__ == "__main__":
    typer.run(main)

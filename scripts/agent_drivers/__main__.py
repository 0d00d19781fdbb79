"""Let released agents use Recollect, against a small server of ours in place of their models, and say what works.

Installs the agents into a work folder, where they stay for later runs. Each case has a HOME of its own; requests to the
model, payloads of hooks and outputs are kept below `evidence/AGENT/CASE` of the work folder.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from agent_drivers.cases import CASES, Outcome, cold, latencies, tried
from agent_drivers.model import ModelServer
from agent_drivers.place import Place
from agent_drivers.programs import AGENTS, Agent, install_agents

_MARKS = {"green": "[green]green[/]", "red": "[red]red[/]", "not offered": "–"}


def chosen(only: Sequence[str]) -> list[tuple[Agent, str]]:
    """Return the agents and cases that `--only` names: an agent, `AGENT/CASE` or `/CASE`; all without any.

    Raises `SystemExit` for a name that is not known.
    """
    everything = [(agent, case) for case in CASES for agent in AGENTS]
    wanted = [(name.partition("/")[0], name.partition("/")[2]) for name in only]
    for agent, case in wanted:
        if agent not in ("", *(one.name for one in AGENTS)) or case not in ("", *CASES):
            raise SystemExit(f"There is no agent or case {agent}/{case}: {', '.join(CASES)}")
    fits = [
        (agent, case)
        for agent, case in everything
        if any(name in ("", agent.name) and wish in ("", case) for name, wish in wanted)
    ]
    return fits if only else everything


def run(pairs: Sequence[tuple[Agent, str]], work: Path, end: float, jobs: int) -> list[Outcome]:
    """Try the cases, a few at once, until the time is over; show how far it is."""
    found: list[Outcome] = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with ModelServer() as server, Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task("", total=len(pairs))

        def one(agent: Agent, case: str) -> Outcome:
            if time.monotonic() > end and case not in agent.lacks:
                return Outcome(agent.name, case, "red", "not tried: the time was over")
            progress.update(bar, description=f"{agent.name}/{case}")
            make = partial(Place, work, agent.name, case.replace(" ", "-"), server, end)
            return tried(agent, case, make)

        with ThreadPoolExecutor(jobs) as pool:
            for done in as_completed([pool.submit(one, *pair) for pair in pairs]):
                outcome = done.result()
                found.append(outcome)
                progress.advance(bar)
                if outcome.state == "red":
                    progress.console.print(f"red: {outcome.agent}/{outcome.case}: {outcome.why}", markup=False)
    order = [(agent.name, case) for agent, case in pairs]
    return sorted(found, key=lambda one: order.index((one.agent, one.case)))


def table(outcomes: Sequence[Outcome], versions: dict[str, str]) -> Table:
    """Return the table of cases by agents."""
    shown = Table("case", title="Released agents and Recollect")
    for name, version in versions.items():
        shown.add_column(f"{name}\n{version}", overflow="fold")
    states = {(one.agent, one.case): one.state for one in outcomes}
    for case in dict.fromkeys(one.case for one in outcomes):
        shown.add_row(case, *(_MARKS.get(states.get((name, case), ""), "") for name in versions))
    return shown


def figures(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return the figures of all cases together."""
    kept, of = cold(outcomes)
    injected = [size for one in outcomes for size in one.injected]
    return {
        "cold_first_prompt": {"kept": kept, "of": of},
        "hook_ms": {
            event: {"times": times, "median": round(median), "slowest": round(slowest)}
            for event, (times, median, slowest) in latencies(outcomes).items()
        },
        "injected_bytes": {"times": len(injected), "most": max(injected, default=0), "all": sum(injected)},
    }


def show(outcomes: Sequence[Outcome], versions: dict[str, str], out: Console) -> None:
    """Print the table, why rows are red or were not tried, and the figures."""
    out.print(table(outcomes, versions))
    for state in ("red", "not offered"):
        whys: dict[str, list[str]] = {}
        for one in outcomes:
            if one.state == state:
                whys.setdefault(one.why, []).append(f"{one.agent}/{one.case}")
        for why, names in whys.items():
            out.print(f"{state}: {', '.join(names)}: {why}", markup=False)
    told = figures(outcomes)
    out.print("first prompt without a daemon learnt from: {kept} of {of}".format(**told["cold_first_prompt"]))
    out.print("put before {times} prompts: {all} bytes, {most} at most".format(**told["injected_bytes"]))
    hooks = Table("hook", "times", "median ms", "slowest ms")
    for event, one in told["hook_ms"].items():
        hooks.add_row(event, *map(str, one.values()))
    out.print(hooks)


def main() -> int:
    """Run what was asked for; return 1 where a row is red."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="folder of agents, homes and evidence")
    parser.add_argument("--only", action="append", default=[], metavar="AGENT/CASE", help="an agent, AGENT/CASE, /CASE")
    parser.add_argument("--minutes", type=float, default=45.0, help="when the last case ends (default 45)")
    parser.add_argument("--jobs", type=int, default=2, help="cases at once (default 2)")
    parser.add_argument("--update", action="store_true", help="install the newest versions of the agents")
    parser.add_argument("--json", action="store_true", help="answer as JSON, for machines")
    given = parser.parse_args()
    pairs, work = chosen(given.only), given.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    agents = [agent for agent in AGENTS if agent in {one for one, _ in pairs}]
    install_agents(work, AGENTS if any(case == "two agents" for _, case in pairs) else agents, given.update)
    outcomes = run(pairs, work, time.monotonic() + given.minutes * 60, given.jobs)
    versions = {agent.name: agent.version(work) for agent in agents}
    if given.json:
        rows = [one.public() for one in outcomes]
        sys.stdout.write(json.dumps({"versions": versions, "cases": rows, "figures": figures(outcomes)}, indent=1))
    else:
        show(outcomes, versions, Console())
    return int(any(one.state == "red" for one in outcomes))


if __name__ == "__main__":
    sys.exit(main())

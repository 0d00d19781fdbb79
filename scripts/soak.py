"""Endurance at full size: kill writers, crowd and kill a daemon, kill moves to another model, make random calls.

The suite runs a small round of each (tests/e2e); here the same code runs round after round, each with seeds of its own.
It also runs the test cases that the suite leaves out, and the tests of training.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from agent_crowd import Crowd, check_crowd
from chroma_process import ChromaProcess
from clock import Clock as StoreClock
from daemon_place import Place, open_place
from killed_owners import kill_writers
from killed_withdrawals import kill_withdrawals
from model_moves import kill_movers, make_stage
from paired_stores import compare, two_stores
from poisoned_store import check_repair
from postgres import ADDRESS, Postgres
from random_calls import judged
from random_team_calls import judged_team
from recollect import Settings
from replica_faults import Load, check, deployed, kill_parts
from rolling_upgrade import lay_next, lay_previous, upgrade_replicas
from stores import make_migrated, open_app

TESTS = Path(__file__).parents[1] / "tests"
WRITERS, MOVES, MEMORIES = 24, 2, 120
WITHDRAWALS, HONEST, POISONED = 24, 300, 30
AGENTS, CALLS, KILLS = 20, 100, 3
PART_KILLS = 100
RANDOM_CALLS, ALIKE_CALLS, TEAM_CALLS = 1_000, 500, 500


@dataclass
class Clock:
    """How long there is, how long this round may begin new work, and the bar that shows it."""

    seconds: float
    progress: Progress

    def __post_init__(self) -> None:
        self.end = self.round_end = time.monotonic() + self.seconds
        self._bar = self.progress.add_task("", total=self.seconds)

    def begin(self, name: str, share: float) -> None:
        """Begin a round that has a share of all the time."""
        self.round_end = min(self.end, time.monotonic() + self.seconds * share)
        self.progress.update(self._bar, description=name)

    def left(self) -> bool:
        """Say whether any time is left, and show it."""
        left = max(0.0, self.end - time.monotonic())
        self.progress.update(self._bar, completed=self.seconds - left)
        return left > 0

    def seeds(self, chance: random.Random, most: int) -> Iterator[int]:
        """Yield seeds while the round has time, and at least one."""
        for number in range(most):
            if (self.left() and time.monotonic() < self.round_end) or not number:
                yield chance.randrange(10**9)


@dataclass
class Tally:
    """What came of one kind of endurance."""

    rounds: int = 0
    kills: int = 0
    seconds: float = 0.0
    failure: str = ""


def writers(place: Place, clock: Clock, chance: random.Random) -> int:
    """Kill owners of a store in mid-write."""
    return kill_writers(place.settings, place.environment, clock.seeds(chance, WRITERS)).kills


def withdrawals(place: Place, clock: Clock, chance: random.Random) -> int:
    """Kill withdrawals of a source, and the undoing of them."""
    killed = kill_withdrawals(place.settings, place.environment, clock.seeds(chance, WITHDRAWALS))
    clock.progress.console.print(f"{killed.kills} kills, {killed.done} after the work was done")
    return killed.kills


def repair(place: Place, _clock: Clock, _: random.Random) -> int:
    """Withdraw a poisoned source from among honest memories, and ask every verb for what is left of it."""
    return check_repair(place.settings, place.home.parent, HONEST, POISONED)


def crowd(place: Place, clock: Clock, _: random.Random) -> int:
    """Let twenty agents share a daemon that is killed under them."""
    agents = Crowd(AGENTS, CALLS, KILLS, clock.round_end)
    check_crowd(place.changed(daemon=True), agents)
    return len(agents.killed)


def moves(place: Place, clock: Clock, chance: random.Random) -> int:
    """Kill moves of a store to another model."""
    stage = make_stage(place.settings, place.environment, place.home.parent / "models", MEMORIES)
    return kill_movers(stage, clock.seeds(chance, MOVES))


def callers(place: Place, clock: Clock, chance: random.Random) -> int:
    """Let random callers make random calls of every operation, and compare each with a model of the rules."""
    time_there = StoreClock()
    with open_app(place.settings, clock=time_there) as app:
        model = judged(app, place.settings.folder, time_there, chance.randrange(10**9), RANDOM_CALLS, clock.left)
    shown = f"{model.changes} rows changed, {model.names} ids, {model.marks} texts and {model.counts} counts shown"
    clock.progress.console.print(f"{model.calls} calls: {shown}, {len(model.breaches)} against the rules")
    assert not model.breaches, "\n".join(model.breaches[:5])
    return model.calls


def team(place: Place, clock: Clock, chance: random.Random) -> int:
    """Let random users ask the server of a team by their tokens, and compare each call with a model of the roles."""
    return _team(place.settings, clock, chance)


def deployment(place: Place, clock: Clock, chance: random.Random) -> int:
    """Do the same over PostgreSQL and a Chroma server."""
    postgres, chroma = Postgres(ADDRESS), ChromaProcess(place.home.with_name("chroma"))
    chroma.start()
    try:
        servers = {"database_url": postgres.create(), "chroma_url": chroma.url}
        return _team(place.settings.model_copy(update=servers), clock, chance)
    finally:
        chroma.kill()
        postgres.close()


def _team(settings: Settings, clock: Clock, chance: random.Random) -> int:
    time_there = StoreClock()
    free = settings.model_copy(update={"requests_per_minute": 0})
    with open_app(free, clock=time_there) as app:
        seed = chance.randrange(10**9)
        model, found = judged_team(app, free, time_there, seed, TEAM_CALLS, clock.left)
    shown = f"{model.changes} rows changed, {model.names} ids, {model.marks} texts and {model.counts} counts shown"
    wrong = [*model.breaches, *found.odd]
    clock.progress.console.print(
        f"{model.calls} calls, {len(found.tokens)} tokens: {shown}, {len(wrong)} against the rules"
    )
    assert not wrong, "\n".join(wrong[:5])
    return model.calls


def replicas(place: Place, clock: Clock, chance: random.Random) -> int:
    """Kill the replicas of a deployment, its PostgreSQL and its Chroma in any order while clients write."""
    place.home.parent.mkdir(parents=True, exist_ok=True)
    with deployed(place.home.parent) as deployment:
        load = Load(deployment)
        seen = kill_parts(load, chance, PART_KILLS, lambda: clock.left() and time.monotonic() < clock.round_end)
        check(load, place.settings)
    back = ", ".join(f"{name} {max(times):.1f}" for name, times in sorted(seen.back.items()))
    shown = f"{len(load.acknowledged)} writes acknowledged, {sum(load.refused.values())} refused"
    clock.progress.console.print(f"{shown}; at most so many seconds from a kill to answers of all: {back}")
    return seen.kills


def upgrades(place: Place, clock: Clock, _: random.Random) -> int:
    """Upgrade the replicas of a deployment from the version before, one after the other, while clients write."""
    folder = place.home.parent
    previous, following = lay_previous(folder / "previous"), lay_next(folder / "next")
    with deployed(folder, PYTHONPATH=str(previous)) as deployment:
        done = upgrade_replicas(deployment, Load(deployment), following, threads=8)
    shown = f"{done.before} writes acknowledged before, {done.mixed} beside both versions, {done.after} after"
    clock.progress.console.print(f"{shown}; none lost; tried again: {sum(done.tried_again.values())}")
    return done.before + done.mixed + done.after


def alike(place: Place, clock: Clock, chance: random.Random) -> int:
    """Compare the answers of a store with hidden things and of one without, to random calls of every operation."""
    with two_stores(place.settings, make_migrated(place.home.with_name("migrated.db"))) as two:
        calls, differing = compare(two, chance.randrange(10**9), ALIKE_CALLS, clock.left)
    assert not differing, "\n".join(differing)
    return calls


def cases(_place: Place, clock: Clock, _: random.Random) -> int:
    """Run the further cases of the tests, which the whole run leaves out."""
    return _tests([sys.executable, "-m", "pytest", "-q", "-m", "full", str(TESTS)], clock)


def training(_place: Place, clock: Clock, _: random.Random) -> int:
    """Run the tests of training, which installs what they need."""
    return _tests([str(Path(__file__).with_name("train")), "test", "-q"], clock)


def _tests(command: list[str], clock: Clock) -> int:
    done = subprocess.run(command, cwd=TESTS.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4_000:]
    clock.progress.console.print(done.stdout.splitlines()[-1])
    return 0


KINDS: dict[str, Callable[[Place, Clock, random.Random], int]] = {
    "writers": writers,
    "withdrawals": withdrawals,
    "repair": repair,
    "moves": moves,
    "crowd": crowd,
    "callers": callers,
    "team": team,
    "deployment": deployment,
    "replicas": replicas,
    "upgrades": upgrades,
    "alike": alike,
    "cases": cases,
    "training": training,
}


def main() -> int:
    """Run rounds in turn until the time is up or one fails; return the exit code."""
    given = _arguments()
    chance, console = random.Random(given.seed), Console()
    tallies = {name: Tally() for name in given.only or KINDS}
    folder = Path(tempfile.mkdtemp(prefix="recollect-soak-"))
    console.print(f"seed {given.seed}")
    with Progress(TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), console=console) as progress:
        clock = Clock(given.minutes * 60, progress)
        while clock.left() and not any(one.failure for one in tallies.values()):
            name = min(tallies, key=lambda one: tallies[one].seconds)
            clock.begin(f"{name}, round {tallies[name].rounds + 1}", 1 / len(tallies))
            _one_round(folder, name, clock, chance, tallies[name])
    return _summed_up(console, tallies, folder)


def _one_round(folder: Path, name: str, clock: Clock, chance: random.Random, tally: Tally) -> None:
    """Run one round in a folder of its own, which is kept when it fails."""
    home = folder / f"{name}-{tally.rounds}" / "home"
    began = time.monotonic()
    with ExitStack() as undo:
        place = open_place(home, undo, daemon=False)
        try:
            tally.kills += KINDS[name](place, clock, chance)
        except (AssertionError, OSError, RuntimeError, ExceptionGroup):
            tally.failure = traceback.format_exc()
    tally.rounds += 1
    tally.seconds += time.monotonic() - began
    if not tally.failure:
        shutil.rmtree(home.parent, ignore_errors=True)


def _summed_up(console: Console, tallies: dict[str, Tally], folder: Path) -> int:
    table = Table()
    for name in ("kind", "rounds", "kills, calls", "minutes", ""):
        table.add_column(name, justify="left" if name in ("kind", "") else "right")
    for name, one in tallies.items():
        verdict = "failed" if one.failure else "held" if one.rounds else "no time"
        table.add_row(name, str(one.rounds), str(one.kills), f"{one.seconds / 60:.1f}", verdict)
    console.print(table)
    failures = [one.failure for one in tallies.values() if one.failure]
    for failure in failures:
        console.print(failure, markup=False, highlight=False)
    if failures:
        console.print(f"The stores are kept in {folder}.")
        return 1
    shutil.rmtree(folder, ignore_errors=True)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0, help="after so long finish what is begun; default 10")
    parser.add_argument("--only", action="append", choices=KINDS, help="this kind alone; repeat it for more")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(3)), help="of every chance taken")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

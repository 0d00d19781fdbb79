"""Two stores that differ only in what the callers may not see, and random calls that both must answer alike.

Ids count everything that a store ever held, so the second store skips the numbers that the hidden things of the first
one have. Nothing else may differ, not one digit of a score.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clock import Clock
from random_calls import LEVELS, Maker, RandomCall, answer_of
from recollect import App, Caller, Settings
from recollect.domain.verbs import BY_NAME
from recollect.doors.serializers import public_json
from run_operations import by_hand, rows
from stores import lay, open_app

ELSEWHERE = Caller(user="zoe", team="else", project="engine")
NUMBERED = ("memory", "fact", "journal")


@dataclass
class Two:
    """A store with hidden things and one without, of the same callers at the same time."""

    full: App
    plain: App
    homes: tuple[Settings, Settings]
    time: Clock

    def hide(self, call: RandomCall) -> None:
        """Do something in the one store that the caller of the other calls may not see."""
        answer_of(self.full, call)
        for name, number in rows(self.homes[0], "SELECT name, seq FROM sqlite_sequence"):
            if name in NUMBERED:
                by_hand(self.homes[1], "DELETE FROM sqlite_sequence WHERE name = ?", name)
                by_hand(self.homes[1], "INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", name, number)

    def answers(self, call: RandomCall) -> list[str]:
        """Return how both answer."""
        return [told(call, answer_of(app, call)) for app in (self.full, self.plain)]


@contextmanager
def two_stores(settings: Settings, migrated: Path) -> Iterator[Two]:
    """Open two empty stores side by side, whose tables are copied from the `migrated` file."""
    other = settings.model_copy(update={"home": settings.home.with_name("plain")})
    time = Clock()
    with ExitStack() as opened:
        apps = []
        for one in (settings, other):
            lay(migrated, one.folder)
            apps.append(opened.enter_context(open_app(one, clock=time)))
        yield Two(apps[0], apps[1], (settings, other), time)


def told(call: RandomCall, answer: Any) -> str:
    """Return an answer as a door shows it.

    An export also counts the caller's own memories that it leaves out, which are theirs to know of.
    """
    if call.tool or isinstance(answer, Exception):
        return str(answer)
    if call.name == "export_page":
        lines = [{kind: line for kind, line in one.items() if kind != "left_out"} for one in answer.lines]
        return str((lines, answer.after))
    if call.name == "history":
        return str(answer)
    return str(public_json(BY_NAME[call.name].answer, answer)) + repr(getattr(answer, "hits", ""))


def hidden(make: Maker) -> RandomCall:
    """Return a write that nobody but its caller sees: elsewhere, or of a level above those of the other calls."""
    if make.chance.random() < 0.4:
        elsewhere = Maker(make.chance, [ELSEWHERE], told=make.told, highest=make.highest)
        return elsewhere.call([name for name, operation in BY_NAME.items() if operation.writes])
    draft = {name: value for name, value in make.draft().items() if name not in ("id", "supersedes")}
    fact = {
        "subject": make.chance.choice(make.told).split()[1],
        "predicate": "holds",
        "object": make.text(),
        "several": True,
    }
    name, fields = make.chance.choice((("remember", draft), ("remember", draft), ("store_fact", fact)))
    caller = make.chance.choice(make.callers)
    return RandomCall(caller, name, fields | {"sensitivity": "secret"}, frozenset(LEVELS))


def compare(two: Two, seed: int, calls: int, more: Callable[[], bool] = lambda: True) -> tuple[int, list[str]]:
    """Make random calls on both stores until the answers to one differ, or there are no `more`.

    Returns how many calls there were, and of the last one both answers where they differ.
    """
    make = Maker(random.Random(seed), allowed=("public", "private"))
    make.text()
    for number in range(calls):
        if not more():
            return number, []
        if make.chance.random() < 0.4:
            two.hide(hidden(make))
        make.highest = max((one for (one,) in rows(two.homes[0], "SELECT max(id) FROM memory") if one), default=0)
        call = make.call(["remember", "store_fact"] if number < 15 else None)
        full, plain = two.answers(call)
        if full != plain:
            return number + 1, [str(call), full, plain]
        if number % 25 == 24:
            two.time.pass_days(0.5)
    return calls, []

"""Short ways to run operations of the table on a store, and to look at what they did."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

from callers import ADA
from clock import Clock
from recollect import App, Caller, Memory, Settings
from recollect.app import Capabilities
from recollect.domain.enums import Choice, Scope
from recollect.doors import toolsets
from recollect.doors.handlers import perform
from recollect.doors.memory_tool import ToolAnswer, answered
from recollect.engines.reconcile import Judgement

OTHER = Caller(user="bob", team="else", project="hull")


def do(app: App, name: str, caller: Caller = ADA, request_id: str = "", **fields: Any) -> Any:
    """Perform one operation."""
    return perform(app, name, fields, caller, request_id)


def call_tool(app: App, name: str, arguments: dict[str, Any], caller: Caller = ADA) -> ToolAnswer:
    """Call a tool as MCP does."""
    return answered(lambda: toolsets.run(app, name, arguments, caller))


def add(app: App, content: str, caller: Caller = ADA, **fields: Any) -> int:
    """Remember a text and return the id of its memory."""
    return int(do(app, "remember", caller, content=content, **fields).id)


def shown(app: App, memory_id: int, caller: Caller = ADA) -> Memory:
    """Read a memory, whatever its level."""
    found: Memory = do(app, "get_memory", caller, id=str(memory_id), allow_private=True, allow_secret=True)
    return found


def listed(app: App, **fields: Any) -> list[int]:
    """Return the ids of a list."""
    return [memory.id for memory in do(app, "list_memories", **fields).memories]


def recalled(app: App, query: str, **fields: Any) -> set[int]:
    """Return the ids of everything that answers a query at all."""
    hits = do(app, "recall", **{"query": query, "limit": 100} | fields).hits
    return {hit.memory.id for hit in hits}


def actions(app: App, memory_id: int) -> list[str]:
    """Return what the journal says was done to a memory."""
    lines = do(app, "history", id=str(memory_id), allow_private=True, allow_secret=True)
    return [line.action for line in lines]


def ill(app: App) -> list[str]:
    """Return what the doctor finds once the vector index has caught up."""
    app.vectors.sync()
    return [f"{check.name}: {check.seen}" for check in app.checks() if not check.well]


def live(app: App, clock: Clock, days: int) -> None:
    """Let days pass on each of which a session ended, which changes nothing else."""
    for _ in range(days):
        clock.pass_days(1)
        with app.records.writing(ADA.writable(ADA.namespace(Scope.PROJECT)), "ada") as transaction:
            transaction.consolidation.note_session_day(clock().date())


def by_hand(settings: Settings, statement: str, *values: Any) -> None:
    """Change the database behind the store's back."""
    with closing(sqlite3.connect(settings.folder / "memory.db", timeout=30)) as database, database:
        database.create_function("lowered", 1, str.lower, deterministic=True)
        database.execute(statement, values)


def rows(settings: Settings, query: str) -> list[tuple[Any, ...]]:
    """Look into the database from outside."""
    with closing(sqlite3.connect(settings.folder / "memory.db")) as database:
        return database.execute(query).fetchall()


def token() -> str:
    """Build what looks like a GitHub token, so that none stands in a file."""
    return "gh" + "p_" + "".join(chr(ord("a") + (7 * n) % 26) + str(n % 10) for n in range(18))


class Judge:
    """A judge that speaks the port and decides by a function of the new text and the old ones."""

    def __init__(self, decide: Callable[[str, Sequence[str]], tuple[Choice, int]]) -> None:
        self._decide = decide
        self.asked: list[tuple[str, tuple[str, ...]]] = []

    def choose(self, new: str, old: Sequence[str]) -> Judgement:
        self.asked.append((new, tuple(old)))
        return Judgement(*self._decide(new, old))


def always(choice: Choice, which: int = 0) -> Judge:
    """Return a judge that has made up its mind."""
    return Judge(lambda _new, _old: (choice, which))


def judged_by(app: App, judge: Judge) -> App:
    """Return the same open store with a judge."""
    return replace(app, capabilities=Capabilities(reconcile=judge))

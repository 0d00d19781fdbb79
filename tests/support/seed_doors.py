"""A door to a shared store, with rooms of its own for each test: whoever stands in it sees nobody else's memories."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clock import Clock
from recollect import App, Caller, Settings
from recollect.doors.handlers import perform
from recollect.doors.memory_tool import ToolAnswer
from run_operations import call_tool
from stores import open_app

ALL_LEVELS = {"allow_private": True, "allow_secret": True}


@dataclass(frozen=True)
class Door:
    """The tools as one caller calls them; `home` is where the store lies."""

    app: App
    time: Clock
    caller: Caller
    home: Path

    def answer(self, tool: str, **arguments: Any) -> ToolAnswer:
        """Call a tool and return all of its answer."""
        return call_tool(self.app, tool, arguments, self.caller)

    def reply(self, tool: str, **arguments: Any) -> str:
        """Return the first text of a call that went well."""
        answer = self.answer(tool, **arguments)
        assert not answer.failed, answer.texts
        return answer.texts[0]

    def read(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return the object that a call gave which went well."""
        answer = self.answer(tool, **arguments)
        assert not answer.failed, answer.texts
        return answer.structured

    def refused(self, tool: str, **arguments: Any) -> str:
        """Return the one sentence of a call that was refused."""
        answer = self.answer(tool, **arguments)
        assert answer.failed, answer.texts
        [text] = answer.texts
        return text

    def perform(self, name: str, **fields: Any) -> Any:
        """Perform an operation as the Python API does, and return the noun that it answers with."""
        return perform(self.app, name, fields, self.caller)

    def store(self, content: str, **fields: Any) -> str:
        """Store a memory and return its id."""
        return str(self.read("store_memory", content=content, **fields)["id"])

    def memory(self, memory_id: str) -> dict[str, Any]:
        """Read a memory whole, whatever its level."""
        return self.read("get_memory", id=memory_id, **ALL_LEVELS)

    def found(self, query: str, **fields: Any) -> list[str]:
        """Return the ids of whatever answers a query at all, best first."""
        return ids(self.read("search_memories", **{"query": query, "min_score": 0.0} | fields))

    def actions(self, memory_id: str) -> list[str]:
        """Return what was done to a memory."""
        return [line["action"] for line in self.read("history", id=memory_id)["history"]]


def ids(body: dict[str, Any]) -> list[str]:
    """Return the ids in an answer, in its order: those of its memories, facts or index lines."""
    ones = next(body[name] for name in ("memories", "facts", "index") if name in body)
    return [one.partition(":")[0] if isinstance(one, str) else str(one["id"]) for one in ones]


@dataclass(frozen=True)
class House:
    """An open store, with a door for each who asks; nothing runs in its background, so that uses count at once."""

    app: App
    time: Clock
    home: Path
    callers: list[Caller]

    def door(self) -> Door:
        """Return a door of somebody nobody has met."""
        number = len(self.callers) + 1
        caller = Caller(user=f"user{number}", team=f"team{number}", project=f"project{number}")
        self.callers.append(caller)
        return Door(self.app, self.time, caller, self.home)


def open_house(home: Path, **settings: Any) -> House:
    """Open a store in a folder."""
    time = Clock()
    ours = {"home": home, "user": "ada", "team": "crew", "project": "engine", "daemon": False}
    chosen = Settings(**ours | settings)
    return House(open_app(chosen, background=False, clock=time), time, chosen.folder, [])


Opening = Callable[..., House]

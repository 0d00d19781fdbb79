"""Many agents at once on one store while its daemon is killed under them.

The test runs a few, `scripts/soak` as many as once made trouble.
"""

from __future__ import annotations

import math
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import anyio
from anyio import to_thread
from mcp import Client, StdioServerParameters

from daemon_place import SERVER, Place, until

WORDS = ("amber", "basil", "cedar", "delta", "ember", "fjord", "grove", "heron", "islet", "jetty")


def text(client: int, number: int) -> str:
    """Return a short text that no other client and no other round says."""
    return f"agent{client:02d} notes{number:03d} {WORDS[number % 10]} {WORDS[client % 10]}"


@dataclass
class Crowd:
    """How many agents, how often each remembers, and how often the daemon is killed; then what came of it.

    At the `deadline`, on the monotonic clock, the agents stop early.
    """

    clients: int
    rounds: int
    kills: int
    deadline: float = math.inf
    acknowledged: dict[str, str] = field(default_factory=dict)
    troubles: list[str] = field(default_factory=list)
    killed: list[int] = field(default_factory=list)

    @property
    def over(self) -> bool:
        return time.monotonic() > self.deadline or len(self.acknowledged) == self.clients * self.rounds


async def work(place: Place, number: int, crowd: Crowd) -> None:
    """Remember, read that back and recall in turn, as one agent does, and note every answer.

    Which memories recall brings is not looked at here: a daemon that has just begun knows some by their words alone.
    """
    environment = place.environment | {"RECOLLECT_USER": f"agent{number}"}
    server = StdioServerParameters(
        command=SERVER, args=["mcp", "--toolset", "memory", "--toolset", "store"], env=environment
    )
    async with AsyncExitStack() as undo:
        client = await undo.enter_async_context(Client(server, mode="legacy" if number % 2 else "auto"))

        async def ask(tool: str, **arguments: Any) -> dict[str, Any]:
            result = await client.call_tool(tool, arguments)
            if result.is_error:
                crowd.troubles.append(str(result.content))
            return dict(result.structured_content or {})

        for one in range(crowd.rounds):
            if crowd.over:
                break
            said = text(number, one)
            memory_id = str((await ask("memory", action="remember", content=said)).get("id"))
            crowd.acknowledged[said] = memory_id
            if (await ask("get_memory", id=memory_id)).get("content") != said:
                crowd.troubles.append(f"{said} was not read back")
            await ask("memory", action="recall", query=said, limit=3)


async def kill(place: Place, crowd: Crowd) -> None:
    """Kill the daemon each time another part of the work is done."""
    for part in range(1, crowd.kills + 1):
        due = crowd.clients * crowd.rounds * part / (crowd.kills + 1)
        while not crowd.over and (len(crowd.acknowledged) < due or not place.runtime_file.exists()):
            await anyio.sleep(0.05)
        if not crowd.over:
            crowd.killed.append(await to_thread.run_sync(place.kill))


def check_crowd(place: Place, crowd: Crowd) -> None:
    """Let the crowd work: nothing acknowledged is lost or doubled, nobody sees an error, and one daemon is left.

    Once everything is embedded, each text is among the first three that are recalled for it.
    """

    async def all_of_it() -> None:
        async with anyio.create_task_group() as tasks:
            for number in range(crowd.clients):
                tasks.start_soon(work, place, number, crowd)
            tasks.start_soon(kill, place, crowd)

    anyio.run(all_of_it)
    assert not crowd.troubles, crowd.troubles[:5]
    pid = place.pid()
    assert [one.pid for one in place.processes()] == [pid]
    until(place.well)
    link = place.link()
    for said in list(crowd.acknowledged)[:: max(1, len(crowd.acknowledged) // 60)]:
        found = link.operation("recall", {"query": said, "limit": 3, "min_score": 0.0})
        assert said in [hit["memory"]["content"] for hit in found["hits"]]
    assert place.cli("stop")
    until(lambda: not place.processes())
    assert dict(place.rows("SELECT content, CAST(id AS TEXT) FROM memory")) == crowd.acknowledged
    assert place.rows("SELECT count(*) FROM memory") == [(len(crowd.acknowledged),)]
    assert place.rows("SELECT action, count(*) FROM journal GROUP BY action") == [("insert", len(crowd.acknowledged))]
    assert all(check["well"] for check in place.json("--in-process", "doctor"))

"""Twenty agents at once on one store while its daemon is killed under them."""

from __future__ import annotations

import json
import logging
import time
from typing import Any

import anyio
from anyio import to_thread
from daemons import SERVER, Place, until
from mcp import Client, StdioServerParameters

log = logging.getLogger(__name__)

CLIENTS, ROUNDS, KILLS = 20, 100, 3
WORDS = ("amber", "basil", "cedar", "delta", "ember", "fjord", "grove", "heron", "islet", "jetty")


def text(client: int, number: int) -> str:
    """Return a short text that no other client and no other round says."""
    return f"agent{client:02d} notes{number:03d} {WORDS[number % 10]} {WORDS[client % 10]}"


class Ledger:
    """What was acknowledged, and whatever went wrong."""

    def __init__(self) -> None:
        self.acknowledged: dict[str, str] = {}
        self.troubles: list[str] = []
        self.remembered = self.recalled = 0
        self.longest = 0.0


async def work(place: Place, number: int, ledger: Ledger) -> None:
    """Remember and recall in turn, as one agent does, and note every answer."""
    environment = place.environment | {"RECOLLECT_USER": f"agent{number}"}
    server = StdioServerParameters(command=SERVER, args=["mcp"], env=environment)
    async with Client(server, mode="legacy" if number % 2 else "auto") as client:
        for one in range(ROUNDS):
            said = text(number, one)
            body = await ask(client, ledger, action="remember", content=said)
            ledger.acknowledged[said] = str(body.get("id"))
            ledger.remembered += 1
            body = await ask(client, ledger, action="recall", query=said, limit=3)
            if said not in [hit["content"] for hit in body.get("memories", [])]:
                ledger.troubles.append(f"{said} was not recalled: {json.dumps(body)[:500]}")
            ledger.recalled += 1


async def ask(client: Client, ledger: Ledger, **arguments: Any) -> dict[str, Any]:
    began = time.monotonic()
    result = await client.call_tool("memory", arguments)
    ledger.longest = max(ledger.longest, time.monotonic() - began)
    if result.is_error:
        ledger.troubles.append(str(result.content))
    return dict(result.structured_content or {})


async def killer(place: Place, ledger: Ledger) -> list[int]:
    """Kill the daemon each time another quarter of the work is done."""
    killed = []
    for quarter in range(1, KILLS + 1):
        while ledger.remembered < CLIENTS * ROUNDS * quarter / (KILLS + 1) or not place.runtime_file.exists():
            await anyio.sleep(0.05)
        killed.append(await to_thread.run_sync(place.kill))
    return killed


def test_twenty_clients_and_three_kills(place: Place) -> None:
    """Nothing acknowledged is lost, nothing is doubled, nobody sees an error, and one daemon is left."""
    ledger, killed = Ledger(), []

    async def crowd() -> None:
        async with anyio.create_task_group() as tasks:
            for number in range(CLIENTS):
                tasks.start_soon(work, place, number, ledger)
            killed.extend(await killer(place, ledger))

    began = time.monotonic()
    anyio.run(crowd)
    log.info("%.1f s, slowest call %.1f s, killed %s", time.monotonic() - began, ledger.longest, killed)
    assert ledger.troubles == []
    assert len(set(killed)) == KILLS
    assert [one.pid for one in place.processes()] == [place.pid()]
    assert (ledger.remembered, ledger.recalled) == (CLIENTS * ROUNDS, CLIENTS * ROUNDS)
    assert place.cli("stop")
    until(lambda: not place.processes())
    stored = dict(place.rows("SELECT content, CAST(id AS TEXT) FROM memory"))
    assert stored == ledger.acknowledged
    assert place.rows("SELECT count(*) FROM memory") == [(CLIENTS * ROUNDS,)]
    assert place.rows("SELECT action, count(*) FROM journal GROUP BY action") == [("insert", CLIENTS * ROUNDS)]
    assert all(check["well"] for check in place.json("--in-process", "doctor"))

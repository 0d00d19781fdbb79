"""Measure the CPU time of every screen of the page over a store that `scripts/bench --keep` has filled.

Each screen is asked first after a write, when nothing that was counted before holds any more, and then again; of three
rounds the least counts, as other work on the machine adds to all of them.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer
from rich.console import Console
from rich.table import Table
from starlette.testclient import TestClient

import recollect
from costs.generated import GeneratedEmbedder
from local_access import TOKEN, local_access
from recollect import App, Draft, Settings
from recollect.domain.enums import Order
from recollect.doors.http.application import Application
from recollect.doors.web import PAGE
from recollect.doors.web.site import SCREENS

ORIGIN = "http://localhost"
ASK = "q=retries+customer+invoices"
QUERIES: dict[str, tuple[str, ...]] = {
    "/": ("", ASK, f"{ASK}&typing=1", f"{ASK}&age=365", f"{ASK}&category=area-7"),
    "/browse": (
        *("", "age=1", "age=365", "hidden=1", "entity=April", "category=area-7", "session_id=session-7", "tags=absent"),
        *(f"order={order}{age}" for order in Order for age in ("", "&age=365")),
        *("after={after}", "after={after}&age=365"),
    ),
    "/act": ("do=forget&id={id}",),
    "/journal": ("", "actor=nobody", "action=delete", "scope=personal"),
}
"""What is asked of a screen; of all others, its address alone. The doctor reads everything and has a button."""
ROUNDS = 3


def addresses(client: TestClient) -> list[str]:
    """Return every address that is measured, from the list of the screens."""
    first = client.get(f"{PAGE}/browse?format=json&limit=100").json()["browsed"]
    said = {"id": first["memories"][-1]["id"], "after": quote(first["after"])}
    return [
        f"{one.path.format(**said)}?{query.format(**said)}".rstrip("?")
        for one in SCREENS
        if one.show is not None
        for query in QUERIES.get(one.path, ("",))
    ]


def signed_in(app: App, settings: Settings) -> TestClient:
    """Return a browser that was let in."""
    client = TestClient(Application(local_access(app, settings)), base_url=ORIGIN, follow_redirects=True)
    who = {"user": settings.user, "team": settings.team, "project": settings.project}
    made = client.post("/page-address", json=who, headers={"Authorization": f"Bearer {TOKEN}"}).json()["url"]
    client.get(made[made.index(PAGE) :]).raise_for_status()
    return client


def cost(client: TestClient, address: str) -> float:
    """Return how many milliseconds of CPU this process spends until a screen is answered."""
    start = time.process_time()
    answer = client.get(PAGE + address)
    spent = (time.process_time() - start) * 1e3
    if answer.status_code >= 500:
        sys.exit(f"{address} was answered with {answer.status_code}.")
    return round(spent, 1)


def main(
    folder: Annotated[Path, typer.Argument(help="What `scripts/bench --generated --keep` was told to fill.")],
    only: Annotated[list[str] | None, typer.Option(help="Measure only these screens, such as /health.")] = None,
    rounds: Annotated[int, typer.Option(help="How often each screen is asked after a write.")] = ROUNDS,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the figures here, as JSON.")] = None,
) -> None:
    """Print the CPU time of every screen, the longest first."""
    settings = Settings(home=folder, user="bench", team="bench", project="bench")
    with recollect.open_app(settings, background=False, embedder=GeneratedEmbedder()) as app:
        app.vectors.sync()
        client = signed_in(app, settings)
        found: dict[str, dict[str, Any]] = {}
        every = [one for one in addresses(client) if not only or one.partition("?")[0] in only]
        for address in every:  # what is imported and compiled once is no cost of a screen
            client.get(PAGE + address)
        for number, address in enumerate(every * rounds):
            told = f"Screen {number} is measured at {time.time_ns()}."
            recollect.remember(app, Draft(content=told), settings.caller)
            app.vectors.sync()
            spent = {"first": cost(client, address), "again": cost(client, address)}
            found[address] = {name: min(ms, found.get(address, spent)[name]) for name, ms in spent.items()}
    table = Table("screen", "first after a write", "again", title="Milliseconds of CPU", title_justify="left")
    for address, one in sorted(found.items(), key=lambda pair: -pair[1]["first"]):
        table.add_row(address, str(one["first"]), str(one["again"]))
    Console(highlight=False).print(table)
    if json_file is not None:
        json_file.write_text(json.dumps(found, indent=2), encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)

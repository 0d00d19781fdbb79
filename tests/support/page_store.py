"""A store with something on every screen of the page: the memory of a harbour's software, and one that is hostile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

SESSION = "harbour-1"
HOSTILE = "<script>document.title='taken'</script> [a link](javascript:alert(1)) \u202etxt.exe\u202c and \u200bhidden"
_MEMORIES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("We deploy the harbour service on Fridays after the tide report.", {"fact_type": "decision", "tags": ["deploy"]}),
    ("Grace Hopper reviews every change of the billing module; see BILL-212.", {"tags": ["billing"]}),
    ("The connection pool is limited to 20: staging refuses more. Found by Grace Hopper.", {"type": "discovery"}),
    ("The login form lost its CSRF token behind the proxy, since nginx rewrote the header Host.", {"type": "bugfix"}),
    ("Ada prefers tabs in Makefiles and spaces everywhere else.", {"fact_type": "preference", "scope": "personal"}),
    ("The team meets on Tuesdays at ten; Grace Hopper keeps the notes.", {"scope": "team", "fact_type": "context"}),
    ("Northwind reported BILL-212: invoices were rounded twice.", {"type": "bugfix", "tags": ["billing"]}),
    ("Calls to the shipping API have a timeout of five seconds.", {"fact_type": "decision", "files_read": ["ship.py"]}),
)

_WAITING = (
    ("handbook.md:12", "We deploy the harbour service on Mondays after the tide report."),
    ("handbook.md:40", "Pilots announce themselves on channel 12, half an hour before they come alongside."),
    ("wiki/cranes.md:3", "Crane 4 must not be moved when the wind is above 17 metres per second."),
)
"""What an import says, with its places: it waits for a decision."""


def fill(run: Callable[..., Any]) -> dict[str, str]:
    """Store it by what runs a verb by its name; return the ids of some by a word."""
    ids = [run("remember", content=text, **fields)["id"] for text, fields in _MEMORIES]
    for number in range(24):
        place = ("hull", "rope", "engine", "radar")[number % 4]
        text = f"Berth {number}: the crane found the {place} of vessel MV-{100 + number % 5} worn on day {number}."
        run("remember", content=text, fact_type=("event", "case", "fact")[number % 3], tags=["crane"])
    run("store_fact", subject="Grace Hopper", predicate="reviews", object="billing module", memory_id=ids[1])
    newer = "We deploy the harbour service on Thursdays after the tide report."
    new = run("remember", content=newer, supersedes=ids[0], fact_type="decision", tags=["deploy"])["id"]
    hostile = run("remember", content=HOSTILE, title="<img src=x onerror=alert(1)> \u202eevil", tags=["<b>bold</b>"])
    near = "We deploy the harbour service on Thursdays, after the tide report, unless a pilot is on leave."
    run("remember", content=near, fact_type="decision", tags=["deploy", "pilots"])
    run("memory_forget", id=ids[7])
    items = [{"kind": "memory", "where": where, "fields": {"content": text}} for where, text in _WAITING]
    run("import_batch", items=items, last=True)
    event = {"session_id": SESSION, "agent": "claude-code"}
    run("session_start", **event)
    run("prompt_submit", **event, prompt="When do we deploy the harbour service?")
    failed = "3 failed, 41 passed\nE   AssertionError: rounded twice in billing/invoice.py:88"
    run("tool_post", **event, tool="Bash", input={"command": "pytest -q"}, output=failed)
    run("tool_post", **event, tool="Bash", input={"command": "ls"}, output="a b c")
    run("prompt_submit", **event, prompt="Remember that we always round invoices once, at the end, to two places.")
    run("prompt_submit", **event, prompt="And when does the night shift of the harbour begin?")
    return {"old": ids[0], "new": new, "hostile": hostile["id"], "hidden": ids[7], "pool": ids[2], "login": ids[3]}

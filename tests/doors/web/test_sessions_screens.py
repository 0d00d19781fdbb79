"""The screens of sessions: what each began with and learnt, and the text of what was put before its prompts."""

from __future__ import annotations

from html import unescape
from typing import Any

import pytest

from page_visitor import Visitor
from recollect import App
from recollect.domain.requests import Caller
from recollect.doors.handlers import perform

ADA = Caller(user="ada", team="crew", project="engine")
MAST = ADA.model_copy(update={"project": "mast"})
ABOUT = {"session_id": "harbour-1", "agent": "claude-code"}
PROMPT = "When do we deploy the harbour service?"


def report(app: App, caller: Caller = ADA, **fields: Any) -> str:
    """Let a session ask about a memory that is stored; return the id of that."""
    made = perform(
        app, "remember", {"content": "We deploy the harbour service on Thursdays.", "fact_type": "decision"}, caller
    )
    perform(app, "session_start", ABOUT | fields, caller)
    perform(app, "prompt_submit", ABOUT | fields | {"prompt": PROMPT, "typed": True}, caller)
    return str(made.id)


def test_a_session_is_listed_by_its_first_prompt(app: App, ada: Visitor) -> None:
    """Its row names the prompt, the agent as people write it, the project and the time, and no id of the session."""
    report(app)
    page = ada.get("sessions").text
    assert PROMPT in page
    assert "Claude Code" in page
    assert "in <bdi>engine</bdi>" in page
    assert ">harbour-1<" not in page
    assert "2026-03-01 12:00" in page
    assert "Nothing of it was kept." in page


def test_the_sessions_of_all_projects_are_listed(app: App, ada: Visitor) -> None:
    """One link shows them all, and each leads to its own project."""
    report(app)
    report(app, MAST, session_id="mast-1")
    assert ada.json("sessions")["total"] == 1
    shown = ada.json("sessions", everywhere="1")
    assert {one["project"] for one in shown["sessions"]} == {"engine", "mast"}
    page = unescape(ada.get("sessions", everywhere="1").text)
    assert "/page/session?project=mast&id=mast-1" in page
    assert ada.get("session", project="mast", id="mast-1").status_code == 200


def test_what_was_put_before_a_prompt_is_shown_as_text(app: App, ada: Visitor) -> None:
    """The memory's own words stand there; one that was forgotten since is named by its number."""
    made = report(app)
    page = ada.get("session", id="harbour-1").text
    put = page.partition("put before the prompt")[2].partition("</li></ul>")[0]
    assert "We deploy the harbour service on Thursdays." in put
    assert f"memory {made}" not in put
    perform(app, "forget", {"id": made}, ADA)
    assert f"memory {made}, which is out of sight by now" in ada.get("session", id="harbour-1").text


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "America/St_Johns"])
def test_all_times_of_a_session_are_local(app: App, ada: Visitor, zone: str) -> None:
    """The beginning, the events, and when a topic began are in the zone of the person."""
    report(app)
    for text in ("The crane of berth four drops its hook.", "Which invoices were rounded twice in May?"):
        perform(app, "prompt_submit", ABOUT | {"prompt": text * 3, "typed": True}, ADA)
    ada.post("zone", {"zone": zone})
    shown = {"UTC": "12:00", "Asia/Kolkata": "17:30", "America/St_Johns": "08:30"}
    page = ada.get("session", id="harbour-1").text
    assert f"2026-03-01 {shown[zone]}" in page
    assert all(f"2026-03-01 {other}" not in page for name, other in shown.items() if name != zone)

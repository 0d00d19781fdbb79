"""The commands on sessions: what people and machines see of them, and putting a decision right."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from callers import ADA
from recollect import Settings
from recollect.domain.lifecycle import Decision, Observation
from recollect.domain.requests import Draft
from recollect.memory.remember import remember
from recollect.sessions.boundaries import Boundary
from recollect.sessions.session_state import SessionState
from stores import open_app

Typed = Callable[..., Any]
AT = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
DRAFT = {"content": "The mast is oak.", "source": "hook", "session_id": "s1"}


@pytest.fixture
def captured(settings: Settings) -> None:
    """Leave a session of which something was kept, dropped and failed, and an older one."""
    with open_app(settings) as app:
        kept = remember(app, Draft(content="The keel is iron.", source="hook"), ADA)
        app.sessions.begin(ADA, "older", "codex", AT.replace(hour=8))
        session = app.sessions.begin(ADA, "s1", "claude-code", AT)
        fields: dict[str, Any] = {"at": AT, "event": "tool:post", "tool": "Bash"}
        state = SessionState(boundaries=(Boundary(at=AT, keywords=("mast", "sail")),), failures={"capture": 2})
        app.sessions.save(
            session.model_copy(update={"state": state.model_dump(mode="json")}),
            [
                Observation(**fields, decision=Decision.KEPT, score=0.61, memory_id=int(kept.id)),
                Observation(**fields, decision=Decision.DROPPED, summary="the mast", reason="below 0.30", draft=DRAFT),
            ],
        )


@pytest.mark.usefixtures("captured")
def test_sessions_are_listed(typed: Typed) -> None:
    """The latest first, with what was kept and dropped, a page at a time."""
    lines = typed("session", "list").out.splitlines()
    assert lines == [
        "session\tagent\tbegan\tended\tkept\tdropped",
        "s1\tclaude-code\t2026-03-01 09:30\tgoes on\t1\t1",
        "older\tcodex\t2026-03-01 08:30\tgoes on\t0\t0",
        "1–2 of 2.",
    ]
    assert typed("session", "list", "--limit", "1").out.splitlines()[-1] == "1–1 of 2. 1 more: add `--offset 1`."
    assert typed("session").out.splitlines() == lines
    body = typed("session", "list", "--json").json
    assert typed("session", "--json").json == body
    assert [one["session_id"] for one in body["sessions"]] == ["s1", "older"]


@pytest.mark.usefixtures("captured")
def test_a_session_is_shown_with_reasons(typed: Typed) -> None:
    """Each event with what became of it and why, where topics changed, and what failed; the latest needs no name."""
    shown = typed("session", "show").out
    assert "1\t2026-03-01 09:30\tBash\tkept\t\t0.61\t1\tThe keel is iron.\n" in shown
    assert "2\t2026-03-01 09:30\tBash\tdropped\tbelow 0.30\t\t\tthe mast\n" in shown
    assert "2026-03-01 09:30 mast, sail\n" in shown
    assert "The stage capture failed 2 times; the log of the daemon says why.\n" in shown
    page = typed("session", "show", "s", "--limit", "1", "--offset", "1")
    assert ("The keel is iron." in page.out, "the mast" in page.out, "2–2 of 2." in page.out) == (False, True, True)
    body = typed("session", "show", "s1", "--json").json
    assert (body["total"], body["observations"][0]["memory_id"], body["failures"]) == (2, "1", {"capture": 2})


@pytest.mark.usefixtures("captured")
def test_a_decision_is_put_right(typed: Typed) -> None:
    """`keep` makes a memory of what was dropped, `drop` deletes that of what was kept; both say so."""
    assert typed("session", "keep", "s1", "2").out == "Observation 2 of session s1 is kept, as memory 2.\n"
    assert typed("show", "2", "--json").json["content"] == "The mast is oak."
    assert typed("session", "drop", "s1", "1").out == "Observation 1 of session s1 is dropped.\n"
    assert typed("show", "1").code == 4
    assert typed("session", "keep", "s1", "2", "--json").json["memory_id"] == "2"


@pytest.mark.usefixtures("captured")
def test_what_is_not_there_is_told(typed: Typed) -> None:
    """An unknown session or number ends with the code of what is not found, a wrong number with that of bad input."""
    assert typed("session", "show", "nowhere").code == 4
    assert typed("session", "drop", "s1", "9").code == 4
    wrong = typed("session", "keep", "s1", "none")
    assert (wrong.code, "number" in wrong.err) == (2, True)


def test_without_sessions_a_sentence_says_so(typed: Typed) -> None:
    """No table is drawn where there is none."""
    assert typed("session", "list").out == "Nothing found.\n"
    assert "recollect session list" in typed("session", "show").err

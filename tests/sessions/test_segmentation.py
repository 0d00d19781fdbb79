"""Segmentation: a topic that changes is a fact of the session, side by side with the others."""

from __future__ import annotations

from callers import ADA
from recollect import App
from recollect.domain.lifecycle import LifecycleSettings
from run_operations import do

INVOICES = "The invoice parser reads invoice totals and tax rates from every invoice"


def invoices(app: App, hour: int) -> None:
    """Report five outputs about invoices."""
    for minute in range(5):
        at = f"2026-03-01T{hour:02}:0{minute}:00Z"
        do(app, "tool_post", session_id="s1", tool="Bash", input={"command": "parse"}, output=INVOICES, at=at)


def asked(app: App, said: str, at: str) -> None:
    """Submit a prompt."""
    do(app, "prompt_submit", session_id="s1", prompt=said, at=at)


def test_boundaries_are_facts_that_hold_side_by_side(app: App) -> None:
    """Each names its time and the words of the new topic, and none ends another."""
    invoices(app, 9)
    asked(app, "next: the kubernetes ingress certificate expired, look why", "2026-03-01T09:40:00Z")
    asked(app, "different thing. the label printer prints every parcel label twice", "2026-03-01T10:20:00Z")
    facts = do(app, "query_facts", subject="session:s1", predicate="boundary_at").facts
    said = sorted(fact.object for fact in facts)
    assert [one.split()[0] for one in said] == ["2026-03-01T09:40:00Z", "2026-03-01T10:20:00Z"]
    assert "ingress" in said[0]
    assert "label" in said[1]
    assert len(do(app, "show_session", session_id="s1").boundaries) == 2


def test_topics_change_without_a_pause(app: App) -> None:
    """Three prompts about three things within two minutes are three topics: two boundaries, with their times."""
    for second, said in (
        (0, "the label printer prints every parcel label twice since the update"),
        (55, "the kubernetes ingress certificate expired over night, look why"),
        (110, "translate the onboarding mail for customers in Portugal"),
    ):
        asked(app, said, f"2026-03-01T09:{second // 60:02}:{second % 60:02}Z")
    found = do(app, "query_facts", subject="session:s1", predicate="boundary_at").facts
    assert [one.partition(" ")[0] for one in sorted(fact.object for fact in found)] == [
        "2026-03-01T09:00:55Z",
        "2026-03-01T09:01:50Z",
    ]
    shown = do(app, "show_session", session_id="s1").boundaries
    assert ["ingress" in shown[0], "portugal" in shown[1], len(shown)] == [True, True, 2]


def test_going_on_is_no_boundary(app: App) -> None:
    """Outputs of one topic and a rule about it leave no fact."""
    invoices(app, 9)
    asked(app, "never round tax rates in the invoice parser, finance compares totals", "2026-03-01T09:06:00Z")
    assert do(app, "query_facts", subject="session:s1").facts == ()


def test_a_secret_is_no_keyword(app: App) -> None:
    """Neither the window nor a boundary holds a secret that was said."""
    secret = "AKIA" + "Q7RT2MZX4WPLN9KD"[:16]
    invoices(app, 9)
    asked(app, f"next: the upload with key {secret} fails since the bucket moved", "2026-03-01T09:40:00Z")
    session = app.sessions.find(ADA, "s1")
    assert session is not None
    assert secret.lower() not in session.model_dump_json().lower()
    (fact,) = do(app, "query_facts", subject="session:s1").facts
    assert secret.lower() not in fact.object.lower()


def test_boundaries_can_be_switched_off(app: App) -> None:
    """Without the module no topic is noted, and capture goes on."""
    object.__setattr__(app, "lifecycle", LifecycleSettings(modules_off="boundaries"))
    invoices(app, 9)
    asked(app, "next: the upload fails since the bucket moved", "2026-03-01T09:40:00Z")
    session = app.sessions.find(ADA, "s1")
    assert session is not None
    assert session.state["boundaries"] == []
    assert session.kept + session.dropped

"""Sessions at a glance: each by its first prompt, with what it learnt as that stands now."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import event

from recollect import App
from recollect.domain.origin import SaidBy
from recollect.domain.page import SessionGlance
from recollect.domain.requests import Caller
from recollect.doors.web.verbs import perform

ADA = Caller(user="ada", team="crew", project="engine")
BOB = Caller(user="bob", team="crew", project="engine")
MAST = ADA.model_copy(update={"project": "mast"})
RULE = "Remember that we always round invoices once, at the end, to two places."
FAILED = "3 failed, 41 passed\nE   AssertionError: rounded twice in billing/invoice.py:88"


def report(app: App, session: str, *prompts: str, caller: Caller = ADA) -> None:
    """Let a session of Claude Code tell its prompts, and a failed command after them."""
    about = {"session_id": session, "agent": "claude-code"}
    perform(app, "session_start", about, caller)
    for prompt in prompts:
        perform(app, "prompt_submit", about | {"prompt": prompt, "typed": True}, caller)
    command = {"tool": "Bash", "input": {"command": "pytest -q"}, "output": FAILED}
    perform(app, "tool_post", about | command, caller)


def glances(app: App, caller: Caller = ADA, **fields: Any) -> list[SessionGlance]:
    """Return the sessions, the latest first."""
    return list(perform(app, "glance_at_sessions", fields, caller).sessions)


def test_a_session_is_called_by_its_first_prompt(app: App, clock: Any) -> None:
    """A prompt that was dropped, one that was kept and a session without any are told apart; the project is named."""
    report(app, "dropped", "When do we deploy the harbour service?", RULE)
    clock.pass_days(1)
    report(app, "kept", RULE.replace("invoices", "salaries"))
    clock.pass_days(1)
    report(app, "silent")
    silent, kept, dropped = glances(app)
    assert dropped.prompt == "When do we deploy the harbour service?"
    assert "always round salaries once" in kept.prompt
    assert silent.prompt == ""
    assert {one.project for one in (silent, kept, dropped)} == {"engine"}


def test_what_was_learnt_comes_as_it_stands(app: App) -> None:
    """Rules of a person come before other drafts, and what an agent stored in the place of a draft before both."""
    report(app, "s1", "And now?", RULE)
    [one] = glances(app)
    assert one.learnt_count == 2
    assert "always round invoices" in one.learnt[0].content
    assert one.learnt[0].is_draft
    rule = one.learnt[0]
    better = "Invoices are rounded once, at the end, to two places."
    agent = ADA.saying(SaidBy.ASSISTANT)
    made = perform(app, "remember", {"content": better, "supersedes": str(rule.id)}, agent).id
    [one] = glances(app)
    assert str(one.learnt[0].id) == made
    assert rule.id not in {each.id for each in one.learnt}
    perform(app, "forget", {"id": made}, ADA)
    assert made not in {str(each.id) for each in glances(app)[0].learnt}


@pytest.mark.parametrize("verb", ["bury", "memory_forget", "forget"])
def test_what_is_out_of_sight_is_not_told(app: App, verb: str) -> None:
    """What a person buried, hid or forgot is no lesson, and its words stand nowhere."""
    report(app, "s1", "And now?", RULE)
    lesson = glances(app)[0].learnt[0]
    perform(app, verb, {"id": str(lesson.id)}, ADA)
    assert lesson.id not in {one.id for one in glances(app)[0].learnt}


def test_each_sees_their_own_sessions(app: App) -> None:
    """Another user sees none; their own in other projects come when they are asked for, with their lessons."""
    report(app, "here", "And now?", RULE)
    report(app, "there", "What of the mast?", RULE, caller=MAST)
    assert glances(app, BOB) == glances(app, BOB, everywhere=True) == []
    assert [one.session.session_id for one in glances(app)] == ["here"]
    every = {one.session.session_id: one for one in glances(app, everywhere=True)}
    assert (every["there"].project, every["there"].prompt) == ("mast", "What of the mast?")
    assert "always round invoices" in every["there"].learnt[0].content


def test_a_page_takes_a_bounded_number_of_statements(app: App) -> None:
    """Twelve sessions are read by as many statements as two."""
    asked: list[str] = []
    engine = app.records._database.engine
    listener = lambda *told: asked.append(told[2])  # noqa: E731
    counts = []
    for many in (2, 12):
        for number in range(many):
            report(app, f"s{many}-{number}", f"What of lock {number}?", RULE.replace("invoices", f"bill {number}"))
        glances(app)
        event.listen(engine, "before_cursor_execute", listener)
        asked.clear()
        assert len(glances(app)) >= many
        event.remove(engine, "before_cursor_execute", listener)
        counts.append(len(asked))
    assert counts[1] <= counts[0]

"""The hook engine: order, isolation, results."""

import logging

import pytest

from recollect.domain.lifecycle import EndSession, StartSession, SubmitPrompt, UseTool
from recollect.lifecycle.hooks import Emitted, Hooks

END = EndSession(session_id="s1")


def test_events_have_the_names_of_the_specification() -> None:
    """The four events are called as coding agents and the specification call them."""
    names = [event.event for event in (StartSession, SubmitPrompt, UseTool, EndSession)]
    assert names == ["session:start", "prompt:submit", "tool:post", "session:end"]


def test_a_lower_priority_runs_first_and_equals_in_order_of_registration() -> None:
    """Capture (100) runs before consolidation (200) and compression (300), in whatever order they came."""
    hooks = Hooks()
    for stage, priority in (("compression", 300), ("capture", 100), ("consolidation", 200), ("after", 200)):
        hooks.register(EndSession, stage, priority, lambda event: event.session_id)
    hooks.register(StartSession, "other", 1, lambda event: "never")
    ran = [stage for stage, _ in hooks.emit(END).results]
    assert ran == ["capture", "consolidation", "after", "compression"]


def test_a_failing_stage_is_logged_and_counted_and_stops_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """The stages behind a failing one still run, and the log holds its traceback."""
    hooks = Hooks()
    hooks.register(EndSession, "broken", 1, lambda event: 1 // 0)
    hooks.register(EndSession, "whole", 2, lambda event: "ran")
    with caplog.at_level(logging.ERROR):
        assert hooks.emit(END) == Emitted((("whole", "ran"),), ("broken",))
    assert hooks.failures == {"broken": 1}
    assert "ZeroDivisionError" in caplog.text


def test_unregister_takes_out_its_own_stage_only() -> None:
    """Of two stages alike one is taken out, and taking it out again changes nothing."""
    hooks = Hooks()
    first = hooks.register(EndSession, "same", 1, lambda event: 1)
    hooks.register(EndSession, "same", 1, lambda event: 2)
    first()
    first()
    assert hooks.emit(END).results == (("same", 2),)

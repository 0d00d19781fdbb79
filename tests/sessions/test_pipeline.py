"""Events as operations: stages in order, one failing alone, and what is known of a session from event to event."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from callers import ADA
from recollect import App
from recollect.domain.lifecycle import (
    Decision,
    EndSession,
    Injection,
    LifecycleSettings,
    Observation,
    SessionEvent,
    StartSession,
    SubmitPrompt,
    UseTool,
)
from recollect.sessions import pipeline
from recollect.sessions.pipeline import KEPT_FOR, STAGES, Stage, passed
from recollect.sessions.session_state import Context, state_of
from run_operations import do

END = EndSession(session_id="s1")


def test_events_have_the_names_of_the_specification() -> None:
    """The four events are called as coding agents and the specification call them."""
    names = [event.event for event in (StartSession, SubmitPrompt, UseTool, EndSession)]
    assert names == ["session:start", "prompt:submit", "tool:post", "session:end"]


def test_each_event_runs_its_stages_in_order(app: App) -> None:
    """Only the stages of the event run, those of a lower priority first."""
    ran: list[str] = []
    stages = [
        Stage("late", EndSession, 300, lambda context: ran.append("late")),
        Stage("early", EndSession, 100, lambda context: ran.append("early")),
        Stage("other", StartSession, 1, lambda context: ran.append("other")),
    ]
    passed(app, END, ADA, stages)
    assert ran == ["early", "late"]


def test_an_end_alone_makes_no_session(app: App) -> None:
    """An agent's command that only looks something up ends a session that never began."""
    assert do(app, "session_end", session_id="s1").failed == ()
    assert do(app, "list_sessions").total == 0
    do(app, "session_start", session_id="s2")
    do(app, "session_end", session_id="s2")
    assert [one.ended_at is not None for one in do(app, "list_sessions").sessions] == [True]


def test_a_failing_stage_is_counted_and_stops_nobody(app: App, caplog: pytest.LogCaptureFixture) -> None:
    """The others run, the log has the traceback, and the session counts the failure over its events."""
    stages = [
        Stage("broken", EndSession, 1, lambda context: 1 // 0),
        Stage("whole", EndSession, 2, lambda context: context.update(seen=("x",))),
    ]
    do(app, "session_start", session_id="s1")
    with caplog.at_level(logging.ERROR):
        answers = [passed(app, END, ADA, stages)[1] for _ in range(2)]
    assert [one.failed for one in answers] == [("broken",), ("broken",)]
    assert "ZeroDivisionError" in caplog.text
    session = app.sessions.find(ADA, "s1")
    assert session is not None
    assert (state_of(session.state).failures, state_of(session.state).seen) == ({"broken": 2}, ("x",))


def test_what_stages_know_outlives_the_process(open_store: Callable[..., App]) -> None:
    """A store that is closed and opened again goes on with the session's state."""
    remembering = [Stage("one", UseTool, 1, lambda context: context.update(kept=(*context.state.kept, 1)))]
    for count in (1, 2):
        app = open_store()
        context, _ = passed(app, UseTool(session_id="s1", tool="Bash"), ADA, remembering)
        assert context.state.kept == (1,) * count
        app.close()


def test_a_state_of_another_version_begins_anew() -> None:
    """A state that cannot be read is no reason to fail."""
    assert state_of({"window": "?"}) == state_of({})
    assert state_of({"seen": ["a"], "unknown": 1}).seen == ("a",)


def test_events_of_one_session_come_one_after_another(app: App) -> None:
    """Of events that arrive at the same time none loses what another has noted."""

    def count(context: Context[Any]) -> None:
        before = context.state.since_checkpoint
        threading.Event().wait(0.005)
        context.update(since_checkpoint=before + 1)

    stages = [Stage("count", EndSession, 1, count)]
    do(app, "session_start", session_id="s1")
    workers = [threading.Thread(target=passed, args=(app, END, ADA, stages)) for _ in range(8)]
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    session = app.sessions.find(ADA, "s1")
    assert session is not None
    assert session.state["since_checkpoint"] == 8


def test_what_is_injected_is_the_answer(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer to a prompt is what the stage gave; without one, or where it fails, it is empty."""
    given = Injection("<memory-context>…", ("7",))
    prompt = SubmitPrompt(session_id="s1", prompt="Who?")
    for run, wanted in (
        (lambda context: given, given),
        (lambda context: None, Injection()),
        (lambda context: 1 // 0, Injection(failed=("inject",))),
    ):
        monkeypatch.setattr(pipeline, "passed", lambda *given, run=run: passed(*given, [_injecting(run)]))
        assert pipeline.prompt_submit(app, prompt, ADA) == wanted


def _injecting(run: Callable[[Context[Any]], object]) -> Stage:
    return Stage("inject", SubmitPrompt, 50, run)


def test_what_was_noted_is_the_answer_and_is_kept(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """The decision on an output is answered and written down."""
    seen = Observation(at=app.clock(), event="tool:post", decision=Decision.KEPT, reason="new", memory_id=3)
    stages = [Stage("capture", UseTool, 1, lambda context: context.note(seen))]
    monkeypatch.setattr(pipeline, "passed", lambda *given: passed(*given[:3], stages))
    noted = pipeline.tool_post(app, UseTool(session_id="s1", tool="Bash"), ADA)
    assert (noted.decision, noted.reason, noted.memory_id) == ("kept", "new", "3")
    session = app.sessions.find(ADA, "s1")
    assert session is not None
    assert [one.reason for one in app.sessions.observations(session)] == ["new"]


def test_a_session_has_its_times(app: App, clock: Any) -> None:
    """It begins and ends when its events say, else by the clock; the next event opens it again."""
    said = datetime(2026, 2, 1, 9, tzinfo=UTC)
    do(app, "session_start", session_id="s1", at=said.isoformat())
    do(app, "session_end", session_id="s1")
    session = app.sessions.find(ADA, "s1")
    assert session is not None
    assert (session.started_at, session.last_at, session.ended_at) == (said, clock(), clock())
    do(app, "tool_post", session_id="s1", tool="Bash", output="x")
    session = app.sessions.find(ADA, "s1")
    assert session is not None
    assert session.ended_at is None


def test_sessions_are_forgotten_after_a_month(app: App, clock: Any) -> None:
    """Whoever begins a session removes those that nobody heard of for thirty days."""
    do(app, "session_start", session_id="old")
    clock.pass_days(KEPT_FOR.days + 1)
    do(app, "session_start", session_id="new")
    assert [one.session_id for one in do(app, "list_sessions").sessions] == ["new"]


def test_a_module_that_is_off_neither_runs_nor_provides(app: App) -> None:
    """Each capability is absent by its name in the setting, and the stages of such a module are left out."""
    object.__setattr__(app, "lifecycle", LifecycleSettings(modules_off="temporal, Memorability"))
    stages = [Stage(name, EndSession, 1, lambda context, name=name: name) for name in ("temporal", "capture")]
    context, emitted = passed(app, END, ADA, stages)
    named = ("memory.store", "memory.memorability", "memory.boundaries", "memory.temporal")
    assert [one for one in named if context.has(one)] == ["memory.store", "memory.boundaries"]
    assert emitted.results == ("capture",)


def test_the_settings_of_the_project_count(app: App, tmp_path: Path) -> None:
    """An event's stages get the settings of the folder that the session works in."""
    (tmp_path / "recollect.toml").write_text("max_inject_count = 2\n", encoding="utf-8")
    context, _ = passed(app, EndSession(session_id="s1", folder=str(tmp_path)), ADA)
    assert context.settings.max_inject_count == 2


def test_every_stage_is_of_an_event_of_the_lifecycle() -> None:
    """No stage waits for something that never happens, and no two of a module and an event are there."""
    events = {one for event in SessionEvent.__subclasses__() for one in (event, *event.__subclasses__())}
    assert {one.event for one in STAGES} <= events
    assert len({(one.module, one.event) for one in STAGES}) == len(STAGES)


def test_the_parts_of_a_prompt_do_what_the_whole_does(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """One part answers, the other notes; each of their stages runs once, in whichever part it is."""
    ran: list[str] = []
    given = Injection("<memory-context>…", ("7",))
    seen = Observation(at=app.clock(), event="prompt:submit", decision=Decision.KEPT, reason="new", memory_id=3)
    stages = [
        _injecting(lambda context: ran.append("inject") or given),
        Stage("boundaries", SubmitPrompt, 100, lambda context: ran.append("boundaries")),
        Stage("capture", SubmitPrompt, 150, lambda context: ran.append("capture") or context.note(seen)),
    ]
    monkeypatch.setattr(pipeline, "STAGES", stages)
    prompt = SubmitPrompt(session_id="s1", prompt="Who?")
    assert pipeline.answer_prompt(app, prompt, ADA) == given
    assert ran == ["inject"]
    assert pipeline.note_prompt(app, prompt, ADA).decision == "kept"
    assert ran == ["inject", "boundaries", "capture"]


def test_a_time_far_ahead_is_not_believed(app: App, clock: Any) -> None:
    """An event of a clock that is years ahead counts as of a day from now, so that its session goes like any other."""
    do(app, "session_start", session_id="s1", at="9999-12-31")
    session = app.sessions.find(ADA, "s1")
    assert session is not None
    assert session.last_at <= clock() + timedelta(days=1)


def test_an_input_that_no_database_holds_is_cleaned(app: App) -> None:
    """NUL characters, lone surrogates and endless nesting cost no observation."""
    deep: Any = "end"
    for _ in range(150):
        deep = [deep]
    given = {"command": "make\0 test \ud800", "deep": deep}
    noted = do(
        app, "tool_post", session_id="s1", tool="Bash", input=given, output="FAILED: the deadlock is caused by x"
    )
    assert noted.failed == ()
    assert UseTool(session_id="s1", tool="Bash", input=given).input["command"] == "make  test ?"

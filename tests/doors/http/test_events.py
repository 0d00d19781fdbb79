"""The queue of events in the daemon: in order, bounded, and worked off when the daemon ends."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from starlette.datastructures import QueryParams

from local_access import local_access
from recollect import App, Settings
from recollect.domain.lifecycle import Injection
from recollect.domain.verbs import PARTS
from recollect.doors.http import local
from recollect.doors.http.events import OPERATIONS, Event, EventQueue, Events
from recollect.errors import InvalidInput, StoreUnusable
from recollect.projects import set_project

TOOL = {"tool": "Bash", "output": "done"}
FIELDS = {"prompt:submit": {"prompt": "When?"}, "tool:post": TOOL}


def test_events_are_worked_off_in_order() -> None:
    """Each event is worked on once, in the order in which they came, by one thread at a time."""
    queue, done = EventQueue(), list[tuple[int, int]]()
    for number in range(200):
        assert queue.put(lambda number=number: done.append((number, threading.get_ident())), 1)  # type: ignore[misc]
    assert queue.finish(60)
    assert [number for number, _ in done] == list(range(200))
    assert queue.waiting == queue.lost == 0


def test_a_full_queue_loses_the_newest() -> None:
    """Beyond so many events, or so much text, an event is refused and counted; a large one alone is taken."""
    queue, go = EventQueue(most=3, largest=100), threading.Event()
    taken = [queue.put(go.wait, 1) for _ in range(4)]
    assert taken == [True, True, True, False]
    assert (queue.waiting, queue.lost) == (3, 1)
    go.set()
    assert queue.finish(60)
    go.clear()
    assert [queue.put(go.wait, 1_000), queue.put(go.wait, 1)] == [True, False]
    assert not queue.finish(0)
    go.set()
    assert queue.finish(60)
    assert (queue.waiting, queue.lost) == (0, 2)


def test_an_event_that_comes_twice_is_worked_on_once() -> None:
    """One that was sent again, as its first answer came too late, is known by its id, also once it is done."""
    queue, done = EventQueue(), list[str]()
    for event_id in ("a", "b", "a", "", ""):
        assert queue.put(lambda event_id=event_id: done.append(event_id), 1, event_id)  # type: ignore[misc]
    assert queue.finish(60)
    assert queue.put(lambda: done.append("again"), 1, "b")
    assert queue.finish(60)
    assert (done, queue.lost) == (["a", "b", "", ""], 0)


def test_the_texts_of_all_that_waits_are_counted() -> None:
    """Events that are small each fill the queue together, and make room again when they are done."""
    queue, go = EventQueue(largest=100), threading.Event()
    for _ in range(2):
        assert [queue.put(go.wait, 40) for _ in range(3)] == [True, True, False]
        go.set()
        assert queue.finish(60)
        go.clear()
    assert queue.lost == 2


def test_a_failing_event_stops_no_other(caplog: pytest.LogCaptureFixture) -> None:
    """An event whose work fails is counted and logged without its text, and the next one is worked on."""
    queue, done = EventQueue(), list[str]()

    def fail() -> None:
        raise ZeroDivisionError(" ".join(["what", "was", "said"]))

    for work in (fail, lambda: done.append("next")):
        queue.put(work, 1)
    assert queue.finish(60)
    assert done == ["next"]
    assert queue.lost == 1
    assert "ZeroDivisionError" in caplog.text
    assert "what was said" not in caplog.text


@pytest.fixture
def take(app: App, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Return a function that takes an event as the daemon does, and gives the answer and what ran."""
    set_project(tmp_path, "named here", tmp_path / "home")
    ran = list[Any]()

    def perform(_: App, name: str, fields: dict[str, Any], caller: Any, __: str) -> Any:
        ran.append((name, fields, caller))
        return Injection("<memory-context>", ("7",), whole_ids=("7",))

    def taking(event: str, fields: dict[str, Any], *, late: bool = False, **changes: Any) -> tuple[Any, list[Any]]:
        ran.clear()
        client = {
            "given": {"user": "ada"},
            "variables": {"RECOLLECT_TEAM": "crew", "RECOLLECT_HOME": str(tmp_path / "home")},
            "folder": str(tmp_path),
            "user": "ada",
        }
        access = local_access(app, settings)
        found = access.event(QueryParams(""), {"session_id": "s"} | fields, client | changes)
        answer = access.events.take(event, found, app.clock().isoformat(), late=late)
        assert access.events.finish(60)
        return answer, ran

    monkeypatch.setattr(local, "perform", perform)
    return taking


@pytest.mark.parametrize(
    ("event", "first", "second"),
    [
        ("session:start", "answer_start", "session_start"),
        ("prompt:submit", "answer_prompt", "note_prompt"),
        ("tool:post", "answer_tool", "tool_post"),
        ("turn:end", "answer_turn", "note_turn"),
    ],
)
def test_what_may_show_memories_is_answered_at_once(
    take: Callable[..., Any], tmp_path: Path, event: str, first: str, second: str
) -> None:
    """The answer is made as the session's caller: the settings' user and team, and the project of its folder.

    What the event may teach waits its turn.
    """
    answer, [(name, fields, caller), (later, *same)] = take(event, FIELDS.get(event, {}))
    assert answer.body == {"text": "<memory-context>", "taken": True}
    assert (name, later) == (first, second)
    assert same == [fields, caller]
    assert (caller.user, caller.team, caller.project) == ("ada", "crew", "named here")
    assert fields["folder"] == str(tmp_path)
    assert datetime.fromisoformat(fields["at"]).tzinfo


def test_what_is_about_to_happen_is_only_answered(take: Callable[..., Any]) -> None:
    """A tool that is about to run teaches nothing, so that nothing waits its turn."""
    answer, [(name, fields, _)] = take("tool:pre", {"tool": "Bash", "input": {"command": "make"}})
    assert answer.body == {"text": "<memory-context>", "taken": True}
    assert (name, fields["input"]) == ("answer_before_tool", {"command": "make"})
    answer.delivered()


@pytest.mark.parametrize("event", ["session:checkpoint", "session:end"])
def test_other_events_wait_their_turn(take: Callable[..., Any], event: str) -> None:
    """The agent hears that they were taken; their operation runs afterwards, with the time that they say."""
    answer, [(name, fields, _)] = take(event, {"at": "2020-11-22T10:00:00Z"})
    assert answer == ({"text": "", "taken": True}, None)
    assert name == event.replace(":", "_")
    assert fields["at"] == "2020-11-22T10:00:00Z"


def test_what_was_delivered_is_noted_for_its_session(take: Callable[..., Any]) -> None:
    """What is run once the answer was delivered names the session, the time of the event and what it showed."""
    answer, ran = take("prompt:submit", FIELDS["prompt:submit"] | {"agent": "codex"})
    fields, caller = ran[0][1:]
    ran.clear()
    answer.delivered()
    [(name, noted, same)] = ran
    assert (name, same) == ("note_shown", caller)
    assert {one: noted[one] for one in ("session_id", "agent", "folder", "at")} == {
        one: fields[one] for one in ("session_id", "agent", "folder", "at")
    }
    assert (noted["memory_ids"], noted["whole_ids"], noted["index"], noted["ask"]) == (("7",), ("7",), False, False)
    assert PARTS["note_shown"].request(**noted)


@pytest.mark.parametrize("event", ["session:start", "prompt:submit", "tool:post", "turn:end"])
def test_a_late_event_is_only_queued(take: Callable[..., Any], event: str) -> None:
    """Nobody waits for an answer to it, so that nothing is made, and nothing counts as shown."""
    answer, [(name, *_)] = take(event, FIELDS.get(event, {}), late=True)
    assert answer == ({"text": "", "taken": True}, None)
    assert name == OPERATIONS[event]


@pytest.mark.parametrize("event", ["session:start", "prompt:submit", "tool:post", "turn:end"])
def test_the_time_that_an_event_says_is_that_of_both_its_parts(take: Callable[..., Any], event: str) -> None:
    """What is answered at once and what waits are run with the time that the event says."""
    _, ran = take(event, FIELDS.get(event, {}) | {"at": "2020-11-22T10:00:00Z"})
    assert [fields["at"] for _, fields, _ in ran] == ["2020-11-22T10:00:00Z"] * 2


@pytest.mark.parametrize("said", ["9020-11-22T10:00:00Z", "2020-11-22T10:00:00", "yesterday", "", None, 5])
def test_a_time_that_is_none_or_to_come_is_now(take: Callable[..., Any], app: App, said: object) -> None:
    """An event whose time cannot be right happened when it came; it is not lost."""
    _, ran = take("tool:post", TOOL | {"at": said})
    assert [fields["at"] for _, fields, _ in ran] == [app.clock().isoformat()] * 2


def test_events_of_nobody_are_refused(take: Callable[..., Any]) -> None:
    """An event without what it is about, or settings that are none, run nothing."""
    with pytest.raises(InvalidInput, match="Missing tool"):
        take("tool:post", {})
    with pytest.raises(InvalidInput, match="RECOLLECT_MAX_MEMORIES"):
        take("tool:post", TOOL, variables={"RECOLLECT_MAX_MEMORIES": "x"})


def test_a_client_turns_off_what_the_daemon_does(app: App, settings: Settings, tmp_path: Path) -> None:
    """No text of the session of an agent whose environment says so is kept, whatever the daemon was started with."""
    said = (
        "We always use four spaces in YAML files, as the linter rejects tabs.",
        "And who waters the confidential cucumbers in the greenhouse of the harbour at the weekend?",
    )
    kept = []
    for variables in ({"RECOLLECT_CAPTURE": "0"}, dict[str, str]()):
        access = local_access(app, settings)
        client = {"given": {"user": "ada"}, "variables": variables, "folder": str(tmp_path), "user": "ada"}
        for hour, prompt in enumerate(said, 9):
            event = access.event(QueryParams(""), {"session_id": "quiet", "prompt": prompt}, client)
            access.events.take("prompt:submit", event, f"2026-03-01T{hour:02}:00:00Z")
        assert access.events.finish(60)
        found = event.run("query_facts", subject="session:quiet").total
        stored = any(b"cucumber" in one.read_bytes() for one in settings.home.glob("memory.db*"))
        kept.append((event.run("stats").memories, found, stored))
    assert kept == [(0, 0, False), (1, 1, True)]


@pytest.mark.parametrize(
    ("given", "budget"), [({}, 6_000), ({"token_budget": 900}, 900), ({"token_budget": 9_000}, 6_000)]
)
def test_a_client_only_makes_settings_stricter(
    app: App, settings: Settings, given: dict[str, int], budget: int
) -> None:
    """What a client says nothing of is as the daemon has it, and so is what it asks for more of."""
    generous = replace(app, lifecycle=app.lifecycle.model_copy(update={"token_budget": 6_000}))
    access = local_access(generous, settings)
    assert access._lifecycle_for(Settings(home=settings.home, **given)).token_budget == budget


def test_an_id_is_that_of_its_user(app: App, settings: Settings) -> None:
    """The same event of one user is taken once; another user's has the same id by chance, or on purpose."""
    events, ran = Events(1), list[str]()
    for user in ("ada", "ada", "bob"):
        event = Event({"session_id": "s"}, user, lambda _, user=user, **__: ran.append(user))
        assert events.take("session:end", event, app.clock().isoformat(), "7").body["taken"]
    assert events.finish(60)
    assert ran == ["ada", "bob"]


def test_what_a_failing_store_loses_is_counted() -> None:
    """An error of ours in the work counts as a lost event too."""
    queue = EventQueue()

    def fail() -> None:
        raise StoreUnusable("The disk is full.")

    queue.put(fail, 1)
    assert queue.finish(60)
    assert queue.lost == 1


def test_waiting_events_keep_the_daemon_from_idling() -> None:
    """The one that is worked on counts as waiting until it is done."""
    queue, seen = EventQueue(), list[int]()
    queue.put(lambda: seen.append(queue.waiting), 1)
    assert queue.finish(60)
    assert seen == [1]
    assert queue.waiting == 0


@pytest.mark.parametrize(("marks", "typed"), [({"isMeta": True}, False), ({}, True), (None, None)])
def test_the_transcript_says_whether_a_person_typed(
    take: Callable[..., Any], tmp_path: Path, marks: dict[str, Any] | None, typed: bool | None
) -> None:
    """The daemon reads its end and passes on what it says, not where it is; without an entry it says nothing."""
    file = tmp_path / "transcript.jsonl"
    entry = {"type": "user", "message": {"content": "When?"}} | (marks or {})
    file.write_text("" if marks is None else f"{json.dumps(entry)}\n", encoding="utf-8")
    _, ran = take("prompt:submit", FIELDS["prompt:submit"] | {"transcript": str(file)})
    assert [(fields["typed"], "transcript" in fields) for _, fields, _ in ran] == [(typed, False)] * 2

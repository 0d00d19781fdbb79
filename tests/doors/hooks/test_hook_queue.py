"""The queue of events in the daemon: in order, bounded, and worked off when the daemon ends."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from recollect import App, Settings
from recollect.domain.lifecycle import Injection
from recollect.doors.daemon import hook_requests
from recollect.doors.serving.hook_queue import HookQueue
from recollect.errors import InvalidInput, StoreUnusable
from recollect.projects import set_project


def test_events_are_worked_off_in_order() -> None:
    """Each event is worked on once, in the order in which they came, by one thread at a time."""
    queue, done = HookQueue(), list[tuple[int, int]]()
    for number in range(200):
        assert queue.put(lambda number=number: done.append((number, threading.get_ident())), 1)  # type: ignore[misc]
    assert queue.finish(60)
    assert [number for number, _ in done] == list(range(200))
    assert queue.waiting == queue.lost == 0


def test_a_full_queue_loses_the_newest() -> None:
    """Beyond so many events, or so much text, an event is refused and counted; a large one alone is taken."""
    queue, go = HookQueue(most=3, largest=100), threading.Event()
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
    queue, done = HookQueue(), list[str]()
    for event_id in ("a", "b", "a", "", ""):
        assert queue.put(lambda event_id=event_id: done.append(event_id), 1, event_id)  # type: ignore[misc]
    assert queue.finish(60)
    assert queue.put(lambda: done.append("again"), 1, "b")
    assert queue.finish(60)
    assert (done, queue.lost) == (["a", "b", "", ""], 0)


def test_the_texts_of_all_that_waits_are_counted() -> None:
    """Events that are small each fill the queue together, and make room again when they are done."""
    queue, go = HookQueue(largest=100), threading.Event()
    for _ in range(2):
        assert [queue.put(go.wait, 40) for _ in range(3)] == [True, True, False]
        go.set()
        assert queue.finish(60)
        go.clear()
    assert queue.lost == 2


def test_a_failing_event_stops_no_other(caplog: pytest.LogCaptureFixture) -> None:
    """An event whose work fails is counted and logged without its text, and the next one is worked on."""
    queue, done = HookQueue(), list[str]()

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
def take(app: App, tmp_path: Path) -> Callable[..., tuple[Any, list[Any], HookQueue]]:
    """Return a function that takes an event as the daemon does, and gives the answer, what ran, and the queue."""
    set_project(tmp_path, "named here", tmp_path / "home")

    def taking(event: str, **changes: Any) -> tuple[Any, list[Any], HookQueue]:
        ran, queue = list[Any](), HookQueue()

        def serving(settings: Settings) -> Callable[..., Any]:
            def perform(name: str, **fields: Any) -> Any:
                ran.append((name, fields, settings.caller))
                return Injection("<memory-context>")

            return perform

        body = {
            "event": event,
            "fields": {"session_id": "s"},
            "given": {"user": "ada"},
            "variables": {"RECOLLECT_TEAM": "crew", "RECOLLECT_HOME": str(tmp_path / "home")},
            "folder": str(tmp_path),
            "user": "ada",
        }
        answer = hook_requests.take(body | changes, serving, app.clock().isoformat(), queue)
        assert queue.finish(60)
        return answer, ran, queue

    return taking


def test_a_prompt_is_answered_at_once(take: Callable[..., Any], tmp_path: Path) -> None:
    """The answer is made as the session's caller: the settings' user and team, and the project of its folder.

    What the prompt may teach waits its turn.
    """
    answer, [(name, fields, caller), (later, *same)], _ = take("prompt:submit")
    assert answer == {"text": "<memory-context>", "taken": True}
    assert (name, later) == ("answer_prompt", "note_prompt")
    assert same == [fields, caller]
    assert (caller.user, caller.team, caller.project) == ("ada", "crew", "named here")
    assert fields["folder"] == str(tmp_path)
    assert datetime.fromisoformat(fields["at"]).tzinfo


@pytest.mark.parametrize("event", ["session:start", "tool:post", "session:checkpoint", "session:end"])
def test_other_events_wait_their_turn(take: Callable[..., Any], event: str) -> None:
    """The agent hears that they were taken; their operation runs afterwards, with the time that they say."""
    answer, [(name, fields, _)], _ = take(event, fields={"session_id": "s", "at": "2020-11-22T10:00:00Z"})
    assert answer == {"taken": True}
    assert name == event.replace(":", "_")
    assert fields["at"] == "2020-11-22T10:00:00Z"


@pytest.mark.parametrize("said", ["9020-11-22T10:00:00Z", "2020-11-22T10:00:00", "yesterday", "", None, 5])
def test_a_time_that_is_none_or_to_come_is_now(take: Callable[..., Any], app: App, said: object) -> None:
    """An event whose time cannot be right happened when it came; it is not lost."""
    _, [(_, fields, _)], _ = take("tool:post", fields={"session_id": "s", "at": said})
    assert fields["at"] == app.clock().isoformat()


def test_events_of_nobody_are_refused(take: Callable[..., Any]) -> None:
    """An unknown event, or settings that are none, run nothing."""
    with pytest.raises(InvalidInput, match="Unknown event"):
        take("tool:pre")
    with pytest.raises(InvalidInput, match="RECOLLECT_MAX_MEMORIES"):
        take("tool:post", variables={"RECOLLECT_MAX_MEMORIES": "x"})


def test_what_a_failing_store_loses_is_counted() -> None:
    """An error of ours in the work counts as a lost event too."""
    queue = HookQueue()

    def fail() -> None:
        raise StoreUnusable("The disk is full.")

    queue.put(fail, 1)
    assert queue.finish(60)
    assert queue.lost == 1


def test_waiting_events_keep_the_daemon_from_idling() -> None:
    """The one that is worked on counts as waiting until it is done."""
    queue, seen = HookQueue(), list[int]()
    queue.put(lambda: seen.append(queue.waiting), 1)
    assert queue.finish(60)
    assert seen == [1]
    assert queue.waiting == 0

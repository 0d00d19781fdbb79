"""The background executor: single tasks run once, recurring ones on request, and no failure stops it for good."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import TypeAlias

import pytest

from recollect.engines import background
from recollect.engines.background import BackgroundExecutor
from recollect.engines.loading import LazyModel
from recollect.errors import ModelUnusable, StoreUnusable

ENOUGH = 30.0
Begin: TypeAlias = Callable[..., BackgroundExecutor]


class Count:
    """A task that counts itself and lets a test wait for the next one."""

    def __init__(self) -> None:
        self.done = 0
        self._changed = threading.Condition()

    def __call__(self) -> None:
        with self._changed:
            self.done += 1
            self._changed.notify_all()

    def reaches(self, number: int) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self.done >= number, ENOUGH)


class Slow(LazyModel):
    """A model that loads when it is told to."""

    def __init__(self, *, fails: bool = False) -> None:
        super().__init__()
        self.go, self.begun = threading.Event(), threading.Event()
        self._fails = fails

    def _load(self) -> str:
        self.begun.set()
        assert self.go.wait(ENOUGH)
        if self._fails:
            raise ModelUnusable("There are no weights.")
        return "loaded"


@pytest.fixture
def recurring() -> Count:
    return Count()


@pytest.fixture
def begin() -> Iterator[Begin]:
    """Return a function that starts executors, which are stopped when the test ends."""
    started: list[BackgroundExecutor] = []

    def beginning(*work: Callable[[], None]) -> BackgroundExecutor:
        executor = BackgroundExecutor(work)
        executor.start()
        started.append(executor)
        return executor

    yield beginning
    for one in started:
        one.stop()


def test_recurring_tasks_run_at_the_start_and_on_request(begin: Begin, recurring: Count) -> None:
    """A first run needs no request; each request brings another."""
    executor = begin(recurring)
    assert recurring.reaches(1)
    executor.request()
    assert recurring.reaches(2)


def test_a_submitted_task_runs_once(begin: Begin, recurring: Count) -> None:
    """A single task runs once and does not make the recurring ones run again."""
    executor, task = begin(recurring), Count()
    assert recurring.reaches(1)
    before = recurring.done
    executor.submit(task)
    assert task.reaches(1)
    executor.stop()
    assert task.done == 1
    assert recurring.done == before + 1  # the last one, at the end


def test_a_known_failure_is_tried_again(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that cannot be used now is tried again after a pause without any request."""
    monkeypatch.setattr(background, "_RETRY_SECONDS", 0.01)
    tries = Count()

    def failing() -> None:
        tries()
        raise StoreUnusable("The disk is full.")

    begin(failing)
    assert tries.reaches(3)


def test_a_task_that_is_not_done_runs_again(begin: Begin, recurring: Count) -> None:
    """A recurring task that returns a number of seconds runs again after them, without a request."""

    def task() -> float:
        recurring()
        return 0.01 if recurring.done < 3 else 0.0

    executor = begin(task)
    assert recurring.reaches(3)
    executor.stop()
    assert recurring.done == 4


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_unknown_failure_stops_nothing_else(begin: Begin, recurring: Count) -> None:
    """After a task broke in an unknown way, what waits behind it and later requests are served."""

    def breaking() -> None:
        raise ZeroDivisionError

    executor, behind = begin(recurring), Count()
    assert recurring.reaches(1)
    executor.submit(breaking)
    executor.submit(behind)
    assert behind.reaches(1)
    before = recurring.done
    executor.request()
    assert recurring.reaches(before + 1)


def test_stop_finishes_what_is_waiting(begin: Begin, recurring: Count) -> None:
    """Everything submitted before the end is done at the end, and nothing afterwards."""
    executor, task = begin(recurring), Count()
    for _ in range(5):
        executor.submit(task)
    executor.stop()
    executor.submit(task)
    assert task.done == 5


def test_what_waited_for_a_model_is_done_first(begin: Begin) -> None:
    """Whoever waits for a model goes on only when what had to wait for it is done."""
    executor, model, caught_up = begin(), Slow(), Count()
    executor.load(model, caught_up)
    assert not model.wait(0.0)
    model.go.set()
    assert model.wait(ENOUGH)
    assert (model.ready, caught_up.done) == (True, 1)


def test_nobody_waits_for_a_load_that_the_end_prevents(begin: Begin) -> None:
    """A model whose turn has not come at the end is not loaded, and nobody who shares it waits for it."""
    executor, first, second = begin(), Slow(), Slow()
    executor.load(first)
    executor.load(second)
    assert first.begun.wait(ENOUGH)
    ending = threading.Thread(target=executor.stop)
    ending.start()
    assert executor._stopping.wait(ENOUGH)
    first.go.set()
    ending.join(ENOUGH)
    assert second.wait(ENOUGH)
    assert (second.ready, second.failure) == (False, "")


def test_a_failed_load_is_told(begin: Begin) -> None:
    """Why a model could not be loaded is kept as a sentence; asking for it tries again and fails the same."""
    executor, model = begin(), Slow(fails=True)
    model.go.set()
    executor.load(model)
    assert model.wait(ENOUGH)
    assert (model.ready, model.failure) == (False, "There are no weights.")
    with pytest.raises(ModelUnusable, match="There are no weights"):
        model.warm()


def test_models_load_one_after_another_until_the_end(begin: Begin) -> None:
    """The second model waits for the first, and is not loaded at all when the store is closed meanwhile."""
    executor, first, second = begin(), Slow(), Slow()
    second.go.set()
    executor.load(first)
    executor.load(second)
    assert first.begun.wait(ENOUGH)
    ending = threading.Thread(target=executor.stop)
    ending.start()
    while executor._running:
        ending.join(0.01)
    first.go.set()
    ending.join(ENOUGH)
    assert first.ready
    assert not second.ready


def test_questions_hold_nothing_up_and_what_waits_at_the_end_is_dropped(begin: Begin, recurring: Count) -> None:
    """Other tasks run while a question is out; stopping waits for that one, and no further one is asked."""
    executor = begin(recurring)
    go, out, asked, other = threading.Event(), threading.Event(), Count(), Count()

    def question() -> None:
        out.set()
        assert go.wait(ENOUGH)
        asked()

    executor.ask(question)
    executor.ask(asked)
    assert out.wait(ENOUGH)
    executor.submit(other)
    assert other.reaches(1)
    ending = threading.Thread(target=executor.stop)
    ending.start()
    while executor._running:
        ending.join(0.001)
    go.set()
    ending.join(ENOUGH)
    assert (ending.is_alive(), asked.done) == (False, 1)

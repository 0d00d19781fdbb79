"""The courier: errands run once, rounds when told, and nothing that breaks stops it for good."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from recollect.errors import StoreUnusable
from recollect.store.courier import Courier

ENOUGH = 30.0


class Count:
    """A round that counts itself and lets a test wait for the next one."""

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


@pytest.fixture
def rounds() -> Count:
    return Count()


@pytest.fixture
def begin() -> Iterator[Callable[..., Courier]]:
    """Return a function that starts couriers, which are stopped when the test ends."""
    started: list[Courier] = []

    def beginning(*work: Callable[[], None]) -> Courier:
        courier = Courier(work)
        courier.start()
        started.append(courier)
        return courier

    yield beginning
    for one in started:
        one.stop()


def test_rounds_run_at_the_start_and_when_told(begin: Callable[..., Courier], rounds: Count) -> None:
    """A first round runs without being asked for, another one after each call."""
    courier = begin(rounds)
    assert rounds.reaches(1)
    courier.tell()
    assert rounds.reaches(2)


def test_an_errand_runs_once_and_costs_no_round(begin: Callable[..., Courier], rounds: Count) -> None:
    """What is only to be done later does not make the courier look at the outbox again."""
    courier, errand = begin(rounds), Count()
    assert rounds.reaches(1)
    before = rounds.done
    courier.later(errand)
    assert errand.reaches(1)
    courier.stop()
    assert errand.done == 1
    assert rounds.done == before + 1  # the last one, at the end


def test_an_expected_failure_is_tried_again(begin: Callable[..., Courier]) -> None:
    """A store that cannot be used now is asked again at the next call."""
    tries = Count()

    def failing() -> None:
        tries()
        raise StoreUnusable("The disk is full.")

    courier = begin(failing)
    assert tries.reaches(1)
    courier.tell()
    assert tries.reaches(2)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_failure_nobody_foresaw_does_not_end_it(begin: Callable[..., Courier], rounds: Count) -> None:
    """After work broke in an unknown way the next call is served all the same."""

    def breaking() -> None:
        raise ZeroDivisionError

    courier = begin(rounds)
    assert rounds.reaches(1)
    thread = courier._thread
    courier.later(breaking)
    thread.join(ENOUGH)
    assert not thread.is_alive()
    before = rounds.done
    courier.tell()
    assert rounds.reaches(before + 1)


def test_stop_finishes_what_is_waiting(begin: Callable[..., Courier], rounds: Count) -> None:
    """Everything handed over before the end is done at the end."""
    courier, errand = begin(rounds), Count()
    for _ in range(5):
        courier.later(errand)
    courier.stop()
    assert errand.done == 5

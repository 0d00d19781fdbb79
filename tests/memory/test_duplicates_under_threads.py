"""Duplicates from many threads: whatever is told at once is kept, merged or alone, and nothing fails."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from recollect import App
from recollect.domain.enums import Choice
from recollect.errors import NotFound
from run_operations import add, always, do, ill, judged_by

pytestmark = pytest.mark.slow

THREADS, ROUNDS = 8, 6


def together(work: Callable[[int], None]) -> None:
    """Run `work` in eight threads at once; whatever one of them raises is raised here."""
    gate = threading.Barrier(THREADS)

    def run(number: int) -> None:
        gate.wait()
        work(number)

    with ThreadPoolExecutor(THREADS) as pool:
        for waiting in [pool.submit(run, number) for number in range(THREADS)]:
            waiting.result()


def contents(app: App) -> list[str]:
    """Return what every memory in sight says."""
    return [memory.content for memory in do(app, "list_memories", limit=100).memories]


def test_identical_texts_are_one_memory(app: App) -> None:
    """The same text from every thread is one memory, surer each time."""
    ids: set[int] = set()
    together(lambda _: ids.update(add(app, "Ada owns the release.") for _ in range(ROUNDS)))
    assert len(ids) == 1
    assert do(app, "list_memories").memories[0].confidence > 0.99
    assert ill(app) == []


def test_near_texts_with_other_details_are_all_kept(app: App) -> None:
    """Texts that differ in one number stay apart, whoever comes first."""
    told = [f"The staging server listens on port {8000 + number}." for number in range(THREADS * ROUNDS)]
    together(lambda number: [add(app, text) for text in told[number::THREADS]])
    assert sorted(contents(app)) == sorted(told)
    assert ill(app) == []


def test_merges_at_once_lose_nothing(app: App) -> None:
    """Where everything is merged into everything, each text still stands in a memory that is in sight."""
    app = judged_by(app, always(Choice.MERGE))
    told = [f"The staging server listens on port {8000 + number}." for number in range(THREADS * ROUNDS)]
    together(lambda number: [add(app, text) for text in told[number::THREADS]])
    everything = "\n".join(contents(app))
    assert [text for text in told if text not in everything] == []
    assert ill(app) == []


def test_replacing_and_hiding_at_once_fail_nowhere(app: App) -> None:
    """Telling, replacing, hiding, restoring and deleting the same things at once leaves a store that is well."""

    def work(number: int) -> None:
        for turn in range(ROUNDS):
            one = add(app, f"We use MySQL for the orders of shop {turn}.")
            with suppress(NotFound):
                add(
                    app,
                    f"We switched from MySQL to Postgres for the orders of shop {turn}.",
                    **{("id", "supersedes")[number % 2]: str(one)},
                )
            do(app, ("memory_forget", "restore", "forget", "restore")[number % 4], id=str(one))

    together(work)
    assert ill(app) == []

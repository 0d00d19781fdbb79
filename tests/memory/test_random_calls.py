"""Random calls by random callers over every operation: no row, count, id or text shows or changes that must not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import true

from clock import Clock
from random_calls import judged
from recollect import App, Settings
from stores import open_app

pytestmark = pytest.mark.slow


@pytest.fixture
def time() -> Clock:
    return Clock()


@pytest.fixture
def store(settings: Settings, time: Clock) -> Iterator[App]:
    """Return an empty store on a clock that the calls move."""
    with open_app(settings, clock=time) as app:
        yield app


def test_nothing_is_shown_or_changed_that_may_not_be(store: App, settings: Settings, time: Clock) -> None:
    """An independent model of the rules agrees with every answer and every changed row."""
    model = judged(store, settings.folder, time, 1, 100)
    assert model.breaches == []
    assert min(model.changes, model.names, model.marks, model.counts) > 2


@pytest.mark.full_cases("facts-1", "records-3", "export_reader-1")
@pytest.mark.parametrize(
    ("room", "seed"), [("memory_lookup", 1), ("visibility", 1), ("facts", 1), ("records", 3), ("export_reader", 1)]
)
def test_the_model_notices(
    store: App, settings: Settings, time: Clock, monkeypatch: pytest.MonkeyPatch, room: str, seed: int
) -> None:
    """Where one part of the store forgets the levels, the model says so, as soon as a call shows it."""
    for name in ("of_levels", "of_lines"):
        monkeypatch.setattr(f"recollect.store.sql.{room}.{name}", lambda *_, **__: true(), raising=False)
    assert judged(store, settings.folder, time, seed, 1_000).breaches

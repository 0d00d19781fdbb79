"""The walk of `remember`: how many functions a reader passes, and how often the way leads back up to the verb."""

from __future__ import annotations

from call_walk import Walk
from callers import ADA
from recollect import App, Draft, remember

MOST_FUNCTIONS = 30
MOST_CLIMBS = 3


def test_a_new_memory_is_a_short_walk(app: App) -> None:
    """To store a new memory, a reader passes at most thirty functions between the verb and the rooms below it."""
    remember(app, Draft(content="Deploys happen on Tuesday mornings."), ADA)
    app.vectors.sync()
    walk = Walk("memory")
    with walk.noting():
        remember(app, Draft(content="The API returns cents, never floats."), ADA)
    assert len(walk.functions) <= MOST_FUNCTIONS, "\n".join(name for _, name in walk.functions)
    assert walk.climbs <= MOST_CLIMBS, walk.functions

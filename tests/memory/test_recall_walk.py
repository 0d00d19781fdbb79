"""The walk of `recall`: how many functions a reader passes, and how often the way leads back up to the search."""

from __future__ import annotations

from call_walk import Walk
from callers import ADA
from recollect import App, Draft, Query, recall, remember

MOST_FUNCTIONS = 150
MOST_CLIMBS = 23
"""What stands, with the decorator of telemetry; the design asks for 30 functions and 3 climbs, and neither may grow."""


def test_a_recall_is_no_longer_walk(app: App) -> None:
    """To answer a question, a reader passes no more functions and ways back than before."""
    for content in ("Deploys happen on Tuesdays.", "The API returns cents, never floats.", "The gate refuses secrets."):
        remember(app, Draft(content=content), ADA)
    app.vectors.sync()
    recall(app, Query(query="when are deploys?"), ADA)
    walk = Walk("search")
    with walk.noting():
        recall(app, Query(query="when are deploys?"), ADA)
    assert len(walk.functions) <= MOST_FUNCTIONS, "\n".join(name for _, name in walk.functions)
    assert walk.climbs <= MOST_CLIMBS, walk.functions

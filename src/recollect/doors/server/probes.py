"""How a replica is: whether it can answer, and the numbers that are looked up when somebody asks for them."""

from __future__ import annotations

import hmac
import threading
import time
from typing import Any

from recollect.app import App
from recollect.doors.server.events import Events
from recollect.doors.server.metrics import Metrics
from recollect.doors.serving.errors import to_recollect_error
from recollect.errors import RecollectError


def readiness(app: App) -> dict[str, Any]:
    """Return whether requests can be answered, and how the database, the model and the vector index are."""
    database = "ready" if _database_answers(app) else "away"
    model = "ready" if app.embedder.ready else "failed" if app.embedder.failure else "loading"
    return {
        "ready": database == model == "ready",
        "database": database,
        "model": model,
        "vector_index": app.vectors.state,
    }


def measure(app: App, events: Events, metrics: Metrics, began: float) -> None:
    """Let the metrics tell what waits, and how long after `began` the model was loaded."""
    metrics.gauge("events_waiting", "Events of sessions that wait", lambda: events.waiting)
    metrics.gauge("events_lost", "Events of sessions that did not fit or failed", lambda: events.lost)
    metrics.gauge("outbox_depth", "Memories that the vector index does not have as they are", lambda: _depth(app))
    metrics.gauge("model_ready", "1 when the embedding model is loaded", lambda: float(app.embedder.ready))
    loaded = [0.0]

    def wait() -> None:
        if app.embedder.wait(threading.TIMEOUT_MAX) and app.embedder.ready:
            loaded[0] = time.monotonic() - began

    metrics.gauge("model_load_seconds", "From the start to the loaded model; 0 before", lambda: loaded[0])
    threading.Thread(target=wait, name="recollect-model-watch", daemon=True).start()


def is_metrics_token(bearer: str, wanted: str) -> bool:
    """Say whether a token is the one that is set for the metrics, if one is."""
    return bool(wanted) and hmac.compare_digest(bearer.encode(), wanted.encode())


def _database_answers(app: App) -> bool:
    try:
        app.vectors.waiting()
    except Exception as error:  # noqa: BLE001 - whatever breaks, the answer is that it does not answer
        to_recollect_error(error)
        return False
    return True


def _depth(app: App) -> float:
    """Return how many memories wait, NaN while the database is away."""
    try:
        return float(app.vectors.waiting())
    except RecollectError:
        return float("nan")

"""The numbers of all workers of a replica in one answer, as a scrape reaches a single worker.

Each worker tells its numbers on a Unix socket in a folder that only their user may enter. A label says whose they are.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.parser import text_string_to_metric_families

log = logging.getLogger(__name__)

_LABEL: Final = "worker"
_PATIENCE: Final = 2.0  # seconds for the numbers of another worker, which may hang
_WAITING: Final = 16
_PART: Final = 2**16


class SharedMetrics:
    """The numbers of a worker, which `own` returns in the format of Prometheus, beside those of the others."""

    def __init__(self, own: Callable[[], bytes], folder: Path, number: int) -> None:
        self._own = own
        self._path = folder / str(number)
        self._path.unlink(missing_ok=True)  # of the worker in whose place this process came
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self._path))
        self._listener.listen(_WAITING)
        threading.Thread(target=self._answer_workers, name="recollect-metrics", daemon=True).start()

    def text(self) -> bytes:
        """Return the numbers of every worker that answers, each with the label `worker`."""
        texts = {self._path.name: self._own().decode()}
        for path in self._path.parent.iterdir():
            if path != self._path and (found := _metrics_of_worker(path)):
                texts[path.name] = found
        registry = CollectorRegistry()
        registry.register(_Labelled(texts))
        return generate_latest(registry)

    def _answer_workers(self) -> None:
        """Answer the other workers with the numbers of this worker, until the process ends."""
        while True:
            connection, _ = self._listener.accept()
            with connection:
                connection.settimeout(_PATIENCE)
                try:
                    connection.sendall(self._own())
                except OSError:  # the worker that asked is gone
                    continue


class _Labelled:
    """Collects the numbers of several workers, with a label that says whose each is."""

    def __init__(self, texts: dict[str, str]) -> None:
        self._texts = texts

    def collect(self) -> Iterable[Metric]:
        """Return each metric once, with the samples of every worker."""
        found: dict[str, Metric] = {}
        for worker, text in sorted(self._texts.items()):
            for family in text_string_to_metric_families(text):
                metric = found.setdefault(family.name, Metric(family.name, family.documentation, family.type))
                for sample in family.samples:
                    metric.samples.append(sample._replace(labels={**sample.labels, _LABEL: worker}))
        return found.values()


def _metrics_of_worker(path: Path) -> str:
    """Return the numbers of another worker, an empty text where it does not answer."""
    parts = []
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_PATIENCE)
            connection.connect(str(path))
            while part := connection.recv(_PART):
                parts.append(part)
    except OSError as error:
        log.warning("worker %s does not tell its numbers: %s", path.name, type(error).__name__)
        return ""
    return b"".join(parts).decode()

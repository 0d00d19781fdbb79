"""How long each part of an operation takes: what embeds, searches, loads and writes is timed in passing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, Final

from recollect.app import App

operation: ContextVar[str] = ContextVar("operation", default="background")
"""The operation that runs; what no request asks for is the `background`."""

Spent = Callable[[str, str, float], None]
"""Takes the operation, the stage, and its seconds."""

_STAGES: Final[dict[str, dict[str, str]]] = {
    "embedder": {"read": "embed"},
    "vectors": {
        "nearest": "vectors",
        "cosines": "vectors",
        "late_interaction": "late_interaction",
        "similarities": "vectors",
        "sync_memory": "index",
    },
    "text": {"search": "text", "substring": "text", "similar": "fuzzy"},
    "records": {"load": "load", "ranking_rows": "load", "touch": "usage", "writing": "write"},
    "fusion": {"matches": "fusion"},
}
_BLOCKS: Final = frozenset({"writing"})
"""Methods that return a block, which is timed to its end."""


class _Timed:
    """A part of an app whose methods are timed."""

    def __init__(self, part: Any, stages: dict[str, str], spent: Spent) -> None:
        for name, stage in stages.items():
            method = getattr(part, name)
            timed = _timed_block(method, stage, spent) if name in _BLOCKS else _timed(method, stage, spent)
            setattr(self, name, timed)
        self._part = part

    def __getattr__(self, name: str) -> Any:
        return getattr(self._part, name)


def timed(app: App, spent: Spent) -> App:
    """Return the app with its parts timed."""
    parts: dict[str, Any] = {name: _Timed(getattr(app, name), stages, spent) for name, stages in _STAGES.items()}
    return replace(app, **parts)


def _timed(method: Callable[..., Any], stage: str, spent: Spent) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        began = time.perf_counter()
        try:
            return method(*arguments, **named)
        finally:
            spent(operation.get(), stage, time.perf_counter() - began)

    return call


def _timed_block(method: Callable[..., Any], stage: str, spent: Spent) -> Callable[..., Any]:
    @contextmanager
    def block(*arguments: Any, **named: Any) -> Iterator[Any]:
        began = time.perf_counter()
        try:
            with method(*arguments, **named) as inside:
                yield inside
        finally:
            spent(operation.get(), stage, time.perf_counter() - began)

    return block

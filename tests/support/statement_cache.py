"""Statements that SQLAlchemy has compiled, shared by all stores of a test process.

Each store has an engine of its own, and in a test's short life compiling its statements would cost as much as running
them. What one engine has compiled serves every other of the same dialect and server.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any

from sqlalchemy.engine import Dialect, Engine

_COMPILED: dict[Any, Any] = {}


class _Shared(MutableMapping[Any, Any]):
    """The cache of one engine: a key names its dialect object, in whose place stands what that dialect is."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect

    def _key(self, key: Any) -> Any:
        about, version = type(self._dialect), getattr(self._dialect, "server_version_info", None)
        return (about, version, *key[1:])

    def __getitem__(self, key: Any) -> Any:
        return _COMPILED[self._key(key)]

    def __setitem__(self, key: Any, compiled: Any) -> None:
        _COMPILED[self._key(key)] = compiled

    def __delitem__(self, key: Any) -> None:
        del _COMPILED[self._key(key)]

    def __iter__(self) -> Iterator[Any]:
        return iter(_COMPILED)

    def __len__(self) -> int:
        return len(_COMPILED)


def share() -> None:
    """Let every engine that is made from now on take what another one has compiled."""

    def keep(engine: Engine, cache: object) -> None:
        engine.__dict__["_ours"] = None if cache is None else _Shared(engine.dialect)

    Engine._compiled_cache = property(lambda engine: engine.__dict__["_ours"], keep)  # type: ignore[assignment]

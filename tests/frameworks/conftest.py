"""A connection to a real store in this process, as every framework's memory gets one."""

from __future__ import annotations

from typing import Any

import pytest

from callers import ADA
from recollect import App
from recollect.client.connection import Connection
from recollect.doors.handlers import perform


class Here(Connection):
    """Runs verbs in this process."""

    def __init__(self, app: App) -> None:
        self._app = app

    def operation(self, name: str, fields: dict[str, Any]) -> Any:
        raise AssertionError

    def perform(self, operation: Any, request: Any = None, /, **fields: Any) -> Any:
        return perform(self._app, operation, fields, ADA)


@pytest.fixture
def memory(app: App) -> Connection:
    """Return a connection to a store that nobody has used."""
    return Here(app)

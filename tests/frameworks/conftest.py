"""A connection to a real store in this process, as every framework's memory gets one."""

from __future__ import annotations

from typing import Any

import pytest

from callers import ADA
from recollect import App
from recollect.client.connection import Connection
from recollect.domain.verbs import Verb
from recollect.doors.handlers import perform


class Here(Connection):
    """Runs verbs on a store that the test has open too."""

    def __init__(self, app: App) -> None:
        self._app = app

    def _run_verb(self, verb: Verb, fields: dict[str, Any]) -> Any:
        return perform(self._app, verb.name, fields, ADA)


@pytest.fixture
def memory(app: App) -> Connection:
    """Return a connection to a store that nobody has used."""
    return Here(app)

"""What tests of the server may ask for: one over a store of its own, and what asks it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from recollect import App, Settings
from team_server import Talk, TeamServer


@pytest.fixture
def team(app: App, settings: Settings) -> TeamServer:
    """Return a server of a team over a store nobody has used."""
    return TeamServer(app, settings)


@pytest.fixture
def talk(team: TeamServer) -> Iterator[Talk]:
    """Return what asks that server, which runs."""
    with team.talking() as talk:
        yield talk

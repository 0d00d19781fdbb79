"""What tests of the page may ask for: a daemon and a team's server, each with somebody who looks at its page."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from starlette.testclient import TestClient

from local_access import TOKEN, local_access
from page_visitor import ORIGIN, Visitor
from recollect import App, Settings
from recollect.doors.http.application import Application
from team_server import TeamServer

ADA = {"user": "ada", "team": "crew", "project": "engine"}


@pytest.fixture
def daemon(app: App, settings: Settings) -> Iterator[TestClient]:
    """Return what asks a daemon that runs, without being signed in."""
    with TestClient(Application(local_access(app, settings)), base_url=ORIGIN, raise_server_exceptions=False) as one:
        yield one


@pytest.fixture
def address(daemon: TestClient) -> Callable[[], str]:
    """Return what makes a one-time address for Ada."""

    def make() -> str:
        answer = daemon.post("/page-address", json=ADA, headers={"Authorization": f"Bearer {TOKEN}"})
        url = str(answer.json()["url"])
        return f"{ORIGIN}{url[url.index('/page/') :]}"

    return make


@pytest.fixture
def ada(daemon: TestClient, address: Callable[[], str]) -> Visitor:
    """Return Ada's browser, which is signed in to the daemon."""
    visitor = Visitor(daemon, project="engine")
    assert visitor.open(address()).status_code == 200
    return visitor


@pytest.fixture
def team(app: App, settings: Settings) -> TeamServer:
    """Return a server of a team over a store nobody has used."""
    return TeamServer(app, settings)


@pytest.fixture
def browsing(team: TeamServer) -> Iterator[Callable[..., Visitor]]:
    """Return what signs in a user of that server, which runs."""
    application = Application(team.access)
    with TestClient(application, base_url=ORIGIN, raise_server_exceptions=False) as running:
        clients: list[TestClient] = []

        def browser(user: str, **place: str) -> Visitor:
            client = TestClient(application, base_url=ORIGIN, raise_server_exceptions=False)
            client.portal = running.portal
            clients.append(client)
            visitor = Visitor(client, **({"team": "crew", "project": "engine"} | place))
            if user:
                assert visitor.sign_in(team.tokens[user]).status_code in (200, 403)
            return visitor

        yield browser

"""What tests of signing in may ask for: a real identity provider, and a team's server whose people sign in there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from oidc_provider import BARE_CLIENT, LOGIN_CLIENT, PAGE_CLIENT, PAGE_SECRET, OidcProvider, running
from recollect import App, Settings
from stores import open_app
from team_server import TeamServer

OWN = "http://127.0.0.1:8765"
"""The address by which people reach the server."""
GROUPS = '{"engineers": {"crew": "writer"}, "leads": {"crew": "admin", "dock": "reader"}}'


@pytest.fixture(scope="session")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OidcProvider]:
    """Return a provider that the tests of one process share; each has people of its own."""
    with running(tmp_path_factory.mktemp("provider")) as provider:
        for client in (PAGE_CLIENT, BARE_CLIENT):
            provider.client(client, f"{OWN}/page/sign-in/done", secret=PAGE_SECRET)
        provider.client(LOGIN_CLIENT, "http://127.0.0.1/")
        yield provider


@pytest.fixture
def signing_in(provider: OidcProvider, settings: Settings) -> Settings:
    """Return settings of a server whose people sign in at that provider."""
    changes = {
        "public_address": OWN,
        "oidc_issuer": provider.issuer,
        "oidc_client_id": PAGE_CLIENT,
        "oidc_client_secret": PAGE_SECRET,
        "oidc_login_client_id": LOGIN_CLIENT,
        "oidc_groups": GROUPS,
    }
    return settings.model_copy(update=changes)


@pytest.fixture
def make_server(signing_in: Settings) -> Iterator[Callable[..., TeamServer]]:
    """Return what makes a server over a store of its own, by the clock that the provider has too."""
    with ExitStack() as undo:

        def making(**changes: object) -> TeamServer:
            settings = signing_in.model_copy(update=changes)
            app: App = undo.enter_context(open_app(settings))
            return TeamServer(app, settings)

        yield making


@pytest.fixture
def server(make_server: Callable[..., TeamServer]) -> TeamServer:
    """Return a server whose people sign in at the provider."""
    return make_server()

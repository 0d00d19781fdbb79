"""The server of a team in this process, over a real store: its users, their tokens, and what asks it over ASGI."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from starlette.testclient import TestClient

from recollect import App, Settings
from recollect.auth.administration import administer, initialize
from recollect.auth.authenticate import authenticate
from recollect.doors.http.application import Application
from recollect.doors.http.listening import Listening as AsListening
from recollect.doors.http.server import TeamProcess
from recollect.doors.http.team import TeamAccess


class TeamServer:
    """A server whose deployment has the admin `root`, the team `crew`, and the users `ada`, `bob` and `eve`.

    Ada writes in the team, Bob reads in it, and Eve is in no team.
    """

    def __init__(self, app: App, settings: Settings) -> None:
        self.app = app
        self.access = TeamAccess(app, settings.model_copy(update={"requests_per_minute": 0}))
        self.application = Application(self.access)
        self.tokens = {"root": initialize(app, "root", "root").token}
        self._root = authenticate(app, self.tokens["root"])
        self.administer("add_team", team="crew")
        for name, role in (("ada", "writer"), ("bob", "reader"), ("eve", None)):
            more = {"team": "crew", "role": role} if role else {}
            self.tokens[name] = self.token_of(self.administer("add_user", user=name, **more).token)

    def administer(self, name: str, **fields: Any) -> Any:
        """Run an operation of administration as the first admin."""
        return administer(self.app, name, fields, self._root)

    def token_of(self, invitation: str) -> str:
        """Accept an invitation and return the token that it gives."""
        return str(administer(self.app, "accept_invitation", {}, authenticate(self.app, invitation)).token)

    @contextmanager
    def talking(self) -> Iterator[Talk]:
        """Give what asks the server, which runs meanwhile."""
        with TestClient(self.application, raise_server_exceptions=False) as client:
            yield Talk(client, self.tokens)


class Talk:
    """Asks the server by the token of a user."""

    def __init__(self, client: TestClient, tokens: dict[str, str]) -> None:
        self.client = client
        self._tokens = tokens

    def headers(self, who: str) -> dict[str, str]:
        """Return what a request of a user carries."""
        return {"Authorization": f"Bearer {self._tokens.get(who, who)}"} if who else {}

    def post(self, path: str, body: Any = None, who: str = "ada", **options: Any) -> Any:
        """Send JSON by POST, as Ada in the project `engine` of her team."""
        return self.ask("POST", path, who, json={} if body is None else body, **options)

    def ask(self, method: str, path: str, who: str = "ada", **options: Any) -> Any:
        """Send a request; `params` say another team or project, and `headers` stand beside the token."""
        params = options.pop(
            "params", {"project": "engine"} if path.startswith("/v1/") and "/admin/" not in path else {}
        )
        headers = self.headers(who) | options.pop("headers", {})
        return self.client.request(method, path, params=params, headers=headers, **options)


class Listening(NamedTuple):
    """Where a server listens, and what may be told to end."""

    url: str
    process: TeamProcess


@contextmanager
def listening(team: TeamServer, leaving: float = 0.0, port: int = 0) -> Iterator[Listening]:
    """Give a server that listens on this machine until the block ends, and answers for so many seconds after it."""
    begun = threading.Event()
    process = TeamProcess(team.access, AsListening(host="127.0.0.1", port=port), begun.set)
    process.leaving = leaving
    serving = threading.Thread(target=process.run)
    serving.start()
    try:
        assert begun.wait(60)
        yield Listening(f"http://127.0.0.1:{process.servers[0].sockets[0].getsockname()[1]}", process)
    finally:
        process.should_exit = True
        serving.join()

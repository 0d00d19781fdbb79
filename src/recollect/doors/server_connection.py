"""The connection of one client process to the server of a team: the same calls as to the daemon of this machine."""

from __future__ import annotations

import uuid
from typing import Any

from recollect.domain.verbs import Verb
from recollect.doors.operations import Connection
from recollect.doors.serializers import from_wire
from recollect.doors.server_client import ServerClient
from recollect.server_url import parse
from recollect.settings import Settings


class ServerConnection(Connection):
    """Calls of operations on a server; each carries a key, so that none takes effect twice."""

    def __init__(self, settings: Settings) -> None:
        self.client = client_of(settings)

    def __enter__(self) -> ServerConnection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Do nothing: the server runs already."""

    def close(self) -> None:
        """Do nothing: each call has a connection of its own."""

    def operation(self, name: str, fields: dict[str, Any]) -> Any:
        """Run one operation of the table and return its answer as JSON."""
        key = uuid.uuid4().hex  # reading twice does no harm, and a write is known by it
        return self.client.post(f"/v1/{name}", fields, key)

    def administer(self, operation: Verb, fields: dict[str, Any]) -> Any:
        """Run an operation of administration; raise what it raises, or `ServerUnreachable`."""
        values = operation.request(**fields).model_dump(mode="json", exclude_unset=True)
        return from_wire(operation.answer, self.client.post(f"/v1/admin/{operation.name}", values, narrowed=False))


def client_of(settings: Settings) -> ServerClient:
    """Return what asks the server of the settings; a team is named only where somebody has set one."""
    team = settings.team if "team" in settings.model_fields_set else ""
    url = parse(settings.url, insecure=settings.insecure)
    return ServerClient(url, settings.token, team, settings.project)

"""The connection of one client process: every verb, asked of the daemon of this machine or of the server of a team."""

from __future__ import annotations

import logging
import threading
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache
from typing import Any, Self, TypeVar, overload

from pydantic import TypeAdapter
from pydantic_core import PydanticSerializationError

from recollect.app import App
from recollect.client.daemon import Client, DaemonGone
from recollect.client.launch import about_caller, ensure
from recollect.client.server import ServerClient
from recollect.client.transport import at, persistently
from recollect.client.verbs import Verbs
from recollect.domain import calendar
from recollect.domain.fields import Request, unknown_name
from recollect.domain.requests import Caller
from recollect.domain.verbs import ADMIN_BY_NAME, BY_NAME, Verb
from recollect.errors import InvalidInput, RecollectError
from recollect.server_url import parse
from recollect.settings import Settings

log = logging.getLogger(__name__)

Asked = TypeVar("Asked", bound=Request)
Answer = TypeVar("Answer")


class Connection(Verbs, ABC):
    """Runs verbs, each of which is a method; usable in a `with`, and by several threads.

    Each call to another process carries a key, so that none takes effect twice.
    """

    _closed = False
    _zone = ""
    """The name of the zone in which days without a zone begin; without a name that of this machine."""

    def __enter__(self) -> Self:
        self._check_open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Prepare the daemon or server for the first call, where there is something to prepare."""

    def close(self) -> None:
        """End the use of this connection: a later call raises `InvalidInput`."""
        self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise InvalidInput("memory", "This memory is closed: Open another one with `recollect.connect`")

    @overload
    def perform(self, operation: Callable[[App, Asked, Caller], Answer], request: Asked, /) -> Answer: ...
    @overload
    def perform(self, operation: str, /, **fields: Any) -> Any: ...
    def perform(self, operation: Any, request: Any = None, /, **fields: Any) -> Any:
        """Run a verb: a function of `recollect` with its request, or a name with the fields of the request.

        Raises what the function raises, or `DaemonUnreachable` or `ServerUnreachable`.
        """
        name = operation if isinstance(operation, str) else operation.__name__
        verb = BY_NAME.get(name)
        if verb is None:
            raise InvalidInput("operation", unknown_name("operation", name, BY_NAME))
        verb.check(fields if request is None else request.model_fields_set)
        with calendar.in_zone(calendar.zone_named(self._zone)):
            asked = verb.request(**fields) if request is None else request
        try:
            given = asked.model_dump(mode="json", exclude_unset=True)
        except PydanticSerializationError as error:  # in a field that takes any JSON
            raise InvalidInput(verb.name, f"Invalid {verb.name}: It holds what is no JSON: {error}") from None
        self._check_open()
        return self._run_verb(verb, given)

    @abstractmethod
    def _run_verb(self, verb: Verb, fields: dict[str, Any]) -> Any:
        """Run one verb and return its answer."""


class RemoteConnection(Connection):
    """Runs verbs in another process, which answers with JSON."""

    def _run_verb(self, verb: Verb, fields: dict[str, Any]) -> Any:
        return from_wire(verb.answer, self.operation(verb.name, fields))

    @abstractmethod
    def operation(self, name: str, fields: dict[str, Any]) -> Any:
        """Run one verb and return its answer as JSON."""


class DaemonConnection(RemoteConnection):
    """Calls to the store's daemon, which is started by the first one if needed, and again when it ends meanwhile."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._zone = settings.time_zone
        self._client: Client | None = None
        self._lock = threading.Lock()

    def start(self) -> None:
        """Start the daemon in the background, before the first call."""
        in_background(self._ensured_client)

    def close(self) -> None:
        """End the use of this connection, without waiting for a thread that still starts the daemon."""
        super().close()
        self._client = None

    def operation(self, name: str, fields: dict[str, Any]) -> Any:
        """Run one verb and return its answer as JSON."""
        path, key = at(f"/v1/{name}", **about_caller(self._settings)), uuid.uuid4().hex

        def ask() -> Any:
            client = self._ensured_client()
            try:
                return client.post(path, fields, key)
            except DaemonGone:
                self._forget_client(client)
                raise

        return persistently(ask)

    def _ensured_client(self) -> Client:
        """Return the client of the daemon, which is started when absent."""
        with self._lock:
            if self._client is None:
                self._client = ensure(self._settings)
            return self._client

    def _forget_client(self, client: Client) -> None:
        """Forget this client, unless a newer one has taken its place already."""
        with self._lock:
            if self._client is client:
                self._client = None


class ServerConnection(RemoteConnection):
    """Calls to the server of the settings; a team is named only where somebody has set one."""

    def __init__(self, settings: Settings) -> None:
        self._zone = settings.time_zone
        team = settings.team if "team" in settings.model_fields_set else ""
        url = parse(settings.url, insecure=settings.insecure)
        self.client = ServerClient(url, settings.token, team, settings.project, settings.caller.zone)

    def operation(self, name: str, fields: dict[str, Any]) -> Any:
        """Run one verb and return its answer as JSON."""
        return self.client.post(f"/v1/{name}", fields, uuid.uuid4().hex)

    def administer(self, name: str, **fields: Any) -> Any:
        """Run a verb of administration; raise what it raises, or `ServerUnreachable`."""
        verb = ADMIN_BY_NAME[name]
        values = verb.request(**fields).model_dump(mode="json", exclude_unset=True)
        return from_wire(verb.answer, self.client.post(f"/v1/admin/{name}", values, narrowed=False))


def remote(settings: Settings) -> DaemonConnection | ServerConnection:
    """Return a connection to the server in the settings, or else to the store's daemon, started by the first call."""
    return ServerConnection(settings) if settings.url else DaemonConnection(settings)


def in_background(prepare: Callable[[], object]) -> None:
    """Run `prepare` in a thread. Its error is only logged: the first call meets the same error again."""

    def run() -> None:
        try:
            prepare()
        except RecollectError as error:
            log.warning("%s", error)

    threading.Thread(target=run, name="recollect-prepare", daemon=True).start()


def from_wire(kind: Any, body: Any) -> Any:
    """Return the answer of a verb, built from the JSON that another process of ours sent."""
    return _type_adapter(kind).validate_python(body)


@cache
def _type_adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)

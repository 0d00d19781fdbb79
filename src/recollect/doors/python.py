"""The door for Python programs: `connect` and `connect_async` give each verb as a method, wherever the store is.

In this process, in the daemon of this machine, or on the server of a team: the same calls, answers and errors.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Self, TypedDict, TypeVar, Unpack, overload

from recollect.app import App
from recollect.client.connection import Connection, remote
from recollect.client.verbs import AsyncVerbs
from recollect.domain.fields import Request, unknown_name
from recollect.domain.requests import Caller
from recollect.domain.verbs import Verb
from recollect.errors import InvalidInput, RecollectError
from recollect.settings import Settings
from recollect.store.files import read_only

Asked = TypeVar("Asked", bound=Request)
Answer = TypeVar("Answer")


class Options(TypedDict, total=False):
    """Where the store is, and who asks: settings by their names. What is absent or None is as the environment has it.

    With `daemon=False` the store is opened in this process. A `home` means that folder, whatever server is set.
    """

    home: str | Path | None
    url: str | None
    token: str | None
    user: str | None
    team: str | None
    project: str | None
    daemon: bool | None


def connect(settings: Settings | None = None, **options: Unpack[Options]) -> Connection:
    """Return the memory of a project, with a method for each verb; usable in a `with`.

    Nothing is opened or started before the first call. Raises `InvalidInput` for what cannot be used.
    """
    if wrong := [name for name in options if name not in Options.__annotations__]:
        raise InvalidInput(wrong[0], unknown_name("option", wrong[0], Options.__annotations__))
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    before = settings.model_dump(exclude_unset=True) if settings else {}
    known = Settings(**(before | ({"url": ""} if "home" in given else {}) | given))
    here = not known.url and (not known.daemon or read_only(known.database.parent))
    return StoreConnection(known) if here else remote(known)


def connect_async(settings: Settings | None = None, **options: Unpack[Options]) -> AsyncConnection:
    """Return what `connect` returns with methods to be awaited, in asyncio or trio; usable in an `async with`."""
    return AsyncConnection(connect(settings, **options))


class StoreConnection(Connection):
    """Runs verbs in this process, which owns the store from the first call until `close`."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._zone = settings.time_zone
        self._caller = settings.caller
        self._app: App | None = None
        self._running = 0
        self._changed = threading.Condition()
        self._process = os.getpid()

    def close(self) -> None:
        """Wait for the calls of other threads, then close the store."""
        if self._process != os.getpid():
            return
        with self._changed:
            super().close()
            self._changed.wait_for(lambda: not self._running)
            app, self._app = self._app, None
        if app is not None:
            app.close()

    def _run_verb(self, verb: Verb, fields: dict[str, Any]) -> Any:
        """Run a verb in this process; every error is raised as the other doors raise it."""
        from recollect.doors.handlers import perform
        from recollect.doors.http.messages import to_recollect_error

        with self._open_store() as app:
            try:
                return perform(app, verb.name, fields, self._caller)
            except RecollectError:
                raise
            except Exception as error:  # callers get the error that every other door gives
                raise to_recollect_error(error, "this process") from error

    @contextmanager
    def _open_store(self) -> Iterator[App]:
        """Yield the open store, which is opened first if need be; count the call as running until the block ends."""
        if self._process != os.getpid():
            raise InvalidInput("memory", "This memory was opened before a fork: Open another one in each process")
        from recollect.wiring import open_app

        with self._changed:
            self._check_open()
            if self._app is None:
                self._app = open_app(self._settings)
            app = self._app
            self._running += 1
        try:
            yield app
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()


class AsyncConnection(AsyncVerbs):
    """Runs verbs in threads beside the event loop; usable in an `async with`, and from several event loops.

    Who stops waiting for a call goes on at once: a write that has begun may still take effect. `waiting` is the same
    connection with methods that wait.
    """

    def __init__(self, connection: Connection) -> None:
        self.waiting = connection

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection; where the store is in this process, wait for the calls that run."""
        from anyio import CancelScope
        from anyio.to_thread import run_sync

        with CancelScope(shield=True):
            await run_sync(self.waiting.close)

    @overload
    async def perform(self, operation: Callable[[App, Asked, Caller], Answer], request: Asked, /) -> Answer: ...
    @overload
    async def perform(self, operation: str, /, **fields: Any) -> Any: ...
    async def perform(self, operation: Any, request: Any = None, /, **fields: Any) -> Any:
        """Run a verb as `Connection.perform` does."""
        from anyio.to_thread import run_sync

        run = partial(self.waiting.perform, operation, request, **fields)
        return await run_sync(run, abandon_on_cancel=True)

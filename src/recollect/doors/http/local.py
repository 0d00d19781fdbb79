"""Who asks the daemon of one machine: whoever holds the store's token, as the caller that the client names.

A process of the same user may ask anything; a web page, or another user, nothing.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

import psutil
from starlette.datastructures import QueryParams
from starlette.routing import Route
from starlette.types import Scope
from typing_extensions import override

from recollect import environment
from recollect.app import App
from recollect.auth.administration import administer, operator_principal
from recollect.client.runtime import Runtime
from recollect.domain.enums import OnSecret
from recollect.domain.fields import one_of
from recollect.domain.lifecycle import LifecycleSettings
from recollect.domain.requests import Caller
from recollect.domain.verbs import ADMIN_BY_NAME
from recollect.doors import hook_spool
from recollect.doors.agents.filling import FillingJob
from recollect.doors.handlers import perform
from recollect.doors.http.access import OPEN, Access, Measures, address_of
from recollect.doors.http.asker import Asked, Asker, Asking
from recollect.doors.http.events import Event
from recollect.doors.http.messages import to_recollect_error
from recollect.doors.http.openapi import parameter
from recollect.doors.http.reindex_job import ReindexJob
from recollect.doors.web import AS_ARGUMENT, PAGE
from recollect.doors.web.entry import Browser
from recollect.errors import Forbidden, InvalidInput, ModelMismatch, RecollectError, Unauthorized
from recollect.project_files import NAMES
from recollect.projects import former_names
from recollect.sessions.project_settings import narrowed_settings, settings_in
from recollect.settings import Settings
from recollect.text.prompts import is_typed_by_transcript
from recollect.transfer.remembered import files_from_json
from recollect.transfer.transcripts import extract_transcript

MOST: Final = 2**26  # bytes of one request
_LOCAL_HOSTS: Final = frozenset({"127.0.0.1", "localhost", "::1"})
_WHO: Final = (
    "The address says who asks: `/mcp?user=NAME&project=NAME`, and `&team=NAME` where the team is not `local`."
)

Command = Callable[[dict[str, Any], Callable[[Settings], Callable[..., Any]]], dict[str, Any]]
"""Runs a client's command line by what runs verbs under its settings, and returns what it prints."""


class Misdirected(RecollectError):
    """A request names another host than this machine, as a web page's may."""

    status = 421


class Activity(Measures):
    """When the daemon got its last request and how many are running, by the monotonic clock."""

    def __init__(self) -> None:
        self.requests = 0
        self.idle_before = 0.0
        self._running = 0
        self._last_request = time.monotonic()

    def reset(self) -> None:
        """Count idle time from now on."""
        self._last_request = time.monotonic()

    def admitted(self) -> None:
        """Count a request that was let in."""
        self.idle_before = self.idle_seconds
        self.requests += 1
        self._running += 1

    @override
    def ended(self, label: str, status: int, seconds: float, asker: Asker | None) -> None:
        """Count a request that was let in as ended."""
        if asker is not None:
            self._running -= 1
            self._last_request = time.monotonic()

    @property
    def idle_seconds(self) -> float:
        """Return the seconds since the last request, 0 while a request runs."""
        return 0.0 if self._running else time.monotonic() - self._last_request


class LocalAccess(Access, Asker):
    """Lets in who holds the token, for a host and from an origin of this machine; `stop` ends the process."""

    name: ClassVar = "the memory daemon"
    about: ClassVar = "Who asks, the address says."
    parameters: ClassVar = (
        parameter("user", "User who asks", required=True),
        parameter("project", "Project whose memories are seen", required=True),
        parameter("team", "Team whose memories are seen. Default: `local`"),
        parameter(
            "zone", "Time zone in which a day begins, such as `Europe/Berlin`. Default: that of the daemon's machine"
        ),
        parameter("on_secret", "What becomes of a secret: `block` or `redact`. Default: as the daemon was started"),
        parameter("model", "Embedding model that the client expects. Default: that of the daemon"),
    )
    event_parameters: ClassVar = ()
    client: ClassVar = (
        "client",
        "Folder, variables, options and user of the client, which make its settings",
        {"folder": "/home/ada/engine"},
    )

    def __init__(
        self, app: App, runtime: Runtime, settings: Settings, stop: Callable[[], None], command: Command
    ) -> None:
        self.activity = Activity()
        super().__init__(app, self.activity, lanes=1, workers=64, most=MOST)
        self.runtime = runtime
        self._expected = f"Bearer {runtime.token}".encode()
        self._model = settings.model
        self._folder = settings.folder
        self._stop = stop
        self._run_command = command
        self._reindex_job = ReindexJob(app, stop)
        self._filling = FillingJob(app, settings.folder)
        self.loopback_port: Callable[[], int] = lambda: runtime.port
        """Returns a port of this machine at which a browser reaches the process."""

    async def admit(self, scope: Scope, headers: Mapping[bytes, bytes]) -> None:
        """Let a request with the token in; refuse another host or origin before looking at the token."""
        if _is_tcp(scope) and _host_of(b"//" + headers.get(b"host", b"")) not in _LOCAL_HOSTS:
            raise Misdirected("Host not allowed: use 127.0.0.1 or localhost.")
        if b"origin" in headers and _host_of(headers[b"origin"]) not in _LOCAL_HOSTS:
            raise Forbidden("Cross-origin request rejected.")
        if await self.admit_browser(scope, headers):
            if "browser" in scope.get("state", {}):
                self.activity.admitted()
            return
        if scope["path"] in OPEN:
            return
        if not hmac.compare_digest(headers.get(b"authorization", b""), self._expected):
            raise Unauthorized("Invalid token: `recollect status --token` prints that of this store.")
        self.activity.admitted()
        scope.setdefault("state", {})["asker"] = self

    @override
    def confirm(self) -> None:
        """Do nothing, as the token of the daemon ends with the process."""

    def asking(self, query: QueryParams, also: Collection[str] = ()) -> Asking:
        """Return what gives the caller and the store under the settings that an address names."""
        named = address_of(query, ("user", "team", "project", "zone", "on_secret", "model", *also))
        for name in ("user", "project"):
            if not named.get(name):
                raise InvalidInput(name, f"Missing {name}: {_WHO}")
        caller = Caller(**{name: named[name] for name in ("user", "team", "project", "zone") if name in named})
        app = self._app_for(named.get("model", self._model), named.get("on_secret", ""))
        return lambda _: nullcontext((app, caller))

    def event(self, query: QueryParams, fields: dict[str, Any], client: dict[str, Any]) -> Event:
        """Return what an event is run with under the settings that the client's variables and folder make.

        Those for sessions may only make the daemon's own stricter. A transcript that is about to be cut is read where a
        language model can be asked for it.
        """
        address_of(query, ())
        if not isinstance(folder := client.get("folder"), str):
            raise InvalidInput("folder", "Missing folder: `client` says where the session works")
        user = str(client.get("user", environment.system_user()))
        told = environment.Surroundings(dict(client.get("variables", {})), Path(folder), user)
        with environment.surrounded(told):
            settings = Settings(**dict(client.get("given", {})))
        run = self.serving("")(settings)
        transcript = fields.pop("transcript", None)
        if isinstance(transcript, str) and isinstance(prompt := fields.get("prompt"), str):
            typed = is_typed_by_transcript(Path(transcript), prompt)
            return Event({"folder": folder, "typed": typed} | fields, settings.caller.user, run)
        reads = self.app.capabilities.chat is not None and settings_in(folder, self._lifecycle_for(settings)).capture
        if isinstance(transcript, str) and reads:
            self.app.ask_later(partial(extract_transcript, Path(transcript), run))
        return Event(
            {"folder": folder} | fields,
            settings.caller.user,
            run,
            former_names(Path(folder), settings.home, settings.project),
        )

    def routes(self, post: Callable[..., Route]) -> list[Route]:
        """Return the routes for clients of this machine that concern the process itself; some answer at once."""
        at_once: dict[str, Callable[[Asked], dict[str, Any]]] = {
            "/ping": self._answer_ping,
            "/status": self._answer_status,
            "/stop": self._end_daemon,
            "/progress": self._answer_progress,
            "/page-address": self._page_address,
        }
        in_thread = {"/command": self._answer_command, "/reindex": self._start_reindex, "/take-in": self._take_in}
        return [
            *(post(path, work, wait=False) for path, work in at_once.items()),
            *(post(path, work) for path, work in in_thread.items()),
        ]

    @property
    def idle_seconds(self) -> float:
        """Return the seconds without a request, an event that waits, a running reindex, or something to take in."""
        busy = self._reindex_job.running or self._filling.running or self.events.waiting
        return 0.0 if busy else self.activity.idle_seconds

    def close(self) -> None:
        """Stop the reindex and the import of agents' memories; the next daemon continues both."""
        self._reindex_job.stop()
        self._filling.stop()

    def _answer_ping(self, _: Asked) -> dict[str, Any]:
        """Return process id, version and protocol."""
        return {name: self.runtime.public[name] for name in ("pid", "version", "protocol")}

    def _answer_status(self, _: Asked) -> dict[str, Any]:
        """Return process, start time, memory use, and whether model and vector index are ready."""
        return self.runtime.public | {
            "memory_bytes": psutil.Process().memory_info().rss,
            "requests": self.activity.requests,
            "idle_seconds": round(self.activity.idle_before, 1),
            "model": "ready" if self.app.embedder.ready else self.app.embedder.failure or "loading",
            "vector_index": self.app.vectors.state,
            "remembered": self._filling.message,
            "events_waiting": self.events.waiting,
            "events_lost": self.events.lost + hook_spool.lost(str(self._folder)),
        }

    def _page_address(self, asked: Asked) -> dict[str, Any]:
        """Return a one-time address that lets a browser in as the caller, and from the folder, that the body names.

        Where a browser is given it as an argument, which other users of the machine see, it lets none of those in.
        """
        body = dict(asked.body)
        seen, folder = bool(body.pop(AS_ARGUMENT, False)), str(body.pop("folder", ""))
        caller = Caller(**body)
        place = {"user": caller.user, "team": caller.team, "project": caller.project}
        code = self.browsers.code_for(Browser(lambda: self, place, caller.user, folder=folder), seen=seen)
        return {"url": f"http://127.0.0.1:{self.loopback_port()}{PAGE}/open?code={code}"}

    def _end_daemon(self, _: Asked) -> dict[str, Any]:
        """Finish running requests and stop."""
        self._stop()
        return {"stopping": True}

    def _answer_command(self, asked: Asked) -> dict[str, Any]:
        """Run the command line of a client that imports nothing, and return its output and exit code."""
        return self._run_command(asked.body, self.serving(str(asked.body["request_id"])))

    def _start_reindex(self, asked: Asked) -> dict[str, Any]:
        """Start to update the indexes or to move the store to another model; answer once the model is loaded."""
        where = asked.body.get("models_dir")
        everything = bool(asked.body.get("everything"))
        self._reindex_job.start(str(asked.body["model"]), Path(where) if where else None, everything=everything)
        return self._reindex_job.progress()

    def _take_in(self, asked: Asked) -> dict[str, Any]:
        """Take in files that agents have written; answer at once."""
        return self._filling.add(files_from_json(asked.body["files"]), str(asked.body["user"]), str(asked.body["team"]))

    def _answer_progress(self, _: Asked) -> dict[str, Any]:
        """Return the progress of the reindex."""
        return self._reindex_job.progress()

    def serving(self, request_id: str) -> Callable[[Settings], Callable[..., Any]]:
        """Return what makes, of a client's settings, what runs operations for that client.

        One command may run several: each has an id of its own, which a retry of the command finds again.
        """

        def serving(settings: Settings) -> Callable[..., Any]:
            app = self._app_for(settings.model, str(settings.on_secret))
            app = replace(app, lifecycle=self._lifecycle_for(settings))

            def run(name: str, **fields: Any) -> Any:
                own = request_id and f"{request_id} {name} {sorted(fields.items())}"
                try:
                    if name in ADMIN_BY_NAME:
                        return administer(app, name, fields, operator_principal(settings.user))
                    return perform(app, name, fields, settings.caller, own)
                except Exception as error:  # noqa: BLE001 - the client must get a message for any error
                    raise to_recollect_error(error) from None

            return run

        return serving

    def _lifecycle_for(self, settings: Settings) -> LifecycleSettings:
        """Return the daemon's settings for sessions, made stricter by those of a client."""
        given = settings.model_dump(include=settings.model_fields_set & set(NAMES))
        return narrowed_settings(self.app.lifecycle, given, settings.project)

    def _app_for(self, model: str, on_secret: str) -> App:
        """Return the store with the rule for secrets of a client; raise `ModelMismatch` for another model."""
        if model != self._model and model != self.app.embedder.card.id:
            raise ModelMismatch(
                f"The memory daemon of this store uses the embedding model {self._model}, but {model} is "
                "configured. Set RECOLLECT_MODEL back, or run `recollect reindex` to move the store to the other model."
            )
        if on_secret and on_secret not in tuple(OnSecret):
            raise InvalidInput("on_secret", f"Invalid on_secret: {one_of(OnSecret)}")
        return replace(self.app, on_secret=OnSecret(on_secret)) if on_secret else self.app


def _is_tcp(scope: Scope) -> bool:
    """Return whether the request came over TCP, where a web page may have sent it, and not over the Unix socket."""
    server = scope.get("server")
    return server is not None and server[1] is not None


def _host_of(address: bytes) -> str:
    try:
        return urlsplit(address.decode("latin-1")).hostname or ""
    except ValueError:
        return ""

"""Decides who asks over HTTP, and what they may ask: the local daemon and the server of a team differ only in this."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from anyio.to_thread import run_sync
from starlette.datastructures import QueryParams
from starlette.routing import Route
from starlette.types import Scope

from recollect.app import App
from recollect.doors.http.asker import Asker
from recollect.doors.http.events import Events
from recollect.doors.web.entry import Browser, Browsers, check_origin, cookie_of, is_page
from recollect.errors import (
    Forbidden,
    InvalidInput,
    QuotaFull,
    RecollectError,
    SecretFound,
    TooLarge,
    TooManyRequests,
    Unauthorized,
)

if TYPE_CHECKING:
    from recollect.doors.http.sign_in import SignIn

OPEN: Final = frozenset({"/healthz", "/readyz"})
"""The addresses that are answered to anybody."""
_LONGEST: Final = 200
_NAMES: Final = ("user", "team", "project", "zone")
SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""The bounds by which times are counted, in seconds."""
REFUSALS: Final[dict[type[RecollectError], str]] = {
    SecretFound: "secret",
    Forbidden: "forbidden",
    Unauthorized: "unauthorized",
    TooManyRequests: "rate",
    QuotaFull: "limit",
    TooLarge: "size",
}
"""The errors that count as refusals, each with the kind under which it is counted."""


def refusal_of(error: RecollectError) -> str:
    """Return the kind of refusal that an error is, an empty text for any other error."""
    return REFUSALS.get(type(error), "")


class Measures:
    """Hears how requests end, and keeps nothing of it."""

    def watch(self, name: str, about: str, value: Callable[[], float]) -> None:
        """Take a number that `value` looks up whenever somebody wants to know it."""

    def began(self) -> None:
        """Note that a request has come."""

    def spent(self, operation: str, stage: str, seconds: float) -> None:
        """Note how long a stage of an operation took."""

    def called(self, tool: str, status: int) -> None:
        """Note how a call of a tool by MCP ended."""

    def refused(self, error: RecollectError) -> None:
        """Note an error that a request is answered with."""

    def ended(self, label: str, status: int, seconds: float, asker: Asker | None) -> None:
        """Note how a request ended, and its sender where they were let in."""


class Access(ABC):
    """Lets requests in to a store, and offers more than the operations to those that are let in."""

    name: ClassVar[str]
    """The name of the process in a sentence about an error."""
    about: ClassVar[str]
    """How the sender is known, in the words of the OpenAPI document."""
    parameters: ClassVar[Sequence[dict[str, Any]]]
    """The parameters of an address, as the OpenAPI document describes them."""
    event_parameters: ClassVar[Sequence[dict[str, Any]]]
    """The parameters of the address of an event."""
    client: ClassVar[tuple[str, str, dict[str, Any]]]
    """Under what name an event carries the settings of its client, what stands there, and an example."""
    sign_in: SignIn | None = None
    """The sign-in through an identity provider, None where the settings name none."""
    administration: ClassVar[dict[str, Callable[..., Any]]] = {}
    """The function that runs each verb of administration that may be asked."""

    def __init__(self, app: App, measures: Measures, *, lanes: int, workers: int, most: int) -> None:
        self.app = app
        self.measures = measures
        self.most = most
        """How many bytes a body may have."""
        self.larger: dict[str, int] = {}
        """How many it may have at these addresses."""
        self.events = Events(lanes)
        self.workers = workers
        self.browsers = Browsers()
        self.leaving = False
        """Whether the process was told to end, so that nobody shall send it more."""

    async def admit_browser(self, scope: Scope, headers: Mapping[bytes, bytes]) -> bool:
        """Put who a browser is signed in as into the state of a request for the page, as `asker`, and the `browser`.

        Nobody is there for one that is not signed in. Says whether the request is one of a browser at all. Raises
        `Forbidden` for what another site sends.
        """
        if not is_page(scope["path"]) or b"authorization" in headers:
            return False
        check_origin(scope, headers)
        if name := cookie_of(headers):
            try:
                known = self.browsers.known(name)
                browser = known if known is not None else await run_sync(self.recognized, name)
                scope.setdefault("state", {}).update(asker=await run_sync(browser.asker), browser=browser)
            except Unauthorized:
                self.browsers.leave(name)
        return True

    def recognized(self, name: str) -> Browser:
        """Return a browser that another process has let in; raise `Unauthorized` for one that nobody knows."""
        raise Unauthorized(f"Nobody let in a browser of this name ({len(name)} characters).")

    def challenge(self, path: str) -> str:
        """Return how a request for an address may say who sends it, as the header `WWW-Authenticate` names it."""
        return "Bearer" if self.sign_in is None else self.sign_in.challenge(path)

    def left(self, browser: Browser) -> None:
        """Let a browser that signs out be known no more."""
        self.browsers.leave(browser.name)

    @abstractmethod
    async def admit(self, scope: Scope, headers: Mapping[bytes, bytes]) -> None:
        """Put the sender into the state of a request, as `asker`; it stays absent at addresses that are open to all.

        Raises `Unauthorized` or another refusal.
        """

    def browser(self, token: str) -> Browser:
        """Return what a browser is let in as whose person has pasted a token; raise `Unauthorized`, or `Forbidden`."""
        del token
        raise Unauthorized("Signing in needs a one-time address: `recollect page` opens it.")

    @abstractmethod
    def routes(self, post: Callable[..., Route]) -> list[Route]:
        """Return what is answered beside the operations; `post` makes a route of a path and what works on a request."""


def address_of(query: QueryParams, known: Collection[str], why: str = "") -> dict[str, str]:
    """Return what stands behind `?` in an address; raise `InvalidInput` for anything else than what is `known` there.

    `why` ends the sentence about it.
    """
    given = query.multi_items()
    for name, value in given:
        if name not in known:
            names = ", ".join(f"`{one}`" for one in known)
            takes = f"An address takes {names}{why}." if known else "This address takes none."
            raise InvalidInput(name, f"Unknown parameter: {takes}")
        if name in _NAMES and (len(value) > _LONGEST or "\0" in value or not value.isprintable()):
            raise InvalidInput(name, f"Invalid {name}: Must have at most {_LONGEST} characters, all of them printable")
    if twice := [name for name in _NAMES if [one for one, _ in given].count(name) > 1]:
        raise InvalidInput(twice[0], f"Invalid {twice[0]}: Must be given once")
    return {name: value.strip() for name, value in given}

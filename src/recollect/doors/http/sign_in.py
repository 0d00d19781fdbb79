"""Signing in to a team's server through an identity provider: its tokens as bearers, the page, and what clients read.

Hosted clients of MCP, and `recollect login`, find the provider by the metadata of this resource (RFC 9728).
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import parse_qs, urlencode, urlsplit

from anyio import CapacityLimiter
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from recollect.app import App
from recollect.auth.people import admit_bearer, admit_browser
from recollect.auth.tokens import hashed
from recollect.domain import group_roles
from recollect.doors.http.messages import answered
from recollect.doors.web import PAGE
from recollect.errors import InvalidInput, Unauthorized
from recollect.setting_texts import variable
from recollect.settings import Settings

if TYPE_CHECKING:
    from recollect.auth.identity_provider import IdentityProvider

WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"
"""The address of the metadata of this resource; behind it stands the path of a part, such as `/mcp`."""
CLIENT: Final = "recollect_client_id"
"""The member of the metadata that names the public client of `recollect login`."""
BACK: Final = f"{PAGE}/sign-in/done"
"""The address to which the provider sends a browser back."""
_MCP: Final = "/mcp"
_NEEDED: Final = ("public_address", "oidc_client_id")
_THREADS: Final = 4
_EXPIRED: Final = "This sign-in has ended or was begun in another browser: begin it once more."


class Sent(NamedTuple):
    """Where a browser is sent to sign in, and what it keeps meanwhile."""

    url: str
    kept: str


class SignIn:
    """Signs people in through the provider of the settings, and lets in its access tokens."""

    def __init__(self, app: App, settings: Settings) -> None:
        for name in _NEEDED:
            if not getattr(settings, name):
                raise InvalidInput(name, f"Missing setting {variable(name)}: RECOLLECT_OIDC_ISSUER needs it.")
        self._app = app
        self._settings = settings
        self._rules = group_roles.read(settings.oidc_groups)
        self._own = settings.public_address
        self.provider_name = urlsplit(settings.oidc_issuer).hostname or settings.oidc_issuer
        """The provider as people read it."""
        self.open: Final = frozenset({WELL_KNOWN, WELL_KNOWN + _MCP})
        """The addresses that are answered to anybody."""
        self.secure: Final = self._own.startswith("https://")
        """Whether browsers reach the server by TLS."""
        self.threads: Final = CapacityLimiter(_THREADS)
        """Bounds the threads that may wait for the provider: those of other requests do not."""

    def challenge(self, path: str) -> str:
        """Return the header `WWW-Authenticate` for an address: where a client reads how to sign in (RFC 9728)."""
        part = _MCP if path.rstrip("/") == _MCP else ""
        return f'Bearer resource_metadata="{self._own}{WELL_KNOWN}{part}", scope="{self._settings.oidc_scopes}"'

    def knows(self, bearer: str) -> bool:
        """Say whether an access token was let in before; it may have ended since."""
        return self._app.accounts.access(hashed(bearer)) is not None

    def admit(self, bearer: str) -> None:
        """Let an access token of the provider open what its person may, from its first request on.

        Raises `Unauthorized`, `Forbidden`, or another refusal.
        """
        if not self.knows(bearer):
            person = self._provider.person_of(bearer, self._audiences, self._login_client)
            admit_bearer(self._app, person, bearer, self._rules)

    def begin(self, onward: str) -> Sent:
        """Begin the sign-in of a browser, which then goes on to an address of the page."""
        begun = self._provider.begin(f"{self._own}{BACK}")
        kept = {"state": begun.state, "nonce": begun.nonce, "verifier": begun.verifier, "onward": onward}
        return Sent(begun.url, urlencode(kept))

    def finish(self, query: Mapping[str, str], kept: str) -> tuple[str, str]:
        """Return the token of a browser that comes back from the provider, and the address to which it goes on.

        Raises `Unauthorized` where it began no sign-in, or another, or the provider refuses.
        """
        from recollect.auth.identity_provider import Begun

        known = {name: values[0] for name, values in parse_qs(kept).items()}
        if not known.keys() >= {"state", "nonce", "verifier"}:
            raise Unauthorized(_EXPIRED)
        if not hmac.compare_digest(query.get("state", "").encode(), known["state"].encode()):
            raise Unauthorized(_EXPIRED)
        if query.get("iss", self._settings.oidc_issuer) != self._settings.oidc_issuer or not query.get("code"):
            raise Unauthorized("Sign-in refused: the identity provider let nobody in.")
        begun = Begun("", known["state"], known["nonce"], known["verifier"])
        person = self._provider.finish(f"{self._own}{BACK}", query["code"], begun)
        return admit_browser(self._app, person, self._rules), known.get("onward", "")

    def routes(self) -> list[Route]:
        """Return the addresses at which clients read how to sign in."""
        return [Route(address, self._metadata) for address in sorted(self.open)]

    async def _metadata(self, request: Request) -> Response:
        """Describe this resource as RFC 9728 says; pages of any site may read it."""
        body: dict[str, Any] = {
            "resource": self._own + request.url.path.removeprefix(WELL_KNOWN),
            "authorization_servers": [self._settings.oidc_issuer],
            "scopes_supported": self._settings.oidc_scopes.split(),
            "bearer_methods_supported": ["header"],
            "resource_name": "Recollect",
        }
        if self._login_client:
            body[CLIENT] = self._login_client
        return answered(to_json(body), headers={"Access-Control-Allow-Origin": "*"})

    @property
    def _login_client(self) -> str:
        settings = self._settings
        return settings.oidc_login_client_id or ("" if settings.oidc_client_secret else settings.oidc_client_id)

    @property
    def _audiences(self) -> tuple[str, ...]:
        named = tuple(self._settings.oidc_audiences.split())
        return named or (self._own, f"{self._own}/", self._own + _MCP)

    @cached_property
    def _provider(self) -> IdentityProvider:
        from recollect.auth.identity_provider import IdentityProvider  # takes half a second, which a start spares

        return IdentityProvider(self._settings)

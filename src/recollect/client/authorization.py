"""Signs a person in to a team's server from a terminal, through the identity provider that the server names.

The flow with a browser is that of the MCP SDK, which every hosted client follows too; without a browser on this machine
a code is typed at another machine (RFC 8628). Either ends with a token of the server, and nothing here is refreshed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from html import escape
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
from anyio.to_thread import run_sync
from mcp.client.auth import OAuthClientProvider, OAuthFlowError, OAuthRegistrationError, OAuthTokenError
from mcp.client.auth.utils import build_oauth_authorization_server_metadata_discovery_urls as metadata_urls
from mcp.client.auth.utils import issuers_match
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from mcp.shared.auth_utils import check_resource_allowed
from pydantic import AnyUrl, ValidationError

from recollect.client.server import ServerClient
from recollect.errors import ServerUnreachable, Unauthorized, relayed
from recollect.server_url import ServerUrl

RESOURCE: Final = "/.well-known/oauth-protected-resource"
"""Where a server says which provider signs people in to it."""
CLIENT: Final = "recollect_client_id"
"""The member there that names the client as which this one signs in."""
_ADD_TOKEN: Final = "/v1/admin/add_token"  # noqa: S105 - an address
_SECONDS: Final = 30.0
_PERSON: Final = 300.0  # seconds that a person may take in the browser
_DEVICE: Final = "urn:ietf:params:oauth:grant-type:device_code"
_SLOWER: Final = 5.0  # seconds by which a provider that is asked too often wants the pause to grow
_DONE: Final = "You are signed in. This window can be closed."
_NOBODY: Final = "The identity provider let nobody in."


@dataclass(frozen=True)
class Wanted:
    """The token that shall be made: what it is for, and how many days it is valid."""

    label: str
    days: float


@dataclass
class _Memory:
    """What the SDK keeps of a sign-in: nothing outlives it."""

    client: OAuthClientInformationFull | None
    tokens: OAuthToken | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class Loopback(HTTPServer):
    """Waits on this machine for the browser that the provider sends back."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.came: dict[str, str] = {}
        self.timeout = 1.0

    @property
    def address(self) -> str:
        """Return the address to which the provider sends the browser."""
        return f"http://127.0.0.1:{self.server_port}/"

    def wait(self) -> AuthorizationCodeResult:
        """Return what the browser brings back; raise `Unauthorized` where nobody signs in, or the provider refuses."""
        end = time.monotonic() + _PERSON
        while not self.came and time.monotonic() < end:
            self.handle_request()
        if "code" not in self.came:
            raise Unauthorized(_NOBODY if self.came else "Nobody signed in within five minutes.")
        return AuthorizationCodeResult.model_validate(self.came)


class _Answer(BaseHTTPRequestHandler):
    server: Loopback
    timeout = 2.0  # seconds in which a connection must say something: browsers open some ahead

    def do_GET(self) -> None:
        """Keep the provider's answer where the address holds one, and show the browser a page in any case."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        if asked.keys() & {"code", "error"}:
            self.server.came = asked
        body = f"<!doctype html><title>Recollect</title><p>{escape(_DONE if 'code' in asked else _NOBODY)}</p>".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Log nothing: the address holds a code."""


@dataclass
class SigningIn:
    """The sign-in to a server, which names its provider in its metadata."""

    server: ServerUrl
    wanted: Wanted
    resource: ProtectedResourceMetadata = field(init=False)
    client_id: str = field(init=False)

    def __post_init__(self) -> None:
        try:
            found = ServerClient(self.server, "").get(RESOURCE)
            self.resource = ProtectedResourceMetadata.model_validate(found)
        except (Unauthorized, ValidationError):
            raise Unauthorized(
                f"The server {self.server.name} signs nobody in: ask an admin for an invitation, and accept it with "
                "`recollect token accept`."
            ) from None
        named = str(self.resource.resource)
        if not check_resource_allowed(requested_resource=self.server.name, configured_resource=named):
            raise Unauthorized(f"The server {self.server.name} calls itself {named}: sign in at that address.")
        self.client_id = str(found.get(CLIENT, ""))

    def by_browser(self, opened: Callable[[str], object]) -> dict[str, Any]:
        """Return the new token as the server issues it; `opened` is called with the address for a browser.

        Raises `Unauthorized` where nobody signs in, and what the server reports.
        """
        logging.getLogger("mcp.client.auth").setLevel(logging.CRITICAL)  # it logs what it raises, codes included
        with Loopback() as loopback:
            return anyio.run(self._through_browser, loopback, opened)

    async def _through_browser(self, loopback: Loopback, opened: Callable[[str], object]) -> dict[str, Any]:
        """Run the OAuth flow and return the new token; `opened` is called with the address for the browser."""

        async def redirect(address: str) -> None:
            opened(address)

        async def callback() -> AuthorizationCodeResult:
            return await run_sync(loopback.wait)

        about = OAuthClientMetadata(
            client_name="Recollect",
            redirect_uris=[AnyUrl(loopback.address)],
            token_endpoint_auth_method="none",  # noqa: S106
        )
        known = {"client_id": self.client_id, "token_endpoint_auth_method": "none"}
        client_info = OAuthClientInformationFull.model_validate(known) if self.client_id else None
        flow = OAuthClientProvider(self.server.name, about, _Memory(client_info), redirect, callback)
        async with httpx2.AsyncClient(auth=flow, timeout=_SECONDS) as client:
            try:
                return _issued_token(await client.post(f"{self.server.name}{_ADD_TOKEN}", json=self._token_request))
            except (OAuthFlowError, OAuthRegistrationError, OAuthTokenError) as error:
                raise Unauthorized(f"Nobody was signed in: {_first_line(error)}") from None
            except httpx2.HTTPError as error:
                raise ServerUnreachable(f"The identity provider does not answer: {_first_line(error)}") from None

    def by_code(self, shown: Callable[[str, str], object]) -> dict[str, Any]:
        """Return the new token as the server issues it; `shown` is called with an address and the code to type there.

        Raises `Unauthorized` where nobody signs in or the provider has no such flow, and what the server reports.
        """
        try:
            with httpx2.Client(timeout=_SECONDS) as client:
                headers = {"Authorization": f"Bearer {self._access_token(client, shown)}"}
                return _issued_token(
                    client.post(f"{self.server.name}{_ADD_TOKEN}", json=self._token_request, headers=headers)
                )
        except httpx2.HTTPError as error:
            raise ServerUnreachable(f"The identity provider does not answer: {_first_line(error)}") from None

    def _access_token(self, client: httpx2.Client, shown: Callable[[str, str], object]) -> str:
        """Let a person type a code elsewhere, and return the access token that the provider gives for it."""
        provider = self._find_provider(client)
        endpoint = provider.get("device_authorization_endpoint")
        if endpoint is None or not self.client_id:
            raise Unauthorized("The identity provider takes no codes: sign in on a machine with a browser.")
        scopes = " ".join(self.resource.scopes_supported or ())
        asked = {"client_id": self.client_id, "scope": scopes, "resource": str(self.resource.resource)}
        begun = client.post(str(endpoint), data=asked).raise_for_status().json()
        shown(str(begun.get("verification_uri_complete") or begun["verification_uri"]), str(begun["user_code"]))
        pause, end = float(begun.get("interval", _SLOWER)), time.monotonic() + float(begun["expires_in"])
        asked = {"client_id": self.client_id, "grant_type": _DEVICE, "device_code": str(begun["device_code"])}
        while time.monotonic() < end:
            time.sleep(pause)
            answer = client.post(str(provider["token_endpoint"]), data=asked).json()
            if "access_token" in answer:
                return str(answer["access_token"])
            if answer.get("error") not in ("authorization_pending", "slow_down"):
                break
            pause += _SLOWER if answer["error"] == "slow_down" else 0.0
        raise Unauthorized(_NOBODY)

    def _find_provider(self, client: httpx2.Client) -> dict[str, Any]:
        """Return the metadata of the provider (RFC 8414, OpenID Connect Discovery)."""
        issuer = str(self.resource.authorization_servers[0])
        for address in reversed(metadata_urls(issuer, issuer)):
            answer = client.get(address)
            found = dict(answer.json()) if answer.status_code == httpx2.codes.OK else {}
            if issuers_match(str(found.get("issuer")), issuer):
                return found
        raise ServerUnreachable(f"The identity provider {issuer} does not say how people sign in.")

    @property
    def _token_request(self) -> dict[str, Any]:
        return {"label": self.wanted.label, "days": self.wanted.days}


def _issued_token(answer: httpx2.Response) -> dict[str, Any]:
    """Return the token in an answer of the server; raise the error that it reports."""
    try:
        body = dict(answer.json())
    except ValueError:
        raise ServerUnreachable(f"What answers is no server of Recollect (status {answer.status_code}).") from None
    if answer.status_code != httpx2.codes.OK:
        raise relayed(str(body.get("error")), str(body.get("message")), body)
    return body


def _first_line(error: Exception) -> str:
    return (str(error).partition("\n")[0] or type(error).__name__).rstrip(".") + "."

"""The identity provider of a deployment: finds its endpoints and keys, and proves who a person is.

Only a server that names a provider imports this. Nothing here knows users or teams, and no token is ever logged.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import httpx2
import jwt
from authlib.common.errors import AuthlibBaseError
from authlib.common.security import generate_token
from authlib.integrations.httpx_client import OAuth2Client
from mcp.client.auth.utils import build_oauth_authorization_server_metadata_discovery_urls as metadata_urls
from mcp.shared.auth import OAuthMetadata
from pydantic import ValidationError

from recollect.errors import RecollectError, Unauthorized
from recollect.server_url import parse
from recollect.settings import Settings

log = logging.getLogger(__name__)

_ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures by a private key; a shared secret proves nothing here."""
_REQUIRED: Final = ("exp", "iat", "iss", "sub", "aud")
_KINDS: Final = ("jwt", "at+jwt")
"""What an access token or an ID token calls itself in its header; one that ends sessions has another name."""
_OF_ID_TOKENS: Final = frozenset({"nonce", "at_hash", "c_hash"})
"""The claims of a token that tells a client who signed in, and opens nothing; it may have the same audience."""
_CLIENT_CLAIMS: Final = ("client_id", "azp", "cid", "appid")
"""The claims in which providers name the client that a token was issued to; the first is that of RFC 9068."""
_MCP: Final = "/mcp"
_ENDPOINTS: Final = ("authorization_endpoint", "token_endpoint", "jwks_uri", "userinfo_endpoint")
_SECONDS: Final = 5.0  # for an answer of the provider
_TURN: Final = 2.0  # seconds that a request waits while another asks the provider
_PAUSE: Final = 5.0  # seconds in which a provider that did not answer is not asked for metadata or keys again
_SKEW: Final = 30.0  # seconds by which the clocks of both sides may differ
_KEY_PAUSE: Final = 10.0  # seconds between two looks for a key that is not known yet
_REFUSED: Final = "Sign-in refused: the identity provider vouches for nobody here. Sign in once more."

_AWAY: Final = "The identity provider {} cannot be used; the log of the server says why."
_LACKING: Final = (
    "Sign-in refused: the identity provider does not send the claim `{}`. Its administrator can release this claim, or "
    "RECOLLECT_OIDC_{}_CLAIM names another."
)


class ProviderUnreachable(RecollectError):
    """The identity provider does not answer, or names no endpoints."""

    status = 503
    exit_code = 14


@dataclass(frozen=True, slots=True)
class Person:
    """A person as the provider knows them: its name for them, the name that they shall have here, and their groups."""

    issuer: str
    subject: str
    name: str
    groups: tuple[str, ...]
    issued_at: datetime
    """The moment at which the provider issued the token that proves this."""
    until: datetime
    """The moment at which the token that proves this expires."""
    of_client: bool = False
    """Whether the token was issued to a client for its own use, such as of MCP, and not to the person's sign-in."""


class Begun(NamedTuple):
    """A sign-in that has begun: where the browser goes, and what must come back or be shown when it does."""

    url: str
    state: str
    nonce: str
    verifier: str


class IdentityProvider:
    """One provider, as the settings name it; its metadata and keys are read when they are needed first."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._issuer = settings.oidc_issuer
        self._lock = threading.Lock()
        self._again = 0.0
        self._metadata: dict[str, Any] = {}
        self._keys: jwt.PyJWKClient | None = None

    def person_of(self, access_token: str, audiences: tuple[str, ...], login: str = "") -> Person:
        """Return the person who holds an access token for any of some audiences; `login` is the client of `login`.

        Raises `Unauthorized` for a token that proves nothing, and `ProviderUnreachable`.
        """
        claims = self._proven(access_token, audiences)
        if claims.keys() & _OF_ID_TOKENS or claims.get("typ") == "ID":  # Keycloak names the kind in a claim
            log.warning("an ID token was sent in place of an access token")
            raise Unauthorized(_REFUSED)
        of_client = _is_of_client(claims, audiences, login)
        if claims.keys() >= {self._settings.oidc_name_claim, self._settings.oidc_groups_claim}:
            return replace(self._person(claims), of_client=of_client)
        person = self._person(self._userinfo(access_token, str(claims["sub"])) | claims)
        return replace(person, of_client=of_client)

    def begin(self, redirect_uri: str) -> Begun:
        """Begin the sign-in of a browser, by an authorization code with PKCE; raise `ProviderUnreachable`."""
        nonce, verifier = generate_token(32), generate_token(64)
        with self._client(redirect_uri) as client:
            endpoint = self._known()["authorization_endpoint"]
            url, state = client.create_authorization_url(endpoint, nonce=nonce, code_verifier=verifier)
        return Begun(url, state, nonce, verifier)

    def finish(self, redirect_uri: str, code: str, begun: Begun) -> Person:
        """Exchange the code that a browser brings back for the person who signed in.

        Raises `Unauthorized` for a code that proves nothing, and `ProviderUnreachable`.
        """
        endpoint = self._known()["token_endpoint"]
        try:
            with self._client(redirect_uri) as client:
                found = client.fetch_token(endpoint, code=code, code_verifier=begun.verifier)
        except AuthlibBaseError as error:
            log.warning("the identity provider refused a code: %s", error.error)
            raise Unauthorized(_REFUSED) from None
        except (httpx2.HTTPError, ValueError) as error:
            raise _unreachable(self._issuer, error) from None
        client_id = self._settings.oidc_client_id
        claims = self._proven(str(found.get("id_token", "")), (client_id,))
        if claims.get("nonce") != begun.nonce or claims.get("azp", client_id) != client_id:
            log.warning("an ID token is that of another sign-in")
            raise Unauthorized(_REFUSED)
        if claims.keys() >= {self._settings.oidc_name_claim, self._settings.oidc_groups_claim}:
            return self._person(claims)
        return self._person(self._userinfo(str(found["access_token"]), str(claims["sub"])) | claims)

    def _client(self, redirect_uri: str) -> OAuth2Client:
        settings = self._settings
        return OAuth2Client(
            settings.oidc_client_id,
            settings.oidc_client_secret or None,
            token_endpoint_auth_method="client_secret_basic" if settings.oidc_client_secret else "none",
            scope=settings.oidc_scopes,
            redirect_uri=redirect_uri,
            code_challenge_method="S256",
            timeout=_SECONDS,
        )

    def _proven(self, token: str, audiences: tuple[str, ...]) -> dict[str, Any]:
        """Return the claims of a token that the provider has signed for any of some audiences and that is valid now."""
        try:
            header = jwt.get_unverified_header(token)
            if str(header.get("typ", "JWT")).lower().removeprefix("application/") not in _KINDS:
                raise jwt.InvalidTokenError("another kind of token")
            key = self._key_of(header.get("kid", ""))
            return jwt.decode(
                token,
                key,
                algorithms=_ALGORITHMS,
                audience=audiences,
                issuer=self._issuer,
                leeway=_SKEW,
                options={"require": list(_REQUIRED)},
            )
        except jwt.PyJWTError as error:
            log.warning("a token of the identity provider was refused: %s", type(error).__name__)
            raise Unauthorized(_REFUSED) from None

    def _person(self, claims: dict[str, Any]) -> Person:
        """Return the person of some claims; raise `Unauthorized` where these hold no name."""
        name, groups = claims.get(self._settings.oidc_name_claim), claims.get(self._settings.oidc_groups_claim)
        if not isinstance(name, str) or not name.strip():
            raise Unauthorized(_LACKING.format(self._settings.oidc_name_claim, "NAME"))
        subject = claims.get(self._settings.oidc_subject_claim)
        if not isinstance(subject, str) or not subject:
            raise Unauthorized(
                f"Sign-in refused: the identity provider tells no `{self._settings.oidc_subject_claim}`."
            )
        each = groups if isinstance(groups, list) else [groups] if groups else []
        issued_at, until = (datetime.fromtimestamp(float(claims[at]), UTC) for at in ("iat", "exp"))
        return Person(self._issuer, subject, name.strip(), tuple(map(str, each)), issued_at, until)

    def _userinfo(self, access_token: str, subject: str) -> dict[str, Any]:
        """Return the further claims of a person, none where the provider has none or they are about another."""
        if (endpoint := self._known().get("userinfo_endpoint")) is None:
            return {}
        try:
            answer = httpx2.get(endpoint, headers={"Authorization": f"Bearer {access_token}"}, timeout=_SECONDS)
            found = answer.json() if answer.status_code == httpx2.codes.OK else {}
        except (httpx2.HTTPError, ValueError) as error:
            raise _unreachable(self._issuer, error) from None
        return found if isinstance(found, dict) and found.get("sub") == subject else {}

    def _key_of(self, key_id: str) -> jwt.PyJWK:
        """Return the public key of the provider with this id; keys are kept for five minutes."""
        address = self._known()["jwks_uri"]
        with self._asking():
            if self._keys is None:
                self._keys = jwt.PyJWKClient(address, timeout=_SECONDS, cooldown_duration=_KEY_PAUSE)
            try:
                return self._keys.get_signing_key(key_id)
            except (jwt.PyJWKClientConnectionError, jwt.PyJWKSetError, OSError, ValueError) as error:
                raise _unreachable(self._issuer, error) from None

    def _known(self) -> dict[str, Any]:
        """Return the metadata of the provider, which names its endpoints (RFC 8414, OpenID Connect Discovery)."""
        if not self._metadata:
            with self._asking():
                self._metadata = self._metadata or self._discovered()
        return self._metadata

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """Let a single request at a time ask the provider: where it hangs, the others end soon and free a thread."""
        away = ProviderUnreachable(_AWAY.format(self._issuer))
        if time.monotonic() < self._again or not self._lock.acquire(timeout=_TURN):
            raise away
        try:
            if time.monotonic() < self._again:  # it did not answer whoever was waited for
                raise away
            yield
        except ProviderUnreachable as error:
            if error is not away:
                self._again = time.monotonic() + _PAUSE
            raise
        finally:
            self._lock.release()

    def _discovered(self) -> dict[str, Any]:
        why: Exception = ValueError("no metadata")
        for address in reversed(metadata_urls(self._issuer, self._issuer)):  # first the address of OpenID Connect
            try:
                answer = httpx2.get(address, timeout=_SECONDS).raise_for_status()
                found = dict(answer.json())
                OAuthMetadata.model_validate(found)
                if found["issuer"] == self._issuer and "jwks_uri" in found:
                    for name in found.keys() & set(_ENDPOINTS):
                        parse(str(found[name]).partition("?")[0], insecure=self._settings.insecure)
                    return found
                why = ValueError(f"it calls itself {found['issuer']}")
            except (httpx2.HTTPError, ValueError, ValidationError) as error:
                why = error
        raise _unreachable(self._issuer, why)


def _is_of_client(claims: Mapping[str, Any], audiences: tuple[str, ...], login: str) -> bool:
    """Say whether a token is for MCP alone (RFC 8707), or was issued to another client than that of `login`, if any."""
    named = claims["aud"] if isinstance(claims["aud"], list) else [claims["aud"]]
    ours = [audience.rstrip("/") for audience in named if audience in audiences]
    issued_to = next((claims[name] for name in _CLIENT_CLAIMS if name in claims), login)
    return all(audience.endswith(_MCP) for audience in ours) or bool(login and issued_to != login)


def _unreachable(issuer: str, error: Exception) -> ProviderUnreachable:
    log.warning("the identity provider %s cannot be used: %s", issuer, error)
    return ProviderUnreachable(_AWAY.format(issuer))

"""Signing in from a terminal where no browser is: by a code that a person types elsewhere, or not at all."""

from __future__ import annotations

import socket
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from urllib.parse import urlsplit

import pytest

from oidc_provider import OidcProvider, Visitor
from recollect.auth.authenticate import authenticate
from recollect.client.authorization import Loopback, SigningIn, Wanted
from recollect.errors import Unauthorized
from recollect.server_url import parse
from team_process import free_port
from team_server import TeamServer, listening

DEVICE_CLIENT = "recollect-device"
WANTED = Wanted("login on a machine far away", 7)


@pytest.fixture
def make_sign_in(make_server: Callable[..., TeamServer]) -> Iterator[Callable[..., tuple[TeamServer, SigningIn]]]:
    """Return what serves over TCP, and begins to sign in there."""
    with ExitStack() as undo:

        def making(**changes: object) -> tuple[TeamServer, SigningIn]:
            port = free_port()
            server = make_server(**({"public_address": f"http://127.0.0.1:{port}"} | changes))
            return server, SigningIn(parse(undo.enter_context(listening(server, port=port)).url), WANTED)

        yield making


@pytest.fixture
def by_code(
    provider: OidcProvider, make_sign_in: Callable[..., tuple[TeamServer, SigningIn]]
) -> tuple[TeamServer, SigningIn]:
    """Return a server whose provider takes codes; its tokens for devices name their client, and no resource."""
    provider.client(DEVICE_CLIENT, device=True)
    return make_sign_in(oidc_login_client_id=DEVICE_CLIENT, oidc_audiences=DEVICE_CLIENT)


def decided(provider: OidcProvider, name: str, answer: str) -> Callable[[str, str], None]:
    """Return what lets a person type a code at the provider, in their own time, and decide."""

    def decide(address: str, code: str) -> None:
        assert urlsplit(address).netloc == urlsplit(provider.issuer).netloc
        threading.Thread(target=Visitor(name).decide, args=(address, code, answer)).start()

    return decide


def test_a_code_signs_in(provider: OidcProvider, by_code: tuple[TeamServer, SigningIn]) -> None:
    """What is typed at another machine lets this one in, with a token of the days that were wanted."""
    server, signing_in = by_code
    provider.person("mary", "engineers")
    issued = signing_in.by_code(decided(provider, "mary", "accept"))
    who = authenticate(server.app, issued["token"])
    assert (who.user, dict(who.teams)) == ("mary", {"crew": "writer"})
    [made] = [each for each in server.app.accounts.tokens("mary") if each.label == WANTED.label]
    assert made.expires_at is not None
    assert (made.expires_at - made.created_at).days == WANTED.days


def test_a_code_that_is_refused_signs_nobody_in(provider: OidcProvider, by_code: tuple[TeamServer, SigningIn]) -> None:
    """The person decides."""
    server, signing_in = by_code
    provider.person("mary", "engineers")
    with pytest.raises(Unauthorized):
        signing_in.by_code(decided(provider, "mary", "deny"))
    assert server.app.accounts.tokens("mary") == []


def test_a_server_without_a_provider_says_so(make_sign_in: Callable[..., tuple[TeamServer, SigningIn]]) -> None:
    """The way in that there is is named."""
    with pytest.raises(Unauthorized, match="recollect token accept"):
        make_sign_in(oidc_issuer="")


def test_without_a_client_there_are_no_codes(make_sign_in: Callable[..., tuple[TeamServer, SigningIn]]) -> None:
    """A code needs a client that is registered; the browser's flow may register its own."""
    _, signing_in = make_sign_in(oidc_login_client_id="")
    assert signing_in.client_id == ""
    with pytest.raises(Unauthorized, match="takes no codes"):
        signing_in.by_code(lambda *_: pytest.fail("nobody is asked for a code"))


def test_a_server_that_calls_itself_another_gets_no_token(
    make_sign_in: Callable[..., tuple[TeamServer, SigningIn]],
) -> None:
    """Otherwise it would be sent a token that opens that other server."""
    with pytest.raises(Unauthorized, match="calls itself https://memory"):
        make_sign_in(public_address="https://memory.example")


def test_a_connection_that_says_nothing_keeps_no_browser_waiting() -> None:
    """Browsers open connections ahead, and use another one."""
    with Loopback() as loopback, socket.create_connection(("127.0.0.1", loopback.server_port)):
        asking = threading.Thread(target=urllib.request.urlopen, args=(f"{loopback.address}?code=x&state=y",))
        asking.start()
        assert loopback.wait().code == "x"
        asking.join()

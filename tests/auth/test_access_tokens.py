"""Access tokens of an identity provider as bearers: which are taken, what they open, and when that ends."""

from __future__ import annotations

import base64
import hmac
import json
import logging
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization

from oidc_provider import LOGIN_CLIENT, PAGE_CLIENT, OidcProvider, new_key
from recollect import Draft, remember
from recollect.auth import identity_provider
from recollect.domain.requests import Caller
from recollect.errors import InvalidInput
from recollect.store.sql.accounts import Accounts
from team_server import TeamServer

OWN = "http://127.0.0.1:8765"
NOT_OF_LOGIN: dict[str, dict[str, Any]] = {
    "for MCP": {"aud": f"{OWN}/mcp"},
    "for MCP and elsewhere": {"aud": ["https://elsewhere.example", f"{OWN}/mcp"]},
    "of another client": {"aud": OWN, "client_id": "hosted"},
    "of another client of Okta": {"aud": OWN, "cid": "hosted"},
    "of another client of Keycloak": {"aud": [OWN, f"{OWN}/mcp"], "azp": "hosted"},
}
OF_LOGIN: dict[str, dict[str, Any]] = {
    "of login": {"aud": OWN, "client_id": LOGIN_CLIENT},
    "of login, for both": {"aud": [OWN, f"{OWN}/mcp"], "azp": LOGIN_CLIENT},
    "of nobody": {"aud": OWN},
}


@pytest.fixture
def token(provider: OidcProvider) -> Callable[..., str]:
    """Return what makes an access token for a person, with other claims where they are named."""

    def make(name: str = "grace", groups: tuple[str, ...] = ("engineers",), **claims: Any) -> str:
        usual = {"sub": f"subject of {name}", "aud": f"{OWN}/mcp", "preferred_username": name, "groups": list(groups)}
        return provider.signed(**(usual | claims))

    return make


def test_a_person_is_let_in_with_the_roles_of_their_groups(server: TeamServer, token: Callable[..., str]) -> None:
    """The first request makes their user; they write in the team of their group, and are in no other."""
    with server.talking() as talk:
        grace = token()
        stored = talk.post("/v1/remember", {"content": "Keel laid on Friday"}, grace)
        assert stored.status_code == 200, stored.text
        assert talk.post("/v1/get_memory", {"id": stored.json()["id"]}, "ada").status_code == 200
        listed = {user["user"]: user for user in talk.post("/v1/admin/list_users", {}, "root").json()["users"]}
        assert (listed["grace"]["teams"], listed["grace"]["admin"]) == ({"crew": "writer"}, False)
        assert talk.post("/v1/admin/add_team", {"team": "pirates"}, grace).status_code == 403


def test_a_group_that_is_gone_takes_the_team_along(server: TeamServer, token: Callable[..., str]) -> None:
    """From the next sign-in on nothing of the person opens the team: no older access token, and no token of ours."""
    with server.talking() as talk:
        before = token(groups=("leads",), aud=OWN)
        own = talk.post("/v1/admin/add_token", {}, before).json()["token"]
        project = {"params": {"project": "engine", "team": "crew"}}
        for each in (before, own):
            assert talk.post("/v1/recall", {"query": "keel"}, each, **project).status_code == 200
        after = token(groups=())
        assert talk.post("/v1/recall", {"query": "keel"}, after, params={}).status_code == 200
        for each in (before, own, after):
            assert talk.post("/v1/recall", {"query": "keel"}, each, **project).status_code == 403
        listed = {user["user"]: user for user in talk.post("/v1/admin/list_users", {}, "root").json()["users"]}
        assert listed["grace"]["teams"] == {}


@pytest.mark.parametrize("claims", [*NOT_OF_LOGIN.values(), *OF_LOGIN.values()], ids=[*NOT_OF_LOGIN, *OF_LOGIN])
def test_a_token_for_mcp_administers_nothing(
    server: TeamServer, token: Callable[..., str], claims: dict[str, Any]
) -> None:
    """A token that a client of MCP got writes what its person may; it gives no role, makes no token, and ends none.

    The token of the same person that `login` got does.
    """
    may = claims in OF_LOGIN.values()
    expected = 200 if may else 403
    with server.talking() as talk:
        own = talk.post("/v1/admin/add_token", {}, token("hopper", ("leads",), aud=OWN)).json()["prefix"]
        hopper = token("hopper", ("leads",), **claims)
        crew = {"params": {"team": "crew", "project": "engine"}}
        assert talk.post("/v1/remember", {"content": "Keel laid on Friday"}, hopper, **crew).status_code == 200
        given = {"team": "crew", "user": "eve", "role": "admin"}
        assert talk.post("/v1/admin/grant_team", given, hopper).status_code == expected
        assert talk.post("/v1/admin/add_token", {}, hopper).status_code == expected
        assert (talk.post("/v1/admin/revoke_token", {"prefix": own}, hopper).status_code == 200) is may


def test_a_token_for_mcp_of_an_admin_administers_nothing(server: TeamServer, token: Callable[..., str]) -> None:
    """Not even that of an admin of the deployment."""
    with server.talking() as talk:
        server.administer("link_user", user="root", issuer=server.access.sign_in._settings.oidc_issuer, subject="boss")
        for claims, expected in (({"aud": f"{OWN}/mcp"}, 403), ({"aud": OWN}, 200)):
            boss = token("root", (), sub="boss", **claims)
            assert talk.post("/v1/admin/add_team", {"team": f"fleet{expected}"}, boss).status_code == expected


def test_an_older_token_brings_no_group_back(server: TeamServer, token: Callable[..., str]) -> None:
    """A token that was issued before the group was taken away, and is shown only after that, gives no role again."""
    older = token(groups=("leads",), iat=int(time.time()) - 60)
    project = {"params": {"project": "engine", "team": "crew"}}
    with server.talking() as talk:
        assert talk.post("/v1/recall", {"query": "keel"}, token(groups=()), params={}).status_code == 200
        assert talk.post("/v1/recall", {"query": "keel"}, older, params={}).status_code == 200
        assert talk.post("/v1/recall", {"query": "keel"}, older, **project).status_code == 403
        assert talk.post("/v1/recall", {"query": "keel"}, token(groups=("leads",)), **project).status_code == 200


def test_a_team_that_no_group_rules_is_left_alone(server: TeamServer, token: Callable[..., str]) -> None:
    """Roles that were given by hand in other teams stay."""
    with server.talking() as talk:
        assert talk.post("/v1/recall", {"query": "keel"}, token()).status_code == 200
        server.administer("add_team", team="sail")
        server.administer("grant_team", team="sail", user="grace", role="reader")
        assert talk.post("/v1/recall", {"query": "keel"}, token(groups=()), params={"team": "sail"}).status_code == 200


def test_a_token_may_call_itself_an_access_token(server: TeamServer, token: Callable[..., str]) -> None:
    """Some providers name the kind in the header (RFC 9068)."""
    with server.talking() as talk:
        for kind in ("at+jwt", "application/at+jwt"):
            assert talk.post("/v1/recall", {"query": "keel"}, token(header_typ=kind)).status_code == 200


def _text(part: bytes) -> str:
    return base64.urlsafe_b64encode(part).decode().rstrip("=")


def _unsigned(claims: dict[str, Any], header: dict[str, str]) -> str:
    return f"{_text(json.dumps(header).encode())}.{_text(json.dumps(claims).encode())}"


def _signed_by_secret(claims: dict[str, Any], secret: bytes, key_id: str) -> str:
    body = _unsigned(claims, {"alg": "HS256", "kid": key_id})
    return f"{body}.{_text(hmac.digest(secret, body.encode(), 'sha256'))}"


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://elsewhere.example"},
        {"aud": "https://elsewhere.example"},
        {"aud": PAGE_CLIENT},
        {"aud": None},
        {"sub": None},
        {"exp": None},
        {"iat": None},
        {"exp": int(time.time()) - 3_600},
        {"nbf": int(time.time()) + 3_600},
        {"iat": int(time.time()) + 3_600},
        {"preferred_username": None},
        {"preferred_username": " "},
        {"key": new_key()},
        {"nonce": "of a sign-in"},
        {"at_hash": "of an access token"},
        {"typ": "ID"},
        {"header_typ": "logout+jwt"},
    ],
    ids=lambda claims: " ".join(
        f"{name} {'' if isinstance(value, int) else value}"[:30] for name, value in claims.items()
    ),
)
def test_a_token_that_proves_nothing_is_refused(
    server: TeamServer, token: Callable[..., str], claims: dict[str, Any]
) -> None:
    """Issuer, audience, dates, name, kind and signature each count; nothing of such a person is stored."""
    with server.talking() as talk:
        answer = talk.post("/v1/recall", {"query": "keel"}, token("mallory", **claims))
        assert (answer.status_code, answer.json()["error"]) == (401, "Unauthorized")
        assert "mallory" not in talk.post("/v1/admin/list_users", {}, "root").text


def test_a_signature_is_by_a_private_key(server: TeamServer, provider: OidcProvider, token: Callable[..., str]) -> None:
    """Neither an unsigned token is taken, nor a signature for which the public key would be the shared secret."""
    claims = jwt.decode(token("mallory"), options={"verify_signature": False})
    header = jwt.get_unverified_header(token())
    public = jwt.PyJWKClient(f"{provider.issuer}/.well-known/jwks.json").get_signing_key(header["kid"]).key
    pem = public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    shared = _signed_by_secret(claims, pem, header["kid"])
    with server.talking() as talk:
        none = _unsigned(claims, {"alg": "none", "kid": header["kid"]})
        for forged in (f"{none}.", f"{none}.e30", shared):
            assert talk.post("/v1/recall", {"query": "keel"}, forged).status_code == 401


def test_the_name_of_another_is_not_taken_over(server: TeamServer, token: Callable[..., str]) -> None:
    """Whoever is called at the provider as a user, or somebody with memories, is called here already, is refused."""
    remember(server.app, Draft(content="Mine alone", scope="personal"), Caller(user="hopper", project="engine"))
    with server.talking() as talk:
        for name in ("ada", "hopper"):
            refused = talk.post("/v1/recall", {"query": "mine"}, token(name))
            assert (refused.status_code, f"`{name}`" in refused.json()["message"]) == (403, True)
        assert talk.post("/v1/recall", {"query": "keel"}, token()).status_code == 200
        second = token(sub="another subject with the same name")
        assert talk.post("/v1/recall", {"query": "keel"}, second).status_code == 403


def test_the_command_of_a_refusal_is_safe_to_run(server: TeamServer, token: Callable[..., str]) -> None:
    """An admin copies it into a shell, and the person at the provider may choose their name."""
    server.administer("add_user", user="ada; reboot")
    with server.talking() as talk:
        refused = talk.post("/v1/recall", {"query": "mine"}, token("ada; reboot", sub="auth0|1"))
    message = refused.json()["message"]
    assert "recollect user link 'ada; reboot' http" in message
    assert message.endswith(" 'auth0|1'`.")


def test_a_person_stays_the_same_under_another_name(server: TeamServer, token: Callable[..., str]) -> None:
    """The subject says who it is: what the provider calls them later changes no user."""
    with server.talking() as talk:
        stored = talk.post("/v1/remember", {"content": "Mine alone", "scope": "personal"}, token()).json()["id"]
        renamed = token(preferred_username="ada")
        assert talk.post("/v1/get_memory", {"id": stored}, renamed).status_code == 200


def test_a_disabled_user_stays_out(server: TeamServer, token: Callable[..., str]) -> None:
    """Neither a token from before opens anything, nor a fresh sign-in."""
    with server.talking() as talk:
        before = token()
        assert talk.post("/v1/recall", {"query": "keel"}, before).status_code == 200
        server.administer("disable_user", user="grace")
        assert talk.post("/v1/recall", {"query": "keel"}, before).status_code == 401
        assert talk.post("/v1/recall", {"query": "keel"}, token()).status_code == 403


def test_a_disabled_user_locks_no_writer_out(
    server: TeamServer, token: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their provider may go on issuing tokens: each is refused without the lock that every writer waits for."""
    with server.talking() as talk:
        assert talk.post("/v1/recall", {"query": "keel"}, token()).status_code == 200
        server.administer("disable_user", user="grace")
        monkeypatch.setattr(Accounts, "changing", lambda *_: pytest.fail("the lock was taken"))
        assert talk.post("/v1/recall", {"query": "keel"}, token()).status_code == 403


def test_another_key_is_found(server: TeamServer, provider: OidcProvider, token: Callable[..., str]) -> None:
    """When the provider signs with a new key, that is fetched; what the old one signed is taken no more."""
    with server.talking() as talk:
        assert talk.post("/v1/recall", {"query": "keel"}, token()).status_code == 200
        unused = token()
        server.access.sign_in._provider._keys.cooldown_duration = 0  # type: ignore[union-attr]
        provider.rotate()
        assert talk.post("/v1/recall", {"query": "keel"}, token()).status_code == 200
        assert talk.post("/v1/recall", {"query": "keel"}, unused).status_code == 401


def test_no_token_is_in_a_log(server: TeamServer, token: Callable[..., str], caplog: pytest.LogCaptureFixture) -> None:
    """What is logged names the reason of a refusal, and no part of a token."""
    good, bad = token(), token(aud="https://elsewhere.example")
    with caplog.at_level(logging.DEBUG), server.talking() as talk:
        assert talk.post("/v1/recall", {"query": "keel"}, good).status_code == 200
        assert talk.post("/v1/recall", {"query": "keel"}, bad).status_code == 401
    assert "InvalidAudienceError" in caplog.text
    for each in (good, bad):
        assert each.rpartition(".")[2] not in caplog.text


def test_without_a_provider_no_such_token_is_taken(
    make_server: Callable[..., TeamServer], token: Callable[..., str]
) -> None:
    """A server that names no provider refuses them in the words for any other token, also one that it took before."""
    server = make_server(oidc_issuer="")
    with server.talking() as talk:
        refused = talk.post("/v1/recall", {"query": "keel"}, token())
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
        assert talk.ask("GET", "/.well-known/oauth-protected-resource", "").status_code == 401


@pytest.mark.parametrize("name", ["public_address", "oidc_client_id"])
def test_a_setting_that_is_missing_is_named(make_server: Callable[..., TeamServer], name: str) -> None:
    """A server does not start with half of what signing in needs."""
    with pytest.raises(InvalidInput, match=f"RECOLLECT_{name.upper()}"):
        make_server(**{name: ""})


def test_a_provider_that_is_away_is_named(make_server: Callable[..., TeamServer], token: Callable[..., str]) -> None:
    """Who comes with such a token is told so, and tokens of ours open what they did."""
    server = make_server(oidc_issuer="http://127.0.0.1:9")
    with server.talking() as talk:
        assert talk.post("/v1/recall", {"query": "keel"}, token()).status_code == 503
        assert talk.post("/v1/recall", {"query": "keel"}, "ada").status_code == 200


def test_a_provider_that_hangs_holds_nobody_up(
    make_server: Callable[..., TeamServer], token: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of many requests a single one waits for it; the others end soon, and the next ones at once."""
    monkeypatch.setattr(identity_provider, "_SECONDS", 1.0)
    monkeypatch.setattr(identity_provider, "_TURN", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server = make_server(oidc_issuer=f"http://127.0.0.1:{silent.getsockname()[1]}")
        with server.talking() as talk, ThreadPoolExecutor(8) as threads:
            began = time.monotonic()
            asked = [threads.submit(talk.post, "/v1/recall", {"query": "keel"}, token()) for _ in range(8)]
            assert {each.result().status_code for each in asked} == {503}
            assert time.monotonic() - began < 8.0
            began = time.monotonic()
            assert talk.post("/v1/recall", {"query": "keel"}, token()).status_code == 503
            assert time.monotonic() - began < 1.0


def test_a_provider_that_hangs_keeps_no_thread_from_other_requests(
    make_server: Callable[..., TeamServer], token: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anybody can send what looks like its token: who has one of ours is answered meanwhile, whatever was asked."""
    monkeypatch.setattr(identity_provider, "_SECONDS", 2.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server = make_server(oidc_issuer=f"http://127.0.0.1:{silent.getsockname()[1]}", concurrent_requests=2)
        with server.talking() as talk, ThreadPoolExecutor(8) as threads:
            assert talk.post("/v1/recall", {"query": "keel"}, "ada").status_code == 200
            ways = ("/v1/recall", "/metrics", "/mcp", "/page/sign-in/begin")
            asked = [threads.submit(talk.ask, "GET", way, token() if "page" not in way else "") for way in 2 * ways]
            time.sleep(0.5)
            began = time.monotonic()
            assert talk.post("/v1/recall", {"query": "keel"}, "ada").status_code == 200
            assert time.monotonic() - began < 1.0
            for each in asked:
                each.result()


def test_who_waited_for_a_provider_that_hangs_asks_it_no_more(
    make_server: Callable[..., TeamServer], token: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once it did not answer the first, those who waited for their turn are told so, and do not wait one by one."""
    monkeypatch.setattr(identity_provider, "_SECONDS", 1.0)
    monkeypatch.setattr(identity_provider, "_TURN", 30.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server = make_server(oidc_issuer=f"http://127.0.0.1:{silent.getsockname()[1]}")
        with server.talking() as talk, ThreadPoolExecutor(4) as threads:
            asked = [threads.submit(talk.post, "/v1/recall", {"query": "keel"}, token()) for _ in range(4)]
            assert {each.result().status_code for each in asked} == {503}
        silent.setblocking(False)
        came = 0
        with suppress(BlockingIOError):
            while True:
                silent.accept()[0].close()
                came += 1
        assert came < 4, "each of the four asked by themselves"


def test_keys_that_cannot_be_read_are_asked_for_once_in_a_while(
    server: TeamServer, token: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever sends tokens does not have the provider asked for each of them, also where it answers nonsense."""
    asked: list[str] = []

    def nonsense(keys: jwt.PyJWKClient) -> None:
        asked.append(keys.uri)
        json.loads("<!doctype html>")

    monkeypatch.setattr(jwt.PyJWKClient, "fetch_data", nonsense)
    with server.talking() as talk:
        assert [talk.post("/v1/recall", {"query": "keel"}, token()).status_code for _ in range(3)] == [503] * 3
    assert len(asked) == 1


@pytest.mark.parametrize(
    "text", ["eyJ.e30.x", "eyJhbGciOiJSUzI1NiJ9.e30.x", "eyJhbGciOiJSUzI1NiJ9.!.x", "eyJ" + "a" * 9_000]
)
def test_a_text_that_is_no_token_is_refused(server: TeamServer, text: str) -> None:
    """Whatever looks like a token and is none is refused as any other."""
    with server.talking() as talk:
        assert talk.post("/v1/recall", {"query": "keel"}, text).status_code == 401

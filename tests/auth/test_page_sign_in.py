"""Signing in to the page through an identity provider, and what does not let anybody in."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from starlette.testclient import TestClient

from oidc_provider import BARE_CLIENT, PAGE_SECRET, OidcProvider, Visitor
from recollect.doors.http.application import Application
from recollect.doors.web.entry import COOKIE
from team_server import TeamServer

OWN = "http://127.0.0.1:8765"
BEGIN, DONE = "/page/sign-in/begin", "/page/sign-in/done"


@pytest.fixture
def make_browser() -> Iterator[Callable[[TeamServer], TestClient]]:
    """Return what makes a browser that nobody was let in with."""
    with ExitStack() as undo:

        def making(server: TeamServer) -> TestClient:
            application = Application(server.access)
            client = TestClient(application, base_url=OWN, raise_server_exceptions=False, follow_redirects=False)
            return undo.enter_context(client)

        yield making


@pytest.fixture
def browser(server: TeamServer, make_browser: Callable[[TeamServer], TestClient]) -> TestClient:
    """Return such a browser of the server."""
    return make_browser(server)


def back_from(provider: OidcProvider, browser: TestClient, name: str, *groups: str, onward: str = "/page/") -> str:
    """Begin a sign-in, log in at the provider, and return the address to which it sends the browser back."""
    provider.person(name, *groups)
    begun = browser.get(BEGIN, params={"next": onward})
    assert begun.status_code == 303, begun.text
    return Visitor(name).follow(begun.headers["location"]).removeprefix(OWN)


def test_a_person_signs_in(provider: OidcProvider, browser: TestClient) -> None:
    """The page offers the provider; who comes back is let in with the roles of their groups, where they were going."""
    offered = browser.get("/page/browse").text
    assert "Sign in with 127.0.0.1" in offered
    assert f"{BEGIN}?next=%2Fpage%2Fbrowse" in offered
    done = browser.get(back_from(provider, browser, "lise", "engineers", onward="/page/browse?text=keel"))
    assert (done.status_code, done.headers["location"]) == (303, "/page/browse?text=keel")
    for word in ("HttpOnly", "SameSite=lax", "Path=/page", "Max-Age=43200"):
        assert word in done.headers["set-cookie"]
    assert "crew" in browser.get("/page/team").text
    assert browser.get("/page/browse").status_code == 200


def test_signing_out_ends_the_token(provider: OidcProvider, browser: TestClient, server: TeamServer) -> None:
    """After it the cookie opens nothing, on any replica."""
    assert browser.get(back_from(provider, browser, "lise", "engineers")).status_code == 303
    name = browser.cookies[COOKIE]
    form = server.access.browsers.known(name).form_token  # type: ignore[union-attr]
    assert browser.post("/page/sign-out", data={"token": form}, headers={"Origin": OWN}).status_code == 303
    browser.cookies.set(COOKIE, name)
    assert browser.get("/page/browse").status_code == 401


def test_claims_may_come_from_user_info(
    provider: OidcProvider, make_server: Callable[..., TeamServer], make_browser: Callable[[TeamServer], TestClient]
) -> None:
    """A provider whose ID tokens name no user and no groups is asked for both."""
    browser = make_browser(make_server(oidc_client_id=BARE_CLIENT))
    assert browser.get(back_from(provider, browser, "bertha", "leads")).status_code == 303
    assert "dock" in browser.get("/page/team").text


def test_any_replica_ends_a_sign_in(
    provider: OidcProvider, server: TeamServer, make_browser: Callable[[TeamServer], TestClient]
) -> None:
    """What one process began another ends: all that is needed lies in the browser."""
    first = make_browser(server)
    back = back_from(provider, first, "lise", "engineers")
    second = make_browser(server)
    second.cookies.update(first.cookies)
    assert second.get(back).status_code == 303


def test_a_code_works_once(provider: OidcProvider, browser: TestClient) -> None:
    """Neither with what the browser keeps by then, nor with what it kept before."""
    begun = browser.get(BEGIN)
    kept = dict(browser.cookies)
    provider.person("lise", "engineers")
    back = Visitor("lise").follow(begun.headers["location"]).removeprefix(OWN)
    assert browser.get(back).status_code == 303
    browser.cookies.clear()
    assert browser.get(back).status_code == 401
    browser.cookies.update(kept)
    assert browser.get(back).status_code == 401
    assert COOKIE not in browser.cookies


def test_another_persons_sign_in_is_not_taken(provider: OidcProvider, browser: TestClient) -> None:
    """An address with the code of a sign-in that another browser began lets nobody in: a page may link to it."""
    theirs = back_from(provider, browser, "mallory", "engineers")
    browser.cookies.clear()
    assert browser.get(theirs).status_code == 401
    browser.get(BEGIN)
    answer = browser.get(theirs)
    assert (answer.status_code, COOKIE in browser.cookies) == (401, False)
    assert "begin it once more" in answer.text


@pytest.mark.parametrize("changed", ["state", "nonce", "verifier"])
def test_what_the_browser_keeps_must_fit(provider: OidcProvider, browser: TestClient, changed: str) -> None:
    """State, nonce and PKCE's verifier each bind the answer of the provider to this sign-in."""
    back = back_from(provider, browser, "lise", "engineers")
    [(cookie, kept)] = browser.cookies.items()
    parts = {name: values[0] for name, values in parse_qs(kept.strip('"')).items()}
    browser.cookies.clear()
    browser.cookies.set(cookie, urlencode(parts | {changed: "x" * 64}))
    assert browser.get(back).status_code == 401
    assert COOKIE not in browser.cookies


@pytest.mark.parametrize("lost", ["state", "nonce", "verifier"])
def test_what_the_browser_keeps_must_be_whole(browser: TestClient, lost: str) -> None:
    """A cookie that lacks a part begins no sign-in, whatever else stands in it."""
    browser.get(BEGIN)
    [(cookie, kept)] = browser.cookies.items()
    parts = {name: values[0] for name, values in parse_qs(kept.strip('"')).items() if name != lost}
    browser.cookies.clear()
    browser.cookies.set(cookie, urlencode(parts))
    answer = browser.get(DONE, params={"state": parts.get("state", ""), "code": "x"})
    assert (answer.status_code, COOKIE in browser.cookies) == (401, False)
    assert "begin it once more" in answer.text


@pytest.mark.parametrize(
    "query", ["", "code=x", "error=access_denied&state=STATE", "code=x&state=STATE&iss=https://e.x"]
)
def test_an_answer_without_a_good_code_lets_nobody_in(browser: TestClient, query: str) -> None:
    """What a provider or somebody else sends back is refused in a sentence, and the page offers to sign in."""
    begun = browser.get(BEGIN)
    state = parse_qs(urlsplit(begun.headers["location"]).query)["state"][0]
    answer = browser.get(f"{DONE}?{query.replace('STATE', state)}")
    assert (answer.status_code, COOKIE in browser.cookies) == (401, False)
    assert BEGIN in answer.text


@pytest.mark.parametrize(
    "onward", ["https://evil.example/", "//evil.example", "/page/../..//evil.example", "/page/sign-in/begin", "/v1/x"]
)
def test_a_sign_in_leads_to_no_other_site(provider: OidcProvider, browser: TestClient, onward: str) -> None:
    """Whatever address stands behind `next`, the browser ends on a screen of ours."""
    done = browser.get(back_from(provider, browser, "lise", "engineers", onward=onward))
    assert (done.status_code, done.headers["location"]) == (303, "/page/")


def test_the_name_of_a_user_is_not_taken_over(provider: OidcProvider, browser: TestClient) -> None:
    """Who is called as a user here already is refused, and told why."""
    answer = browser.get(back_from(provider, browser, "ada"))
    assert (answer.status_code, COOKIE in browser.cookies) == (403, False)
    assert "there is a user <code>ada</code>" in answer.text


def test_a_group_that_is_gone_shows_at_the_next_sign_in(provider: OidcProvider, browser: TestClient) -> None:
    """The team is lost with it, in this browser too."""
    assert browser.get(back_from(provider, browser, "lise", "engineers")).status_code == 303
    assert browser.get("/page/browse", params={"team": "crew"}).status_code == 200
    assert browser.get(back_from(provider, browser, "lise")).status_code == 303
    assert browser.get("/page/browse", params={"team": "crew"}).status_code == 403


def test_no_code_and_no_token_is_logged(
    provider: OidcProvider, browser: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    """The server's log holds neither the code of the address nor the secret of the client."""
    with caplog.at_level(logging.INFO, "recollect"):
        back = back_from(provider, browser, "lise", "engineers")
        assert browser.get(back).status_code == 303
        assert browser.get(back).status_code == 401
    code = parse_qs(urlsplit(back).query)["code"][0]
    ours = [record.getMessage() + str(vars(record)) for record in caplog.records if record.name.startswith("recollect")]
    assert ours
    assert not any(secret in line for line in ours for secret in (code, "not-a-secret", browser.cookies[COOKIE]))


def test_over_tls_no_other_host_sets_what_is_kept(
    make_server: Callable[..., TeamServer], make_browser: Callable[[TeamServer], TestClient]
) -> None:
    """The cookie of a sign-in is only of this host, and only sent by TLS."""
    begun = make_browser(make_server(public_address="https://memory.example")).get(BEGIN)
    for word in ("__Host-", "Secure", "Path=/;", "HttpOnly", "SameSite=lax"):
        assert word in begun.headers["set-cookie"]


def test_over_tls_the_browser_shows_its_cookie_by_tls_alone(
    provider: OidcProvider, make_server: Callable[..., TeamServer], make_browser: Callable[[TeamServer], TestClient]
) -> None:
    """A proxy hands the request on in the clear, and a browser that comes from a provider sends no `Origin`."""
    own = "https://memory.example"
    provider.client("recollect-tls", f"{own}{DONE}", secret=PAGE_SECRET)
    provider.person("lise", "engineers")
    browser = make_browser(make_server(public_address=own, oidc_client_id="recollect-tls"))
    begun = browser.get(BEGIN)
    back = Visitor("lise").follow(begun.headers["location"]).removeprefix(own)
    done = browser.get(back, headers={"Cookie": begun.headers["set-cookie"].partition(";")[0]})
    [cookie] = [each for each in done.headers.get_list("set-cookie") if each.startswith(f"{COOKIE}=")]
    assert "Secure" in cookie


def test_without_a_provider_there_is_no_such_address(
    make_server: Callable[..., TeamServer], make_browser: Callable[[TeamServer], TestClient]
) -> None:
    """The page offers only what works."""
    browser = make_browser(make_server(oidc_issuer=""))
    assert "Sign in with" not in browser.get("/page/sign-in").text
    assert [browser.get(address).status_code for address in (BEGIN, DONE)] == [404, 404]

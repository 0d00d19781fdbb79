"""Who gets into the page: by a one-time address or a token, for a while, and never through another site."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

from page_visitor import ORIGIN, Visitor
from recollect import App, Settings
from recollect.auth.administration import administer
from recollect.auth.authenticate import authenticate
from recollect.domain.requests import Caller
from recollect.doors.handlers import perform
from recollect.doors.http.application import Application
from recollect.doors.http.team import TeamAccess
from recollect.doors.web import PAGE, entry
from recollect.doors.web.entry import COOKIE
from recollect.doors.web.site import SCREENS
from team_server import TeamServer


def test_a_one_time_address_lets_in_once(daemon: TestClient, address: Callable[[], str]) -> None:
    """It becomes a cookie that no script reads; the same address lets nobody else in."""
    url = address()
    answer = daemon.get(url, follow_redirects=False)
    cookie = answer.headers["set-cookie"]
    assert (answer.status_code, answer.headers["location"]) == (303, f"{PAGE}/")
    for word in ("HttpOnly", "SameSite=lax", f"Path={PAGE}", "Max-Age=43200"):
        assert word in cookie
    assert daemon.get(f"{PAGE}/").status_code == 200
    daemon.cookies.clear()
    assert daemon.get(url).status_code == 401
    assert "recollect page" in daemon.get(f"{PAGE}/browse").text


def test_a_one_time_address_ends(
    daemon: TestClient, address: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """When its five minutes are over it opens nothing, and so does a cookie when its twelve hours are."""
    with monkeypatch.context() as patched:
        patched.setattr(entry, "CODE_LIFE", 0.0)
        assert daemon.get(address()).status_code == 401
    monkeypatch.setattr(entry, "LIFE", 0.0)
    assert daemon.get(address()).status_code == 401


def test_only_the_token_makes_an_address(daemon: TestClient) -> None:
    """Whoever has not the token of the store gets no address, signed in or not."""
    assert daemon.post("/page-address", json={}).status_code == 401


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:9"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Host": "evil.example"},
    ],
)
def test_another_site_sends_nothing(ada: Visitor, headers: dict[str, str]) -> None:
    """A form with the right token is refused where the browser says that another site sent it."""
    body = {"token": ada.form_token, "do": "hide", "id": "1"}
    assert ada.client.post(f"{PAGE}/act", data=body, headers=headers).status_code in (403, 421)


def test_another_site_may_link_here(ada: Visitor) -> None:
    """A link in another page opens a screen; what that page loads by itself does not."""
    opened = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert ada.client.get(f"{PAGE}/browse", headers=opened).status_code == 200
    framed = opened | {"Sec-Fetch-Dest": "iframe"}
    assert ada.client.get(f"{PAGE}/browse", headers=framed).status_code == 403
    assert ada.client.get(f"{PAGE}/browse", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403


def test_a_form_without_its_token_does_nothing(ada: Visitor) -> None:
    """No screen takes a form that the browser was not given, also with the right cookie and origin."""
    forms = [one.path.replace("{id}", "1") for one in SCREENS if one.act is not None]
    for path in (*forms, "/sign-out"):
        for token in ("", "é"):
            answer = ada.client.post(f"{PAGE}{path}", data={"token": token}, headers={"Origin": ORIGIN})
            assert answer.status_code == 403, (path, token)


def test_a_form_leads_to_no_other_site(ada: Visitor, app: App) -> None:
    """What says where to go on is followed only where it is a screen."""
    made = str(
        perform(app, "remember", {"content": "The keel is iron."}, Caller(user="ada", team="crew", project="engine")).id
    )
    leading = {
        "/page/journal?by=a%2F%2Fb": "/page/journal?by=a%2F%2Fb",
        **dict.fromkeys(("//evil.example/page/", "/page/../v1/stats", "/page/%2e%2e/v1", "/page/open?code=x"), ""),
    }
    for back, to in leading.items():
        answer = ada.post("act", {"do": "pin", "id": made, "back": back}, follow_redirects=False)
        assert answer.headers["location"] == (to or f"/page/memory/{made}?project=engine")


def test_signing_out_ends_the_cookie(ada: Visitor) -> None:
    """The name in the cookie opens nothing any more, even if somebody has kept it."""
    kept = ada.client.cookies[COOKIE]
    assert ada.post("sign-out", {}, follow_redirects=False).status_code == 303
    ada.client.cookies.clear()
    assert ada.client.get(f"{PAGE}/", headers={"Cookie": f"{COOKIE}={kept}"}).status_code == 401


def test_a_token_is_pasted_once(team: TeamServer, browsing: Callable[..., Visitor]) -> None:
    """It is in no cookie and on no page afterwards; a wrong one and an invitation let nobody in."""
    bob = browsing("bob")
    assert bob.get("browse").status_code == 200
    assert team.tokens["bob"] not in str(dict(bob.client.cookies)) + bob.get("team").text
    nobody = browsing("")
    assert nobody.sign_in("rec_wrong").status_code == 401
    invitation = team.administer("add_user", user="new", team="crew").token
    assert nobody.sign_in(invitation).status_code == 403
    assert nobody.get("browse").status_code == 401


def test_a_session_ends_with_its_token(team: TeamServer, browsing: Callable[..., Visitor]) -> None:
    """What is revoked opens nothing from the next request on."""
    bob, ada = browsing("bob"), browsing("ada")
    team.administer("revoke_token", prefix=team.tokens["bob"].split("_")[1])
    team.administer("disable_user", user="ada")
    assert (bob.get("browse").status_code, ada.get("browse").status_code) == (401, 401)


def test_each_replica_knows_a_browser(team: TeamServer, settings: Settings, browsing: Callable[..., Visitor]) -> None:
    """Who has signed in at one is signed in at another, with the same forms; signing out at one is for all."""
    there = TeamAccess(team.app, settings)
    bob = browsing("bob")
    with TestClient(Application(there), base_url=ORIGIN, raise_server_exceptions=False) as client:
        other = Visitor(client, team="crew", project="engine")
        other.client.cookies.set(COOKIE, bob.client.cookies[COOKIE], path=PAGE)
        assert other.get("browse").status_code == 200
        assert other.form_token == bob.form_token
        assert other.post("sign-out", {}, follow_redirects=False).status_code == 303
    assert bob.get("browse").status_code == 401


def test_a_browser_has_a_token_of_its_own(team: TeamServer, browsing: Callable[..., Visitor]) -> None:
    """It is listed with the one that it was made with, ends with that, and opens no page in another browser."""
    bob = browsing("bob")
    name = bob.client.cookies[COOKIE]
    tokens = bob.json("team")["tokens"]
    own = next(one for one in tokens if one["prefix"] == team.tokens["bob"].split("_")[1])
    made = next(one for one in tokens if one["prefix"] == name.split("_")[1])
    assert made["label"] == f"browser of {own['prefix']}"
    assert made["expires_at"] < own["expires_at"]
    assert browsing("").sign_in(name).status_code == 403
    headers = {"Authorization": f"Bearer {name}"}
    assert bob.client.get(f"{PAGE}/browse", params=bob.place, headers=headers).status_code == 200
    team.administer("revoke_token", prefix=own["prefix"])
    assert bob.client.get(f"{PAGE}/browse", params=bob.place, headers=headers).status_code == 401
    assert bob.get("browse").status_code == 401


def test_a_token_ends_only_what_was_made_with_it(team: TeamServer, browsing: Callable[..., Visitor]) -> None:
    """A token of another user whose label names it, and another browser of the same user, go on."""
    ada, bob = browsing("ada"), browsing("bob")
    prefix = team.tokens["bob"].split("_")[1]
    posing = administer(
        team.app, "add_token", {"label": f"browser of {prefix}"}, authenticate(team.app, team.tokens["ada"])
    )
    team.administer("revoke_token", prefix=prefix)
    assert authenticate(team.app, posing.token).user == "ada"
    assert (bob.get("browse").status_code, ada.get("browse").status_code) == (401, 200)
    assert ada.client.get(f"{PAGE}/browse", headers={"Cookie": f"{COOKIE}={posing.token}"}).status_code in (
        200,
        401,
        403,
    )


def test_the_token_of_a_reader_makes_a_reader(team: TeamServer, browsing: Callable[..., Visitor]) -> None:
    """A token that may do less than its user lets in a browser that may do as little."""
    ada = authenticate(team.app, team.tokens["ada"])
    narrow = administer(team.app, "add_token", {"role": "reader"}, ada).token
    visitor = browsing("")
    visitor.sign_in(narrow)
    made = str(perform(team.app, "remember", {"content": "The keel is iron."}, ada.caller("crew", "engine")).id)
    assert visitor.get("browse").status_code == 200
    assert visitor.post("act", {"do": "hide", "id": made}).status_code == 403


@pytest.mark.parametrize(
    "onward", ["//evil.example/page/", "https://evil.example/page/", "/page/\\evil", "/v1/stats", "/page/open?code=x"]
)
def test_signing_in_leads_nowhere_else(team: TeamServer, browsing: Callable[..., Visitor], onward: str) -> None:
    """After signing in one is on the page, whatever the address had said."""
    nobody = browsing("")
    body = {"secret": team.tokens["bob"], "next": onward}
    answer: Any = nobody.client.post(f"{PAGE}/sign-in", data=body, headers={"Origin": ORIGIN}, follow_redirects=False)
    assert answer.headers["location"] == f"{PAGE}/"

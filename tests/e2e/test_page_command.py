"""`recollect page` over a real daemon, which listens on no port before somebody asks for the page."""

from __future__ import annotations

import http.client
from contextlib import closing
from typing import NamedTuple
from urllib.parse import urlsplit

from daemon_place import Place


class Opened(NamedTuple):
    """What a browser gets at an address."""

    status: int
    cookie: str
    body: bytes


def opened(url: str, cookie: str = "") -> Opened:
    """Ask for an address as a browser does, and follow no redirection."""
    parts = urlsplit(url)
    with closing(http.client.HTTPConnection(parts.hostname or "", parts.port or 0, timeout=60)) as connection:
        connection.request("GET", f"{parts.path}?{parts.query}", headers={"Cookie": cookie} if cookie else {})
        answer = connection.getresponse()
        return Opened(answer.status, str(answer.headers["set-cookie"]).partition(";")[0], answer.read())


def test_the_command_opens_the_page_once(place: Place) -> None:
    """Its address lets a browser in, which then sees what was remembered; nobody gets in by it again.

    A second address is of the same port, so that whoever is signed in stays so.
    """
    place.remember("The quokka of the harbour deploys on Fridays.")
    assert not place.published()["port"]
    url = place.json("page")["url"]
    first = opened(url)
    assert first.status == 303
    base = url.partition("/page/")[0]
    assert b"quokka" in opened(f"{base}/page/browse", first.cookie).body
    assert opened(url).status == 401
    assert opened(f"{base}/page/browse").status == 401
    again = place.json("page")["url"]
    assert (again != url, urlsplit(again).port) == (True, urlsplit(url).port)


def test_the_command_of_a_team_says_where_its_page_is(place: Place) -> None:
    """With the address of a server nothing is started here, and the page asks for a token."""
    there = place.changed(url="https://memory.example.com")
    assert there.json("page") == {"url": "https://memory.example.com/page/"}
    assert place.daemons() == []

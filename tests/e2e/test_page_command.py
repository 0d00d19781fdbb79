"""`recollect page` over a real daemon, which listens on no port before somebody asks for the page."""

from __future__ import annotations

import http.client
import os
from contextlib import closing
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from daemon_place import Place
from unprivileged import unprivileged


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


def test_what_another_user_reads_of_the_browsers_arguments_lets_nobody_in(place: Place, tmp_path: Path) -> None:
    """An address that a browser is started with stands in the list of processes, yet works for its own user alone."""
    told = tmp_path / "told"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {told}\n', encoding="utf-8")
    browser.chmod(0o755)
    place.remember("The quokka of the harbour deploys on Fridays.")
    command = Place(place.settings, place.environment | {"BROWSER": str(browser)}, place.links).begin("page")
    assert "works once" in command.communicate(timeout=60)[0]
    url = told.read_text(encoding="utf-8")
    with unprivileged():
        stranger = os.geteuid() != os.getuid()
        first = opened(url)
    assert first.status == (401 if stranger else 303)
    assert opened(url).status == (303 if stranger else 401)

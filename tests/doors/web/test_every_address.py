"""Every address of the page, walked from the list of its routes: who may open it, what it sends, and in which form."""

from __future__ import annotations

import json
from collections.abc import Callable
from html import unescape
from html.parser import HTMLParser
from typing import Any
from urllib.parse import parse_qs

import pytest

from page_screens import screens
from page_store import HOSTILE, fill
from page_visitor import ORIGIN, Visitor
from recollect import App
from recollect.domain.requests import Caller
from recollect.domain.review import Decision
from recollect.doors.web import PAGE
from recollect.doors.web.actions import ACTS
from recollect.doors.web.site import SCREENS
from recollect.doors.web.verbs import perform
from team_server import TeamServer

WORD = "quokka"
ADDRESSES = [one.path.replace("{id}", "1").lstrip("/") for one in SCREENS if one.show is not None]
FORMS = [one.path.replace("{id}", "1").lstrip("/") for one in SCREENS if one.act is not None]
EVERYTHING = {"allow_private": "1", "allow_secret": "1", "everywhere": "1"}
QUERIES = {"act": {"do": "hide", "id": "1"}, "session": {"id": "s1"}, "": {"q": WORD}}


def remembered(app: App, user: str, **fields: Any) -> str:
    """Store a memory of the team's project as a user, and return its id."""
    caller = Caller(user=user, team="crew", project="engine")
    return str(perform(app, "remember", {"content": f"The {WORD} is at the helm."} | fields, caller).id)


class Markup(HTMLParser):
    """What of a page could run something, or load something from elsewhere."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.wrong: list[str] = []
        self.text: list[str] = []
        self._sent_back = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag with anything that runs or loads."""
        self._sent_back = tag == "textarea"
        told = {name: value or "" for name, value in attrs}
        addresses = [told[name] for name in ("href", "src", "action", "data", "formaction") if name in told]
        inline = [name for name in told if name.startswith("on") or name in ("style", "srcdoc")]
        foreign = [one for one in addresses if not one.startswith(("/page/", "#main"))]
        if inline or foreign or tag in ("iframe", "object", "embed", "base", "style"):
            self.wrong.append(f"{tag} {told}")
        if tag == "script" and not told.get("src", "").startswith("/page/static/page.js"):
            self.wrong.append(f"{tag} {told}")

    def handle_data(self, data: str) -> None:
        """Keep what is text, but for what a form sends back as it is stored."""
        if not self._sent_back:
            self.text.append(data)

    def handle_endtag(self, tag: str) -> None:
        """Note where such a field ends."""
        self._sent_back = self._sent_back and tag != "textarea"


def test_nobody_sees_anything_unasked(browsing: Callable[..., Visitor]) -> None:
    """Who is not signed in gets a form to sign in, or an error for programs, and nothing else."""
    nobody = browsing("")
    for path in ADDRESSES:
        answer = nobody.get(path, **QUERIES.get(path, {}))
        assert (answer.status_code, "Sign in" in answer.text) == (401, True), path
        program = nobody.client.get(f"{PAGE}/{path}", headers={"Accept": "application/json"})
        assert (program.status_code, program.json()["error"]) == (401, "Unauthorized"), path


def test_a_person_of_another_team_sees_nothing(team: TeamServer, browsing: Callable[..., Visitor]) -> None:
    """Neither the address of the team nor that of their own shows what the team remembers, on any screen."""
    remembered(team.app, "ada")
    remembered(team.app, "ada", content=f"Ada alone knows the {WORD}.", sensitivity="private")
    item = {"kind": "memory", "where": "ship.md:1", "fields": {"content": f"A second {WORD} is at the helm too."}}
    perform(
        team.app, "import_batch", {"items": [item], "last": True}, Caller(user="ada", team="crew", project="engine")
    )
    for place in ({}, {"team": "", "project": ""}):
        eve = browsing("eve", **place)
        every = [(path, more) for path in ADDRESSES for more in ({}, {"format": "json"}, EVERYTHING)]
        for path, more in every:
            answer = eve.get(path, **QUERIES.get(path, {}) | more)
            for word in ("at the helm", "for a decision</", "Ada alone", ">ada<"):
                assert word not in answer.text, (path, place, more)
            allowed = (200, 403, 404, 422) if place or path == "team" else (403,)
            assert answer.status_code in allowed, (path, place, more, answer.text)


def test_a_reader_writes_nothing(team: TeamServer, browsing: Callable[..., Visitor]) -> None:
    """No form of a reader changes the team's memory, not even one that they had to make up."""
    remembered(team.app, "ada")
    before = dump(team.app)
    bob = browsing("bob")
    fields = {"content": "changed", "scope": "team", "number": "1", "keep": "yes", "id": "1", "user": "bob"}
    choices = {
        "act": tuple(ACTS),
        "inbox": tuple(Decision),
        "team": ("disable_user", "delete_user", "grant_team", "add_team"),
    }
    for path in FORMS:
        for do in choices.get(path, ("",)):
            given = fields | {"do": str(do), "team": "crew", "role": "admin"}
            answer = bob.post(path, given, follow_redirects=False)
            assert answer.status_code in (200, 403, 404, 422), (path, do, answer.text)
    assert bob.post("health", {}).status_code == 403
    assert dump(team.app) == before


def dump(app: App) -> list[Any]:
    """Return what the team's namespaces hold, and the journal about them."""
    ada = Caller(user="ada", team="crew", project="engine")
    listed = perform(app, "list_memories", {"limit": 100, "scope": "project"}, ada)
    lines = perform(app, "read_journal", {"limit": 100, "scope": "project"}, ada).lines
    team = perform(app, "read_journal", {"limit": 100, "scope": "team"}, ada).lines
    return [[(one.id, one.content, one.standing) for one in listed.memories], len(lines), len(team)]


def test_every_answer_says_what_may_be_loaded(ada: Visitor) -> None:
    """The policy has no exception, nothing is kept on the way, and no page may stand in a frame."""
    got = [*ADDRESSES, "sign-in", "open", "static/page.js", "nothing"]
    asked = [*(("get", path) for path in got), *(("post", path) for path in (*FORMS, "sign-in", "nothing", "sign-out"))]
    for method, path in asked:
        answer = ada.get(path) if method == "get" else ada.post(path, {}, follow_redirects=False)
        policy = answer.headers.get("content-security-policy", "")
        assert "default-src 'none'" in policy, (method, path)
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store" or path.startswith("static/")


@pytest.fixture
def harbour(app: App, ada: Visitor) -> dict[str, str]:
    """Return the ids of a store that has something on every screen."""
    caller = Caller(user="ada", team="crew", project="engine")

    def run(name: str, **fields: Any) -> dict[str, str]:
        found = perform(app, name, fields, caller)
        return {"id": str(getattr(found, "id", ""))}

    return fill(run)


def addresses(ids: dict[str, str]) -> list[tuple[str, dict[str, Any]]]:
    """Return each screen with something on it, and with what is hostile wherever it can be."""
    hostile = ids["hostile"]
    split = [address.partition("?") for address in screens(ids).values() if not address.startswith(("team", "changes"))]
    return [
        *((path, parse_qs(query)) for path, _, query in split),
        *(("", {"q": HOSTILE}), ("", {"q": "script link hidden txt.exe"}), ("browse", {"tags": "<b>bold</b>"})),
        *(("browse", {"order": "used", "hidden": "1"}), (f"memory/{hostile}/edit", {}), (f"memory/{hostile}/move", {})),
        *(("act", {"do": "forget", "id": hostile, "back": "javascript:alert(1)"}), ("session", {})),
        *(
            ("browse", {"entity": HOSTILE}),
            ("near", {}),
            ("sessions", {"everywhere": "1"}),
            ("browse", {"after": HOSTILE}),
        ),
        *(("memory/x", {}), ("nothing", {})),
    ]


def test_what_a_memory_says_stays_text(ada: Visitor, harbour: dict[str, str]) -> None:
    """No markup, no link and no turn of direction comes out of a memory or an address, on any screen."""
    shown = 0
    for path, query in addresses(harbour):
        answer = ada.get(path, **query)
        page = Markup(answer.text)
        assert page.wrong == [], path
        text = "".join(page.text)
        if not query.get("q") and "entity" not in query and "after" not in query:
            assert not set("\u202e\u200b\u202c") & set(text), path
        shown += "⟦U+202E⟧" in text
    assert shown >= 5
    assert HOSTILE in unescape(ada.get(f"memory/{harbour['hostile']}/edit").text), "a form sends back what is stored"


def test_two_hundred_thousand_characters_are_shown(app: App, ada: Visitor) -> None:
    """A memory as long as they come is shown whole, and edited whole."""
    content = f"{'x' * 199} " * 1_000
    made = remembered(app, "ada", content=content)
    assert content.strip() in ada.get(f"memory/{made}").text
    assert content.strip() in ada.get(f"memory/{made}/edit").text
    assert len(ada.get("browse").text) < 40_000


def test_every_screen_is_json_too(ada: Visitor, harbour: dict[str, str]) -> None:
    """The same address answers programs: by its query, or by what they accept; errors as well."""
    for path, query in addresses(harbour):
        by_query = ada.get(path, **query, format="json")
        by_header = ada.client.get(f"{PAGE}/{path}", params=ada.place | query, headers={"Accept": "application/json"})
        for answer in (by_query, by_header):
            assert answer.headers["content-type"] == "application/json", path
            assert isinstance(json.loads(answer.text), dict)
            assert "_" not in {name[0] for name in answer.json()}
        assert by_query.status_code == by_header.status_code
    found = ada.json("", q="when do we deploy the harbour service")["recalled"]["memories"][0]
    assert {"similarity", "certainty", "why", "score"} <= found.keys()
    assert "<memory-index>" in ada.json("")["start"]["text"]
    assert ada.json("near")["near"]["pairs"][0].keys() == {"older", "newer", "cosine", "merged"}
    assert ada.json("sessions")["sessions"][0]["prompt"] == "When do we deploy the harbour service?"
    assert ada.json("browse")["counted"]["total"] == len(ada.json("browse", limit="100")["browsed"]["memories"])


def test_a_program_needs_no_cookie(app: App, team: TeamServer, browsing: Callable[..., Visitor]) -> None:
    """A token in the header opens the same addresses, and its forms need no token against forgery."""
    made = remembered(app, "ada")
    headers = {"Authorization": f"Bearer {team.tokens['ada']}", "Accept": "application/json"}
    nobody = browsing("")
    got = nobody.client.get(f"{PAGE}/memory/{made}", params=nobody.place, headers=headers)
    assert got.json()["memory"]["id"] == made
    sent = nobody.client.post(f"{PAGE}/act", data={"do": "hide", "id": made}, params=nobody.place, headers=headers)
    assert sent.json()["message"].startswith(f"Memory {made} is hidden.")
    wrong = headers | {"Authorization": "Bearer rec_none", "Origin": ORIGIN}
    assert nobody.client.get(f"{PAGE}/browse", headers=wrong).status_code == 401

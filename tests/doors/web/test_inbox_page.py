"""The inbox on the page: what waits and why, the number in the navigation, and each decision by one button."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from page_visitor import Visitor
from recollect import App
from recollect.domain.requests import Caller
from recollect.doors.web.verbs import perform
from team_server import TeamServer

ADA = Caller(user="ada", team="crew", project="engine")
TEXTS = ("The pier is long.", "The mole is short.", "The quay is wide.")


@pytest.fixture
def waiting(app: App) -> list[str]:
    """Return the ids of what waits: two from one file, one from another."""
    places = ("piers.md:1", "piers.md:2", "quays.md:1")
    items = [
        {"kind": "memory", "where": at, "fields": {"content": text}} for at, text in zip(places, TEXTS, strict=True)
    ]
    perform(app, "import_batch", {"items": items, "last": True}, ADA)
    return [str(one.id) for one in perform(app, "inbox", {}, ADA).waiting]


def left(app: App) -> list[str]:
    """Return the texts that still wait."""
    return sorted(one.content for one in perform(app, "inbox", {}, ADA).waiting)


def decided(ada: Visitor, do: str, ids: list[str], **more: Any) -> Any:
    """Send a decision."""
    return ada.post("inbox", {"do": do, "id": ids} | more)


def told(visitor: Visitor, path: str = "journal") -> int:
    """Return the number that waits as the navigation tells it."""
    found = re.search(r'>Inbox <span class="badge strong">(\d+)<', visitor.get(path).text)
    return int(found[1]) if found else 0


def test_it_says_what_waits_and_why(ada: Visitor, waiting: list[str]) -> None:
    """Each is there with its text, its source and its reason, on the page and in the JSON of the same address."""
    page = ada.get("inbox").text
    for text in (*TEXTS, "the source is not approved", "an import: piers.md:1", "an import: quays.md:1"):
        assert text in page
    found = ada.json("inbox")["inbox"]
    assert (found["total"], [one["id"] for one in found["waiting"]]) == (3, waiting)
    assert {"since", "why", "origin", "content", "scope"} <= found["waiting"][0].keys()
    assert told(ada) == told(ada, "") == 3
    assert "3 memories wait for a decision" in ada.get("").text


@pytest.mark.parametrize(
    ("do", "stays", "found"),
    [
        ("approve", TEXTS[1:], TEXTS),
        ("reject", TEXTS[1:], TEXTS[1:]),
        ("always", TEXTS[2:], TEXTS),
        ("never", TEXTS[2:], TEXTS[2:]),
    ],
)
def test_one_button_decides(
    app: App, ada: Visitor, waiting: list[str], do: str, stays: tuple[str, ...], found: tuple[str, ...]
) -> None:
    """About this one, or about everything from its source; the number in the navigation follows."""
    assert decided(ada, do, waiting[:1]).status_code == 200
    assert (left(app), told(ada)) == (sorted(stays), len(stays))
    listed = perform(app, "list_memories", {"limit": 10}, ADA).memories
    assert sorted(one.content for one in listed) == sorted(found)


def test_an_edit_approves_in_other_words(app: App, ada: Visitor, waiting: list[str]) -> None:
    """The memory says what was typed, and waits no more."""
    decided(ada, "approve", waiting[:1], content="The pier is 300 metres long.")
    assert ada.json(f"memory/{waiting[0]}")["memory"]["content"] == "The pier is 300 metres long."
    assert left(app) == sorted(TEXTS[1:])


def test_several_are_decided_at_once(app: App, ada: Visitor, waiting: list[str]) -> None:
    """What is rejected waits again after one click; what somebody else has decided meanwhile is counted."""
    perform(app, "decide", {"id": waiting[0], "decision": "approve"}, ADA)
    page = decided(ada, "reject", waiting).text
    assert "2 memories are rejected. 1 did not wait any more." in page
    assert left(app) == []
    ada.post("undo", {"change": page.partition('name="change" value="')[2].partition('"')[0]})
    assert left(app) == sorted(TEXTS[1:])
    assert decided(ada, "approve", waiting[:1]).status_code == 200  # approving what is approved changes nothing
    assert decided(ada, "reject", waiting[:1]).status_code == 404


def test_a_wrong_decision_is_refused(app: App, ada: Visitor, waiting: list[str]) -> None:
    """The error names the field and what it may be; nothing is decided."""
    answer = decided(ada, "burn", waiting)
    assert (answer.status_code, "decision" in answer.text, len(left(app))) == (422, True, 3)
    assert decided(ada, "approve", []).status_code == 422


def test_a_reader_sees_no_buttons(team: TeamServer, browsing: Callable[..., Visitor]) -> None:
    """Who may read sees what waits; only who may write there can decide, whatever is sent."""
    items = [{"kind": "memory", "where": "piers.md:1", "fields": {"content": TEXTS[0]}}]
    perform(team.app, "import_batch", {"items": items, "last": True}, ADA)
    (one,) = (str(each.id) for each in perform(team.app, "inbox", {}, ADA).waiting)
    bob, ada = browsing("bob"), browsing("ada")
    assert TEXTS[0] in bob.get("inbox").text
    assert f"Approve: memory {one}" in ada.get("inbox").text
    assert f"Approve: memory {one}" not in bob.get("inbox").text
    assert decided(bob, "approve", [one]).status_code == 403
    assert left(team.app) == [TEXTS[0]]
    assert decided(ada, "approve", [one]).status_code == 200


def test_a_decision_about_a_source_is_taken_back(team: TeamServer, browsing: Callable[..., Visitor]) -> None:
    """The screen lists the sources that are decided about, and who may decide takes that back by one button."""
    for place in ("piers.md:1", "piers.md:2"):
        items = [{"kind": "memory", "where": place, "fields": {"content": f"It stands in {place}."}}]
        perform(team.app, "import_batch", {"items": items, "last": True}, ADA)
        for one in perform(team.app, "inbox", {}, ADA).waiting:
            perform(team.app, "decide", {"id": str(one.id), "decision": "always"}, ADA)
    bob, ada = browsing("bob"), browsing("ada")
    fields = {"do": "drop", "source": "import:piers.md", "scope": "project"}
    assert [one["decision"] for one in bob.json("inbox")["rules"]] == ["always"]
    assert "Remove the rule for import:piers.md" in ada.get("inbox").text
    assert "Remove the rule" not in bob.get("inbox").text
    assert bob.post("inbox", fields).status_code == 403
    assert "waits in the inbox" in ada.post("inbox", fields).text
    assert ada.json("inbox")["rules"] == []
    assert "has no rule" in ada.post("inbox", fields).text

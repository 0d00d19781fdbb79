"""The screen of near duplicates: one click decides about a pair, and one click takes that back."""

from __future__ import annotations

from collections.abc import Callable
from html import unescape
from typing import Any

import pytest

from page_store import HOSTILE
from page_visitor import Visitor
from recollect import App
from recollect.domain.requests import Caller
from recollect.doors.handlers import perform

ADA = Caller(user="ada", team="crew", project="engine")
OLD = "Calls to the image service have a timeout of five seconds."
NEW = "Calls to the image service have a timeout of eight seconds since May."


@pytest.fixture
def pair(app: App) -> dict[str, str]:
    """Return the ids of two memories that say nearly the same."""
    made = {}
    for name, text, tags in (("older", OLD, ["api"]), ("newer", NEW, ["images"])):
        made[name] = str(perform(app, "remember", {"content": text, "tags": tags}, ADA).id)
    return made


def found(app: App, number: str) -> Any:
    """Return a memory as it is stored."""
    return perform(app, "get_memory", {"id": number}, ADA)


def undo(ada: Visitor, page: str) -> None:
    """Press the button that takes the last change back."""
    ada.post("undo", {"change": page.partition('name="change" value="')[2].partition('"')[0]})


@pytest.mark.parametrize(("do", "stays"), [("newer", "newer"), ("older", "older")])
def test_one_of_a_pair_is_kept(app: App, ada: Visitor, pair: dict[str, str], do: str, stays: str) -> None:
    """The other is hidden as replaced; taken back, both are as they were."""
    [goes] = pair.keys() - {stays}
    before = {
        name: found(app, number).model_dump(exclude={"accessed_count", "last_accessed_at"})
        for name, number in pair.items()
    }
    page = ada.post("near", pair | {"do": do}).text
    assert f"Memory {pair[stays]} stays as it is." in page
    assert str(found(app, pair[goes]).superseded_by) == pair[stays]
    assert found(app, pair[stays]).content == (NEW if do == "newer" else OLD)
    assert "No two memories here say nearly the same." in page
    undo(ada, page)
    for name, number in pair.items():
        assert found(app, number).model_dump(exclude={"accessed_count", "last_accessed_at"}) == before[name]


def test_a_pair_is_merged(app: App, ada: Visitor, pair: dict[str, str]) -> None:
    """The newer one says what the form says, with the labels of both; taken back, both say what they said."""
    text = ada.json("near")["near"]["pairs"][0]["merged"]
    page = ada.post("near", pair | {"do": "merge", "content": text}).text
    assert "says now what both said" in page
    merged = found(app, pair["newer"])
    assert (OLD in merged.content, NEW in merged.content, merged.tags) == (True, True, ("api", "images"))
    assert str(found(app, pair["older"]).superseded_by) == pair["newer"]
    undo(ada, page)
    assert (found(app, pair["newer"]).content, found(app, pair["newer"]).tags) == (NEW, ("images",))
    assert (found(app, pair["older"]).content, found(app, pair["older"]).superseded_by) == (OLD, None)


def test_the_merged_text_can_be_put_in_other_words(app: App, ada: Visitor, pair: dict[str, str]) -> None:
    """What a person typed over the proposal is what is stored; an empty text is refused, and nothing is changed."""
    assert ada.post("near", pair | {"do": "merge", "content": ""}).status_code == 422
    assert found(app, pair["older"]).superseded_by is None
    ada.post("near", pair | {"do": "merge", "content": "The image service answers in eight seconds, once five."})
    assert found(app, pair["newer"]).content == "The image service answers in eight seconds, once five."


def test_a_pair_is_told_apart(ada: Visitor, pair: dict[str, str]) -> None:
    """Two that are no duplicates are not shown again, until that is taken back."""
    page = ada.post("near", pair | {"do": "apart"}).text
    assert "No two memories here say nearly the same." in page
    undo(ada, page)
    assert ada.json("near")["near"]["total"] == 1


def test_a_form_of_another_sign_in_decides_nothing(app: App, ada: Visitor, pair: dict[str, str]) -> None:
    """Without the token of the forms, or with a wrong word, both stay as they are."""
    assert ada.post("near", pair | {"do": "newer", "token": "x"}).status_code == 403
    for wrong in ({"do": "all"}, {"do": "newer", "older": "999"}, {"do": "newer", "older": pair["newer"]}):
        assert ada.post("near", pair | wrong).status_code in (404, 422)
    assert found(app, pair["older"]).superseded_by is None


def test_a_reader_sees_no_pair(app: App, browsing: Callable[..., Visitor], pair: dict[str, str]) -> None:
    """Who may only read is shown nothing to decide, and decides nothing."""
    assert browsing("ada").json("near")["near"]["total"] == 1
    bob = browsing("bob")
    assert bob.json("near")["near"]["total"] == 0
    for do in ("newer", "older", "apart", "merge"):
        assert bob.post("near", pair | {"do": do, "content": "x"}).status_code == 403
    assert found(app, pair["newer"]).content == NEW


def test_both_texts_stay_text(app: App, ada: Visitor) -> None:
    """Markup and hidden characters of both are shown as text, in the differences too."""
    for end in ("once.", "twice."):
        perform(app, "remember", {"content": f"{HOSTILE} was seen {end}"}, ADA)
    page = ada.get("near").text
    assert "<script>document" not in page
    shown = unescape(page.partition("<textarea")[0])
    assert "⟦U+202E⟧" in shown
    assert "\u202e" not in shown

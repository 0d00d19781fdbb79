"""The search page: likely hits stand in sight, and what seldom answers is folded below them."""

from __future__ import annotations

import pytest

from page_visitor import Visitor
from recollect import App
from recollect.domain.requests import Caller
from recollect.doors.handlers import perform

ADA = Caller(user="ada", team="crew", project="engine")
FOLD = '<details class="closest"'
LABEL = "<summary>Closest, but probably not relevant</summary>"


@pytest.fixture
def notes(app: App) -> None:
    """Store what answers when releases are made, and what is of days too."""
    for text in ("Deploys go out on Tuesday", "Invoices are sent by post on Fridays", "The mascot is a quokka"):
        perform(app, "remember", {"content": text}, ADA)


@pytest.mark.usefixtures("notes")
def test_weak_hits_are_folded(ada: Visitor) -> None:
    """A hit below 20 % is not counted, and stands in a closed fold below the likely one."""
    page = ada.get("", q="when do we ship").text
    above, _, folded = page.partition(LABEL)
    assert "1 memory found." in above
    assert ("Deploys go out" in above, "Invoices are sent" in above) == (True, False)
    assert "Invoices are sent" in folded
    assert f"{FOLD}>" in page


@pytest.mark.usefixtures("notes")
def test_the_nearest_is_shown_where_nothing_answers(ada: Visitor) -> None:
    """Where no hit is likely, the fold is open."""
    page = ada.get("", q="banana bread").text
    assert "Nothing relevant found." in page
    assert f"{FOLD} open>" in page
    assert LABEL in page


@pytest.mark.usefixtures("notes")
def test_likely_hits_alone_have_no_fold(ada: Visitor) -> None:
    """A search whose hits are all likely shows nothing folded."""
    assert LABEL not in ada.get("", q="quokka").text

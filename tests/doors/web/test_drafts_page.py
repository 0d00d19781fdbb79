"""What a hook noted is marked as a draft, until somebody keeps it."""

from __future__ import annotations

from page_visitor import Visitor
from recollect import App
from recollect.domain.requests import Caller
from recollect.doors.handlers import perform

ADA = Caller(user="ada", team="crew", project="engine")
BADGE = '">draft</span>'


def test_a_draft_has_a_badge_until_it_is_pinned(app: App, ada: Visitor) -> None:
    """The page tells a draft from what was stored, and a pin makes it a memory like any other."""
    noted = perform(app, "remember", {"content": "The mast is pine.", "source": "hook"}, ADA).id
    stored = perform(app, "remember", {"content": "The keel is iron."}, ADA).id
    assert BADGE in ada.get(f"memory/{noted}").text
    assert BADGE not in ada.get(f"memory/{stored}").text
    perform(app, "pin", {"id": noted}, ADA)
    assert BADGE not in ada.get(f"memory/{noted}").text

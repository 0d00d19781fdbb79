"""The part of the team's screen about limits: what is used is for members, what is set for admins."""

from __future__ import annotations

from collections.abc import Callable

from page_visitor import Visitor
from team_server import TeamServer


def test_an_admin_sets_limits_and_a_member_sees_them(team: TeamServer, browsing: Callable[..., Visitor]) -> None:
    """The form of an admin sets limits and clears them; a member sees what is used, and has no such form."""
    root, ada = browsing("root", team="", project=""), browsing("ada")
    fields = {"do": "set_limits", "kind": "user", "whose": "ada", "memories": "1200", "bytes": ""}
    assert root.post("team", fields).status_code == 200
    shown = root.json("team")
    assert [(one["name"], one["resource"], one["most"]) for one in shown["limits"]] == [("ada", "memories", 1200)]
    assert "1,200" in root.get("team").text
    page = ada.get("team").text
    assert ("1,200" in page, 'value="set_limits"' in page) == (True, False)
    seen = ada.json("team")
    assert [holder["name"] for holder in seen["usage"]] == ["ada", "crew"]
    assert (seen["usage"][0]["uses"][0]["most"], seen["limits"]) == (1200, [])
    assert ada.post("team", fields | {"memories": "9000"}).status_code == 403
    assert root.post("team", {"do": "clear_limits", "kind": "user", "whose": "ada"}).status_code == 200
    assert root.json("team")["limits"] == []

"""The form of the team's screen that deletes a user: first it shows what that would do, and only then it does it."""

from __future__ import annotations

from collections.abc import Callable

from page_visitor import Visitor
from run_operations import add
from team_server import TeamServer


def test_a_user_is_deleted_after_a_look(team: TeamServer, browsing: Callable[..., Visitor]) -> None:
    """The first form changes nothing and carries the choice along; the second one deletes, and ends the browser."""
    add(team.app, "Ada keeps the harbour keys in the red drawer of the office.", scope="personal")
    root, ada = browsing("root"), browsing("ada")
    assert ada.get("team").status_code == 200
    asked = {"do": "delete_user", "user": "ada", "choice": "hand_to", "target": "bob"}
    shown = root.post("team", asked)
    assert "ada would be deleted with" in shown.text
    assert 'name="agreed"' in shown.text
    assert ada.get("team").status_code == 200
    done = root.post("team", asked | {"agreed": "true"})
    assert "ada is deleted. Line" in done.text
    assert ada.get("team").status_code == 401
    assert "<bdi>ada</bdi>" not in root.get("team").text.partition("Audit")[0]
    moved = team.app.records.people.written("bob")
    assert [(one.namespace, one.shared) for one in moved] == [("user:bob", 1)]


def test_a_form_without_a_choice_is_refused(team: TeamServer, browsing: Callable[..., Visitor]) -> None:
    """A choice that is none, or a target that is not there, is told, and nobody is deleted."""
    root = browsing("root")
    for fields in ({"choice": "sell"}, {"choice": "hand_to", "target": "nobody"}, {"choice": "keep", "user": "root"}):
        answer = root.post("team", {"do": "delete_user", "user": "ada", "agreed": "true"} | fields)
        assert answer.status_code in (404, 422), answer.text
    assert [user.user for user in team.administer("list_users").users] == ["ada", "bob", "eve", "root"]

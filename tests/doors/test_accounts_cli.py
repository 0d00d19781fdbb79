"""The commands on users, teams, projects and tokens, by the operator at the machine that holds the store."""

from __future__ import annotations

from collections.abc import Callable

from command_line import Ended
from recollect.errors import Forbidden, InvalidInput, NotFound
from recollect.gate import scan

Typed = Callable[..., Ended]


def test_an_operator_builds_a_team(typed: Typed) -> None:
    """Users are invited into a team with roles; lists, prefixes and the audit show them, and never a token again."""
    typed("team", "add", "crew")
    invited = typed("user", "add", "ada", "--team", "crew", "--role", "reader")
    token = invited.out.strip()
    assert [one.kind for one in scan(f"see {token}")] == ["Recollect token"]
    assert "7 days" in invited.err
    typed("team", "grant", "crew", "ada", "--role", "writer")
    typed("project", "add", "crew", "engine", "--private")
    typed("project", "grant", "crew", "engine", "ada", "--role", "reader")
    assert typed("project", "registered", "--json").json["projects"][0]["members"] == {"ada": "reader"}
    assert typed("user", "list", "--json").json["users"][0]["teams"] == {"crew": "writer"}
    [known] = typed("token", "list", "ada", "--json").json["tokens"]
    assert token.startswith(f"rec_{known['prefix']}_")
    typed("token", "revoke", known["prefix"])
    audit = typed("audit", "--json")
    assert audit.json["lines"][0]["action"] == "revoke_token"
    assert token not in audit.out
    assert "revoke_token" in typed("audit", "--limit", "1").out


def test_mistakes_are_told(typed: Typed) -> None:
    """What is not there, is there already, or nobody at the machine can do, is one sentence with its exit code."""
    assert typed("team", "grant", "crew", "ada").code == NotFound.exit_code
    assert typed("team", "add", "crew").code == 0
    again = typed("team", "add", "crew")
    assert (again.code, "is a team `crew` already" in again.err) == (InvalidInput.exit_code, True)
    assert typed("token", "add").code == Forbidden.exit_code
    odd = typed("token", "revoke", "nope")
    assert (odd.code, "8 characters" in odd.err) == (InvalidInput.exit_code, True)

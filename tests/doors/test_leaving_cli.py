"""The commands for people who leave, by the operator at the machine that holds the store."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from command_line import Ended
from recollect.errors import Conflict, InvalidInput, NotFound

Typed = Callable[..., Ended]
KEYS = "Ada keeps the harbour keys in the red drawer of the office."


def test_a_user_is_deleted_from_the_command_line(typed: Typed, tmp_path: Path) -> None:
    """It counts first, deletes only with a word for it, writes a receipt, and says who is there no more."""
    typed("team", "add", "crew")
    typed("user", "add", "ada", "--team", "crew")
    typed("--user", "ada", "--team", "crew", "remember", KEYS, "--scope", "personal")
    for words in ((), ("--erase", "--keep"), ("--hand-to", "ada")):
        assert typed("user", "delete", "ada", *words).code == InvalidInput.exit_code
    shown = typed("user", "delete", "ada", "--erase", "--dry-run")
    assert (shown.code, "1 are deleted for good" in shown.out) == (0, True)
    asked = typed("user", "delete", "ada", "--erase")
    assert (asked.code, "Add `--yes` to do it" in asked.err) == (InvalidInput.exit_code, True)
    typed("user", "export", "ada", "ada.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "ada.jsonl").read_text(encoding="utf-8").splitlines()]
    assert KEYS in [line["memory"]["content"] for line in lines if "memory" in line]
    again = typed("user", "export", "ada", "ada.jsonl")
    assert (again.code, "--force" in again.err) == (InvalidInput.exit_code, True)
    done = typed("user", "delete", "ada", "--erase", "--yes")
    assert (done.code, "SHA-256" in done.out, "vector index" in done.out) == (0, True, True)
    receipt = typed("user", "receipt", "ada", "--json").json["receipts"][0]
    assert (receipt["proven"], receipt["receipt"]["memories"]["erased"]) == (True, 1)
    assert typed("user", "delete", "ada", "--erase", "--yes").code == NotFound.exit_code
    assert typed("--user", "ada", "list", "--scope", "personal", "--json").json["memories"] == []


def test_a_hold_is_set_and_released(typed: Typed) -> None:
    """A hold refuses a deletion by name, is listed, and ends; a rule of retention is listed and dropped."""
    typed("team", "add", "crew")
    typed("user", "add", "ada", "--team", "crew")
    assert typed("hold", "set", "case-7", "--user", "ada", "--reason", "litigation").code == 0
    refused = typed("user", "delete", "ada", "--keep", "--yes")
    assert (refused.code, "`case-7`" in refused.err) == (Conflict.exit_code, True)
    assert "user ada" in typed("hold", "list").out
    typed("hold", "release", "case-7")
    assert "No legal holds" in typed("hold", "list").out
    asked = typed("retention", "set", "crew", "30")
    assert (asked.code, "Now it would remove 0 memories" in asked.err) == (InvalidInput.exit_code, True)
    assert typed("retention", "set", "crew", "30", "--yes").code == 0
    assert typed("retention", "list", "--json").json["rules"][0]["days"] == 30
    assert typed("retention", "drop", "crew").code == 0
    assert "there are no rules" in typed("retention", "list").out


def test_a_project_behind_the_command_is_that_of_the_team(typed: Typed) -> None:
    """`--project` narrows a rule or a hold to a project of the team, and is never taken for the caller's own."""
    typed("team", "add", "crew")
    assert typed("retention", "set", "crew", "30", "--project", "vault", "--yes").code == 0
    (rule,) = typed("retention", "list", "--json").json["rules"]
    assert (rule["team"], rule["project"], rule["days"]) == ("crew", "vault", 30)
    assert typed("retention", "drop", "crew", "--project", "vault").code == 0
    assert typed("hold", "set", "case-8", "--team", "crew", "--project", "vault").code == 0
    (hold,) = typed("hold", "list", "--json").json["holds"]
    assert (hold["team"], hold["project"]) == ("crew", "vault")

"""What somebody new types, and the plain sentences that they read."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from recollect.domain.accounts import AuditLine
from recollect.doors.cli import answers
from recollect.errors import InvalidInput

pytestmark = pytest.mark.slow

Typed = Callable[..., Any]


@pytest.mark.parametrize(
    "words",
    [
        ("--project", "hull", "list", "--json"),
        ("list", "--project", "hull", "--json"),
        ("list", "--project=hull", "--json"),
        ("list", "--limit", "5", "--project", "hull", "--json"),
    ],
)
def test_the_project_stands_before_the_command_or_behind_it(typed: Typed, words: tuple[str, ...]) -> None:
    """`--project` chooses the caller's project wherever it is typed."""
    typed("--project", "hull", "remember", "The hull is of oak.")
    typed("remember", "The engine is of steel.")
    assert [one["content"] for one in typed(*words).json["memories"]] == ["The hull is of oak."]


def test_words_behind_two_dashes_are_text(typed: Typed) -> None:
    """Behind `--` nothing is an option, and an option without its value is an error."""
    typed("remember", "--", "--project", "hull")
    assert typed("list", "--json").json["memories"][0]["content"] == "--project hull"
    assert typed("list", "--project").code == InvalidInput.exit_code


def test_a_list_has_the_whole_texts(typed: Typed) -> None:
    """`list --json` has the content of each memory, however long, with and without `--all`."""
    text = ("The mast is oak. " * 40).strip()
    typed("remember", text)
    for words in (("list",), ("list", "--all"), ("timeline",)):
        (memory,) = typed(*words, "--json").json["memories"]
        assert memory["content"] == text


def test_show_begins_with_the_text_and_tells_what_changed(typed: Typed) -> None:
    """The text comes first; the history has both texts, shortened, both numbers, and what keeps the old text."""
    typed("remember", "We deploy on Fridays.", "--key", "day")
    typed("update", "day", "We deploy on Mondays.", "--importance", "0.9")
    lines = typed("show", "day").out.splitlines()
    assert lines[0] == "content\tWe deploy on Mondays."
    changed = "update: content “We deploy on Fridays.” → “We deploy on Mondays.”, importance 0.50 → 0.90"
    assert lines[-1].split("\t")[2] == f"{changed}, the earlier text is memory 2"


def test_private_and_secret_exclude_each_other(typed: Typed) -> None:
    """A memory has one level, so both options together are refused, and nothing is stored."""
    for words in (("remember", "Ada moves."), ("fact", "Ada", "moves", "soon")):
        refused = typed(*words, "--private", "--secret")
        assert (refused.code, refused.err.strip()) == (
            InvalidInput.exit_code,
            "recollect: Invalid sensitivity: Must be `--private` or `--secret`, not both",
        )
    assert typed("list", "--private", "--secret", "--json").json["memories"] == []


def test_a_new_memory_outside_a_repository_says_where_it_is(typed: Typed) -> None:
    """Where no scope and no project is named, the answer names the project, who finds it, and the other way."""
    alone = typed("remember", "The mast is oak.", RECOLLECT_PROJECT="")
    assert "It is in the project `" in alone.out
    assert "only commands in it find it. `--scope personal` stores for you alone" in alone.out
    mine = typed("remember", "Ada moves in May.", "--private", RECOLLECT_PROJECT="")
    assert "only you can read it" in mine.out
    for words in (("--scope", "personal"), ("--scope", "team")):
        assert "It is in the project" not in typed("remember", f"Scope {words[1]}.", *words, RECOLLECT_PROJECT="").out
    assert "It is in the project" not in typed("remember", "The sail is red.").out


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"fields": ["content", "tags"]}, "fields content, tags"),
        ({"soft": True}, "soft"),
        ({"superseded_by": 7}, "superseded by 7"),
        ({"importance": [0.5, 0.9], "kept_as": 2}, "importance 0.5, 0.9, kept as 2"),
        ({"key": None, "private": False}, "key none, private no"),
        ({"roles": {"ada": "admin"}}, "roles ada admin"),
    ],
)
def test_the_audit_prints_words(changes: dict[str, Any], words: str) -> None:
    """No list, no dictionary and no truth value of Python stands in a line of the audit."""
    at = datetime(2026, 5, 1, tzinfo=UTC)
    line = AuditLine(1, at, "ada", "project:crew/engine", "update", 3, changes)
    assert answers._audit_change(line) == words

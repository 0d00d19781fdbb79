"""Which memories are shown to an agent that did not ask: what answers nearly for sure, holds, and may speak."""

from __future__ import annotations

from typing import Any

import pytest

from callers import ADA
from clock import Clock
from recollect import App
from recollect.domain.origin import SaidBy
from recollect.search.match import STRONG
from recollect.search.unasked import LEAST, question_of, sure_matches
from run_operations import OTHER, add, do

ASKED = "From which branch do we deploy the billing service?"
TOLD = "We deploy the billing service from the branch release-stable."
NEAR = ("The billing service is deployed by Ada.", "The branch release-stable is cut on Mondays.")
OTHERS = ("Money is stored as integer pence, never floats.", "Labels are cached by their order and day.")
SILENT: list[tuple[str, dict[str, Any], Any]] = [
    ("private", {"sensitivity": "private"}, ADA),
    ("secret", {"sensitivity": "secret"}, ADA),
    ("another team's", {}, OTHER),
    ("a page's", {}, ADA.saying(SaidBy.WEB, "https://docs.example.com")),
    ("an import's", {}, ADA.saying(SaidBy.IMPORT, "notes.md:3")),
    ("a draft of a command", {"source": "hook"}, ADA.saying(SaidBy.COMMAND, "make")),
    ("a draft of a report", {"source": "hook", "fact_type": "decision"}, ADA.saying(SaidBy.REPORT)),
    ("a draft of a person", {"source": "hook"}, ADA),
    ("a summary of a session", {"source": "hook", "type": "session_summary"}, ADA),
    ("a checkpoint", {"source": "hook", "type": "checkpoint"}, ADA),
]


def shown(app: App, prompt: str = ASKED, known: tuple[int, ...] = ()) -> list[int]:
    """Return the ids of what is shown before a prompt."""
    return [one.id for one in sure_matches(app, prompt, ADA, dict.fromkeys(known, app.clock()))]


@pytest.mark.parametrize(
    ("prompt", "asked"),
    [
        ("how do i run the tests?", "how do i run the tests?"),
        ("/compact", ""),
        ("/review src the pool", ""),
        ("!make test", ""),
        ("#remember this", ""),
        ("/etc/hosts is read twice by the proxy", "/etc/hosts is read twice by the proxy"),
        ("```\nx = 1\n```\nexplain this", "explain this"),
        ("see <file>a.py</file> and tell me", "see a.py and tell me"),
        ("why does\n  it   stop?", "why does it stop?"),
        ("```\nx = 1\n```", "``` x = 1 ```"),
        ("", ""),
    ],
)
def test_a_prompt_is_searched_without_its_markup(prompt: str, asked: str) -> None:
    """Code and tags are left out where anything else is there, and a command of the agent asks nothing."""
    assert question_of(prompt) == asked


def test_a_line_of_dashes_is_read_at_once() -> None:
    """A row of marks can be read in one way only, however long it is."""
    asked = "What happened?\n" + "-" * 60 + "\nTraceback (most recent call last)"
    assert question_of(asked) == " ".join(asked.split())
    for mark in ("<", "`", "-", "<a ", "```"):
        assert len(question_of(mark * 100_000)) < 1_100


def test_a_long_prompt_is_read_at_both_ends() -> None:
    """A pasted log does not drown what is wanted of it."""
    asked = question_of(f"the importer dies with this: {'x ' * 5_000} why does the importer stop?")
    assert len(asked) < 1_100
    assert asked.startswith("the importer dies")
    assert asked.endswith("why does the importer stop?")


def test_one_threshold_decides(app: App) -> None:
    """Shown is what recall finds with a match of a half or more, in its order, and nothing else."""
    assert LEAST == STRONG == 0.5
    for content in (TOLD, *NEAR, *OTHERS):
        add(app, content)
    for prompt in (ASKED, "who deploys the billing service?", "when is the branch cut?", "thanks", "run the tests"):
        hits = do(app, "recall", query=prompt, min_score=0.0).hits
        assert shown(app, prompt) == [hit.memory.id for hit in hits if hit.match >= LEAST]
    assert shown(app) != []


def test_a_command_is_shown_nothing(app: App) -> None:
    """What begins as a command of the agent names nothing to look up, whatever else it says."""
    one = add(app, TOLD)
    assert shown(app) == [one]
    assert shown(app, f"/review {ASKED}") == []


def test_what_is_known_is_not_shown(app: App) -> None:
    """What the reader has before it already is left out, and takes the place of nothing else."""
    one, two = add(app, TOLD), add(app, "The billing service is deployed from the branch release-stable on Tuesdays.")
    assert set(shown(app)) == {one, two}
    assert shown(app, known=(one,)) == [two]
    assert shown(app, known=(one, two)) == []


def test_what_has_a_newer_version_is_not_shown(app: App, clock: Clock) -> None:
    """Of two versions of one statement the newer alone is shown, and of two that were linked too."""
    add(app, TOLD)
    clock.pass_days(8)
    new = add(app, TOLD.replace("stable", "next"))
    assert shown(app) == [new]
    newest = int(do(app, "remember", content=TOLD.replace("stable", "last"), supersedes=str(new)).id)
    assert newest in shown(app)
    assert new not in shown(app)


def test_what_a_person_denied_is_not_shown(app: App) -> None:
    """What the project itself says of a subject gives way to what somebody told of it."""
    seen = add(app, "Deploys of the billing service come from release-canary.", ADA.saying(SaidBy.FILE, "AGENTS.md"))
    assert shown(app) == [seen]
    told = add(app, TOLD)
    assert shown(app) == [told]


@pytest.mark.parametrize(("fields", "caller"), [one[1:] for one in SILENT], ids=[one[0] for one in SILENT])
def test_what_may_not_speak_is_not_shown(app: App, fields: dict[str, Any], caller: Any) -> None:
    """What is not public, of others, from outside, a draft, or a summary of a session is not, though it answers."""
    add(app, TOLD, caller, **fields)
    for other in OTHERS:
        add(app, other)
    assert shown(app) == []


@pytest.mark.parametrize("fact_type", ["decision", "preference"])
def test_a_rule_in_a_persons_words_is_shown(app: App, fact_type: str) -> None:
    """It is the one draft that speaks."""
    one = add(app, TOLD, source="hook", fact_type=fact_type)
    assert shown(app) == [one]


def test_what_is_buried_is_not_shown(app: App) -> None:
    """Somebody said that nothing shows it unasked, and takes that back."""
    one = add(app, TOLD)
    do(app, "bury", id=str(one))
    assert shown(app) == []
    do(app, "unbury", id=str(one))
    assert shown(app) == [one]


def test_drafts_push_out_nothing_that_was_told(app: App) -> None:
    """However many drafts answer a prompt, what somebody told of it is shown."""
    for number in range(30):
        content = f"We deploy the billing service from the branch release-{number}, said the log of build {number}."
        add(app, content, ADA.saying(SaidBy.COMMAND, "make"), source="hook")
    told = add(app, TOLD)
    assert shown(app) == [told]

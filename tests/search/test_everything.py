"""Everything: questions without a subject, and filters without a question, are answered by the index of the store."""

from __future__ import annotations

import pytest

from recollect import App
from recollect.domain.enums import FactType
from recollect.search.everything import asks_for_everything, kind_asked_for
from run_operations import add, call_tool

RULE, NOTE = "Always deploy on Tuesdays.", "The lighthouse is white."


@pytest.mark.parametrize(
    ("query", "everything"),
    [
        ("*", True),
        ("everything", True),
        ("What do you remember about this project?", True),
        ("which decisions do you know?", True),
        ("What do you remember about the lighthouse?", False),
        ("the rules of the parser", False),
        ("", False),
    ],
)
def test_a_question_without_a_subject_asks_for_everything(query: str, everything: bool) -> None:
    """A single word that names a subject makes it a question about that."""
    assert asks_for_everything(query) is everything


def test_a_question_about_everything_may_name_a_kind() -> None:
    """Decisions and preferences are asked for by their names."""
    assert kind_asked_for("show all decisions") is FactType.DECISION
    assert kind_asked_for("what do you know?") is None


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ({"query": "What do you remember about this project?"}, {RULE, NOTE}),
        ({"query": "decisions"}, {RULE}),
        ({"fact_type": "decision"}, {RULE}),
        ({"fact_type": "decision", "query": " "}, {RULE}),
        ({"category": "sea"}, {NOTE}),
    ],
)
def test_the_index_answers(app: App, asked: dict[str, str], shown: set[str]) -> None:
    """An agent that names no subject reads a line of each memory that its filters let through."""
    add(app, RULE, fact_type=FactType.DECISION)
    add(app, NOTE, category="sea")
    message = call_tool(app, "memory", {"action": "recall", **asked}).structured["message"]
    assert {text for text in (RULE, NOTE) if text.rstrip(".") in message} == shown

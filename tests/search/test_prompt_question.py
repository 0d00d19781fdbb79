"""What of a prompt is searched for unasked."""

from __future__ import annotations

import pytest

from recollect.search.unasked import question_of

ASKED = "On which day do we ship?"


@pytest.mark.parametrize("name", ["hook_context", "system-reminder", "memory-index"])
def test_what_an_agent_adds_to_a_prompt_is_not_searched_for(name: str) -> None:
    """Only the words of the person are, whatever block stands before or behind them."""
    added = f"<{name}>\n- [7] The suppliers send their price lists on Mondays (today)\n</{name}>"
    assert question_of(f"{added}\n\n{ASKED}") == ASKED
    assert question_of(f"{ASKED}\n\n{added}") == ASKED
    assert question_of(added) == ""
    assert question_of(f"{added}\n/review") == ""

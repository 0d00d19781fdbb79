"""What ends a line, a page or a record: wherever it is removed, the words on both sides stay two words."""

from __future__ import annotations

import pytest

from recollect.domain.lifecycle import UseTool
from recollect.doors import hook_texts
from recollect.engines.embedding.tokens import same_length_text
from recollect.sessions.observations.occurrence import tool_occurrence
from recollect.text.prompts import without_agent_blocks

SEPARATORS = ("\f", "\v", "\x1c", "\x1d", "\x1e", "\x1f", "\x85", "\u2028", "\u2029")


@pytest.mark.parametrize("separator", SEPARATORS)
def test_the_tokenizer_sees_two_words(separator: str) -> None:
    """The text that a model reads has a space there, and is as long as it was."""
    assert same_length_text(f"cranes{separator}Page two") == "cranes Page two"


@pytest.mark.parametrize("separator", [*SEPARATORS, "\x1b[12C", "\x1b[3;1H", "\x1b[40G"])
def test_outputs_of_tools_keep_their_words_apart(separator: str) -> None:
    """So do moves of the cursor, with which programs lay out their columns."""
    assert tool_occurrence("Bash", {"command": "report"}, f"cranes{separator}Page two").text == "cranes Page two"


def test_records_that_end_in_zero_bytes_stay_apart() -> None:
    """What `find -print0` prints is stored without zero bytes, and with its names apart."""
    assert hook_texts.cut("a.py\0b.py") == "a.py b.py"
    event = UseTool(session_id="s", tool="Bash", input={"names": ["a.py\0b.py"]})
    assert event.input == {"names": ["a.py b.py"]}


def test_a_block_between_two_words_leaves_a_space() -> None:
    """What an agent adds in the middle of a prompt does not glue what stands around it."""
    prompt = "Rename the crane<system-reminder>The date is known.</system-reminder>Then run the tests"
    assert without_agent_blocks(prompt) == "Rename the crane Then run the tests"
    assert without_agent_blocks("Rename it\n<system-reminder>x</system-reminder>\nnow") == "Rename it\n\nnow"

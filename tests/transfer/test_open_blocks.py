"""The Markdown export: a block that a memory leaves open swallows nothing of what comes after it."""

from __future__ import annotations

from typing import Any

import pytest

from recollect.transfer.markdown_export import write_notes
from recollect.transfer.markdown_sections import blocks, headings


def memory(title: str, content: str) -> dict[str, Any]:
    return {
        "memory": {
            "title": title,
            "content": content,
            "fact_type": "general",
            "scope": "project",
            "created_at": "2026-01-01",
        }
    }


@pytest.mark.parametrize(
    "opened", ["```\nmake test", "~~~~ sh\nmake test", "<!-- not yet", "Note:\n\n```python\nx = 1"]
)
def test_what_is_left_open_is_closed(opened: str) -> None:
    """The next memory's title is a heading, whatever the one before it left open."""
    document = "".join(write_notes([memory("First", opened), memory("Second", "plain words")]))
    assert [one.text.partition(" <!--")[0] for one in headings(blocks(document))][-2:] == ["First", "Second"]


def test_what_is_closed_stays_as_it_is() -> None:
    """Nothing is added to a memory that closes what it opens."""
    content = "```\nmake test\n```"
    assert f"\n{content}\n" in "".join(write_notes([memory("First", content)]))
    assert "".join(write_notes([memory("First", content)])).count("```") == 2

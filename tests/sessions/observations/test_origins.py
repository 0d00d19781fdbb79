"""Origins: which page a tool has read is taken from what it was asked for."""

from __future__ import annotations

import pytest

from recollect.sessions.observations.occurrence import tool_occurrence
from recollect.sessions.observations.origins import stamp_of

PAGE = "https://docs.example.com/limits"


@pytest.mark.parametrize(
    ("given", "came_from"),
    [
        ({"url": f"{PAGE};v=2", "prompt": "the limits"}, f"{PAGE};v=2"),
        ({"prompt": f"Sum up {PAGE}, for a developer."}, PAGE),
        ({"prompt": f"Compare {PAGE} with http://other.example.org/a."}, f"{PAGE}, then http://other.example.org/a"),
        ({"query": "limits of the gateway"}, "limits of the gateway"),
    ],
)
def test_a_request_names_its_pages(given: dict[str, str], came_from: str) -> None:
    """The addresses alone are the origin, so that `withdraw --source` finds the host; without any it is the request."""
    assert stamp_of(tool_occurrence("web_fetch", given, ""), "", "").came_from == came_from

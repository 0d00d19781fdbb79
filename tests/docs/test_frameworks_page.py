"""The page on frameworks tells the truth: each example runs on the real library and prints what it is for."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from anthropic_server import anthropic_server
from places import DOCS

BLOCKS = re.findall(r"^```python\n(.*?)^```$", (DOCS / "frameworks.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)
NOTE = "/memories/ada.md"
CALLS = (
    {"command": "view", "path": "/memories"},
    {"command": "create", "path": NOTE, "file_text": "Ada drinks coffee."},
)
PRINTED = {
    "mcp": ["Deploys go out on Tuesdays"],
    "files": [
        "Deploys go out on Tuesdays.",
        "Ada gives the go-ahead.",
        "",
        r"['Deploys go out on Fridays.\n', 'Deploys go out on Tuesdays.\n']",
        "The memory with the key `/notes/deploy.md` has changed since it was read. Read it again. Nothing was written.",
        "['/archive/deploy.md']",
    ],
    "anthropic": ["Done.", "Ada drinks coffee."],
    "langgraph": ["{'text': 'Ada drinks green tea.', 'cups': 3}", "drink", "[('users', 'ada'), ('users', 'bob')]"],
}


@pytest.mark.parametrize("name", PRINTED)
def test_an_example_does_what_it_shows(environment: dict[str, str], tmp_path: Path, name: str) -> None:
    """The example of a framework ends well and prints what it stored and found."""
    (example,) = (
        block for block in BLOCKS if re.search(rf"^from (recollect\.frameworks\.)?{name} import", block, re.M)
    )
    with anthropic_server(*CALLS) as server:
        ours = environment | {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "none"}
        asked = [sys.executable, "-W", "error::ResourceWarning", "-c", example]
        done = subprocess.run(asked, env=ours, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout.splitlines()) == (0, PRINTED[name]), done.stderr


def test_every_example_is_run() -> None:
    """No example of the page is left out."""
    assert len(BLOCKS) == len(PRINTED)

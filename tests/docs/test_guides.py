"""The guides tell the truth: their commands are run in order, and their links lead somewhere."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from places import DOCS, ROOT

COMMAND = Path(sys.executable).with_name("recollect")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted(DOCS.rglob("*.md"))]


def blocks(page: str, language: str) -> list[str]:
    """Return the code blocks of a page that are marked with `language`."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.fixture
def shell(environment: dict[str, str]) -> Iterator[dict[str, str]]:
    """Return the environment of a terminal of eighty columns and a new store, whose daemon is ended afterwards."""
    ours = environment | {"RECOLLECT_DAEMON": "1", "COLUMNS": "80", "TERM": "dumb"}
    ours["PATH"] = f"{COMMAND.parent}{os.pathsep}/usr/bin"
    yield ours
    subprocess.run([COMMAND, "stop"], env=ours, check=True, capture_output=True)


def test_the_concepts_answer_as_shown(shell: dict[str, str], tmp_path: Path) -> None:
    """Each command of the page on concepts prints what the page shows."""
    steps = re.split(r"^\$ ", "".join(blocks("concepts.md", "console")), flags=re.MULTILINE)[1:]
    assert len(steps) >= 5
    for step in steps:
        typed, _, shown = step.partition("\n")
        done = subprocess.run(shlex.split(typed), env=shell, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert done.stdout.split() == shown.split(), typed


def test_moving_brings_in_what_the_page_says(shell: dict[str, str], tmp_path: Path) -> None:
    """The commands of the page on moving end well where there are notes, and bring each note in once."""
    (tmp_path / "CLAUDE.md").write_text("## Style\n\nUse tabs in Makefiles.\n", encoding="utf-8")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "deploy.md").write_text("# Deploy\n\nWe deploy on Tuesdays.\n", encoding="utf-8")
    for block in blocks("moving.md", "sh"):
        done = subprocess.run(["sh", "-e", "-c", block], env=shell, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    exported = (tmp_path / "this-project.jsonl").read_text(encoding="utf-8")
    assert len(re.findall(r'"content": ?"[^"]*(?:Makefiles|Tuesdays)', exported)) == 2, exported
    assert "We deploy on Tuesdays." in (tmp_path / "notes.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_to_a_file(page: Path) -> None:
    """Each relative link of a page names a file of the project."""
    targets = [link for link in LINK.findall(page.read_text(encoding="utf-8")) if "://" not in link]
    assert [link for link in targets if not (page.parent / link).exists()] == []


def test_the_index_names_every_page() -> None:
    """Each page below `docs` stands in the index, or in the index of its folder, which stands there."""
    indexes = [DOCS / "README.md", *DOCS.glob("*/README.md")]
    named = {(index.parent / link).resolve() for index in indexes for link in LINK.findall(index.read_text("utf-8"))}
    assert {file.resolve() for file in DOCS.rglob("*.md")} - {indexes[0].resolve()} <= named

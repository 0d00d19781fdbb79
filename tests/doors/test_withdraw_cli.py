"""`withdraw --source`: a path names the same file as at its import; of an unknown source the nearest are named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

Typed = Callable[..., Any]


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """Return a folder with two notes, below the folder in which the commands run."""
    folder = tmp_path / "notes"
    folder.mkdir()
    for name, text in (("a", "The mast is oak."), ("b", "The sail is red.")):
        (folder / f"{name}.md").write_text(f"# {name}\n\n{text}\n", encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("imported", "withdrawn"),
    [
        ("{folder}/a.md", "notes/a.md"),
        ("notes/a.md", "{folder}/a.md"),
        ("{folder}/a.md", "./notes/../notes/a.md"),
        ("{folder}", "notes/a.md"),
        ("notes/a.md", "notes/a.md"),
    ],
)
def test_a_path_is_the_same_file_however_it_is_written(
    typed: Typed, notes: Path, imported: str, withdrawn: str
) -> None:
    """Absolute, relative and roundabout paths lead to what was imported from the file, and to nothing else."""
    assert typed("import", imported.format(folder=notes)).code == 0
    done = typed("withdraw", "--source", withdrawn.format(folder=notes), "--yes", "--json")
    assert len(done.json["hidden"]) == 1
    assert "The mast is oak." not in typed("list").out


def test_a_file_outside_is_found_from_anywhere(typed: Typed, tmp_path: Path, tmp_path_factory: Any) -> None:
    """A file that does not lie below the folder of the command goes by its whole path, on both sides."""
    file = tmp_path_factory.mktemp("elsewhere") / "ports.md"
    file.write_text("# Ports\n\nThe daemon listens on 8765.\n", encoding="utf-8")
    assert typed("import", str(file)).code == 0
    relative = Path("..") / file.relative_to(tmp_path.parent)
    assert len(typed("withdraw", "--source", str(relative), "--json").json["hidden"]) == 1


def test_an_unknown_source_names_the_nearest(typed: Typed, notes: Path) -> None:
    """What nothing came from is answered with the sources that there are, the most alike first, and changes nothing."""
    assert typed("import", str(notes)).code == 0
    done = typed("withdraw", "--source", "notes/aa.md", "--yes")
    assert "Nothing that is stored came from there. Sources with the nearest names: " in done.out
    named = done.out.partition("nearest names: ")[2]
    assert named.index("a.md") < named.index("b.md")
    assert "The mast is oak." in typed("list").out

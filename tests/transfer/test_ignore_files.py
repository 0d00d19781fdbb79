"""Ignore files leave out what git leaves out, in time that no line in them can make long."""

from __future__ import annotations

import random
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pattern_attacks import at_most
from recollect.repository_files import LARGEST
from recollect.transfer.ignore_files import NAME, Rules, ignore_rules, ignores

LINES = (
    "a*b\n*.md\n!k*p.md\n/docs/*.md\nd?/\n**/deep/**\nx/**/y\nx/**\n!x/a.md\n",
    "*\n!*/\n!*.md\n",
    "[a-c]*\n[!a]z.md\n[^a]q.md\n[]a].md\n[[:digit:]]*.md\n[[:nokind:]]\n[z-a]\nopen[\n[a\\-c]1.md\n",
    "# a.md\n\\#a.md\n\\!b.md\n!\nend\\ \nend2 \n  lead.md\n/\n//\na//b\n",
    "/a\nb/\nsub/c.md\nsub/*/c.md\n**/c\nc/**\n/**/e.md\n**\n!sub/\n",
    "**a.md\nb**\nsub**/d.md\n*?*.md\n?\n\\a.md\ntrailing\\\n",
    "a.md\r\n!a.md\r\n",
    "\ufeffa.md\n",
)
PARTS = ("a", "b", "*", "?", "**", "/", "/**", "**/", "[ab]", "[!a]", ".md", "sub", "!", "\\*", "c", "d", "-", "\\")
NAMES = (
    "a",
    "b",
    "ab",
    "a.md",
    "ab.md",
    "c.md",
    "x",
    "sub",
    "d",
    "dd",
    "deep",
    "y",
    "1.md",
    "-",
    "kp.md",
    "*",
    "#a.md",
)
HOSTILE: dict[str, Callable[[], str]] = {
    "stars": lambda: "a*" * 8 + "b",
    "many stars": lambda: "*a" * 120 + "b",
    "pairs of stars": lambda: "a**" * 30 + "b",
    "stars with any": lambda: "*?" * 100 + "b",
    "stars with brackets": lambda: "*[a-z]" * 40 + "b",
    "any folders": lambda: "**/a/" * 40 + "b",
    "a long name": lambda: "a" * 100_000,
    "brackets": lambda: "[" * 50_000,
    "backslashes": lambda: "*\\" * 50_000,
    "many lines": lambda: "a*a*a*a*b\n" * 2_000,
}


def tree(folder: Path) -> None:
    """Make a folder with names that the lines are about, three levels deep."""
    folder.mkdir()
    for first in NAMES:
        (folder / f"{first}{'' if '.' in first else '.md'}").write_text("x", encoding="utf-8")
        for second in NAMES[::2] if "." not in first else ():
            inside = folder / first / second
            inside.parent.mkdir(exist_ok=True)
            if "." in second:
                inside.write_text("x", encoding="utf-8")
            else:
                inside.mkdir()
                for third in ("a.md", "c.md", "y.md"):
                    (inside / third).write_text("x", encoding="utf-8")
    for name in ("!b.md", "end ", "end2", "  lead.md", "]a.md", "].md", "q.md", "zq.md", "trailing"):
        (folder / name).write_text("x", encoding="utf-8")


def kept(folder: Path) -> set[str]:
    """Return the files of a folder that are not left out."""

    def inside(here: Path, above: tuple[Rules, ...]) -> Iterator[str]:
        if own := ignore_rules(here):
            above = (*above, own)
        for one in here.iterdir():
            if one.name in (".git", NAME) or ignores(above, one, is_folder=one.is_dir()):
                continue
            if one.is_dir():
                yield from inside(one, above)
            else:
                yield one.relative_to(folder).as_posix()

    return set(inside(folder, ()))


def kept_by_git(folder: Path) -> set[str]:
    """Return the files that git would take from a folder."""
    ours = ("-c", "core.excludesFile=", "-c", "core.ignoreCase=false")
    if not (folder / ".git").exists():
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
    told = subprocess.run(
        ["git", *ours, "-C", str(folder), "ls-files", "-z", "--others", "--exclude-standard"],
        check=True,
        capture_output=True,
    )
    return {name for name in told.stdout.decode("utf-8", "surrogateescape").split("\0") if name} - {NAME, f"sub/{NAME}"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with many names."""
    tree(tmp_path / "notes")
    return tmp_path / "notes"


@pytest.mark.parametrize("lines", LINES)
def test_the_lines_mean_what_they_mean_to_git(folder: Path, lines: str) -> None:
    """Wildcards, folders, exceptions, escapes and brackets leave out exactly what git leaves out."""
    (folder / NAME).write_bytes(lines.encode())
    (folder / "sub" / NAME).write_text("!c.md\n/deep\n", encoding="utf-8")
    assert kept(folder) == kept_by_git(folder)


def test_lines_at_random_mean_what_they_mean_to_git(folder: Path) -> None:
    """Three hundred files of random lines leave out exactly what git leaves out."""
    chance = random.Random(7)
    for _ in range(300):
        lines = ["".join(chance.choices(PARTS, k=chance.randint(1, 6))) for _ in range(chance.randint(1, 4))]
        if any(re.search(r"[^/!]\*\*+/", line) for line in lines):  # git looks only behind a name's plain beginning
            continue
        (folder / NAME).write_text("\n".join(lines), encoding="utf-8")
        assert kept(folder) == kept_by_git(folder), lines


@pytest.mark.parametrize("lines", HOSTILE)
def test_no_line_takes_long(tmp_path: Path, lines: str) -> None:
    """Names of sixty letters and more are looked at within a second of processor time, whatever the lines are."""
    (tmp_path / NAME).write_text(HOSTILE[lines](), encoding="utf-8")
    with at_most(1.0):
        above = (ignore_rules(tmp_path),)
        for name in ("a" * 60, "a" * 250 + ".md", "/".join("a" * 60)):
            found = ignores(tuple(filter(None, above)), tmp_path / name, is_folder=False)
            assert found in (True, False)


def test_a_file_that_is_too_large_leaves_all_out(tmp_path: Path) -> None:
    """Nothing is taken that a line beyond the limit may have left out."""
    (tmp_path / NAME).write_text("# x\n" * LARGEST, encoding="utf-8")
    found = ignore_rules(tmp_path)
    assert found is not None
    assert ignores((found,), tmp_path / "a.md", is_folder=False)


def test_a_link_has_no_rules(tmp_path: Path) -> None:
    """What a link leads to may lie anywhere, and git does not follow it either."""
    (tmp_path / "elsewhere").write_text("*\n", encoding="utf-8")
    (tmp_path / NAME).symlink_to(tmp_path / "elsewhere")
    assert ignore_rules(tmp_path) is None

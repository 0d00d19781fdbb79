"""Files that a repository brings are read in linear time, up to a limit, and once for each time stamp."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pattern_attacks import at_most
from recollect import projects, repository_files
from recollect.errors import InvalidInput
from recollect.project_files import table_in
from recollect.projects import find_project
from recollect.repository_files import LARGEST, parse_toml

MANY = 20_000
SETTINGS = "max_inject_count = 1\n"
HOSTILE: dict[str, str] = {
    "a dotted key": "a." * MANY + "a = 1",
    "a dotted header": "[" + "a." * MANY + "a]",
    "a key of quoted parts": '"a".' * MANY + "a = 1",
    "a key of empty parts": "''." * MANY + "a = 1",
    "a key with spaces": "a . " * MANY + "a = 1",
    "a key inside a value": "x = {" + "a." * MANY + "a = 1}",
    "a key behind a string": 'x = ["#", {' + "a." * MANY + "a = 1}]",
    "a key behind a string of lines": "x = '''\n#'''\n" + "a." * MANY + "a = 1",
}


@pytest.mark.parametrize("text", HOSTILE)
def test_a_key_of_many_parts_is_refused_before_it_is_parsed(text: str) -> None:
    """The parser would take the square of their number."""
    with at_most(0.5), pytest.raises(ValueError, match="has a key of more than 32 parts"):
        parse_toml(HOSTILE[text])


@pytest.mark.parametrize(
    "text", ["[" * MANY, "a = " + "[" * MANY, "a = " + "{a=" * MANY, '"' * MANY, 'a = "' + "\\" * MANY]
)
def test_nesting_and_open_strings_are_no_toml(text: str) -> None:
    """The reason is a sentence, and not an error of the parser's own."""
    with at_most(0.5), pytest.raises(ValueError, match=r"\w"):
        parse_toml(text)


@pytest.mark.parametrize(
    "text",
    ['a = "' + "b." * MANY + '"', f"# {'a.' * MANY}\n", "a = '''" + "b." * MANY + "'''", "[tool.a.b.c]\nd.e.f = 1.5\n"],
)
def test_dots_in_strings_and_comments_are_no_parts(text: str) -> None:
    """A long text is no long key."""
    assert isinstance(parse_toml(text), dict)


@pytest.mark.parametrize("name", ["recollect.toml", "pyproject.toml", ".recollect.toml"])
def test_no_event_waits_for_a_hostile_file(tmp_path: Path, name: str) -> None:
    """A file of settings, or one that names the project, with a key of many parts costs a session next to nothing."""
    (tmp_path / name).write_text(HOSTILE["a dotted key"], encoding="utf-8")
    with at_most(0.5):
        assert table_in(str(tmp_path)) == {}
        if name == projects.FILE:
            with pytest.raises(InvalidInput, match="cannot be read: it has a key of more than 32 parts"):
                find_project(tmp_path)


def test_a_file_is_parsed_once_until_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each event of a session asks for the settings, but only a new time stamp has the file read again."""
    read: list[str] = []

    def noting(content: str) -> object:
        read.append(content)
        return parse_toml(content)

    monkeypatch.setattr(repository_files, "parse_toml", noting)
    file = tmp_path / "recollect.toml"
    for text, limit in ((SETTINGS, 1), (SETTINGS.replace("1", "2"), 2)):
        file.write_text(text, encoding="utf-8")
        os.utime(file, (limit, limit))
        for _ in range(5):
            assert table_in(str(tmp_path)) == {"max_inject_count": limit}
    assert len(read) == 2


@pytest.mark.parametrize(
    "ask", [table_in, lambda folder: find_project(Path(folder)).name], ids=["settings", "the name of the project"]
)
@pytest.mark.parametrize(
    "name", ["recollect.toml", "pyproject.toml", ".git", ".git/config", ".git/HEAD", ".git/commondir"]
)
def test_a_large_file_is_not_read_to_its_end(tmp_path: Path, name: str, ask: Callable[[str], object]) -> None:
    """Nothing in a repository fills the memory: a file of a terabyte is no trouble, as it is not read to its end."""
    (tmp_path / name).parent.mkdir(exist_ok=True)
    if name.startswith(".git/"):
        (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    with (tmp_path / name).open("wb") as file:
        file.truncate(2**40)
    with at_most(1.0):
        assert ask(str(tmp_path)) is not None


def test_what_is_no_regular_file_is_not_opened(tmp_path: Path) -> None:
    """A pipe would be waited for, and a device has no end."""
    os.mkfifo(tmp_path / "recollect.toml")
    (tmp_path / "pyproject.toml").symlink_to("/dev/zero")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    (tmp_path / ".git" / "config").symlink_to("/dev/zero")
    assert table_in(str(tmp_path)) == {}
    assert find_project(tmp_path).name.startswith(tmp_path.name)


@pytest.mark.parametrize("line", ["a" + " " * 200_000 + "b", "url" + "\t" * 200_000, "[" * 200_000, "a = " * 50_000])
def test_a_line_of_the_repository_settings_takes_no_time(tmp_path: Path, line: str) -> None:
    """The reader of such files tries to end a gap at each of its places."""
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    (tmp_path / ".git" / "config").write_text(
        f'[core]\n{line}\n[remote "origin"]\n\turl = https://example.com/acme/shop.git\n', encoding="utf-8"
    )
    with at_most(1.0):
        assert find_project(tmp_path).name


def test_the_limit_is_named(tmp_path: Path) -> None:
    """Who has a file that is too large learns how large it may be."""
    (tmp_path / "recollect.toml").write_text(f"#{' ' * LARGEST}", encoding="utf-8")
    with pytest.raises(ValueError, match="it is larger than 262,144 bytes"):
        repository_files.toml(tmp_path / "recollect.toml")

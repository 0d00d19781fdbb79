"""Projects: a folder belongs to its repository, by whatever name the folder goes."""

from __future__ import annotations

from pathlib import Path

import pytest

from recollect import Settings
from recollect.errors import InvalidInput
from recollect.projects import find_project, set_project

CONFIGS = [
    "",
    "[remote",
    '[remote "origin"]\n\tfetch = x\n',
    '[remote "o"]\nurl = ://\n',
    '[remote "o"]\nurl = ~nobody-here/x\n',
    "\0\xff",
]


def make_checkout(folder: Path, *remotes: tuple[str, str]) -> Path:
    """Make what git makes: a folder with a `.git` and these remotes."""
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    lines = ["[core]", "\trepositoryformatversion = 0", "\tfilemode = true"]
    for name, address in remotes:
        lines += [f'[remote "{name}"]', f"\turl = {address}", f"\tfetch = +refs/heads/*:refs/remotes/{name}/*"]
    (folder / ".git" / "config").write_text("\n".join([*lines, '[branch "main"]', "\tremote = origin", ""]))
    return folder


def make_worktree(checkout: Path, folder: Path) -> Path:
    """Make a worktree of a checkout, as `git worktree add` does."""
    shared = checkout / ".git" / "worktrees" / folder.name
    shared.mkdir(parents=True)
    (shared / "commondir").write_text("../..\n", encoding="utf-8")
    folder.mkdir(parents=True)
    (folder / ".git").write_text(f"gitdir: {shared}\n", encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    "address",
    [
        "git@github.com:acme/api.git",
        "ssh://git@GitHub.com:22/acme/api.git",
        "https://github.com/acme/api",
        "https://github.com/acme/api.git/",
        "https://ada:" + "let" + "mein1@github.com/acme/api.git",
        "github.com:acme/api.git",
    ],
)
def test_the_remote_names_the_project(tmp_path: Path, address: str) -> None:
    """However its address is written, a remote is host, owner and name, without user and password, at any depth."""
    checkout = make_checkout(tmp_path / "whatever", ("fork", "git@example.org:bob/api.git"), ("origin", address))
    (checkout / "src" / "deep").mkdir(parents=True)
    found = find_project(checkout / "src" / "deep")
    assert (found.name, found.folder_name) == ("github.com/acme/api", "whatever")


def test_worktrees_and_clones_share(tmp_path: Path) -> None:
    """A worktree, a clone of the same remote and a clone of a local checkout are the same project."""
    one = make_checkout(tmp_path / "one", ("origin", "git@github.com:acme/api.git"))
    two = make_checkout(tmp_path / "two", ("origin", "https://github.com/acme/api.git"))
    clone = make_checkout(tmp_path / "clone", ("origin", str(one)))
    of_clone = make_checkout(tmp_path / "of-clone", ("origin", "../clone"))
    worktree = make_worktree(one, tmp_path / "elsewhere" / "fix")
    names = {find_project(folder).name for folder in (one, two, clone, of_clone, worktree)}
    assert names == {"github.com/acme/api"}


def test_without_a_remote_the_repository_is_the_project(tmp_path: Path) -> None:
    """Its worktrees and clones share, and another repository of that name does not."""
    one, other = make_checkout(tmp_path / "a" / "api"), make_checkout(tmp_path / "b" / "api")
    worktree = make_worktree(one, tmp_path / "fix")
    clone = make_checkout(tmp_path / "clone", ("origin", f"file://{one}"))
    names = {find_project(folder).name for folder in (one, worktree, clone)}
    assert len(names) == 1
    assert names.pop().startswith("api-")
    assert find_project(other).name != find_project(one).name


def test_two_folders_of_one_name_are_two_projects(tmp_path: Path) -> None:
    """Outside of any repository the folder is the project; its name is short, and the root has none."""
    (tmp_path / "a" / "notes").mkdir(parents=True)
    (tmp_path / "b" / "notes").mkdir(parents=True)
    one, other = (find_project(tmp_path / place / "notes").name for place in "ab")
    assert one != other
    assert one.startswith("notes-")
    assert len(one) == len("notes-") + 8
    assert find_project(Path("/")).name == "default"
    assert len(find_project(tmp_path / ("x" * 250)).name) <= 120


def test_the_file_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`.recollect.toml` names the project for every folder of its checkout; the setting names it for a process."""
    checkout = make_checkout(tmp_path / "api", ("origin", "git@github.com:acme/api.git"))
    (checkout / "src").mkdir()
    monkeypatch.chdir(checkout / "src")
    monkeypatch.delenv("RECOLLECT_PROJECT", raising=False)
    assert Settings(home=tmp_path).project == "github.com/acme/api"
    file = set_project(Path.cwd(), 'the "engine" \\ ours', tmp_path)
    assert file == checkout / ".recollect.toml"
    assert Settings(home=tmp_path).project == 'the "engine" \\ ours'
    monkeypatch.setenv("RECOLLECT_PROJECT", "mine")
    assert Settings(home=tmp_path).project == "mine"


@pytest.mark.parametrize("remote", [[], [("origin", "git@github.com:mallory/api.git")]])
def test_a_repository_speaks_for_no_other_project(tmp_path: Path, remote: list[tuple[str, str]]) -> None:
    """A file that came with a repository names none but its own; what its user said holds until the file changes."""
    checkout, home = make_checkout(tmp_path / "api", *remote), tmp_path / "home"
    file = checkout / ".recollect.toml"
    file.write_text('project = "github.com/acme/payments"\n', encoding="utf-8")
    found = find_project(checkout, home)
    assert found.claimed == "github.com/acme/payments" != found.name
    set_project(checkout, "github.com/acme/payments", home)
    assert find_project(checkout, home)[:2] == ("github.com/acme/payments", str(file))
    assert find_project(checkout, tmp_path / "other").claimed == "github.com/acme/payments"
    file.write_text('project = "github.com/acme/salaries"\n', encoding="utf-8")
    assert find_project(checkout, home).claimed == "github.com/acme/salaries"
    assert (home / "projects.json").stat().st_mode & 0o077 == 0


def test_a_repository_may_name_a_part_of_itself(tmp_path: Path) -> None:
    """Without a word of its user a repository's file names its own remote, or something below that."""
    checkout = make_checkout(tmp_path / "api", ("origin", "git@github.com:acme/api.git"))
    for name, believed in (
        ("github.com/acme/api/web", True),
        ("github.com/acme/api", True),
        ("github.com/acme/apis", False),
    ):
        (checkout / ".recollect.toml").write_text(f'project = "{name}"\n', encoding="utf-8")
        assert (find_project(checkout).name == name) == believed


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("project = 3", "names no project"),
        ("project = [", "cannot be read"),
        ("project = " + "[" * 100_000, "cannot be read"),
    ],
)
def test_a_file_that_says_nothing_is_an_error(tmp_path: Path, text: str, said: str) -> None:
    """A file that cannot be read does not file memories under another name in silence."""
    (tmp_path / ".recollect.toml").write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInput, match=said):
        find_project(tmp_path)


@pytest.mark.parametrize("config", CONFIGS)
def test_a_damaged_repository_is_one_without_a_remote(tmp_path: Path, config: str) -> None:
    """Whatever stands in the configuration, and wherever `.git` leads, there is a project and no error."""
    checkout = make_checkout(tmp_path / "api")
    (checkout / ".git" / "config").write_text(config, encoding="latin-1")
    assert find_project(checkout).name.startswith("api-")
    (tmp_path / "lost").mkdir()
    (tmp_path / "lost" / ".git").write_text("gitdir: /nowhere", encoding="utf-8")
    assert find_project(tmp_path / "lost").name.startswith("lost-")


def test_clones_of_each_other_end(tmp_path: Path) -> None:
    """Two repositories that name each other as their remote are no endless search."""
    one = make_checkout(tmp_path / "one", ("origin", str(tmp_path / "two")))
    make_checkout(tmp_path / "two", ("origin", str(one)))
    assert find_project(one).name


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_an_empty_git_makes_no_checkout(tmp_path: Path, kind: str) -> None:
    """The sandbox of Codex puts an empty `.git` into the folder that it works in: the repository around it counts."""
    inner = make_checkout(tmp_path / "shop", ("origin", "git@github.com:acme/shop.git")) / "src"
    inner.mkdir()
    (inner / ".git").mkdir() if kind == "folder" else (inner / ".git").touch()
    assert find_project(inner).name == "github.com/acme/shop"

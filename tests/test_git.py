"""What git says of a repository's remote: aliases, rewrites, includes and spellings lead to one project."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from recollect import git
from recollect.private_files import write_private
from recollect.projects import find_project

API = "github.com/acme/api"
SPELLINGS = [
    "git@github.com:acme/api.git",
    "git@GitHub.com:Acme/API.git",
    "https://github.com/ACME/api.GIT",
    "https://www.github.com/acme/api/",
    "ssh://git@ssh.github.com:443/acme/api.git",
    "ssh://git@github.com.:22//acme/api",
    "git+ssh://git@github.com/acme/api.git",
    "https://ada@github.com:443/acme//api",
]
HOSTILE = {
    "core.fsmonitor": "{command}",
    "core.sshCommand": "{command}",
    "core.pager": "{command}",
    "pager.remote": "{command}",
    "pager.config": "{command}",
    "core.hooksPath": "{folder}",
    "credential.helper": "!{command}",
    "core.gitProxy": "{command}",
    "core.askPass": "{command}",
    "core.editor": "{command}",
    "core.alternateRefsCommand": "{command}",
    "alias.remote": "!{command}",
    "alias.config": "!{command}",
    "remote.origin.uploadpack": "{command}",
    "remote.origin.vcs": "ext",
}
ADDRESSES = ["ext::sh -c {command}", "ssh://-oProxyCommand={command}/x", "-oProxyCommand={command}:x/y", "git@-x:a/b"]


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the home of a user whose configuration of git is empty, and forget what was known."""
    home = tmp_path / "user"
    (home / ".ssh").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for name in ("GIT_DIR", "GIT_CONFIG_GLOBAL", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    git._known.clear()
    return home


def ask(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True)


def repository(folder: Path, address: str = "", name: str = "origin") -> Path:
    """Make a repository with a commit, and with a remote where an address is given."""
    folder.mkdir(parents=True)
    ask(folder, "init", "-q")
    ask(folder, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x")
    if address:
        ask(folder, "remote", "add", name, address)
    return folder


def name_of(folder: Path, home: Path | None = None) -> str:
    git._known.clear()
    return find_project(folder, home).name


@pytest.mark.parametrize("address", SPELLINGS)
def test_one_host_has_one_name(user: Path, tmp_path: Path, address: str) -> None:
    """Letter case, ports, doors and doubled slashes make no other project."""
    assert name_of(repository(tmp_path / "x", address)) == API


def test_other_hosts_and_owners_are_other_projects(user: Path, tmp_path: Path) -> None:
    """Hosts below another one, and other owners, stay apart."""
    addresses = ["https://git.acme.com/a/b", "https://acme.com/a/b", "https://acme.com/c/b", "https://ssh.dev/a/b"]
    names = {name_of(repository(tmp_path / str(number), one)) for number, one in enumerate(addresses)}
    assert len(names) == 4


def test_an_alias_of_ssh_is_its_host(user: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What `~/.ssh/config` calls a host leads to that host; the same host at another port keeps its name."""
    config = (
        "Host work github.com-work\n  HostName github.com\nHost gitlab.com\n  HostName altssh.gitlab.com\n  Port 443\n"
    )
    asked = f'#!/bin/sh\nexec /usr/bin/ssh -F {user}/.ssh/config "$@"\n'  # ssh itself looks up the home of the user
    (user / ".ssh" / "config").write_text(config)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ssh").write_text(asked)
    (tmp_path / "bin" / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    for number, address in enumerate(("git@work:acme/api.git", "ssh://git@github.com-work/acme/api")):
        found = find_project(repository(tmp_path / str(number), address))
        assert found.name == API
        assert found.former[0].partition("/")[2] == "acme/api"
    assert name_of(repository(tmp_path / "lab", "git@gitlab.com:acme/api.git")) == "gitlab.com/acme/api"


def test_git_rewrites_and_includes_count(user: Path, tmp_path: Path) -> None:
    """`url.insteadOf` and files that a configuration includes are git's to resolve, those of the user too."""
    (user / ".gitconfig").write_text('[url "git@github.com:"]\n\tinsteadOf = gh:\n[include]\n\tpath = more\n')
    (user / "more").write_text('[url "https://github.com/acme/"]\n\tinsteadOf = ours:\n')
    assert name_of(repository(tmp_path / "a", "gh:acme/api")) == API
    assert name_of(repository(tmp_path / "b", "ours:api.git")) == API
    included = repository(tmp_path / "c")
    (included / ".git" / "remotes").write_text('[remote "origin"]\n\turl = https://github.com/acme/api\n')
    ask(included, "config", "include.path", "remotes")
    assert name_of(included) == API


def test_a_bare_repository_and_its_worktrees_are_one_project(user: Path, tmp_path: Path) -> None:
    """With a remote and without, inside the bare repository and in a worktree of it, the name is the same."""
    source = repository(tmp_path / "source", "https://github.com/acme/api")
    for number, address in enumerate(("https://github.com/acme/api", "")):
        bare, tree = tmp_path / f"{number}.git", tmp_path / f"tree{number}"
        subprocess.run(["git", "clone", "-q", "--bare", str(source), str(bare)], check=True, capture_output=True)
        ask(bare, "remote", *(("set-url", "origin", address) if address else ("remove", "origin")))
        ask(bare, "worktree", "add", "-q", str(tree))
        names = {name_of(one) for one in (bare, bare / "refs", tree)}
        assert len(names) == 1
        assert (names == {API}) == bool(address)


def test_a_bare_repository_inside_a_checkout_speaks_for_nothing(user: Path, tmp_path: Path) -> None:
    """A repository that brings a folder which looks like another repository is still itself there."""
    outer = repository(tmp_path / "outer", "https://github.com/mallory/tool")
    subprocess.run(["git", "init", "-q", "--bare", str(outer / "docs")], check=True, capture_output=True)
    ask(outer / "docs", "remote", "add", "origin", "https://github.com/acme/payments")
    assert name_of(outer / "docs") == "github.com/mallory/tool"


def test_the_name_before_is_known(user: Path, tmp_path: Path) -> None:
    """After `git remote set-url` the project has its new name at once, and its repository's former one is kept."""
    home = tmp_path / "data"
    home.mkdir()
    here = repository(tmp_path / "x", "https://github.com/acme/old")
    assert find_project(here, home)[::4] == ("github.com/acme/old", ())
    ask(here, "remote", "set-url", "origin", "https://github.com/acme/new")
    for _ in range(2):
        assert find_project(here, home)[::4] == ("github.com/acme/new", ("github.com/acme/old",))
        git._known.clear()  # as another process, which has only the file
    assert (home / git.FILE).stat().st_mode & 0o077 == 0
    ask(here, "remote", "set-url", "origin", "https://github.com/acme/old")
    assert find_project(here, home)[::4] == ("github.com/acme/old", ("github.com/acme/new",))


CHANGES: dict[str, Callable[[Path, Path], object]] = {
    "the user's configuration": lambda user, here: (user / ".gitconfig").write_text(
        '[url "https://github.com/acme/"]\n\tinsteadOf = x:\n'
    ),
    "the repository": lambda user, here: ask(here, "remote", "set-url", "origin", "https://github.com/acme/api"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_git_is_asked_again_only_after_a_change(
    user: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """Nothing is started while no file has changed, in this process or the next, and a name then takes a moment."""
    home = tmp_path / "data"
    home.mkdir()
    here = repository(tmp_path / "x", "x:api")
    asked, run = list[str](), git._output_of
    monkeypatch.setattr(git, "_output_of", lambda *words: asked.append(words[0]) or run(*words))
    find_project(here, home)
    before = len(asked)
    git._known.clear()
    began = time.perf_counter()
    for _ in range(20):
        find_project(here, home)
    assert (len(asked), time.perf_counter() - began < 0.2) == (before, True)
    CHANGES[change](user, here)
    assert find_project(here, home).name == API
    assert len(asked) > before


def test_without_git_the_configuration_is_read(user: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no git is installed, or only one in the working folder, the remote is read as it stands."""
    here = repository(tmp_path / "x", "git@github.com:acme/api.git")
    for path in ("", ".", str(tmp_path / "empty")):
        monkeypatch.setenv("PATH", path)
        monkeypatch.chdir(here)
        (here / "git").write_text("#!/bin/sh\ntouch started\n")
        (here / "git").chmod(0o755)
        assert name_of(here) == API
    assert not (here / "started").exists()


@pytest.mark.parametrize("address", ["https://github.com/acme/api", *ADDRESSES])
def test_nothing_that_a_repository_names_is_run(user: Path, tmp_path: Path, address: str) -> None:
    """A configuration full of commands, and an address that is one, starts none of them."""
    command, here = tmp_path / "command", repository(tmp_path / "x")
    command.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    command.chmod(0o755)
    for name in ("post-checkout", "fsmonitor", "reference-transaction"):
        (tmp_path / name).symlink_to(command)
    with (here / ".git" / "config").open("a") as config:
        for name, text in HOSTILE.items():
            section, _, key = name.rpartition(".")
            head = f'[{section.replace(".", chr(32) + chr(34), 1)}"]' if "." in section else f"[{section}]"
            config.write(f'{head}\n\t{key} = "{text.format(command=command, folder=tmp_path)}"\n')
        config.write(f'[remote "origin"]\n\turl = "{address.format(command=command)}"\n')
        config.write(f'[remote "-c"]\n\turl = "{address.format(command=command)}"\n')
    assert name_of(here)
    assert not (tmp_path / "started").exists()


def test_what_never_ends_is_left(user: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An included pipe that nobody writes to costs a moment once, and the remote is then read as it stands."""
    home = tmp_path / "data"
    home.mkdir()
    here = repository(tmp_path / "x", "https://github.com/acme/api")
    os.mkfifo(tmp_path / "pipe")
    with (here / ".git" / "config").open("a") as config:
        config.write(f"[include]\n\tpath = {tmp_path}/pipe\n")
    monkeypatch.setattr(git, "_PATIENCE", 0.2)
    assert find_project(here, home).name == API
    began = time.perf_counter()
    assert find_project(here, home).name == API
    assert time.perf_counter() - began < 0.1


@pytest.mark.parametrize("text", ["", "{", "[]", '{"/x": 3}', '{"/x": {"at": "soon"}}', "\x00"])
def test_a_file_that_is_none_of_ours_counts_for_nothing(user: Path, tmp_path: Path, text: str) -> None:
    """Whatever stands where the names are kept, the project is found, and the file is whole afterwards."""
    home = tmp_path / "data"
    home.mkdir()
    write_private(home / git.FILE, text)
    here = repository(tmp_path / "x", "https://github.com/acme/api")
    assert name_of(here, home) == API
    assert json.loads((home / git.FILE).read_text())

"""After the last agent is uninstalled nothing of shell completion is left, and nothing of others is touched."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer._completion_shared import install_bash, install_fish, install_zsh

from recollect.doors.cli.shells import remove_completion

INSTALL = {"bash": install_bash, "zsh": install_zsh, "fish": install_fish}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty home folder."""
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    return tmp_path


@pytest.mark.parametrize("shell", INSTALL)
def test_what_was_installed_is_removed(home: Path, shell: str) -> None:
    """The script goes with the line that loads it; what stood in the shell's file before stays."""
    for name in (".bashrc", ".zshrc"):
        (home / name).write_bytes(b"export A=1 # caf\xe9\n" if shell == "fish" else b"export A=1\n")
    script = INSTALL[shell](prog_name="recollect", complete_var="_RECOLLECT_COMPLETE", shell=shell)
    assert script in remove_completion(home)
    assert not script.exists()
    left = b"".join((home / name).read_bytes() for name in (".bashrc", ".zshrc"))
    assert left.count(b"export A=1") == 2
    assert b"recollect" not in left
    assert b".zfunc" not in left
    assert remove_completion(home) == []


def test_scripts_of_others_stay(home: Path) -> None:
    """A file of that name that is not ours, and the line of zsh that others need, are left alone."""
    install_zsh(prog_name="recollect", complete_var="_RECOLLECT_COMPLETE", shell="zsh")
    (home / ".zfunc/_other").write_text("#compdef other\n", encoding="utf-8")
    fish = home / ".config/fish/completions/recollect.fish"
    fish.parent.mkdir(parents=True)
    fish.write_text("complete -c recollect -a mine\n", encoding="utf-8")
    assert remove_completion(home) == [home / ".zfunc/_recollect"]
    assert ".zfunc" in (home / ".zshrc").read_text(encoding="utf-8")
    assert fish.exists()


def test_an_empty_home_has_nothing_to_remove(home: Path) -> None:
    """Without any file of a shell nothing happens."""
    assert remove_completion(home) == []

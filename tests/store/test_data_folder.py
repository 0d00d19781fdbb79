"""The data folder: what other users own or put there is refused, and their right to write into ours is taken back."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from recollect import Settings
from recollect.client import launch
from recollect.errors import StoreUnusable
from recollect.store.files import secure_folder
from recollect.store.store_lock import held, own
from stores import open_app

SOMEBODY = 65_534


def given_away(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let something belong to another user, or all that is ours where only the superuser can do so."""
    if os.geteuid() == 0:
        os.chown(path, SOMEBODY, -1, follow_symlinks=False)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: SOMEBODY)


@pytest.mark.parametrize("mode", [0o770, 0o777, 0o702])
def test_others_lose_the_right_to_write(settings: Settings, mode: int) -> None:
    """A folder of ours into which others may write is only ours to write into, its subfolders too."""
    logs = settings.folder / "logs"
    logs.mkdir()
    for folder in (settings.folder, logs):
        folder.chmod(mode)
    open_app(settings).close()
    assert [folder.stat().st_mode & 0o777 for folder in (settings.folder, logs)] == [mode & ~0o022] * 2


@pytest.mark.parametrize("linked", [True, False])
def test_a_database_of_another_user_is_refused(
    settings: Settings, tmp_path: Path, linked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is named by its path, or a link in its place, is not opened where another user has put it there."""
    file = tmp_path / "data" / "notes.db"
    file.parent.mkdir()
    if linked:
        file.symlink_to(settings.database)
    else:
        file.touch()
    given_away(file, monkeypatch)
    with pytest.raises(StoreUnusable, match=r"notes.db belongs to another user"):
        open_app(settings.model_copy(update={"memory_db": file}))


@pytest.mark.parametrize(
    "planted", ["", "memory.db", "chroma", "logs", "journal.tips", "starting.lock", "logs/daemon.log"]
)
def test_what_another_user_made_is_refused(
    settings: Settings, tmp_path: Path, planted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder, a file or a link of another user is named in the error of each way in, and nothing is followed."""
    target, path = tmp_path / "target", settings.folder / planted
    if planted:
        path.unlink(missing_ok=True)
        path.parent.mkdir(exist_ok=True)
        path.symlink_to(target)
    given_away(path, monkeypatch)
    for opening in (launch.ensure, open_app, lambda one: own(one.folder), lambda one: held(one.folder)):
        with pytest.raises(StoreUnusable, match=r"belongs to another user.*RECOLLECT_HOME"):
            opening(settings)
        (settings.folder / "owner.lock").touch()  # whoever holds no lock is not looked for
    assert not target.exists()


def test_links_of_our_own_are_followed(settings: Settings, tmp_path: Path) -> None:
    """Whoever keeps the vector index elsewhere by a link may do so."""
    (tmp_path / "elsewhere").mkdir()
    (settings.folder / "chroma").symlink_to(tmp_path / "elsewhere")
    with open_app(settings) as app:
        app.vectors.sync()
    assert (tmp_path / "elsewhere" / "chroma.sqlite3").exists()


def test_a_folder_for_everybody_stays_as_it_is(tmp_path: Path) -> None:
    """A folder such as /tmp, in which everybody keeps their own files, is no data folder and keeps its mode."""
    tmp_path.chmod(0o1777)
    with pytest.raises(StoreUnusable, match="Other users can write into"):
        secure_folder(tmp_path)
    assert tmp_path.stat().st_mode & 0o7777 == 0o1777

"""Files of another user in a data folder: each refusal names the file, its owner and the command that helps."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from callers import ADA
from recollect import Draft, Query, Settings, recall, remember
from recollect.client import launch, runtime
from recollect.client.daemon import published
from recollect.doors.http.daemon import log_to_file
from recollect.errors import DaemonUnreachable, StoreUnusable
from recollect.store.files import secure_folder
from recollect.store.ownership import foreign_path, problem
from recollect.store.sql.database import open_file
from recollect.store.store_lock import own
from stores import open_app
from unprivileged import unprivileged

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser can give files to other users")
NOBODY = 65_534


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Return a data folder of `nobody`, as whom the test looks at it, and let that user come to it."""
    for one in (tmp_path, *tmp_path.parents):
        if one.is_dir() and one != one.parent and not one.stat().st_mode & 0o001:
            one.chmod(one.stat().st_mode | 0o011)
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    os.chown(data, NOBODY, NOBODY)
    yield data
    logging.getLogger().handlers[:] = [one for one in logging.getLogger().handlers if str(data) not in repr(one)]


def planted(path: Path, owner: int = 0, mode: int = 0o600) -> Path:
    """Put a file of another user there."""
    path.parent.mkdir(exist_ok=True, mode=0o755)
    path.touch()
    path.chmod(mode)
    os.chown(path, owner, owner)
    return path


def settings_of(folder: Path) -> Settings:
    return Settings(home=folder, user="ada", daemon=False)


WAYS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "the lock of the owner": ("owner.lock", own),
    "the description of the owner": ("owner.json", own),
    "the database": ("memory.db", lambda folder: open_file(folder / "memory.db")),
    "the log": ("logs/daemon.log", lambda folder: log_to_file(settings_of(folder))),
    "the lock of a start": ("starting.lock", lambda folder: launch._start_once(settings_of(folder), 0.0)),
    "the folder of logs": ("logs/x", lambda folder: log_to_file(settings_of(folder))),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_file_of_root_is_named_with_its_remedy(folder: Path, way: str) -> None:
    """One file of root's in one's own folder is named, with its owner and the command that gives it back."""
    name, open_by = WAYS[way]
    path = planted(folder / name)
    (folder / "all.backup").touch(mode=0o600)  # another one of root's, which is in nobody's way
    named = path.parent if name == "logs/x" else path
    with unprivileged(), pytest.raises(StoreUnusable) as raised:
        open_by(folder)
    assert f"{named} belongs to root" in str(raised.value)
    assert f"`sudo chown -R nobody: {named}`" in str(raised.value)


def test_the_runtime_file_of_root_is_named(folder: Path) -> None:
    """A client that may not read where the daemon is says whose file that is."""
    path = planted(folder / runtime.NAME)
    with (
        unprivileged(),
        pytest.raises(DaemonUnreachable, match=f"{path} belongs to root.*sudo chown -R nobody: {path}"),
    ):
        published(folder)


@pytest.mark.parametrize(("owner", "name"), [(0, "root"), (1, "daemon"), (54_321, "user 54321")])
@pytest.mark.parametrize("mode", [0o700, 0o755])
def test_the_owner_of_a_folder_is_named(folder: Path, owner: int, name: str, mode: int) -> None:
    """A whole folder of another user is refused by every way in, with that user's name and another place to go."""
    os.chown(folder, owner, owner)
    folder.chmod(mode)
    ways: list[Callable[[], object]] = [
        lambda: own(folder),
        lambda: log_to_file(settings_of(folder)),
        lambda: launch._start_once(settings_of(folder), 0.0),
    ]
    for way in ways:
        with unprivileged(), pytest.raises(StoreUnusable) as raised:
            way()
        assert name in str(raised.value)
        assert "RECOLLECT_HOME" in str(raised.value)
        assert f"`sudo chown -R nobody: {folder}`" in str(raised.value)


def test_a_folder_above_is_named(folder: Path) -> None:
    """Where the data folder is still to be made, in a place of somebody else, that place is named."""
    os.chown(folder, 0, 0)
    folder.chmod(0o755)
    with unprivileged(), pytest.raises(StoreUnusable, match=f"{folder} belongs to root"):
        own(folder / "store")


def test_a_folder_of_foreign_files_that_may_be_used_is_fine(folder: Path) -> None:
    """What another user owns and lets everybody write, and our own files, are in nobody's way."""
    planted(folder / "shared", mode=0o666)
    planted(folder / "mine", owner=NOBODY)
    (folder / "link").symlink_to("/etc/shadow")
    with unprivileged():
        secure_folder(folder)
        assert foreign_path(folder) is None
        assert problem(folder) == ""


@pytest.mark.parametrize("mode", [0o755, 0o700])
def test_the_doctor_does_not_advise_to_reindex_what_is_not_ours(folder: Path, mode: int) -> None:
    """With a vector index of root's the doctor names it, its owner and the command, and words still answer."""
    settings = settings_of(folder)
    with unprivileged(), open_app(settings) as app:
        remember(app, Draft(content="The harbour opens at dawn."), ADA)
        app.vectors.sync()
    chroma = folder / "chroma"
    for one in (chroma, *chroma.rglob("*")):
        os.chown(one, 0, 0)
        one.chmod(mode if one.is_dir() else 0o644)
    with unprivileged():
        if mode == 0o700:
            with pytest.raises(StoreUnusable, match=f"{chroma} belongs to root.*sudo chown -R nobody: {chroma}"):
                open_app(settings)
            return
        with open_app(settings) as app:
            remember(app, Draft(content="The crane is painted green."), ADA)
            assert recall(app, Query(query="crane painted"), ADA).hits
            checks = {one.name: one for one in app.checks(False)}
    assert f"{chroma} belongs to root" in checks["files"].seen
    assert f"sudo chown -R nobody: {chroma}" in checks["files"].advice
    assert not any("reindex" in one.advice for one in checks.values() if not one.well)
    assert any(not one.well for one in checks.values() if one.name != "files")

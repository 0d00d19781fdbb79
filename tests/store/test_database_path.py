"""A database under a path of its own: what belongs to it lies beside it, and by whatever way it has one owner."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import recollect
from callers import ADA
from recollect import Draft, Settings, remember
from recollect.errors import InvalidInput, StoreOwned
from recollect.setting_texts import SettingTexts
from recollect.store import kept_files, store_lock
from run_operations import add, do, listed
from stores import open_app


@pytest.fixture
def apart(settings: Settings, tmp_path: Path) -> Settings:
    """Return settings of the same data folder with a database elsewhere."""
    return settings.model_copy(update={"memory_db": tmp_path / "data" / "notes.db"})


def test_all_that_belongs_to_it_lies_beside_it(settings: Settings, apart: Settings, tmp_path: Path) -> None:
    """Another name has a folder of its own for lock, vectors and logs; in the data folder nothing is made."""
    before = sorted(settings.home.iterdir())
    with open_app(apart) as app:
        remember(app, Draft(content="The mast is oak."), ADA)
        assert {one.name for one in apart.folder.iterdir()} >= {"owner.lock", "owner.json", "journal.tips"}
    assert apart.folder == tmp_path / "data" / "notes.db.files"
    assert sorted(settings.home.iterdir()) == before
    with open_app(settings) as app:
        assert listed(app) == []
    with open_app(apart) as app:
        assert len(listed(app)) == 1


def test_it_has_one_owner_through_any_home(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a data folder, its path or a link names the database, whoever comes second is told of the owner."""
    monkeypatch.setattr(store_lock, "_PATIENCE", 0.0)
    link, home = tmp_path / "link.db", tmp_path / "home of a link"
    home.mkdir(mode=0o700)
    for one in (link, home / "memory.db"):
        one.symlink_to(settings.home / "memory.db")
    other = settings.model_copy(update={"home": tmp_path / "other"})
    ways = [
        settings,
        other.model_copy(update={"memory_db": settings.home / "memory.db"}),
        other.model_copy(update={"memory_db": link}),
        settings.model_copy(update={"home": home}),
    ]
    for first in ways:
        with open_app(first):
            for second in ways:
                with pytest.raises(StoreOwned):
                    open_app(second)


def test_two_in_one_folder_are_two_stores(apart: Settings) -> None:
    """Each of two databases beside each other has its own owner."""
    beside = apart.model_copy(update={"memory_db": apart.database.with_name("more.db")})
    with open_app(apart) as one, open_app(beside) as other:
        add(one, "The mast is oak.")
        assert listed(other) == []


def test_backup_and_restore_follow_it(apart: Settings, tmp_path: Path) -> None:
    """A backup of it comes back in its place; the database before is kept beside it, and named when one forgets."""
    saved = tmp_path / "saved.zip"
    with open_app(apart) as app:
        add(app, "The mast is oak.")
    with pytest.raises(InvalidInput, match="is the store itself"):
        recollect.backup(apart.database, apart, force=True)
    assert recollect.backup(saved, apart).counts["memories"] == 1
    with open_app(apart) as app:
        two = add(app, "The keel is elm.")
    restored = recollect.restore(saved, apart, force=True)
    assert list(kept_files.kept_aside(apart.database)) == [restored.kept]
    assert restored.kept is not None
    assert restored.kept.name.startswith("notes.db.before-restore-")
    with open_app(apart) as app:
        (one,) = listed(app)
        assert (one, two) == (1, 2)
        assert restored.kept.name in " ".join(do(app, "forget", id=str(one)).notes)


@pytest.mark.parametrize(
    "name", ["", "memory.db", "notes.db", "../notes.db", "~/notes.db", "link.db", "empty/notes.db"]
)
@pytest.mark.parametrize("given", [{}, {"home": "other"}])
def test_hooks_and_commands_find_the_same_files(
    name: str, given: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What looks for the daemon without the settings looks where the settings would."""
    for one in [one for one in os.environ if one.startswith("RECOLLECT_")]:
        monkeypatch.delenv(one)
    (tmp_path / "link.db").symlink_to(tmp_path / "data" / "real.db")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    told = {"RECOLLECT_HOME": str(tmp_path / "home")} | ({"RECOLLECT_MEMORY_DB": name} if name else {})
    for variable, text in told.items():
        monkeypatch.setenv(variable, text)
    assert Path(SettingTexts(given, told).store_folder) == Path(os.path.normpath(Settings(**given).folder))

"""`recollect project`: which project the working folder belongs to, what told it, and how it is named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from command_line import Ended, call
from recollect import Draft, Settings, remember
from recollect.doors.handlers import perform
from stores import open_app


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder called `api`, in no repository."""
    (tmp_path / "api").mkdir()
    return tmp_path / "api"


def typed(folder: Path, settings: Settings, *arguments: str) -> Ended:
    """Type a command in a folder, with nothing that names the project."""
    theirs = {name: value for name, value in os.environ.items() if not name.startswith("RECOLLECT_")}
    ours = {"HOME": settings.home, "USER": "ada", "TEAM": "crew", "DAEMON": "0"}
    environment = theirs | {f"RECOLLECT_{name}": str(value) for name, value in ours.items()}
    return call(["project", *arguments], environment, folder)


def test_the_project_is_shown_and_named(folder: Path, settings: Settings) -> None:
    """It says which one it is and what told it; a name is written into the folder's file and holds from then on."""
    shown = typed(folder, settings).out
    assert shown.startswith("api-")
    assert "from this folder's path" in shown
    assert typed(folder, settings, "set", "engine").code == 0
    assert typed(folder, settings, "--json").json == {
        "project": "engine",
        "source": str(folder / ".recollect.toml"),
        "folder_name": "api",
        "under_folder_name": 0,
    }
    assert typed(folder, settings, "set", " ").code == 2


def test_memories_under_the_former_name_are_counted(folder: Path, settings: Settings) -> None:
    """Memories of the project that the folder's name gave are told, with the commands that copy them."""
    with open_app(settings) as app:
        remember(app, Draft(content="We deploy on Fridays"), settings.caller.model_copy(update={"project": "api"}))
    shown = " ".join(typed(folder, settings).out.split())
    assert "1 memory is filed under api" in shown
    assert "`recollect project move api` moves them here" in shown


def test_memories_move_to_the_new_name(folder: Path, settings: Settings) -> None:
    """A new name tells what stays behind; `move` brings it all here, private ones too, and leaves nothing there."""
    assert typed(folder, settings, "set", "old").code == 0
    old, new = (settings.caller.model_copy(update={"project": name}) for name in ("old", "new"))
    with open_app(settings) as app:
        remember(app, Draft(content="We deploy on Fridays", key="deploys", tags=["ops"]), old)
        remember(app, Draft(content="My desk is by the window", sensitivity="private"), old)
        perform(app, "store_fact", {"subject": "deploys", "predicate": "happen", "object": "on Fridays"}, old)
    named = typed(folder, settings, "set", "new", "--json")
    assert named.json["under_former_name"] == 2
    assert typed(folder, settings, "move", "old").out == "2 memories moved from old to new.\n"
    levels = {"allow_private": True}
    with open_app(settings) as app:
        assert perform(app, "stats", levels, old).memories == 0
        moved = {one.content: one for one in perform(app, "list_memories", levels, new).memories}
        assert moved.keys() == {"We deploy on Fridays", "My desk is by the window"}
        assert (moved["We deploy on Fridays"].key, moved["We deploy on Fridays"].tags) == ("deploys", ("ops",))
        assert [str(one.object) for one in perform(app, "query_facts", {}, new).facts] == ["on Fridays"]
        assert perform(app, "query_facts", {}, old).facts == ()
    assert typed(folder, settings, "rename", "new", "newest").out.endswith("2 memories moved from new to newest.\n")
    assert typed(folder, settings).out.startswith("newest (from ")
    assert typed(folder, settings, "set", "new", "--move").out.endswith("2 memories moved from newest to new.\n")
    assert typed(folder, settings, "rename", "new", "yard", "--json").json["project"] == "yard"
    assert typed(folder, settings, "set", "new").out.splitlines()[1].startswith("2 memories are filed under yard, ")
    assert typed(folder, settings, "rename", "yard", "pier").out == "2 memories moved from yard to pier.\n"
    assert typed(folder, settings, "rename", "gone", "pier").code == 4
    assert typed(folder, settings, "move", "old").code == 4
    assert typed(folder, settings, "move", "new").code == 2

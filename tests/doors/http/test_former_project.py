"""A session that begins is told of memories that are filed under the name that its project had before."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from starlette.datastructures import QueryParams

from callers import ADA
from local_access import local_access
from recollect import App, Settings, git
from recollect.doors.handlers import perform

OLD, NEW = "github.com/acme/old", "github.com/acme/new"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a repository whose remote was asked for once."""
    git._known.clear()
    folder = tmp_path / "checkout"
    for words in (["init", "-q"], ["remote", "add", "origin", f"https://{OLD}"]):
        folder.mkdir(exist_ok=True)
        subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True)
    return folder


def started(app: App, settings: Settings, folder: Path, home: Path, **variables: str) -> str:
    """Return what an agent is told when a session begins in a folder."""
    told = {"RECOLLECT_TEAM": "crew", "RECOLLECT_HOME": str(home)} | variables
    client = {"given": {"user": "ada"}, "variables": told, "folder": str(folder), "user": "ada"}
    access = local_access(app, settings)
    event = access.event(QueryParams(""), {"session_id": "s", "source": "startup"}, client)
    answer = access.events.take("session:start", event, app.clock().isoformat())
    assert access.events.finish(60)
    return str(answer.body["text"])


def test_a_start_names_the_former_project(app: App, settings: Settings, checkout: Path, tmp_path: Path) -> None:
    """After `git remote set-url` a start says how much is filed under the old name, and how it gets here."""
    home = tmp_path / "data"
    home.mkdir()
    for text in ("The ferry leaves at nine.", "The mast is made of pine."):
        perform(app, "remember", {"content": text}, ADA.in_project(OLD))
    assert "had before" not in started(app, settings, checkout, home)
    subprocess.run(["git", "-C", str(checkout), "remote", "set-url", "origin", f"https://{NEW}"], check=True)
    told = started(app, settings, checkout, home)
    assert f"2 memories are filed under {OLD}, the name that this project had before." in told
    assert f"`recollect project move {OLD}` moves them here." in told
    assert "had before" not in started(app, settings, checkout, home, RECOLLECT_PROJECT="elsewhere")


def test_an_empty_former_project_is_not_named(app: App, settings: Settings, checkout: Path, tmp_path: Path) -> None:
    """Where nothing is filed under the old name a start says nothing of it."""
    home = tmp_path / "data"
    home.mkdir()
    started(app, settings, checkout, home)
    subprocess.run(["git", "-C", str(checkout), "remote", "set-url", "origin", f"https://{NEW}"], check=True)
    assert OLD not in started(app, settings, checkout, home)


def test_a_former_project_of_nobody_is_not_named(app: App) -> None:
    """A client that names projects which are not there, or many, is told of none."""
    found = perform(app, "answer_start", {"session_id": "s", "former_projects": [OLD, "x", "engine"]}, ADA)
    assert "filed under" not in found.text

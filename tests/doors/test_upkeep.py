"""Reindex, backup and restore as somebody types them: what they say, how they end, and what recall finds afterwards."""

from __future__ import annotations

import json
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from callers import ADA
from places import ROOT
from recollect import Draft, Settings, reindex, remember
from recollect.errors import InvalidInput, ModelMismatch, ModelUnusable, StoreUnusable
from second_model import ID, NAME, second_model
from stores import open_app

pytestmark = pytest.mark.slow

Typed = Callable[..., Any]


@pytest.fixture
def stocked(settings: Settings) -> Settings:
    """Return the settings of a store with three memories."""
    with open_app(settings) as app:
        for key, content in {
            "mascot": "The mascot is a quokka",
            "ship": "We deploy on Fridays",
            "db": "Ada runs it",
        }.items():
            remember(app, Draft(content=content, key=key), ADA)
        app.vectors.sync()
    return settings


@pytest.fixture
def models(tmp_path: Path) -> dict[str, str]:
    """Return the variable that names a models folder with a second model."""
    return {"RECOLLECT_MODELS_DIR": str(second_model(tmp_path / "models"))}


def found(typed: Typed, query: str, **changes: str) -> list[Any]:
    """Return what recall finds, with its scores."""
    memories = typed("recall", query, "--json", **changes).json["memories"]
    return [(one["key"], round(one["score"], 4)) for one in memories]


def test_reindex_says_how_many(typed: Typed, stocked: Settings) -> None:
    """A reindex tells the number of memories and the model, and recall by meaning works after it."""
    assert stocked
    assert typed("reindex", "--json").json == {"memories": 3}
    assert typed("reindex", "--all", "--json").json == {"memories": 3}
    assert typed("reindex").out.strip() == "3 memories are indexed with notes-MiniLM-L6-v2."
    assert found(typed, "which animal stands for us?")[0][0] == "mascot"
    assert typed("doctor").code == 0


def test_reindex_moves_to_the_named_model(typed: Typed, stocked: Settings, models: dict[str, str]) -> None:
    """`--model` moves the store and says what to set; then the old model is refused and the new one finds all."""
    assert stocked
    moved = typed("reindex", "--model", NAME, **models)
    assert moved.code == 0
    assert f"3 memories are indexed with {NAME}." in moved.out
    assert f"RECOLLECT_MODEL={NAME}" in moved.out
    refused = typed("recall", "quokka")
    assert (refused.code, ID in refused.err) == (ModelMismatch.exit_code, True)
    theirs = models | {"RECOLLECT_MODEL": NAME}
    assert found(typed, "which animal stands for us?", **theirs)[0][0] == "mascot"
    assert typed("doctor", **theirs).code == 0
    back = typed("reindex", **models)
    assert "RECOLLECT_MODEL" not in back.out
    assert found(typed, "which animal stands for us?")[0][0] == "mascot"


def test_reindex_goes_on_where_it_was(typed: Typed, stocked: Settings, models: dict[str, str]) -> None:
    """What another process had begun to build is finished by the command."""

    def stop(done: int, total: int) -> None:
        if done == total:
            raise KeyboardInterrupt

    folder = Path(models["RECOLLECT_MODELS_DIR"])
    with open_app(stocked) as app, pytest.raises(KeyboardInterrupt):
        reindex(app, stop, model=NAME, models_dir=folder)
    assert typed("reindex", "--json", RECOLLECT_MODEL=NAME, **models).json == {"memories": 3}
    assert typed("doctor", RECOLLECT_MODEL=NAME, **models).code == 0


def test_an_unknown_model_ends_with_eight(typed: Typed, executed: Typed, stocked: Settings) -> None:
    """A model that is not there ends the command before anything has changed."""
    before = found(typed, "quokka")
    ended = executed("reindex", "--model", "nobody-has-this")
    assert (ended.code, ended.out) == (ModelUnusable.exit_code, "")
    assert "`nobody-has-this` is neither" in ended.err
    assert found(typed, "quokka") == before
    assert typed("doctor").code == 0
    assert stocked.folder.is_dir()


def test_a_backup_comes_back(typed: Typed, stocked: Settings, tmp_path: Path) -> None:
    """A store that is restored elsewhere finds the same with the same scores, and the doctor finds nothing wrong."""
    queries = ("which animal stands for us?", "quoka", "when do we ship?")
    before = [found(typed, query) for query in queries]
    file = tmp_path / "saved.zip"
    told = typed("backup", "create", str(file))
    assert told.out.startswith(f"{file}: 3 memories, 3 vectors, 3 journal lines, ")
    assert told.out.endswith("Memories you forget later stay in this backup.\n")
    elsewhere = {"RECOLLECT_HOME": str(tmp_path / "elsewhere")}
    restored = typed("restore", str(file), **elsewhere)
    assert restored.code == 0
    assert restored.out.endswith(": 3 memories, 3 vectors, 3 journal lines.\n")
    assert [found(typed, query, **elsewhere) for query in queries] == before
    assert typed("doctor", **elsewhere).code == 0
    assert stocked.folder != tmp_path / "elsewhere"


def test_backup_answers_as_json(typed: Typed, stocked: Settings, tmp_path: Path) -> None:
    """With `--json` both commands give the manifest, with the file and with what was kept."""
    file = tmp_path / "saved.zip"
    made = typed("backup", "create", str(file), "--json").json
    with zipfile.ZipFile(file) as packed:
        assert json.loads(packed.read("manifest.json")) | {"file": str(file)} == made
    body = typed("restore", str(file), "--force", "--json").json
    assert body["counts"] == made["counts"]
    assert Path(body["kept"]).parent == stocked.folder
    assert Path(body["kept"]).is_file()


def test_nothing_is_overwritten_unasked(typed: Typed, stocked: Settings, tmp_path: Path) -> None:
    """Neither a file nor a store gives way without `--force`, and with it the old database is named."""
    file = tmp_path / "saved.zip"
    assert typed("backup", "create", str(file)).code == 0
    again = typed("backup", "create", str(file))
    assert (again.code, "--force" in again.err) == (InvalidInput.exit_code, True)
    assert typed("backup", "create", str(file), "--force").code == 0
    refused = typed("restore", str(file))
    assert (refused.code, "not empty" in refused.err) == (InvalidInput.exit_code, True)
    typed("remember", "Written since")
    forced = typed("restore", str(file), "--force")
    assert forced.code == 0
    assert f"for 7 days as {next(stocked.folder.glob('memory.db.before-restore-*'))}" in forced.out
    assert found(typed, "Written since") == []
    assert found(typed, "quokka")[0][0] == "mascot"


def test_a_guessed_command_writes_no_backup(typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A word that names no command of `backup` is refused, and no file of that name is made."""
    monkeypatch.chdir(tmp_path)
    refused = typed("backup", "list")
    assert refused.code == InvalidInput.exit_code
    assert "No such command `list`" in refused.err
    assert not (tmp_path / "list").exists()


def test_a_damaged_backup_is_refused(typed: Typed, stocked: Settings, tmp_path: Path) -> None:
    """A file that was cut short is one sentence and exit code 2, and the store is as it was."""
    file = tmp_path / "saved.zip"
    assert typed("backup", "create", str(file)).code == 0
    file.write_bytes(file.read_bytes()[:-1000])
    ended = typed("restore", str(file), "--force")
    assert (ended.code, ended.out) == (InvalidInput.exit_code, "")
    assert "damaged" in ended.err
    assert found(typed, "quokka")[0][0] == "mascot"
    assert typed("backup", "create", str(tmp_path / "nothing.zip"), RECOLLECT_HOME=str(tmp_path / "none")).code == (
        StoreUnusable.exit_code
    )
    assert stocked.folder.is_dir()


@pytest.mark.full
def test_the_script_is_the_command(alone: dict[str, str], stocked: Settings, tmp_path: Path) -> None:
    """`scripts/reindex` does what the command does, from whatever folder."""
    command = [str(ROOT / "scripts" / "reindex"), "--all", "--json"]
    done = subprocess.run(command, env=alone, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {"memories": 3}
    assert stocked.folder.is_dir()


def test_backup_has_commands_and_its_old_forms(typed: Typed, stocked: Settings, tmp_path: Path) -> None:
    """`create`, `verify` and `restore` are what they say; `restore` of no file tells what to type."""
    file = tmp_path / "saved.zip"
    assert typed("backup", "create", str(file)).code == 0
    told = typed("backup", "verify", str(file)).out
    assert told.startswith(f"{file} is whole. It was made at 20")
    assert "holds 3 memories, 3 vectors, 3 journal lines." in told
    assert typed("--json", "backup", "verify", str(file)).json["counts"]["memories"] == 3
    assert typed("backup", "create", "--force", str(file)).code == 0
    assert typed("backup", "restore", str(file), "--force").code == 0
    file.write_bytes(file.read_bytes()[:-1000])
    damaged = typed("backup", "verify", str(file))
    assert (damaged.code, "is damaged" in damaged.err) == (InvalidInput.exit_code, True)
    mistaken = typed("restore", "nothing.zip")
    assert mistaken.code == InvalidInput.exit_code
    assert "to bring back a store, type `recollect backup restore FILE`" in mistaken.err
    assert stocked.folder.is_dir()


def test_a_drill_tells_what_it_found(typed: Typed, stocked: Settings, tmp_path: Path) -> None:
    """A sound backup ends with 0 and its figures; a damaged one with 1 and the check that failed, also as JSON."""
    done = typed("backup", "drill")
    assert done.code == 0
    assert "The backup can be restored. It holds 3 memories, 3 vectors, 3 journal lines." in done.out
    assert "3 of 3 questions have the same answers" in done.out
    body = typed("backup", "drill", "--questions", "2", "--json").json
    assert (body["well"], body["recalls"]) == (True, {"asked": 2, "agreed": 2, "passed_over": 0})
    assert {one["name"] for one in body["checks"]} >= {"history", "rows", "recall"}
    file = tmp_path / "saved.zip"
    assert typed("backup", "create", str(file)).code == 0
    assert typed("backup", "drill", str(file)).code == 0
    file.write_bytes(file.read_bytes()[:-1000])
    damaged = typed("backup", "drill", str(file), "--json")
    assert (damaged.code, damaged.json["well"]) == (1, False)
    assert [one["name"] for one in damaged.json["checks"]] == ["restore"]
    told = typed("backup", "drill", str(file))
    assert (told.code, "The backup has failed the drill. Nothing was restored." in told.out) == (1, True)
    assert typed("backup", "drill", "--questions", "-1").code == InvalidInput.exit_code
    assert typed("backup", "drill", str(tmp_path / "nothing.zip")).code == InvalidInput.exit_code
    assert stocked.folder.is_dir()

"""A folder of notes and its memories, kept in step: real files, a real store."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from callers import ADA
from recollect import App
from recollect.errors import InvalidInput
from recollect.transfer.import_batch import import_batch
from recollect.transfer.watching import LARGEST_NOTE, Vault, state_file
from run_operations import do

TOKEN = "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
TEA = "---\ndate: 2025-03-01\n---\n# Kinds\nGreen tea wants 80 degrees.\n# Pots\nThe pot is of iron.\n"


@pytest.fixture
def vault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with two notes, and things that are none."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "vault"
    texts = {
        "tea.md": TEA,
        "sub/cake.md": "Cake is for Sundays.\n",
        ".obsidian/hidden.md": "Hidden.\n",
        ".gitignore": "drafts/\n/private.md\n",
        "drafts/draft.md": "A draft.\n",
        "sub/.gitignore": "*.tmp.md\n!kept.tmp.md\n",
        "sub/x.tmp.md": "Ignored.\n",
        "sub/kept.tmp.md": "Kept in spite of its name.\n",
        "private.md": "Private.\n",
        "picture.png": "no note",
    }
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    (tmp_path / "outside.md").write_text("Outside.\n", encoding="utf-8")
    (folder / "link.md").symlink_to(tmp_path / "outside.md")
    return folder


@pytest.fixture
def step(app: App, vault: Path, tmp_path: Path) -> Callable[..., list[str]]:
    """Return a function that starts anew and tells what became of what differs."""

    def stepping(**options: Any) -> list[str]:
        file = state_file(tmp_path / "home", vault, ["ada"])
        return [str(one) for one in Vault(vault, file, lambda batch: import_batch(app, batch, ADA), options).step()]

    return stepping


def memories(app: App) -> dict[str, Any]:
    """Return what is in sight, by its key."""
    return {one.key: one for one in do(app, "list_memories", limit=100).memories}


def test_only_notes_come_in(app: App, step: Callable[..., list[str]]) -> None:
    """Neither what is hidden, ignored, linked nor attached comes in; a note's date counts, and `by-file` finds it."""
    assert step() == [
        "+ vault/tea.md  2 new",
        "+ vault/sub/cake.md  1 new",
        "+ vault/sub/kept.tmp.md  1 new",
    ]
    found = memories(app)
    assert set(found) == {"vault/tea.md#kinds", "vault/tea.md#pots", "vault/sub/cake.md#", "vault/sub/kept.tmp.md#"}
    assert f"{found['vault/tea.md#pots'].observed_at:%Y-%m-%d}" == "2025-03-01"
    by_file = do(app, "search_by_file", file="sub/cake.md").memories
    assert [one.content for one in by_file] == ["Cake is for Sundays."]
    assert step() == []


def test_changes_are_updates(app: App, vault: Path, step: Callable[..., list[str]]) -> None:
    """A changed section is the same memory, one that is gone is hidden, and is in sight again when it comes back."""
    step()
    before = memories(app)
    changed = TEA.replace("80", "75")
    (vault / "tea.md").write_text(changed.partition("# Pots")[0], encoding="utf-8")
    (told,) = step()
    assert told.startswith("~ vault/tea.md  1 updated; The section `vault/tea.md#pots` is not in the file any more")
    after = memories(app)
    assert after["vault/tea.md#kinds"].id == before["vault/tea.md#kinds"].id
    assert "75 degrees" in after["vault/tea.md#kinds"].content
    assert "vault/tea.md#pots" not in after
    (vault / "tea.md").write_text(changed, encoding="utf-8")
    step()
    assert memories(app)["vault/tea.md#pots"].id == before["vault/tea.md#pots"].id
    assert do(app, "recall", query="What is the pot made of?").hits[0].memory.key == "vault/tea.md#pots"


def test_a_moved_note_moves_and_a_deleted_one_goes(app: App, vault: Path, step: Callable[..., list[str]]) -> None:
    """What moved keeps its ids under its new name; what was deleted is hidden, and `undo` brings it back."""
    step()
    before = memories(app)
    (vault / "drinks").mkdir()
    (vault / "tea.md").rename(vault / "drinks" / "Green #1.md")
    (vault / "sub" / "cake.md").unlink()
    told = step()
    assert told[0].startswith("- vault/sub/cake.md  The section")
    assert told[1] == "> vault/drinks/Green #1.md  was vault/tea.md; 2 updated"
    after = memories(app)
    assert set(after) == {"vault/drinks/green #1.md#kinds", "vault/drinks/green #1.md#pots", "vault/sub/kept.tmp.md#"}
    assert after["vault/drinks/green #1.md#pots"].id == before["vault/tea.md#pots"].id
    assert after["vault/drinks/green #1.md#pots"].files_read == ("vault/drinks/Green #1.md",)
    do(app, "restore", id=str(before["vault/sub/cake.md#"].id))
    assert "vault/sub/cake.md#" in memories(app)
    assert step() == []


def test_bad_notes_are_named(app: App, vault: Path, step: Callable[..., list[str]]) -> None:
    """A large or binary file is named and left out, a secret is refused; all of it only once."""
    (vault / "large.md").write_text("x" * (LARGEST_NOTE + 1), encoding="utf-8")
    (vault / "binary.md").write_bytes(b"\xff\x00\x01")
    (vault / "zkey.md").write_text(f"The token is {TOKEN}.\n", encoding="utf-8")
    told = step()
    assert "! vault/binary.md  It is no text." in told
    assert "! vault/large.md  It is larger than 4 MiB." in told
    assert any(one.startswith("+ vault/zkey.md  1 refused; Secret detection") for one in told)
    assert len(memories(app)) == 4
    assert not any(TOKEN in one for one in told)
    assert step() == []
    (vault / "binary.md").unlink()
    assert step() == ["- vault/binary.md"]


def test_another_working_folder_changes_no_key(
    app: App, vault: Path, step: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name that a folder had at first holds, from wherever it is watched later."""
    step()
    monkeypatch.chdir(vault)
    os.utime(vault / "tea.md", (1, 1))
    assert step() == ["~ vault/tea.md  2 unchanged"]


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    """Only a folder can be watched."""
    with pytest.raises(InvalidInput, match="is no folder"):
        Vault(tmp_path / "none", tmp_path / "state", lambda _: pytest.fail("sent"), {})

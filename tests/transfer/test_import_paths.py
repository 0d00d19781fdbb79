"""Which files are imported of what is named: known formats, without what nobody means, nothing out of the folder."""

from __future__ import annotations

import json
import os
from pathlib import Path
from zipfile import ZipFile

import pytest

from recollect.domain.transfer import ImportFormat
from recollect.errors import InvalidInput
from recollect.transfer import import_paths
from recollect.transfer.import_paths import find_files

TALK = json.dumps({"parentUuid": None, "sessionId": "s", "type": "user"})


def write(folder: Path, *names: str, text: str = "Be brief.") -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working folder, which is empty."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_instructions_are_found_anywhere_in_a_tree(folder: Path) -> None:
    """The files that agents read as instructions are found at any depth, named by their paths; if asked, no others."""
    there = [
        ".cursor/rules/style.mdc",
        ".cursorrules",
        ".github/copilot-instructions.md",
        ".github/instructions/a.instructions.md",
        "AGENTS.md",
        "docs/guide.md",
        "packages/a/CLAUDE.md",
        "packages/b/CLAUDE.md",
        "packages/b/GEMINI.md",
    ]
    write(folder, *there)
    found = find_files([folder])
    assert sorted(one.name for one in found.files) == there
    assert {one.format for one in found.files} == {ImportFormat.MARKDOWN}
    only = find_files([folder], instructions=True)
    assert sorted(one.name for one in only.files) == [one for one in there if one != "docs/guide.md"]
    assert only.skipped == {import_paths.OTHER_NOTES: 1}


def test_what_nobody_means_is_passed_over_and_counted(folder: Path) -> None:
    """Hidden folders, libraries, caches, links, pipes, other formats and unreadable files are counted by reason."""
    write(folder, "CLAUDE.md")
    write(folder, ".git/x.md", ".obsidian/x.md", ".trash/x.md", ".hidden.md", ".github/workflows/x.md", ".claude/x.md")
    write(folder, "node_modules/a/CLAUDE.md", "env/pyvenv.cfg", "env/x.md", "cache/CACHEDIR.TAG", "cache/x.md")
    write(folder, "a.txt", "b.png", "package.json", "odd.json", text='{"hello": 1}')
    (folder / "AGENTS.md").symlink_to("CLAUDE.md")
    (folder / "out").symlink_to("/")
    os.mkfifo(folder / "pipe.md")
    found = find_files([folder])
    assert [one.name for one in found.files] == ["CLAUDE.md"]
    assert found.skipped == {
        import_paths.HIDDEN: 6,
        import_paths.LIBRARIES: 3,
        import_paths.UNKNOWN: 4,
        import_paths.LINKS: 2,
        import_paths.SPECIAL: 1,
    }


def test_transcripts_come_only_when_asked_for(folder: Path) -> None:
    """Transcripts of agents are passed over with the option that takes them, which a format does too."""
    write(folder, "p/s.jsonl", "rollout-1.jsonl", text=TALK)
    write(folder, "rollout-1.jsonl", text=json.dumps({"type": "session_meta", "payload": {"id": "x"}}))
    write(folder, "a.md")
    assert find_files([folder]).skipped == {import_paths.TRANSCRIPTS: 2}
    taken = find_files([folder], transcripts=True).files
    assert [one.format for one in taken] == ["markdown", "codex", "claude-code"]
    assert len(find_files([folder / "p/s.jsonl"], ImportFormat.CLAUDE_CODE).files) == 1
    with pytest.raises(InvalidInput, match=r"nothing to import in .*Skipped: 1 transcripts of agents"):
        find_files([folder / "p"])


def test_patterns_and_repeats_are_each_one_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pattern that no shell has replaced is matched here, `~` is the home, and a file named twice comes once."""
    write(folder, "a.md", "x/b.md", "x/[c].md")
    monkeypatch.setenv("HOME", str(folder))
    paths = [Path("**/*.md"), Path("~/a.md"), folder, Path("x/[c].md")]
    assert sorted(one.path.name for one in find_files(paths).files) == ["[c].md", "a.md", "b.md"]


@pytest.mark.parametrize("named", ["none.md", "*.none", "x.bin", "x.zip", "empty"])
def test_what_is_named_must_be_there(folder: Path, named: str) -> None:
    """A file that is missing or of no known format, a pattern without matches and an empty folder are refused."""
    write(folder, "x.bin", "y.txt")
    with ZipFile(folder / "x.zip", "w") as archive:
        archive.writestr("photo.txt", "nothing to remember")
    (folder / "empty").mkdir()
    with pytest.raises(InvalidInput) as raised:
        find_files([folder / named])
    assert named in str(raised.value)
    assert ("; unpack it first." in str(raised.value)) == (named == "x.zip")


def test_large_documents_in_a_folder_are_counted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A document over the limit is passed over; formats that are read piece by piece may be of any size."""
    monkeypatch.setattr(import_paths, "LARGEST_FILE", 50)
    write(folder, "a.md", text="x" * 51)
    write(folder, "c.json", text=json.dumps([{"uuid": "u", "chat_messages": []}]) + " " * 50)
    found = find_files([folder])
    assert [one.name for one in found.files] == ["c.json"]
    assert found.skipped == {import_paths.LARGE: 1}


def test_the_conversations_of_an_archive_are_taken(folder: Path) -> None:
    """Of an archive that is named, its conversations are read, also where they are in several files."""
    talk = json.dumps([{"title": "x", "mapping": {}, "current_node": "n", "create_time": 1}])
    with ZipFile(folder / "export.zip", "w") as archive:
        archive.writestr("chat.html", "<html>")
        for name in ("conversations-000.json", "inner/conversations-001.json"):
            archive.writestr(name, talk)
    found = find_files([folder / "export.zip", folder / "export.zip"]).files
    assert [(one.name, one.format, one.size) for one in found] == [
        ("export.zip/conversations-000.json", ImportFormat.CHATGPT, len(talk)),
        ("export.zip/inner/conversations-001.json", ImportFormat.CHATGPT, len(talk)),
    ]


def test_a_damaged_archive_is_a_sentence(folder: Path) -> None:
    """An archive that cannot be read, at its end or in the middle of a member, is refused by the name of that."""
    (folder / "cut.zip").write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(InvalidInput, match=r"cut\.zip cannot be read: the archive is damaged"):
        find_files([folder / "cut.zip"])
    with ZipFile(folder / "bent.zip", "w") as archive:
        archive.writestr("conversations.json", TALK)
    whole = (folder / "bent.zip").read_bytes()
    (folder / "bent.zip").write_bytes(whole.replace(b"sessionId", b"sessionXX", 1))
    with pytest.raises(InvalidInput, match=r"bent\.zip/conversations\.json cannot be read: the archive is damaged"):
        find_files([folder / "bent.zip"])

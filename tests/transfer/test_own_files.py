"""One's own files: what an import brings that waits for a decision, what does not, and whose words it becomes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from callers import ADA
from file_transfer import import_paths
from recollect import App
from recollect.domain.origin import SaidBy
from recollect.errors import InvalidInput, NotFound
from recollect.transfer.instructions import instruction_files, speaker_of
from run_operations import do

NOTES = {f"notes/n{number:02}.md": f"# Note {number}\nThe gate {number} opens at dawn.\n" for number in range(10)}
HEADER = '{"format": "recollect", "version": 1}\n'
OTHERS = {
    "of-others.jsonl": HEADER + '{"memory": {"content": "We pay Bob.", "author": "bob"}}',
    "from-a-page.jsonl": HEADER + '{"memory": {"content": "X.", "said_by": "web"}}',
    "chat.json": '[{"uuid": "c", "chat_messages": [{"sender": "assistant", "text": "Deploy on Sundays."}]}]',
}
AT_THE_ROOT = [
    ".claude/CLAUDE.md",
    ".claude/rules/a.md",
    ".cursor/rules/style.mdc",
    ".cursorrules",
    ".github/copilot-instructions.md",
    "AGENTS.md",
    "CLAUDE.local.md",
    "CLAUDE.md",
    "GEMINI.md",
]
ELSEWHERE = [
    "docs/agents.md",
    "agents.md",
    "Claude.md",
    "gemini.MD",
    "src/deep/GEMINI.md",
    "vendor/tool/CLAUDE.md",
    "copilot-instructions.md",
    "sub/.cursor/rules/x.mdc",
    "README.md",
]
LINKS: dict[str, Callable[[Path, Path], None]] = {
    "a link out of it": lambda root, away: (root / "CLAUDE.md").symlink_to(away / "diary.md"),
    "rules behind a link": lambda root, away: (root / ".claude").symlink_to(away),
    "a link to a deeper file": lambda root, away: (root / "AGENTS.md").symlink_to("notes/n00.md"),
}


def waiting(app: App) -> int:
    """Return how many memories wait for a decision."""
    return int(do(app, "inbox").total)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working folder, a checkout with ten notes and a home beside it that is no part of it."""
    here = tmp_path / "work"
    write(here, NOTES | {".git/HEAD": "ref: refs/heads/main\n"})
    (tmp_path / "user").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(here)
    return here


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def test_a_folder_is_approved_as_a_whole(app: App, folder: Path) -> None:
    """One decision approves all that waits from a folder; each memory keeps its file, and can be withdrawn by that."""
    write(folder, {"other.md": "# Other\nThe vendor says that the gate is open.\n"})
    assert import_paths(app, [folder / "notes", folder / "other.md"], ADA).total().waiting == 11
    done = do(app, "decide", sources=["notes"], decision="approve")
    assert done.notes == ("10 approved.",)
    assert waiting(app) == 1
    assert [one.origin for one in do(app, "inbox").waiting] == ["an import: other.md:1"]
    gone = do(app, "withdraw", source="notes/n03.md", apply=True)
    assert len(gone.hidden) == 1
    with pytest.raises(NotFound, match="Nothing from notes waits"):
        do(app, "decide", sources=["notes"], decision="approve")


@pytest.mark.parametrize("source", ["tes", "note", "n01.md", "work/notes", "rk/notes", "notes/n0"])
def test_a_part_of_a_name_is_no_source(app: App, folder: Path, source: str) -> None:
    """What merely begins, ends or resembles the path of a file approves nothing of it."""
    import_paths(app, [folder / "notes"], ADA)
    with pytest.raises(NotFound):
        do(app, "decide", sources=[source], decision="approve")
    assert waiting(app) == 10


def test_rules_for_a_folder_are_rules_for_its_files(app: App, folder: Path) -> None:
    """`always` lets through what changes in these files later, a new file of the folder waits, `never` hides."""
    import_paths(app, [folder / "notes"], ADA)
    do(app, "decide", sources=["notes"], decision="always")
    write(folder, {"notes/n01.md": "# Note 1\nThe gate 1 opens at noon.\n", "notes/new.md": "# New\nIt is new.\n"})
    assert import_paths(app, [folder / "notes"], ADA).total().waiting == 1
    do(app, "decide", sources=["notes"], decision="never")
    assert waiting(app) == 0
    assert [one.decision for one in do(app, "source_rules").rules if one.source.endswith("new.md")] == ["never"]


def test_what_came_from_two_places_needs_both(app: App, folder: Path) -> None:
    """A memory that was concluded from a note and a page is approved with both sources alone, and rejected with one."""
    both = ADA.saying(SaidBy.WEB, "https://docs.example.com/a, then https://evil.example.net/b")
    for text in ("The harbour opens at six.", "Crane four is broken until May."):
        do(app, "remember", both, content=text)
    with pytest.raises(NotFound):
        do(app, "decide", sources=["docs.example.com"], decision="approve")
    do(app, "decide", sources=["docs.example.com", "evil.example.net"], decision="approve")
    assert waiting(app) == 0
    do(app, "remember", both, content="The ferry is painted green.")
    assert do(app, "decide", sources=["evil.example.net"], decision="reject").notes[0].startswith("1 hidden")


@pytest.mark.parametrize(
    "fields",
    [{}, {"id": "1", "sources": ["notes"]}, {"sources": ["notes"], "content": "In my words."}, {"sources": []}],
)
def test_a_decision_names_one_memory_or_sources(app: App, fields: dict[str, Any]) -> None:
    """Neither, both, or words for many at once are refused."""
    with pytest.raises(InvalidInput):
        do(app, "decide", **fields, decision="approve")


def test_own_files_do_not_wait(app: App, folder: Path) -> None:
    """With `own` notes are approved, the second time too what waited before; who said them stays an import."""
    assert import_paths(app, [folder / "notes/n00.md"], ADA).total().waiting == 1
    total = import_paths(app, [folder / "notes"], ADA, own=True).total()
    assert (total.new, total.updated, total.waiting, waiting(app)) == (9, 1, 0, 0)
    found = do(app, "list_memories", limit=20).memories
    assert {one.origin.partition(":")[0] for one in found} == {"an import"}
    shown = [do(app, "get_memory", id=str(one.id)) for one in found]
    assert all(one.speaks_unasked and one.trust <= 0.5 for one in shown)
    assert len(do(app, "withdraw", source="notes", apply=True).hidden) == 10


@pytest.mark.parametrize("name", OTHERS)
def test_own_files_vouch_for_nobody_else(app: App, folder: Path, name: str) -> None:
    """What names another author, another origin or an assistant as its speaker waits, also in one's own file."""
    write(folder, {name: OTHERS[name]})
    total = import_paths(app, [folder / name], ADA, own=True).total()
    assert (total.new, total.waiting) == (1, 1)


def test_instructions_of_a_project_are_those_of_its_root(folder: Path) -> None:
    """Exact names at the root of the project, and the rules beside them; no page of such a name, nothing deeper."""
    write(folder, dict.fromkeys([*AT_THE_ROOT, *ELSEWHERE], "Be brief.\n"))
    assert sorted(str(one.relative_to(folder)) for one in instruction_files(folder)) == AT_THE_ROOT


@pytest.mark.parametrize("name", AT_THE_ROOT)
def test_the_instructions_of_a_project_are_its_files(app: App, folder: Path, name: str) -> None:
    """An instruction file at the root waits for nothing: it is a file of this project, and nobody's word."""
    write(folder, {name: "Run make check.\n"})
    total = import_paths(app, [folder / name], ADA).total()
    assert (total.new, total.waiting) == (1, 0)
    (found,) = do(app, "list_memories").memories
    assert found.origin == f"a file of this project: {name}:1"


@pytest.mark.parametrize("name", ELSEWHERE)
def test_any_other_file_is_an_import(app: App, folder: Path, name: str) -> None:
    """A file deeper in the tree, as a library brings it, and a page of a similar name wait for a decision."""
    write(folder, {name: "Run make check.\n"})
    assert import_paths(app, [folder / name], ADA).total().waiting == 1


@pytest.mark.parametrize("scope", ["personal", "team"])
@pytest.mark.parametrize("chosen", [True, False])
def test_a_projects_file_speaks_for_its_project_alone(app: App, folder: Path, scope: str, *, chosen: bool) -> None:
    """In another scope, whether the file or the import names it, the instructions of a repository wait."""
    marked = f'# Rule <!-- recollect:memory {{"scope":"{scope}","hash":"0","shown":"Rule"}} -->\n> Run make check.\n'
    write(folder, {"CLAUDE.md": "Run make check.\n" if chosen else marked})
    options = {"scope": scope} if chosen else {}
    assert import_paths(app, [folder / "CLAUDE.md"], ADA, **options).total().waiting == 1


@pytest.mark.parametrize("link", LINKS)
def test_a_link_brings_nothing_into_a_project(folder: Path, tmp_path: Path, link: str) -> None:
    """What a repository links to elsewhere is no instruction file of it."""
    write(tmp_path / "away", {"diary.md": "Mine.\n", "rules/diary.md": "Mine.\n"})
    LINKS[link](folder, tmp_path / "away")
    assert list(instruction_files(folder)) == []
    linked = next(
        one for one in (folder / "CLAUDE.md", folder / "AGENTS.md", folder / ".claude/rules/diary.md") if one.exists()
    )
    assert speaker_of(linked, folder) is None


def test_a_users_own_instructions_are_their_word(app: App, folder: Path, tmp_path: Path) -> None:
    """The instruction file that an agent reads for its user everywhere is that user's, one of a repository never is."""
    write(tmp_path / "user", {".claude/CLAUDE.md": "Answer in Dutch.\n", ".codex/AGENTS.md": "Be brief.\n"})
    assert import_paths(app, [tmp_path / "user/.claude/CLAUDE.md"], ADA).total().waiting == 0
    (found,) = do(app, "list_memories").memories
    assert found.origin == "a person: ~/.claude/CLAUDE.md:1"
    write(folder, {".codex/AGENTS.md": "Obey.\n", "CLAUDE.md": "Obey.\n"})
    assert speaker_of(folder / ".codex/AGENTS.md", folder) is None
    assert speaker_of(folder / "CLAUDE.md", folder) is SaidBy.FILE

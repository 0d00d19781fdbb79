"""`recollect export` and `recollect import` as somebody types them."""

from __future__ import annotations

import json
import os
import signal
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

from recollect.errors import InvalidInput, SecretFound
from recollect.projects import find_project
from recollect.transfer.import_client import Import

pytestmark = pytest.mark.slow

Typed = Callable[..., Any]
TOKEN = "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
GUIDE = "# Testing\nUse pytest -q.\n\n# Deploying\nFridays only.\n"
AWKWARD = (
    "We deploy on Tuesdays.",
    "# A heading\n\nand text under it\n\n#### Another\n\nmore",
    "```\nan open block",
    "> said by Ada\n> on Monday",
    "Seen on *2026-01-01, project*\n\n*2026-01-01, #not-ours*",
    "A mark <!-- recollect:memory {} --> in a text",
    "A rule\n---\nunder a line, and <b>markup</b> with \u200b unseen characters  ",
)


def test_a_file_goes_in_and_comes_out(typed: Typed, tmp_path: Path) -> None:
    """Import a guide, export the store, import that into another store: recall answers the same there."""
    (tmp_path / "CLAUDE.md").write_text(GUIDE)
    done = typed("import", "CLAUDE.md", "--json")
    assert (done.code, done.json["files"][0]["new"], done.json["files"][0]["problems"]) == (0, 2, [])
    out = typed("export", "all.jsonl")
    assert (out.code, out.out) == (0, "")
    assert stat.S_IMODE((tmp_path / "all.jsonl").stat().st_mode) == 0o600
    other = {"RECOLLECT_HOME": str(tmp_path / "other")}
    again = typed("import", "all.jsonl", "--json", **other)
    assert [again.json["files"][0][name] for name in ("new", "facts", "failed")] == [2, 0, 0]
    asked = ("recall", "on which day do we ship?", "--json")
    mine, theirs = typed(*asked).json["memories"], typed(*asked, **other).json["memories"]
    assert [one["id"] for one in mine] == [one["id"] for one in theirs]
    assert "Fridays only." in theirs[0]["content"]
    assert typed("import", "all.jsonl", "--json", **other).json["files"][0]["new"] == 0


def test_the_report_is_a_table_with_every_problem(typed: Typed, tmp_path: Path) -> None:
    """Refused and failed items have their exit codes; the table counts them, each problem names its line, no secret."""
    lines = [{"category": "events", "content": text} for text in ("It rained.", f"Key {TOKEN}", "It hailed.")]
    (tmp_path / "m.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n{")
    done = typed("import", "m.jsonl", "--format", "memories-jsonl")
    assert done.code == SecretFound.exit_code
    assert all(word in done.out for word in ("New", "Refused", "Failed", "m.jsonl:2: Secret detection", "m.jsonl:4: "))
    assert TOKEN not in done.out + done.err
    masked = typed("import", "m.jsonl", "--format", "memories-jsonl", "--on-secret", "redact", "--json")
    assert [masked.json["files"][0][name] for name in ("new", "unchanged", "refused")] == [1, 2, 0]
    assert masked.code == InvalidInput.exit_code


@pytest.mark.parametrize("arguments", [("none.md",), ("x.txt",), (".",), ("x.txt", "--format", "mem0")])
def test_a_file_that_cannot_be_read_ends_with_two(typed: Typed, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """A missing file, a folder and a file of no known format are named on standard error."""
    (tmp_path / "x.txt").write_text("hello")
    done = typed("import", *arguments)
    assert (done.code, done.out) == (InvalidInput.exit_code, "")
    assert done.err.startswith("recollect: ")


def test_standard_output_gets_lines_and_markdown(typed: Typed, tmp_path: Path) -> None:
    """Without a file the export is on standard output, private memories only with their option."""
    (tmp_path / "A.md").write_text("---\nsensitivity: private\n---\nA quiet place.\n")
    (tmp_path / "B.md").write_text("A loud place.\n")
    assert typed("import", "A.md", "B.md").code == 0
    lines = [json.loads(line) for line in typed("export").out.splitlines()]
    assert lines[0]["format"] == "recollect"
    assert [line["memory"]["content"] for line in lines if "memory" in line] == ["A loud place."]
    assert "1 of your" not in typed("export", "-", "--private").err
    assert "One of your memories is private and not in it; `--private` includes such." in typed("export").err
    assert "A quiet place." in typed("export", "-", "--private").out
    text = typed("export", "--format", "markdown", "--scope", "project").out
    assert text.startswith("# Memories")
    assert "A loud place." in text


def test_markdown_written_back_does_not_multiply(typed: Typed, tmp_path: Path) -> None:
    """An export in Markdown changes nothing when it comes back, a changed text changes its memory, and no other store
    makes two of one."""
    for number, text in enumerate(AWKWARD):
        named = ("--key", f"key-{number}") if number % 2 else ()
        assert typed("remember", "-", *named, "--tags", "a,b", stdin=text.encode()).code == 0
    assert typed("fact", "the build", "uses", "make").code == 0
    everything = typed("export").out
    assert typed("export", "notes.md", "--format", "markdown").code == 0
    for own in ((), ("--own",)):
        total = typed("import", "notes.md", *own, "--json").json["total"]
        assert (total["unchanged"], total["new"], total["updated"], total["facts"]) == (len(AWKWARD), 0, 0, 0)
    kept = [line for line in everything.splitlines() if '"journal"' not in line][1:]
    assert [line for line in typed("export").out.splitlines() if '"journal"' not in line][1:] == kept

    document = (tmp_path / "notes.md").read_text()
    assert "on Tuesdays" in document
    (tmp_path / "notes.md").write_text(
        document.replace("We deploy on Tuesdays", "We deploy on Thursdays").replace("and text under", "and words under")
        + "\n## Mine\n\nSomething new.\n"
    )
    refused = typed("import", "notes.md", "--json", "--dry-run").json["files"][0]
    assert (refused["updated"], refused["new"]) == (0, 1)
    assert "Your own export does, with `--own`." in refused["problems"][0]["why"]
    changed = typed("import", "notes.md", "--own", "--json").json["total"]
    assert (changed["updated"], changed["new"], changed["unchanged"]) == (2, 1, len(AWKWARD) - 2)
    texts = {json.loads(line)["memory"]["content"] for line in typed("export").out.splitlines() if '"memory"' in line}
    assert {"We deploy on Thursdays.", AWKWARD[1].replace("text under", "words under")} <= texts

    other = {"RECOLLECT_HOME": str(tmp_path / "other")}
    for new in (len(AWKWARD) + 1, 0):
        assert typed("import", "notes.md", "--json", **other).json["total"]["new"] == new
    there = {
        json.loads(line)["memory"]["content"]
        for line in typed("export", **other).out.splitlines()[1:]
        if '"memory"' in line
    }
    assert len(there) == len(AWKWARD) + 1
    assert {*AWKWARD[2:6]} <= there


def test_standard_input_is_a_file_without_a_name(typed: Typed) -> None:
    """What is piped in is recognised as a file is; the same again changes nothing, and another text replaces none."""
    guide = "# Testing\n\nUse pytest -q.\n"
    first = typed("import", "-", "--json", stdin=guide.encode()).json
    assert (first["total"]["new"], first["files"][0]["format"]) == (1, "markdown")
    assert typed("import", "-", "--json", stdin=guide.encode()).json["total"]["unchanged"] == 1
    other = typed("import", "-", "--json", stdin=guide.replace("-q", "-x").encode()).json
    assert (other["total"]["new"], other["total"]["updated"]) == (1, 0)
    assert {one["preview"] for one in typed("list", "--json").json["memories"]} == {
        "# Testing\n\nUse pytest -q.",
        "# Testing\n\nUse pytest -x.",
    }
    line = json.dumps({"category": "events", "content": "It rained.", "abstract": "Rain", "overview": "Rain."})
    assert typed("import", "-", "--json", stdin=line.encode()).json["files"][0]["format"] == "memories-jsonl"
    unknown = typed("import", "-", stdin=b'{"weather": "rain"}')
    assert unknown.code == InvalidInput.exit_code
    assert "has an unrecognised format; name it with `--format`" in unknown.err


def test_a_chat_export_need_not_be_unpacked(typed: Typed, tmp_path: Path) -> None:
    """The archive that ChatGPT sends is imported as it is, from a file and from standard input."""
    said = {"author": {"role": "user"}, "content": {"content_type": "text", "parts": ["We paint the boat green."]}}
    talk = {"title": "Boat", "conversation_id": "c", "current_node": "a", "mapping": {"a": {"message": said}}}
    with ZipFile(tmp_path / "export.zip", "w", ZIP_DEFLATED) as archive:
        archive.writestr("user.json", "{}")
        archive.writestr("conversations.json", json.dumps([talk]))
    done = typed("import", "export.zip", "--json").json
    assert (done["total"]["new"], done["files"][0]["format"]) == (1, "chatgpt")
    piped = typed("import", "-", "--json", stdin=(tmp_path / "export.zip").read_bytes()).json
    assert piped["total"]["unchanged"] == 1
    (mine,) = typed("list", "--json").json["memories"]
    assert mine["scope"] == "personal"  # what somebody said to a chat is theirs, unless they say otherwise
    assert typed("import", "export.zip", "--scope", "team", "--json").json["total"]["new"] == 1
    assert [one["scope"] for one in typed("list", "--scope", "team", "--json").json["memories"]] == ["team"]


def test_the_damaged_member_of_an_archive_is_told(typed: Typed, tmp_path: Path) -> None:
    """The report names each member of an archive, the damaged one with its problem, and the exit code is not 0."""
    talk = {"uuid": "c", "chat_messages": [{"sender": "human", "text": "We ship on Fridays."}]}
    whole = [json.dumps([talk | {"uuid": f"c{number}"}]) for number in range(3)]
    with ZipFile(tmp_path / "export.zip", "w", ZIP_DEFLATED) as archive:
        for number, text in enumerate((whole[0], whole[1][:30], whole[2])):
            archive.writestr(f"conversations-{number}.json", text)
    done = typed("import", "export.zip", "--json")
    assert done.code == InvalidInput.exit_code
    assert [one["member"] for one in done.json["files"]] == [f"conversations-{number}.json" for number in range(3)]
    assert [one["failed"] for one in done.json["files"]] == [0, 1, 0]
    assert done.json["total"]["failed"] == 1
    assert "export.zip/conversations-1.json" in done.json["files"][1]["problems"][0]["why"]
    shown = typed("import", "export.zip")
    assert shown.code == InvalidInput.exit_code
    assert "export.zip/conversations-1.json cannot be imported" in shown.out


def test_an_imported_note_has_its_file_and_its_day(typed: Typed, tmp_path: Path) -> None:
    """`by-file` finds what a file says, and what names no day of its own is as old as the file, not as the import."""
    (tmp_path / "docs").mkdir()
    old, dated = tmp_path / "docs" / "old.md", tmp_path / "docs" / "dated.md"
    old.write_text("# Paint\n\nThe boat is green.\n", encoding="utf-8")
    dated.write_text("---\ndate: 2024-03-04\n---\n# Sail\n\nThe sail is white.\n", encoding="utf-8")
    for file in (old, dated):
        os.utime(file, (1_700_000_000, 1_700_000_000))
    assert typed("import", "docs", "--json").json["total"]["new"] == 2
    (found,) = typed("by-file", "docs/old.md", "--json").json["memories"]
    assert "The boat is green." in found["preview"]
    assert found["updated_at"].startswith("2023-11-14")
    (found,) = typed("by-file", "dated.md", "--json").json["memories"]
    assert found["observed_at"].startswith("2024-03-04")
    os.utime(old)
    assert typed("import", "docs", "--json").json["total"]["unchanged"] == 2
    old.write_text("# Paint\n\nThe boat is blue.\n", encoding="utf-8")
    assert typed("import", "docs", "--json").json["total"]["updated"] == 1


def test_a_dry_run_only_tells(typed: Typed, tmp_path: Path) -> None:
    """With `--dry-run` the counts are shown and the store stays empty."""
    (tmp_path / "CLAUDE.md").write_text(GUIDE)
    done = typed("import", "CLAUDE.md", "--dry-run", "--scope", "team", "--category", "guide")
    assert (done.code, "What would happen" in done.out) == (0, True)
    assert [line for line in typed("export").out.splitlines() if "memory" in json.loads(line)] == []


def test_a_folder_is_shown_by_format_and_file(typed: Typed, tmp_path: Path) -> None:
    """Of a folder each format and file is counted, what was passed over is told by reason, and JSON has it all."""
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text(GUIDE)
    (tmp_path / "notes" / "b.md").write_text(f"# Keys\nIt is {TOKEN}.\n")
    (tmp_path / "notes" / "c.txt").write_text("hello")
    shown = typed("import", "notes", "--dry-run")
    assert shown.code == SecretFound.exit_code
    rows = [line.split("\t") for line in shown.out.splitlines() if "\t" in line]
    assert rows[1] == ["markdown", "2", "2", "0", "0", "1", "0", "0"]
    assert [row[0] for row in rows[3:]] == ["notes/b.md", "notes/a.md"]
    assert "Skipped: 1 files of no known format." in shown.out
    assert "Refused: 1 × " in shown.out
    assert TOKEN not in shown.out
    body = typed("import", "notes", "--json").json
    assert (body["complete"], body["total"]["new"], body["skipped"]) == (True, 2, {"files of no known format": 1})
    assert [(one["file"], one["format"], one["new"]) for one in body["files"]] == [
        ("notes/a.md", "markdown", 2),
        ("notes/b.md", "markdown", 0),
    ]


def test_an_interrupted_import_says_so(typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Control-C ends with what came in so far, how to go on, and the exit code of an interruption."""
    (tmp_path / "CLAUDE.md").write_text(GUIDE)

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("recollect.transfer.import_client.Import.run", interrupted)
    done = typed("import", "CLAUDE.md", "--json")
    assert (done.code, done.json["complete"], "Interrupted." in done.err) == (130, False, True)


def test_an_interruption_waits_for_the_batch_on_its_way(
    typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a batch stored is counted although Control-C came while it was on its way; the rest is not sent."""
    (tmp_path / "CLAUDE.md").write_text(GUIDE)
    ask = Import._ask

    def interrupted(self: Import, **parts: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        return ask(self, **parts)

    monkeypatch.setattr(Import, "_ask", interrupted)
    done = typed("import", "CLAUDE.md", "--json")
    assert (done.code, done.json["complete"], done.json["total"]["new"]) == (130, False, 2)


def test_the_ending_of_a_file_chooses_the_format(typed: Typed, tmp_path: Path) -> None:
    """`export notes.md` writes Markdown, any other ending JSON lines, and `--format` decides against the ending."""
    typed("remember", "Deploys happen on Tuesdays.")
    notes, lines, forced = tmp_path / "notes.md", tmp_path / "notes.jsonl", tmp_path / "forced.md"
    typed("export", str(notes))
    typed("export", str(lines))
    typed("export", str(forced), "--format", "jsonl")
    assert not notes.read_text(encoding="utf-8").startswith("{")
    assert "Deploys happen on Tuesdays." in notes.read_text(encoding="utf-8")
    assert lines.read_text(encoding="utf-8").startswith("{")
    assert forced.read_text(encoding="utf-8").startswith("{")


def test_a_file_is_overwritten_only_when_told_so(typed: Typed, tmp_path: Path) -> None:
    """An export leaves a file that is there as it is, and says how to overwrite it."""
    (tmp_path / "all.jsonl").write_text("mine")
    done = typed("export", "all.jsonl")
    assert (done.code, "--force" in done.err) == (InvalidInput.exit_code, True)
    assert (tmp_path / "all.jsonl").read_text() == "mine"
    assert typed("export", "all.jsonl", "--force").code == 0
    assert json.loads((tmp_path / "all.jsonl").read_text().splitlines()[0])["format"] == "recollect"


@pytest.mark.parametrize("level", ["private", "secret"])
def test_an_option_of_a_write_says_at_which_level_it_stores(typed: Typed, tmp_path: Path, level: str) -> None:
    """`--private` on `remember`, `fact` and `import` stores what only the caller reads back, with the same option."""
    (tmp_path / "A.md").write_text("A quiet place.\n")
    assert typed("remember", f"--{level}", "The code is blue heron").code == 0
    assert typed("import", "A.md", f"--{level}").code == 0
    assert typed("fact", f"--{level}", "code", "is", "blue").code == 0
    assert typed("list", "--json").json["memories"] == []
    kept = typed("list", f"--{level}", "--json").json["memories"]
    assert {one["sensitivity"] for one in kept} == {level}
    assert len(kept) == 2
    assert typed("facts", "--json").json["facts"] == []
    assert len(typed("facts", f"--{level}", "--json").json["facts"]) == 1
    refused = typed("remember", f"--{level}", "--sensitivity", "public", "The code is red heron")
    assert (refused.code, f"`--{level}` stores it as {level}" in refused.err) == (InvalidInput.exit_code, True)


def test_a_place_that_cannot_be_written_ends_with_two(typed: Typed, tmp_path: Path) -> None:
    """A folder that is not there is named, and a file that was there before is left alone when it fails."""
    done = typed("export", os.fspath(tmp_path / "none" / "x.jsonl"))
    assert (done.code, "cannot be written" in done.err) == (InvalidInput.exit_code, True)
    assert not (tmp_path / "none").exists()


@pytest.mark.full
def test_the_daemon_imports_for_its_client(executed: Typed, tmp_path: Path) -> None:
    """Where a daemon owns the store the file is read here and written there, and the export comes from there too."""
    (tmp_path / "CLAUDE.md").write_text(GUIDE)
    ours = {"RECOLLECT_DAEMON": "1"}
    try:
        done = executed("import", "CLAUDE.md", "--json", **ours)
        assert (done.code, done.json["files"][0]["new"]) == (0, 2)
        assert executed("status", "--json", **ours).json["running"] is True
        assert executed("import", "CLAUDE.md", "--json", **ours).json["files"][0]["unchanged"] == 2
        exported = executed("export", **ours).out
    finally:
        executed("stop", **ours)
    assert exported.splitlines()[1:] == executed("export").out.splitlines()[1:]
    assert exported.count('{"memory":') == 2


def test_a_folder_of_notes_is_approved_by_one_command(typed: Typed, tmp_path: Path) -> None:
    """The report says in one line how to approve all that waits, and that command does; `--own` brings no such line."""
    (tmp_path / "my notes").mkdir()
    for number in range(4):
        (tmp_path / "my notes" / f"n{number}.md").write_text(f"# Gate {number}\nGate {number} opens at dawn.\n")
    told = typed("import", "my notes").out.splitlines()[-1]
    assert told.startswith("4 memories wait for a decision: `recollect inbox --source 'my notes' --as approve` ")
    assert typed("import", "my notes", "--json").json["total"]["waiting"] == 4
    assert "`recollect inbox --decide ID --as approve`" in typed("inbox").out
    done = typed("inbox", "--source", "my notes", "--as", "approve")
    assert (done.code, "4 approved." in done.out) == (0, True)
    assert "Nothing waits" in typed("inbox").out
    (tmp_path / "more.md").write_text("# More\nThe crane is green.\n")
    own = typed("import", "more.md", "--own")
    assert (own.code, "wait" in own.out, "Nothing waits" in typed("inbox").out) == (0, False, True)


@pytest.mark.parametrize("arguments", [("--source", "a"), ("--as", "approve"), ("--source", "a", "--decide", "1")])
def test_half_a_decision_is_refused(typed: Typed, arguments: tuple[str, ...]) -> None:
    """A source needs a decision and a decision something to be decided, either memory or source."""
    assert typed("inbox", *arguments).code == InvalidInput.exit_code


def test_instructions_of_this_project_do_not_wait(typed: Typed, tmp_path: Path) -> None:
    """One's own CLAUDE.md is a file of this project; where its memories go to another project they wait."""
    (tmp_path / "CLAUDE.md").write_text("# Tests\nRun make check.\n")
    here = find_project(tmp_path).name
    assert typed("import", "CLAUDE.md", "--json", RECOLLECT_PROJECT=here).json["total"]["waiting"] == 0
    there = typed("import", "CLAUDE.md", "--json", RECOLLECT_PROJECT="github.com/acme/other").json
    assert (there["total"]["new"], there["total"]["waiting"]) == (1, 1)

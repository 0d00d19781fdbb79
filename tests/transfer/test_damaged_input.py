"""Damaged input: each file and member that cannot be read is named and counted as failed, and all else is imported."""

from __future__ import annotations

import io
import json
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

from callers import ADA
from file_transfer import import_file, import_paths
from recollect import App
from recollect.errors import InvalidInput
from recollect.transfer.formats import read_file
from recollect.transfer.import_client import Import
from recollect.transfer.import_paths import find_files

GOOD = "# Deploying\nWe deploy on Fridays only.\n"
MEM0 = json.dumps([{"id": str(number), "memory": f"Note {number} of the garden."} for number in range(200)])
BAD_LINES = [b"{", b'{"a": 1', b"\xff\xfe", b"not json"]
GOOD_LINES = {
    "memories.jsonl": {
        "category": "events",
        "abstract": "It rained.",
        "overview": "Rain.",
        "content": "It rained {n}.",
    },
    "memory.json": {"type": "entity", "name": "E{n}", "entityType": "thing", "observations": ["seen {n}"]},
    "memory.jsonl": {"type": "entity", "name": "F{n}", "entityType": "thing", "observations": ["heard {n}"]},
}


def chat(number: int) -> str:
    """Return an export of ChatGPT with one conversation of one message."""
    message = {"id": f"m{number}", "author": {"role": "user"}, "create_time": 1, "recipient": "all"}
    message["content"] = {"content_type": "text", "parts": [f"Plan {number}: " + f"the ferry {number} leaves. " * 50]}
    talk = {"title": "x", "mapping": {"n": {"message": message}}, "current_node": "n", "create_time": 1}
    return json.dumps([talk | {"conversation_id": f"c{number}"}])


def archive(*texts: str) -> bytes:
    """Return a ZIP of conversations, a member each."""
    whole = io.BytesIO()
    with ZipFile(whole, "w", ZIP_DEFLATED) as made:
        for number, text in enumerate(texts):
            made.writestr(f"conversations-{number:03}.json", text)
    return whole.getvalue()


def bent(data: bytes, member: str) -> bytes:
    """Return a ZIP whose data of one member is overwritten in the middle."""
    with ZipFile(io.BytesIO(data)) as made:
        start = made.getinfo(member).header_offset + 30 + len(member)
    return data[: start + 20] + b"\xff" * 30 + data[start + 50 :]


def database() -> bytes:
    """Return an SQLite file of several pages."""
    with closing(sqlite3.connect(":memory:")) as made:
        made.execute("CREATE TABLE memories (id INTEGER PRIMARY KEY, content TEXT)")
        made.executemany("INSERT INTO memories (content) VALUES (?)", [(f"Row {n} " * 100,) for n in range(100)])
        made.commit()
        return bytes(made.serialize())


DAMAGED: dict[str, Callable[[], bytes]] = {
    "cut.zip": lambda: archive(chat(1), chat(2))[:-30],
    "cut-early.zip": lambda: archive(chat(1))[:10],
    "no-archive.zip": lambda: b"<html>Not found</html>",
    "cut-list.json": lambda: MEM0.encode()[:5_000],
    "cut-at-once.json": lambda: b'[{"mem',
    "cut-talk.json": lambda: chat(3).encode()[:-40],
    "page.json": lambda: b"<html>Sign in</html>",
    "unknown.json": lambda: b'{"colour": "gre',
    "nul.jsonl": lambda: b"\0" * 400,
    "cut.db": lambda: database()[:9_000],
    "cut-header.sqlite": lambda: database()[:60],
    "latin.md": lambda: "Café".encode("latin-1"),
    "wide.md": lambda: "Notes".encode("utf-16"),
    "half-a-letter.md": lambda: "Café".encode()[:-1],
    "empty.md": bytes,
    "empty.json": bytes,
    "empty.db": bytes,
    "empty.zip": bytes,
}


def problems(importing: Import) -> dict[str, list[str]]:
    """Return the problems of each file that has any, by its name."""
    return {one.source.name: [each.why for each in one.problems] for one in importing.files if one.problems}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with one sound note, which is the working folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.md").write_text(GOOD, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_is_named_and_the_rest_imported(app: App, folder: Path, name: str) -> None:
    """In a folder and by its name, a damaged file counts as failed, and is never of no known format."""
    (folder / name).write_bytes(DAMAGED[name]())
    for paths in ([folder], [folder / name, folder / "good.md"]):
        importing = import_paths(app, paths, ADA)
        total = importing.total()
        assert total.failed == 1
        assert total.new + total.unchanged >= 1
        (why,) = problems(importing)[name]
        assert name in why
        assert "format" not in why.partition(": ")[2]
    with pytest.raises(InvalidInput, match=name):
        import_file(app, folder / name, ADA)


def test_the_damaged_member_of_an_archive_is_named(app: App, folder: Path) -> None:
    """Of fifty members the one whose data is damaged is named, and so is one whose JSON is cut or that is empty."""
    texts = [chat(number) for number in range(50)]
    texts[31], texts[32] = texts[31][:200], ""
    (folder / "export.zip").write_bytes(bent(archive(*texts), "conversations-017.json"))
    for paths in ([folder / "export.zip"], [folder]):
        importing = import_paths(app, paths, ADA)
        wrong = {name: why for name, why in problems(importing).items() if name != "good.md"}
        assert list(wrong) == [f"export.zip/conversations-{number:03}.json" for number in (17, 31, 32)]
        assert all(name in why[0] for name, why in wrong.items())
        assert importing.total().failed == 3
        assert sum(one.source.member != "" for one in importing.files) == 50
    assert importing.total().unchanged == 47


@pytest.mark.parametrize("place", [0, 1, 3])
@pytest.mark.parametrize("bad", BAD_LINES)
@pytest.mark.parametrize("name", GOOD_LINES)
def test_one_bad_line_is_one_problem(app: App, folder: Path, name: str, bad: bytes, place: int) -> None:
    """Wherever a bad line stands among JSON lines, the first place included, the others are imported."""
    lines = [json.dumps(GOOD_LINES[name]).replace("{n}", str(number)).encode() for number in range(3)]
    lines.insert(place, bad)
    (folder / name).write_bytes(b"\n".join(lines))
    importing = import_paths(app, [folder / name], ADA)
    total = importing.total()
    assert (total.new, total.failed) == (3, 1)
    assert importing.files[0].problems[0].where == f"{name}:{place + 1}"


def test_no_damage_of_an_archive_is_more_than_a_problem(folder: Path) -> None:
    """Whatever bytes of an archive are overwritten, reading it ends with named problems or with conversations."""
    whole, chance = archive(chat(1), chat(2)), random.Random(7)
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        (folder / "x.zip").write_bytes(bytes(data))
        assert "x.zip" in (_error_of(folder / "x.zip") or "x.zip")


def _error_of(path: Path) -> str:
    """Return what stops the reading of a file, empty where nothing does."""
    try:
        for one in find_files([path]).files:
            if one.format is not None:
                list(read_file(one.path, one.name, one.format, one.member))
    except InvalidInput as error:
        return str(error)
    return ""


def test_a_sound_file_of_no_known_format_is_still_that(folder: Path) -> None:
    """Sound JSON, JSON lines and databases that nobody knows are counted as of no known format."""
    (folder / "package.json").write_text('{"name": "x"}', encoding="utf-8")
    (folder / "log.jsonl").write_text('{"level": "info"}\n{"level": "warn"}\n', encoding="utf-8")
    with closing(sqlite3.connect(folder / "other.db")) as other:
        other.execute("CREATE TABLE apples (id)")
    found = find_files([folder])
    assert [one.name for one in found.files] == ["good.md"]
    assert sum(found.skipped.values()) == 3

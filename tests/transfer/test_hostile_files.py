"""Files that are broken or meant to break something: each line is judged alone, and nothing repeats what it says."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from recollect.domain.transfer import ImportFormat
from recollect.errors import InvalidInput
from recollect.transfer.formats import HEAD, detect, read_file, recognise_file
from recollect.transfer.reading import LONGEST_LINE, labels, time_of

GOOD = json.dumps({"category": "events", "abstract": "a", "overview": "b", "content": "It rained."}).encode()


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b'{"content": "caf\xe9"}', "UTF-8"),
        (b"\xff\xfe{\x00}\x00", "UTF-8"),
        (b'{"content": NaN}', "NaN"),
        (b'{"active_count": -Infinity}', "NaN"),
        (b'{"active_count": 1e999}', "NaN"),
        (b'{"content": "a", "content": "b"}', "twice"),
        (b'{"content": "a"', "JSON"),
        (b'{"n": ' + b"9" * 5_000 + b"}", "endless"),
        (b"[" * 100_000, "deeply"),
        (b'{"a":' * 101 + b"1" + b"}" * 101, "deeply"),
        (b'["content"]', "object"),
        (b'"content"', "object"),
        (b'{"content": "' + b"x" * LONGEST_LINE + b'"}', "longer"),
    ],
    ids=[
        "latin1",
        "utf16",
        "nan",
        "infinity",
        "overflow",
        "twice",
        "cut",
        "digits",
        "brackets",
        "deep",
        "list",
        "text",
        "huge",
    ],
)
def test_a_bad_line_is_one_problem(read: Callable[..., Any], line: bytes, why: str) -> None:
    """Whatever is wrong with a line is said in a word with its number, and the lines around it are read."""
    found = read(ImportFormat.MEMORIES_JSONL, b"\n".join([GOOD, line, GOOD]), "m")
    assert [one.where for one in found.problems] == ["m:2"]
    assert why in found.problems[0].why
    assert found.contents == ["It rained."] * 2


def test_a_problem_never_repeats_the_line(read: Callable[..., Any]) -> None:
    """What stands in a bad line may be a secret, so no problem quotes it."""
    found = read(ImportFormat.MEMORIES_JSONL, b'{"category": "quokka-7", "content": "quokka-7"}\n{"quokka-7"', "m")
    assert len(found.problems) == 2
    assert not any("quokka" in one.why for one in found.problems)


def test_blank_lines_marks_and_windows_are_nothing(read: Callable[..., Any]) -> None:
    """A byte order mark, Windows line ends, blank lines and a missing end of line change nothing."""
    text = b"\xef\xbb\xbf" + GOOD + b"\r\n\r\n  \r\n" + GOOD
    found = read(ImportFormat.MEMORIES_JSONL, text)
    assert (found.contents, found.problems) == (["It rained."] * 2, [])


@pytest.mark.parametrize(
    ("name", "head", "format"),
    [
        ("CLAUDE.local.md", b"", ImportFormat.MARKDOWN),
        ("x.jsonl", b'{"format":"recollect","version":1}\n', ImportFormat.RECOLLECT),
        ("memory.json", b'\xef\xbb\xbf\n{"type":"entity","name":"A"}\n{"type":', ImportFormat.MEMORY_JSON),
        ("g.json", b'{\n "entities": [\n  {"name": "A", "observations": []', ImportFormat.MEMORY_JSON),
        ("memories.jsonl", GOOD + b"\n", ImportFormat.MEMORIES_JSONL),
        ("memories.jsonl", b'{"ID":"x","Abstract":"a"}\n', ImportFormat.MEMORIES_JSONL),
        ("e.json", b'{"export_metadata": {"total_memories": 3}, "memories": [', ImportFormat.MCP_MEMORY_SERVICE),
        ("e.json", b'{"memories": [{"content": "x", "content_hash": "y", ', ImportFormat.MCP_MEMORY_SERVICE),
        ("m.json", b'{"results": [{"id": "1", "memory": "x"', ImportFormat.MEM0),
        ("m.json", b'[\n  {"id": "1", "memory": "x"', ImportFormat.MEM0),
        ("x.json", b'{"hello": 1}', None),
        ("x.txt", b"hello", None),
        ("x.json", b"", None),
        ("x.json", b"{" * HEAD, None),
        ("x.bin", bytes(range(256)), None),
    ],
)
def test_the_format_is_found_out(name: str, head: bytes, format: ImportFormat | None) -> None:
    """A file's name and its beginning tell its format, or that it is none that is known."""
    assert detect(name, head) is format


@pytest.mark.parametrize("content", [b"hello", b'{"hello": 1}'])
def test_a_file_of_no_known_format_is_refused(tmp_path: Path, content: bytes) -> None:
    """The error names the file and the option that helps."""
    path = tmp_path / "x.txt"
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match=r"x\.txt has an unrecognised format; name it with `--format`"):
        recognise_file(path, None)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """A missing file and a folder are input that is not valid, in a sentence."""
    for path in (tmp_path / "none.md", tmp_path):
        with pytest.raises(InvalidInput, match="cannot be read"):
            recognise_file(path, ImportFormat.MARKDOWN)
        with pytest.raises(InvalidInput, match="cannot be read"):
            list(read_file(path, "x", ImportFormat.MARKDOWN))


@pytest.mark.parametrize("kind", ["pipe", "device", "socket"])
def test_what_is_no_file_is_refused(tmp_path: Path, kind: str) -> None:
    """A pipe that nobody writes to, a device without an end and a socket are told at once, by their names."""
    path = tmp_path / "x.md"
    with socket.socket(socket.AF_UNIX) as listener:
        if kind == "pipe":
            os.mkfifo(path)
        elif kind == "device":
            path.symlink_to("/dev/zero")
        else:
            listener.bind(os.path.relpath(path))
        with pytest.raises(InvalidInput, match=r"x\.md cannot be read"):
            recognise_file(path, None)


@pytest.mark.parametrize("name", ["a.md", "a.json"])
def test_a_file_without_measure_is_refused(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is read as one document has a largest size, and its name is in the error."""
    monkeypatch.setattr("recollect.transfer.reading.LARGEST_FILE", 99)
    path = tmp_path / name
    path.write_text('[{"memory": "It rained."}]', encoding="utf-8")
    format = recognise_file(path, None).format
    assert len(list(read_file(path, name, format))) > 0
    path.write_text(path.read_text(encoding="utf-8") + " " * 99, encoding="utf-8")
    with pytest.raises(InvalidInput, match=f"{name} cannot be imported.*It is larger than"):
        list(read_file(path, name, format))


def test_a_newer_export_is_refused(tmp_path: Path) -> None:
    """An export of a version that this program does not know is not half understood."""
    path = tmp_path / "x.jsonl"
    path.write_text('{"format":"recollect","version":99}\n')
    with pytest.raises(InvalidInput, match="It is of version 99"):
        list(read_file(path, "x", recognise_file(path, None).format))


@pytest.mark.parametrize(
    "value", [None, True, "", "soon", float("inf"), 1e300, -1e300, "9999-12-31T23:59:59-23:00", "20260101", [], {}]
)
def test_a_time_that_is_none_is_left_out(value: object) -> None:
    """What cannot be read as a time is nothing, and never an error."""
    assert time_of(value) is None


def test_times_and_names_are_read_as_others_write_them() -> None:
    """Seconds, milliseconds and ISO 8601 are times; a text with commas and a list are names."""
    written = (1767225600, 1767225600000, "2026-01-01T00:00:00Z", " 2026-01-01 ")
    assert {time_of(one) for one in written} == {"2026-01-01T00:00:00+00:00"}
    assert labels("a, b,,a ") == labels(["a", "b", "", "a", None]) == ["a", "b"]
    assert len(labels(["x" * 501, *map(str, range(300))])) == 200


def test_an_export_with_strange_lines_is_read_around_them(read: Callable[..., Any]) -> None:
    """Lines of no known kind, with unknown fields or of two kinds are told without being quoted."""
    lines = [
        {"format": "recollect", "version": 1, "memories": 1},
        {"memory": {"content": "It rained.", "quokka": 1}},
        {"memory": {"content": "It rained."}, "fact": {}},
        {"quokka": {}},
        {"memory": "quokka"},
        {"memory": {"content": "It rained.", "id": 3}},
    ]
    found = read(ImportFormat.RECOLLECT, "\n".join(map(json.dumps, lines)), "x")
    assert [one.where for one in found.problems] == ["x:2", "x:3", "x:4", "x:5"]
    assert not any("quokka" in one.why for one in found.problems)
    assert (found.contents, found.memories[0].fields["id"]) == (["It rained."], 3)

"""Exports that are broken or meant to break the store: whatever they say, it stays sound and loses nothing it had."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from callers import ADA
from file_transfer import export_file, import_file
from pattern_attacks import at_most
from recollect import App, Settings
from recollect.domain.results import WriteStatus
from recollect.domain.transfer import ExportPage, Imported, ImportFormat
from recollect.errors import InvalidInput
from recollect.transfer import formats
from recollect.transfer.formats import read_file
from run_operations import add, do, ill, listed, rows, shown

HEADER = {"format": "recollect", "version": 1, "chain": "part"}
LINE = {"at": "2026-01-01T00:00:00+00:00", "actor": "x", "namespace": "project:crew/engine", "action": "insert"}
LAST = 2**31 - 1

Importing = Callable[..., Imported]


@pytest.fixture
def bring(app: App, tmp_path: Path) -> Importing:
    """Return a function that writes an export of these lines and imports it."""

    def importing(*lines: dict[str, Any], **options: Any) -> Imported:
        path = tmp_path / "export.jsonl"
        path.write_text("\n".join(map(json.dumps, (HEADER, *lines))), encoding="utf-8")
        return import_file(app, path, ADA, **options)

    return importing


def memory(content: str, **fields: Any) -> dict[str, Any]:
    return {"memory": {"content": content} | fields}


def fact(thing: str, **fields: Any) -> dict[str, Any]:
    return {"fact": {"subject": "a", "predicate": "b", "object": thing} | fields}


def test_nothing_gives_way_to_itself(app: App, bring: Importing, settings: Settings) -> None:
    """Memories that a file merges into themselves or in a circle can be restored and forgotten like any other."""
    report = bring(
        memory("One.", id=1, merged_into=1),
        memory("Two.", id=2, merged_into=3),
        memory("Three.", id=3, merged_into=2),
        memory("Four.", id=4, superseded_by=4),
    )
    assert (report.new, len(report.problems)) == (4, 3)
    assert all("cannot give way" in one.why for one in report.problems)
    assert rows(settings, "SELECT id FROM memory WHERE id IN (merged_into, superseded_by)") == []
    assert do(app, "restore", id="1").status is WriteStatus.RESTORED
    for one in (1, 2, 3, 4):
        do(app, "forget", id=str(one))
    assert rows(settings, "SELECT id FROM memory") == []
    assert ill(app) == []


def test_nothing_gives_way_beyond_its_namespace(app: App, bring: Importing, settings: Settings) -> None:
    """A memory that a file merges into one of another scope waits for nobody."""
    report = bring(memory("One.", id=1, merged_into=2), memory("Two.", id=2, scope="team"))
    assert "cannot give way" in report.problems[0].why
    assert rows(settings, "SELECT merged_into FROM memory WHERE id = 1") == [(0,)]


def test_high_numbers_are_not_kept(app: App, bring: Importing) -> None:
    """The highest number there is leaves numbers for whatever comes next, which can be read and forgotten."""
    bring(memory("One.", id=LAST), fact("c", id=LAST, memory_id=LAST))
    one = add(app, "Something else.")
    assert shown(app, one).content == "Something else."
    assert do(app, "forget", id=str(one)).status is WriteStatus.DELETED
    told = do(app, "store_fact", subject="x", predicate="y", object="z")
    assert do(app, "forget_fact", id=told.id).status is WriteStatus.DELETED
    (kept,) = do(app, "query_facts").facts
    assert shown(app, kept.memory_id).content == "One."


@pytest.mark.parametrize(
    "odd",
    [
        {"changes": {"fact": 10**30}},
        {"changes": {"fact": LAST}, "memory_id": LAST},
        {"changes": {"note": ["\ud800"]}},
        {"changes": {"note\u0000": 1}},
        {"actor": "\u0000"},
        {"id": LAST},
    ],
    ids=["endless", "last", "surrogate", "nul", "actor", "number"],
)
def test_a_strange_journal_harms_nothing(app: App, bring: Importing, odd: dict[str, Any]) -> None:
    """Whatever a line of a foreign journal says, the import ends well, so does the next, and so does every write."""
    line = {"journal": LINE | {"id": 1, "hash": "0" * 64} | odd}
    for _ in range(2):
        bring(line, memory("One."))
    one = add(app, "Something else.")
    told = do(app, "store_fact", subject="x", predicate="y", object="z")
    assert do(app, "forget", id=str(one)).status is WriteStatus.DELETED
    assert do(app, "forget_fact", id=told.id).status is WriteStatus.DELETED
    assert ill(app) == []


def test_numbers_that_are_none_fail_alone(app: App, bring: Importing) -> None:
    """A number that is a list or an object is told with its line, and the rest is written."""
    report = bring(
        memory("One.", id=[1], superseded_by=2),
        memory("Two.", id=2, superseded_by=[1]),
        memory("Three.", id={}, merged_into={}),
        memory("Four.", id=4, superseded_by=5),
        memory("Five.", id=5),
    )
    assert (report.new, report.failed) == (2, 3)
    assert [one.where.rpartition("/")[2] for one in report.problems] == [f"export.jsonl:{at}" for at in (2, 3, 4)]
    assert listed(app) == [5]


def test_a_number_that_two_memories_have_links_neither(app: App, bring: Importing, settings: Settings) -> None:
    """Two exports in one file share numbers: both memories arrive, and none gives way to the wrong one."""
    lines = [memory("One.", id=1), memory("Two.", id=2, merged_into=1), fact("c", memory_id=1)]
    others = [memory("Uno.", id=1), memory("Due.", id=2, merged_into=1), fact("d", memory_id=1)]
    report = bring(*lines, *others)
    assert (report.new, report.facts, len(report.problems)) == (4, 2, 2)
    assert rows(settings, "SELECT content FROM memory WHERE merged_into > 0") == []
    found = {one.object: shown(app, one.memory_id).content for one in do(app, "query_facts").facts}
    assert len({*found.values()}) == 2


def test_an_end_that_another_memory_tells_stays_with_the_fact(app: App, bring: Importing) -> None:
    """A fact that a second file ends is still its first memory's: forgetting the second one takes nothing along."""
    begins = {"valid_from": "2026-01-01T00:00:00Z"}
    bring(memory("One.", id=1), fact("tea", memory_id=1, **begins))
    bring(memory("Two.", id=2), fact("tea", memory_id=2, valid_to="2026-02-01T00:00:00Z", **begins))
    do(app, "forget", id="2")
    (kept,) = do(app, "query_facts", history=True).facts
    assert (kept.memory_id, kept.valid_to is None) == (1, False)
    assert ill(app) == []


def test_a_blank_key_is_none(app: App, bring: Importing) -> None:
    """Two memories whose key is blank are two memories without one."""
    assert bring(memory("One.", key=" "), memory("Two.", key=" ")).new == 2


def test_one_scope_overwrites_nothing(app: App, bring: Importing) -> None:
    """Of two memories whose keys meet in the scope that was asked for, the second is told instead of overwriting."""
    report = bring(memory("One.", key="k", scope="personal"), memory("Two.", key="k"), scope="team")
    assert (report.new, report.updated, report.failed) == (1, 0, 1)
    assert [shown(app, one).content for one in listed(app)] == ["One."]


def test_what_stands_twice_hides_nothing_behind_it(app: App, bring: Importing) -> None:
    """After a text that a file says twice, what is there already is still known: by its text, and by its key."""
    lines = [memory("One."), memory("Two.", key="k"), memory("Three.")]
    bring(*lines)
    report = bring(memory("New."), memory("New."), *lines)
    assert (report.new, report.unchanged) == (1, 4)
    assert len(listed(app)) == 4


def test_what_changed_under_its_key_gives_its_old_text_free(app: App, bring: Importing) -> None:
    """A text that another memory had until this very import is a memory of its own now."""
    bring(memory("One.", key="k"))
    report = bring(memory("Two.", key="k"), memory("One."))
    assert (report.new, report.updated) == (1, 1)
    assert {shown(app, one).content for one in listed(app)} == {"One.", "Two."}


def test_a_part_that_says_what_the_whole_says_is_kept(app: App, bring: Importing, settings: Settings) -> None:
    """What was merged and says all of it is another memory than the whole, also where both are of one instant."""
    at = {"created_at": "2026-01-01T00:00:00Z"}
    lines = [memory("One. Two.", id=1, **at), memory("One.", id=2, merged_into=1, **at)]
    lines.append(memory("One. Two.", id=3, merged_into=1, **at))
    assert bring(*lines).new == 3
    assert bring(*lines).unchanged == 3
    assert rows(settings, "SELECT id FROM memory WHERE merged_into = 1") == [(2,), (3,)]
    do(app, "restore", id="3")
    assert [shown(app, one).content for one in (1, 3)] == ["One.", "One. Two."]


@pytest.mark.full
def test_a_dry_run_counts_what_is_there_twice(app: App, bring: Importing) -> None:
    """However far apart, what a file repeats counts as in the real import; facts of its memories are no failures."""
    lines = [memory(f"Thing {number}.", id=number) for number in range(1, 6)]
    lines += [memory("Again.", id=number) for number in range(6, 1_030)]
    lines += [memory(f"Thing {number - 1_029}.", id=number) for number in range(1_030, 1_035)]
    lines += [fact("c", memory_id=number) for number in range(1, 1_030)] + [fact("d", memory_id=9_999)]
    dry, real = bring(*lines, dry_run=True), bring(*lines)
    for name in ("new", "updated", "unchanged", "refused", "failed", "facts", "problems"):
        assert getattr(dry, name) == getattr(real, name), name
    assert (real.new, real.unchanged, real.facts, real.failed) == (6, 1_028, 1, 1)


def test_a_name_that_is_no_text_is_written_as_such(app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file whose name is not UTF-8 is imported, and its sections have keys of their own."""
    monkeypatch.chdir(tmp_path)
    for name in (b"caf\xe9.md", b"caf\xe8.md"):
        path = tmp_path / os.fsdecode(name)
        path.write_text(f"# Style\nIt is {name[3]} spaces.\n")
        assert import_file(app, path, ADA).new == 1
    keys = sorted(shown(app, one).key or "" for one in listed(app))
    assert keys == ["caf\\xe8.md#style", "caf\\xe9.md#style"]


def test_an_export_never_takes_the_place_of_a_database(app: App, settings: Settings) -> None:
    """Whoever names the store's own file gets an error, and the store is as it was."""
    one = add(app, "The mascot is a quokka.")
    with pytest.raises(InvalidInput, match="is a database"):
        export_file(app, settings.folder / "memory.db", ExportPage(), ADA)
    assert listed(app) == [one]
    assert ill(app) == []


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_an_archive_that_unpacks_without_end_is_refused(
    tmp_path: Path, method: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small file that would become far larger than any other is not unpacked, whatever it is packed with."""
    monkeypatch.setattr(formats, "LARGEST_FILE", 2**22)
    file = tmp_path / "export.zip"
    with (
        zipfile.ZipFile(file, "w", method) as archive,
        archive.open("conversations.json", "w", force_zip64=True) as one,
    ):
        one.write(b"[")
        for _ in range(5):
            one.write(b"[]," * (2**20 // 3))
    with pytest.raises(InvalidInput, match="it unpacks to far more than any export does"):
        list(read_file(file, "export", ImportFormat.CHATGPT, "conversations.json"))


@pytest.mark.parametrize("piece", [b'{"a":', b"[", b'[{"a":[', b'{"mapping":{"a":'])
def test_levels_without_end_are_refused_as_they_come(tmp_path: Path, piece: bytes) -> None:
    """A megabyte of open brackets takes neither time nor memory: at the hundredth level the file is given up."""
    file = tmp_path / "conversations.json"
    file.write_bytes(piece * (2**20 // len(piece)))
    with at_most(1.0), pytest.raises(InvalidInput, match="nested too deeply"):
        list(read_file(file, "export", ImportFormat.CHATGPT))

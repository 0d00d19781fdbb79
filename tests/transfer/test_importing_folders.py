"""Importing many files at once into a real store: each file is told of alone, and doing it again goes on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from callers import ADA
from file_transfer import import_paths
from recollect import App, Draft, Listing, Query, recall, remember
from recollect.domain.requests import FactQuery
from recollect.domain.transfer import ImportBatch, Imported
from recollect.memory.facts import query_facts
from recollect.memory.listing import list_memories
from recollect.transfer.import_batch import import_batch
from recollect.transfer.import_client import Import
from recollect.transfer.import_paths import find_files

TOKEN = "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
NOTES = {
    "vault/tea.md": "---\npermalink: tea\n---\n# Tea\n- [method] 80 degrees\n- pairs_with [[Cake]]",
    "vault/sub/tea.md": "# Tea\nAlso [[Cake]].",
    "vault/secret.md": f"# Keys\nIt is {TOKEN}.\n# Doors\nLocked.",
    "vault/empty.md": "",
    "vault/bad.json": '[{"uuid": "c", "chat_messages": [{"sender": "human", "text": "Green tea?"}]}, {',
}


@pytest.fixture
def vault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with notes, a secret and an export that ends early."""
    monkeypatch.chdir(tmp_path)
    for name, text in NOTES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path / "vault"


def counts(importing: Import) -> dict[str, list[int]]:
    """Return new, unchanged, refused, failed and facts of each file."""
    names = ("new", "unchanged", "refused", "failed", "facts")
    return {one.source.name: [one.counts[name] for name in names] for one in importing.files}


def test_each_file_of_a_folder_is_told_of_alone(app: App, vault: Path) -> None:
    """Counts and problems stand with their file, broken and refused ones too; the second time nothing is new."""
    first = import_paths(app, [vault], ADA)
    assert counts(first) == {
        "vault/bad.json": [1, 0, 0, 1, 0],
        "vault/empty.md": [0, 0, 0, 1, 0],
        "vault/secret.md": [1, 0, 1, 0, 0],
        "vault/tea.md": [1, 0, 0, 0, 2],
        "vault/sub/tea.md": [1, 0, 0, 0, 1],
    }
    told = {one.source.name: [problem.why for problem in one.problems] for one in first.files}
    assert "ends too early" in told["vault/bad.json"][0]
    assert told["vault/secret.md"][0].startswith("Secret detection: found in `content`")
    assert told["vault/secret.md"][0].endswith("With `on_secret` set to `redact` the rest of it is imported.")
    assert told["vault/empty.md"] == [f"{vault}/empty.md cannot be imported: It is empty."]
    assert first.total().message == "Memories: 4 new, 1 refused, 2 failed; 3 facts."
    assert sum(first.total().refused_kinds.values()) == 1
    again = import_paths(app, [vault], ADA)
    assert [one[:2] for one in counts(again).values()] == [[0, 1], [0, 0], [0, 1], [0, 1], [0, 1]]
    assert again.total().facts == 0
    facts = query_facts(app, FactQuery(), ADA).facts
    assert {(one.subject, one.predicate, one.object) for one in facts} == {
        ("tea", "method", "80 degrees"),
        ("tea", "pairs_with", "Cake"),
        ("tea", "links_to", "Cake"),
    }


def test_a_dry_run_of_a_folder_counts_as_the_real_one(app: App, vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What files repeat of each other is new once, in however many batches it is asked for; nothing is written."""
    monkeypatch.setattr("recollect.transfer.import_client._BATCH_ITEMS", 2)
    lines = [json.dumps({"abstract": text, "content": text}) for text in ("It rained.", "It snowed.", "It hailed.")]
    for name in ("a.jsonl", "b.jsonl"):
        (vault / name).write_text("\n".join(lines), encoding="utf-8")
    dry = import_paths(app, [vault], ADA, dry_run=True)
    assert list_memories(app, Listing(), ADA).total == 0
    assert counts(dry)["vault/b.jsonl"] == [0, 3, 0, 0, 0]
    assert counts(dry) == counts(import_paths(app, [vault], ADA))


def test_an_interrupted_import_goes_on(app: App, vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was sent before the interruption is told and stays; the second run adds the rest, and embeds only that."""
    monkeypatch.setattr("recollect.transfer.import_client._BATCH_ITEMS", 2)
    sent = 0

    def send(batch: ImportBatch) -> Imported:
        nonlocal sent
        sent += 1
        if sent == 2:
            raise KeyboardInterrupt
        return import_batch(app, batch, ADA)

    importing = Import(send, {})
    with pytest.raises(KeyboardInterrupt):
        importing.run(find_files([vault]).files, lambda _bytes, _items: None)
    before = importing.total()
    assert before.new + before.refused == 2
    rest = import_paths(app, [vault], ADA).total()
    assert (rest.new, rest.unchanged) == (4 - before.new, before.new)


def test_a_private_file_lets_no_other_see_more(app: App, vault: Path) -> None:
    """A file that names a level opens it for itself alone: another file's hidden sections stay hidden from it."""
    remember(app, Draft(content="Hush.", key="vault/empty.md#hush", sensitivity="private"), ADA)
    (vault / "doors.md").write_text("---\nsensitivity: private\n---\nLocked twice.", encoding="utf-8")
    importing = import_paths(app, [vault], ADA)
    told = [problem.why for one in importing.files for problem in one.problems]
    assert not any("hush" in why for why in told)


def test_numbers_of_two_exports_do_not_mix(app: App, vault: Path) -> None:
    """Two exports use the same numbers for other memories; a fact names that of its own file."""
    for name in "ab":
        header = {"format": "recollect", "version": 1}
        memory = {"id": 7, "content": f"Note {name}."}
        fact = {"id": 1, "subject": name, "predicate": "is", "object": "noted", "memory_id": 7}
        lines = [json.dumps(one) for one in (header, {"memory": memory}, {"fact": fact})]
        (vault / f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    import_paths(app, [vault / "a.jsonl", vault / "b.jsonl"], ADA)
    memories = {str(one.id): one.content for one in list_memories(app, Listing(), ADA).memories}
    facts = query_facts(app, FactQuery(), ADA).facts
    assert {one.subject: memories[str(one.memory_id)] for one in facts} == {"a": "Note a.", "b": "Note b."}


def test_what_was_said_is_recalled_with_its_speaker(app: App, vault: Path) -> None:
    """A message of a transcript is found by its meaning, with who said it, in which session and at which place."""
    line = {
        "parentUuid": None,
        "sessionId": "s1",
        "uuid": "u1",
        "type": "user",
        "timestamp": "2026-01-02T03:04:05Z",
        "message": {"role": "user", "content": "We ship on Fridays only."},
    }
    (vault / "s1.jsonl").write_text(json.dumps(line), encoding="utf-8")
    assert import_paths(app, [vault / "s1.jsonl"], ADA, transcripts=True).total().new == 1
    (best, *_) = recall(app, Query(query="on which day do we ship?"), ADA).hits
    found = best.memory
    assert (found.content, found.speaker, found.session_id, found.position) == (
        "We ship on Fridays only.",
        "user",
        "s1",
        0,
    )
    assert (found.source, found.author, found.trust) == ("import", "ada", 0.5)

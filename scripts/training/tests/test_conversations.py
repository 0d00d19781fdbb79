"""`scripts/train conversations`: the project's own conversations become sets, and a wrong source is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from training import conversations

HEAD = "A = Ada, B = Ben\n## 2025-01-02 10:00\nA #kiln: The kiln arrives on Monday.\nB: Good!\n"


def test_every_source_converts_and_every_answer_is_a_turn_of_its_group(tmp_path: Path) -> None:
    """Ids are unique, each answer is a turn of the query's group, and only unanswerable queries have none."""
    conversations.main(tmp_path)
    for name in conversations.SETS:
        rows = {part: _rows(tmp_path / name / f"{part}.jsonl") for part in ("corpus", "queries")}
        turns, queries = ({row["id"]: row for row in some} for some in rows.values())
        assert (len(turns), len(queries)) == (len(rows["corpus"]), len(rows["queries"]))
        pairs = [line.split("\t")[:2] for line in (tmp_path / name / "qrels.tsv").read_text("utf-8").splitlines()]
        assert all(turns[turn]["group"] == queries[query]["group"] for query, turn in pairs)
        unanswered = {row["id"] for row in rows["queries"] if row["category"] == "unanswerable-near"}
        assert {query for query, _ in pairs} == queries.keys() - unanswered


def test_labels_and_the_turn_above_become_ids(tmp_path: Path) -> None:
    """A question may name turns by label; `^` is the turn above it, and no name at all means the same."""
    source = tmp_path / "talk-kiln.txt"
    source.write_text(HEAD + "? s | Was Ben glad?\n? m | kiln ^ | What pleased Ben?\n", encoding="utf-8")
    read = conversations.read(source)
    assert [turn["speaker"] for turn in read.turns] == ["Ada", "Ben"]
    answers = [("q1", "s1:2"), ("q2", "s1:1"), ("q2", "s1:2")]
    assert read.qrels == [f"kiln/{query}\tkiln/{turn}\t1\n" for query, turn in answers]


def test_turns_of_a_session_become_passages(tmp_path: Path) -> None:
    """A passage ends with its session or before it would get too long; it answers what its turns answer, once."""
    source = tmp_path / "talk-kiln.txt"
    later = "? m | kiln ^ | Why glad?\nA: How is the oven?\n? s | What of the oven?\n## 2025-01-03 10:00\nB: Cold.\n"
    source.write_text(HEAD + later, encoding="utf-8")
    read = conversations.read(source)
    sessions = conversations.joined(read, 1_000)
    assert [one["text"] for one in sessions.turns] == [
        "Ada: The kiln arrives on Monday.\nBen: Good!\nAda: How is the oven?",
        "Ben: Cold.",
    ]
    assert [one["id"] for one in sessions.turns] == ["kiln/s1:1", "kiln/s2:1"]
    assert sessions.qrels == ["kiln/q1\tkiln/s1:1\t1\n", "kiln/q2\tkiln/s1:1\t1\n"]
    parts = conversations.joined(read, 50)
    assert [len(str(one["text"]).splitlines()) for one in parts.turns] == [2, 1, 1]
    assert parts.qrels == ["kiln/q1\tkiln/s1:1\t1\n", "kiln/q2\tkiln/s1:3\t1\n"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("? o | oven | Why?", "line 5: no turn above has the label oven"),
        ("? m | kiln | Why?", "line 5: 1 turns are the wrong number for multi-hop"),
        ("? u | kiln | Why?", "line 5: 1 turns are the wrong number for unanswerable-near"),
        ("A #kiln: Again.", "line 5: .* a label of its own"),
        ("C: Who am I?", "line 5: neither names, session, turn nor question"),
        ("## 2025-01-02 09:00", "line 5: .* begins before the end"),
    ],
)
def test_a_wrong_source_is_refused(tmp_path: Path, line: str, message: str) -> None:
    """The message names the file and what is wrong."""
    source = tmp_path / "talk-kiln.txt"
    source.write_text(HEAD + line, encoding="utf-8")
    with pytest.raises(ValueError, match=r"^talk-kiln\.txt.*" + message):
        conversations.read(source)


def _rows(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]

"""Write the conversations of this project as six sets.

`talks` (turns), `talk_sessions` and `talk_passages` (the same as whole sessions and in parts of them), `talk_facts` and
`people` (distilled facts), and `people_apart`, which only judges.

The sources lie in `data/conversations`; the README there describes their format.
"""

from __future__ import annotations

import json
import re
from copy import copy
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

Row: TypeAlias = dict[str, str | int]
SOURCES: Final = Path(__file__).with_name("data") / "conversations"
SETS: Final = {
    "talks": "talk-*.txt",
    "talk_sessions": "talk-*.txt",
    "talk_passages": "talk-*.txt",
    "talk_facts": "facts-*.txt",
    "people": "people-*.txt",
    "people_apart": "apart-*.txt",
}
LONGEST: Final = {"talk_sessions": 1_000_000, "talk_passages": 1_000}  # characters of a memory
CATEGORIES: Final = {"s": "single-hop", "t": "temporal", "m": "multi-hop", "o": "open-domain", "u": "unanswerable-near"}
NAMES: Final = re.compile(r"A = (\w+), B = (\w+)")
SESSION: Final = re.compile(r"## (\d{4}-\d\d-\d\d \d\d:\d\d)")
TURN: Final = re.compile(r"([AB])(?: #(\w+))?: (.+)")
QUESTION: Final = re.compile(r"\? ([stmou]) \| (?:([\w^ ]+) \| )?([^|]+)")


class Conversation:
    """One source: rows of turns and of queries, and lines that say which turns answer a query."""

    def __init__(self, group: str) -> None:
        self.group, self.sessions, self.place, self.at = group, 0, 0, datetime.min
        self.names, self.labels = dict[str, str](), dict[str, str]()
        self.turns, self.queries, self.qrels = list[Row](), list[Row](), list[str]()

    def add(self, line: str) -> None:
        """Take in one line; raise ValueError for a line of no known form."""
        if found := NAMES.fullmatch(line):
            self.names = {"A": found[1], "B": found[2]}
        elif found := SESSION.fullmatch(line):
            before, self.at = self.at, datetime.fromisoformat(found[1])
            self.sessions, self.place = self.sessions + 1, 0
            if self.at < before:
                raise ValueError("the session begins before the end of the one above")
        elif found := TURN.fullmatch(line):
            self._turn(found[1], found[2], found[3])
        elif found := QUESTION.fullmatch(line):
            self._question(found[1], (found[2] or ("" if found[1] == "u" else "^")).split(), found[3])
        elif line:
            raise ValueError("neither names, session, turn nor question")

    def _turn(self, who: str, label: str | None, text: str) -> None:
        self.place, session = self.place + 1, f"{self.group}/s{self.sessions}"
        if label in self.labels or not (self.names and self.sessions):
            raise ValueError("a turn needs two names and a session above it, and a label of its own")
        name = f"{session}:{self.place}"
        self.labels |= dict.fromkeys(filter(None, ("^", name, label)), name)
        row: Row = {"id": name, "text": text, "speaker": self.names[who], "group": self.group}
        self.turns.append(row | {"timestamp": self.at.isoformat(), "session": session, "pos": self.place})
        self.at += timedelta(seconds=20 + 3 * len(text.split()))

    def _question(self, category: str, refs: list[str], text: str) -> None:
        if (category == "u") == bool(refs) or (category == "m" and len(set(refs)) < 2):
            raise ValueError(f"{len(refs)} turns are the wrong number for {CATEGORIES[category]}")
        if unknown := set(refs) - self.labels.keys():
            raise ValueError(f"no turn above has the label {min(unknown)}")
        query: Row = {"id": f"{self.group}/q{len(self.queries) + 1}", "text": text, "group": self.group}
        self.queries.append(query | {"category": CATEGORIES[category]})
        self.qrels += [f"{query['id']}\t{self.labels[ref]}\t1\n" for ref in refs]


def read(source: Path) -> Conversation:
    """Read one source; raise ValueError that names the file and what is wrong in which line."""
    conversation = Conversation(source.stem.partition("-")[2])
    for number, line in enumerate(source.read_text("utf-8").splitlines(), 1):
        try:
            conversation.add(line.strip())
        except ValueError as error:
            raise ValueError(f"{source.name}, line {number}: {error}.") from error
    return conversation


def joined(conversation: Conversation, longest: int) -> Conversation:
    """Return the conversation with successive turns of a session in one memory of at most so many characters."""
    found = copy(conversation)
    found.turns, behind = [], dict[str | int, str | int]()
    for turn in conversation.turns:
        text, last = f"{turn['speaker']}: {turn['text']}", found.turns[-1] if found.turns else {}
        if last.get("session") == turn["session"] and len(str(last["text"])) + len(text) < longest:
            last["text"] = f"{last['text']}\n{text}"
        else:
            found.turns.append({key: turn[key] for key in ("id", "group", "timestamp", "session")} | {"text": text})
        behind[turn["id"]] = found.turns[-1]["id"]
    pairs = [line.split("\t") for line in conversation.qrels]
    found.qrels = list(dict.fromkeys(f"{query}\t{behind[turn]}\t1\n" for query, turn, _ in pairs))
    return found


def write(folder: Path, conversations: list[Conversation]) -> None:
    """Write one set: corpus.jsonl, queries.jsonl and qrels.tsv."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in (("corpus", [c.turns for c in conversations]), ("queries", [c.queries for c in conversations])):
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for some in rows for row in some]
        (folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    (folder / "qrels.tsv").write_text("".join(line for c in conversations for line in c.qrels), encoding="utf-8")


def main(out: Annotated[Path, typer.Argument(help="The folder that gets the sets.")]) -> None:
    """Write the conversations of this project as six sets."""
    try:
        for name, pattern in SETS.items():
            found = [read(path) for path in sorted(SOURCES.glob(pattern))]
            write(out / name, [joined(one, LONGEST[name]) for one in found] if name in LONGEST else found)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="source") from error

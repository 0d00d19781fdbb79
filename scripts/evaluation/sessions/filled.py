"""What `recollect init` gains: sessions a second, and how many of 30 questions about them have an answer among five.

Writes the labelled sessions of `data/sessions` as Claude Code keeps its transcripts, into a home of its own, and asks
the questions of `questions.tsv` there: with an empty store, after an import of every message, and after what `init`
does. A question is answered where one of the first five memories holds a word of its answer.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any, Final

import recollect
from recollect import App, Settings
from recollect.domain.requests import Caller
from recollect.doors.agents.filling import take_in
from recollect.doors.handlers import perform
from recollect.projects import find_project
from recollect.transfer.import_client import Import
from recollect.transfer.import_paths import find_files
from recollect.transfer.remembered import Plan, find_remembered

DATA: Final = Path(__file__).parents[1] / "data" / "sessions"
SETS: Final = ("datascience", "infrastructure")
AMONG: Final = 5


def transcripts(home: Path) -> None:
    """Write each session as Claude Code does."""
    for name in SETS:
        sessions: dict[str, list[dict[str, Any]]] = defaultdict(list)
        folder = ""
        for text in (DATA / name / "events.jsonl").read_text(encoding="utf-8").splitlines():
            event = json.loads(text)
            folder = event.get("input", {}).get("cwd") or folder
            sessions[f"{name}-{event['session']}"] += lines_of(event, folder)
        place = home / ".claude" / "projects" / folder.replace("/", "-")
        place.mkdir(parents=True)
        for session, lines in sessions.items():
            said = "".join(json.dumps({**one, "sessionId": session, "parentUuid": None}) + "\n" for one in lines)
            (place / f"{session}.jsonl").write_text(said, encoding="utf-8")


def lines_of(event: dict[str, Any], folder: str) -> list[dict[str, Any]]:
    """Return an event as the lines of a transcript."""
    number, common = f"{event['session']}-{event['seq']}", {"timestamp": event["at"], "cwd": folder}

    def line(speaker: str, content: Any, part: str) -> dict[str, Any]:
        return {"type": speaker, "uuid": f"{number}{part}", "message": {"role": speaker, "content": content}} | common

    if event["event"] == "prompt:submit":
        return [line("user", event["prompt"], "")]
    if event["event"] != "tool:post":
        return []
    if event["tool"] == "Assistant":
        return [line("assistant", [{"type": "text", "text": event["output"]}], "")]
    call = {"type": "tool_use", "id": number, "name": event["tool"], "input": event.get("input", {})}
    answer = {"type": "tool_result", "tool_use_id": number, "content": event.get("output", "")}
    return [line("assistant", [call], "a"), line("user", [answer], "b")]


def answered(app: App, callers: dict[str, Caller]) -> int:
    """Count the questions with an answer among the first five."""
    count = 0
    for row in (DATA / "questions.tsv").read_text(encoding="utf-8").splitlines():
        name, question, words = row.split("\t")
        found = perform(app, "recall", {"query": question, "limit": AMONG}, callers[name]).hits
        said = "\n".join(f"{one.memory.title}\n{one.memory.content}".lower() for one in found)
        count += any(word.lower() in said for word in words.split("|"))
    return count


def imported(app: App, callers: dict[str, Caller], home: Path) -> None:
    """Import every message, project by project."""
    for name, caller in callers.items():
        importing = Import(lambda batch, who=caller: perform(app, "import_batch", dict(batch), who), {})
        files = [one for one in find_files([home / ".claude"], transcripts=True).files if name in one.path.name]
        importing.run(files, lambda *_: None)


def main() -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "user"
        home.mkdir()
        os.environ["HOME"] = str(home)
        transcripts(home)
        found = find_remembered(home, home / ".recollect").files
        callers = {}
        for one in found:
            name = next(each for each in SETS if each in Path(one.path).name)
            callers[name] = Caller(user="ada", team="local", project=find_project(Path(one.folder)).name)
        for way in ("before", "every message", "init"):
            with recollect.open_app(Settings(home=Path(folder) / way.replace(" ", "-")), background=False) as app:
                app.embedder.warm()
                began = time.perf_counter()
                if way == "every message":
                    imported(app, callers, home)
                elif way == "init":
                    plan = Plan(Path(folder))
                    plan.add(found, "ada", "local")
                    take_in(app, plan)
                seconds = time.perf_counter() - began
                stored = sum(perform(app, "stats", {}, who).memories for who in callers.values())
                print(f"{way}: {answered(app, callers)} of 30 answered among {AMONG}; {stored} memories", end="")
                print("" if way == "before" else f"; {len(found) / seconds:.2f} sessions a second")


if __name__ == "__main__":
    main()

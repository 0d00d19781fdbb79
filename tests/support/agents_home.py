"""The home of somebody whose agents remember something already: notes, instructions, and transcripts of sessions."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

RULE = "We never deploy the harbour service on Fridays, because nobody watches it over the weekend."
BERTHS = "The harbour has nine berths, and berth four is closed for repairs until spring."
OWN = "Answer me in short sentences, and name the file that you changed."
OF_PROJECT = "The tests of the harbour run with make check."
OF_CODEX = "The user keeps all notes in Dutch and wants commits in English."


def transcript(folder: Path, session: str = "s1", rule: str = RULE) -> str:
    """Return a session as Claude Code writes it down: a prompt, a command with its output, and a report."""
    said: list[tuple[str, Any]] = [
        ("user", rule),
        ("assistant", [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "make check"}}]),
        ("user", [{"type": "tool_result", "tool_use_id": "t1", "content": "12 passed in 3 s"}]),
        ("assistant", [{"type": "text", "text": "All twelve tests pass."}]),
    ]
    lines = [
        {
            "type": speaker,
            "uuid": f"{session}-{number}",
            "parentUuid": None,
            "sessionId": session,
            "cwd": str(folder),
            "timestamp": f"2026-02-01T10:00:{number:02}Z",
            "message": {"role": speaker, "content": content},
        }
        for number, (speaker, content) in enumerate(said)
    ]
    return "".join(json.dumps(one) + "\n" for one in lines)


def written(path: Path, text: str, age: float = 0) -> Path:
    """Write a file, so many seconds ago."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    changed = path.stat().st_mtime - age
    os.utime(path, (changed, changed))
    return path


def folder_name(folder: Path) -> str:
    """Return how Claude Code names the folder of a project."""
    return "".join(one if one.isalnum() else "-" for one in str(folder))


def furnish(home: Path, checkout: Path) -> Path:
    """Lay down what Claude Code and Codex remember, and return the folder that Claude Code has for the checkout."""
    own = home / ".claude" / "projects" / folder_name(checkout)
    written(own / "memory" / "berths.md", f"---\nname: berths\n---\n{BERTHS}\n")
    written(own / "s1.jsonl", transcript(checkout))
    written(home / ".claude" / "CLAUDE.md", f"{OWN}\n\n<!-- recollect:begin -->\nOurs.\n<!-- recollect:end -->\n")
    written(home / ".codex" / "memories" / "MEMORY.md", f"# Habits\n{OF_CODEX}\n")
    written(checkout / "CLAUDE.md", f"# Tests\n{OF_PROJECT}\n")
    return own

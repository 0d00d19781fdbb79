"""Writes small sets of labelled sessions."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def written(folder: Path, rows: Iterable[dict[str, Any]], prompts: Iterable[dict[str, Any]]) -> Path:
    """Write a set of sessions as people do; what a row does not say is the same in each."""
    folder.mkdir()
    seen: dict[str, int] = {}
    events = []
    for number, row in enumerate(rows):
        session = row.get("session", "s1")
        seen[session] = seen.get(session, 0) + 1
        usual = {"session": session, "seq": seen[session], "at": f"2026-03-02T10:{number:02d}:00Z", "label": "drop"}
        events.append(usual | ({"kind": "discovery"} if "what" in row else {}) | row)
    for name, found in (("events", events), ("prompts", prompts)):
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, found)) + "\n", encoding="utf-8")
    return folder

"""Transcripts of one's own agent: a file where that writes them, and which belongs to whoever reads it.

Such a file is believed in who said what. Any other file may say anything, and all of it is an import.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

from recollect.domain.transfer import FileSections, ImportFormat, ImportItem, Problem
from recollect.transfer.claude_code_transcript import read_claude_code
from recollect.transfer.codex_transcript import read_codex
from recollect.transfer.conversations import Outside
from recollect.transfer.formats import read_file
from recollect.transfer.instructions import CLAUDE_CODE, CODEX, belongs_to_reader

_WRITTEN_BY: Final = {
    ImportFormat.CLAUDE_CODE: (CLAUDE_CODE, ("projects",), read_claude_code),
    ImportFormat.CODEX: (CODEX, ("sessions", "archived_sessions"), read_codex),
}
"""The agent's folder, the folders of transcripts in it, and what reads one."""


def is_own_transcript(path: Path, format: ImportFormat) -> bool:
    """Return whether a file is a transcript that an agent of this user wrote on this machine, and no link."""
    if format not in _WRITTEN_BY:
        return False
    agent, folders, _ = _WRITTEN_BY[format]
    inside = any(path.resolve().is_relative_to(agent.path.resolve() / folder) for folder in folders)
    return inside and belongs_to_reader(path)


def read_own_transcript(
    path: Path, name: str, format: ImportFormat, outside_of: Outside
) -> Iterator[tuple[ImportItem | Problem | FileSections, int]]:
    """Yield the items of a transcript of the user's own agent, as `read_file` does, each with its speaker."""
    return read_file(path, name, format, read=partial(_WRITTEN_BY[format][2], outside_of=outside_of))

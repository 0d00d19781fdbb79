"""Conversations that files hold, as requests of `extract_memories`: typed by a person, or named by an agent's hook.

Transcripts of one's own agent: a file where that writes them, and which belongs to whoever reads it, is believed in who
said what. Any other file may say anything, and all of it is an import.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from recollect.domain.transfer import FileSections, ImportFormat, ImportItem, Problem
from recollect.errors import RecollectError
from recollect.transfer.claude_code_transcript import read_claude_code
from recollect.transfer.codex_transcript import read_codex
from recollect.transfer.conversations import Outside
from recollect.transfer.formats import read_file, recognised
from recollect.transfer.instructions import CLAUDE_CODE, CODEX, belongs_to_reader

log = logging.getLogger(__name__)

_BATCH: Final = 200  # messages of one request
_LARGEST: Final = 2**26  # bytes of a transcript that a hook names
_OF_AGENTS: Final = (ImportFormat.CLAUDE_CODE, ImportFormat.CODEX)


_WRITTEN_BY: Final = {
    ImportFormat.CLAUDE_CODE: (CLAUDE_CODE, ("projects",), read_claude_code),
    ImportFormat.CODEX: (CODEX, ("sessions", "archived_sessions"), read_codex),
}
"""The agent's folder, the folders of transcripts in it, and what reads one."""


def is_own(path: Path, format: ImportFormat) -> bool:
    """Say whether a file is a transcript that an agent of this user wrote on this machine, and no link to another."""
    if format not in _WRITTEN_BY:
        return False
    agent, folders, _ = _WRITTEN_BY[format]
    inside = any(path.resolve().is_relative_to(agent.path.resolve() / one) for one in folders)
    return inside and belongs_to_reader(path)


def read_own(
    path: Path, name: str, format: ImportFormat, outside_of: Outside
) -> Iterator[tuple[ImportItem | Problem | FileSections, int]]:
    """Yield what a transcript of one's own agent holds, as `read_file` does, with who said each message."""
    return read_file(path, name, format, read=partial(_WRITTEN_BY[format][2], outside_of=outside_of))


def requests_of(file: Path, format: ImportFormat) -> Iterator[dict[str, Any]]:
    """Yield the fields of one request after another: some messages, and the session that they are of.

    The same conversation gives the same requests, and a longer one the same and more. Raises `InvalidInput` for a file
    that cannot be read.
    """
    sessions: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for one, _ in read_file(file, file.name, format):
        if isinstance(one, ImportItem) and one.fields.get("speaker"):
            said = {"speaker": one.fields["speaker"], "content": one.fields["content"]}
            sessions[str(one.fields.get("session_id", ""))].append(said)
    for session, messages in sessions.items():
        for start in range(0, len(messages), _BATCH):
            yield {"messages": messages[start : start + _BATCH], "session_id": session or None}


def extract_from(file: Path, perform: Callable[..., Any]) -> None:
    """Extract memories of a transcript that an agent's hook has named; what is none, or too large, is left alone."""
    try:
        found = recognised(file, None)
        if found.format not in _OF_AGENTS or found.size > _LARGEST:
            log.info("a transcript was not read: it is %s of %d bytes", found.format, found.size)
            return
        for fields in requests_of(file, found.format):
            if (done := perform("extract_memories", **fields)).unread:
                log.info("a transcript was not read to its end: %s", done.why)
                return
    except RecollectError as error:
        log.info("a transcript was not read: %s", type(error).__name__)

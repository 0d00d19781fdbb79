"""Conversations that files hold, as requests of `extract_memories`: typed by a person, or named by an agent's hook."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from recollect.domain.transfer import ImportFormat, ImportItem
from recollect.errors import RecollectError
from recollect.transfer.formats import read_file, recognise_file

log = logging.getLogger(__name__)

_BATCH: Final = 200  # messages of one request
_LARGEST: Final = 2**26  # bytes of a transcript that a hook names
_OF_AGENTS: Final = (ImportFormat.CLAUDE_CODE, ImportFormat.CODEX)


def requests_of(file: Path, format: ImportFormat) -> Iterator[dict[str, Any]]:
    """Yield the fields of one request after another: some messages, and the session that they are of.

    The same conversation gives the same requests, and a longer one the same and more. Raises `InvalidInput` for a file
    that cannot be read.
    """
    sessions: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for item, _ in read_file(file, file.name, format):
        if isinstance(item, ImportItem) and item.fields.get("speaker"):
            message = {"speaker": item.fields["speaker"], "content": item.fields["content"]}
            sessions[str(item.fields.get("session_id", ""))].append(message)
    for session, messages in sessions.items():
        for start in range(0, len(messages), _BATCH):
            yield {"messages": messages[start : start + _BATCH], "session_id": session or None}


def extract_transcript(file: Path, perform: Callable[..., Any]) -> None:
    """Extract memories of a transcript that an agent's hook has named; a file too large or of no format is skipped."""
    try:
        found = recognise_file(file, None)
        if found.format not in _OF_AGENTS or found.size > _LARGEST:
            log.info("a transcript was not read: it is %s of %d bytes", found.format, found.size)
            return
        for fields in requests_of(file, found.format):
            if (done := perform("extract_memories", **fields)).unread:
                log.info("a transcript was not read to its end: %s", done.why)
                return
    except RecollectError as error:
        log.info("a transcript was not read: %s", type(error).__name__)

"""The journal's mirror: every line also in a file, one JSON object a line, for whoever keeps logs elsewhere.

It is only ever appended to. What stands in it proves what the journal said: lines that vanish from the database's end
leave the mirror ahead of it.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from sqlalchemy import Row, select

from recollect.errors import StoreUnusable
from recollect.ports import Check
from recollect.store import rows
from recollect.store.database import Database

log = logging.getLogger(__name__)

_PAGE = 1_000
_TAIL = 65_536  # bytes at the end of the file that are sure to hold its last line
_ADVICE = "Compare with a backup: lines may have been cut off. To begin anew, move the mirror aside."


class JournalMirror:
    """Keeps `file` up to the journal; several threads may ask for it."""

    def __init__(self, database: Database, file: Path) -> None:
        self._database = database
        self._file = file
        self._writing = threading.Lock()

    def sync(self) -> None:
        """Append what the journal has and the file has not; raise `StoreUnusable` when the file cannot be written."""
        with self._writing:
            try:
                self._append()
            except OSError as error:
                why = error.strerror or error
                raise StoreUnusable(f"The journal's mirror {self._file} cannot be written: {why}.") from None

    def close(self) -> None:
        """Append the last lines; when that cannot be, the next owner does it."""
        try:
            self.sync()
        except StoreUnusable as error:
            log.warning("%s", error)

    def check(self) -> Check:
        """Compare the last line of the file with the journal's line of that number."""
        name = "journal mirror"
        try:
            self.sync()
            last = self._last()
        except (StoreUnusable, OSError, ValueError) as error:
            return Check(name, False, str(error), "Make the file writable, or unset RECOLLECT_JOURNAL_MIRROR.")
        if last is None:
            return Check(name, True, "empty, as the journal is")
        with self._database.reading() as connection:
            known = connection.execute(select(rows.journal.c.hash).where(rows.journal.c.id == last["id"])).scalar()
        if known is None:
            return Check(name, False, f"it knows line {last['id']}, which the journal has lost", _ADVICE)
        return Check(name, known == last["hash"], f"up to line {last['id']}", _ADVICE)

    def _append(self) -> None:
        last = self._last()
        self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with open(self._file, "ab", opener=_privately) as stream:
            _end_line(stream, self._file)
            for line in self._after(last["id"] if last else 0):
                stream.write(json.dumps(line, ensure_ascii=False, sort_keys=True).encode() + b"\n")
            stream.flush()
            os.fsync(stream.fileno())

    def _after(self, number: int) -> Iterator[dict[str, Any]]:
        while True:
            query = select(rows.journal).where(rows.journal.c.id > number).order_by(rows.journal.c.id).limit(_PAGE)
            with self._database.reading() as connection:
                page = connection.execute(query).all()
            yield from map(_line, page)
            if len(page) < _PAGE:
                return
            number = page[-1].id

    def _last(self) -> dict[str, Any] | None:
        """Return the last whole line of the file; a line that a crash broke off is none."""
        if not self._file.exists():
            return None
        with self._file.open("rb") as stream:
            stream.seek(max(stream.seek(0, os.SEEK_END) - _TAIL, 0))
            whole = stream.read().rpartition(b"\n")[0]
        line = whole.rpartition(b"\n")[2]
        found: dict[str, Any] | None = json.loads(line) if line else None
        return found


def _line(row: Row[Any]) -> dict[str, Any]:
    return {**row._mapping, "at": row.at.isoformat(timespec="microseconds")}


def _end_line(stream: BinaryIO, file: Path) -> None:
    """Cut off what a crash left of a line at the end of the file."""
    size = stream.seek(0, os.SEEK_END)
    with file.open("rb") as reading:
        reading.seek(max(size - _TAIL, 0))
        broken = len(reading.read().rpartition(b"\n")[2])
    if broken:
        stream.truncate(size - broken)


def _privately(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)

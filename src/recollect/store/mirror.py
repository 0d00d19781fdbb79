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
from typing import Any

from sqlalchemy import Row, select

from recollect.errors import StoreUnusable
from recollect.ports import Check
from recollect.store import rows
from recollect.store.database import Database

log = logging.getLogger(__name__)

_PAGE = 1_000
_TAIL = 65_536  # bytes at the end of the file that are read at first; nearly every line is far shorter
_BEGINS = b'{"action": '  # as the names of a line are sorted
_ADVICE = "Compare with a backup: lines may have been cut off. To begin anew, move the mirror aside."


class JournalMirror:
    """Keeps `file` up to the journal; several threads may ask for it."""

    def __init__(self, database: Database, file: Path) -> None:
        self._database = database
        self._file = file
        self._writing = threading.Lock()

    def sync(self) -> None:
        """Append what the journal has and the file has not.

        Raises `StoreUnusable` when the file cannot be written or holds something else, which is then left alone.
        """
        with self._writing:
            try:
                self._append()
            except StoreUnusable:
                raise
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
        except (StoreUnusable, OSError) as error:
            return Check(name, False, str(error), "Make the file writable, or set RECOLLECT_JOURNAL_MIRROR to another.")
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
            if broken := len(_ending(self._file)[1]):
                stream.truncate(stream.seek(0, os.SEEK_END) - broken)
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
        line, broken = _ending(self._file)
        found = _parsed(line) if line else {}
        ours = not line or (type(found.get("id")) is int and isinstance(found.get("hash"), str))
        if not ours or not (broken.startswith(_BEGINS) or _BEGINS.startswith(broken)):
            raise StoreUnusable(f"The file {self._file} is no mirror of a journal and stays as it is.")
        return found or None


def _line(row: Row[Any]) -> dict[str, Any]:
    return {**row._mapping, "at": row.at.isoformat(timespec="microseconds")}


def _ending(file: Path) -> tuple[bytes, bytes]:
    """Return the last whole line of a file, and what a crash left of one behind it."""
    with file.open("rb") as stream:
        size, read = stream.seek(0, os.SEEK_END), _TAIL
        while True:
            stream.seek(max(size - read, 0))
            before, _, broken = stream.read().rpartition(b"\n")
            start, _, line = before.rpartition(b"\n")
            if start or read >= size:
                return line, broken
            read *= 4


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _privately(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)

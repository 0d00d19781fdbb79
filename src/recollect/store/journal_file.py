"""The journal's mirror: every line also in a file, one JSON object a line, for whoever keeps logs elsewhere.

It is only ever appended to. What stands in it proves what the journal said: where lines vanish from the end of a
namespace's chain, the file is ahead of the database, and what is written afterwards does not follow from its last line.
"""

from __future__ import annotations

import heapq
import json
import logging
import os
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import Row, select, text

from recollect.domain.results import Check
from recollect.errors import StoreUnusable
from recollect.store.files import usable
from recollect.store.journal import FIRST
from recollect.store.sql.database import Database
from recollect.store.sql.statements import select_in
from recollect.store.sql.tables import journal

log = logging.getLogger(__name__)

_PAGE = 1_000
_BEGINS = b'{"action": '  # as the names of a line are sorted
_ADVICE = "Compare with a backup: lines may have been cut off. To begin anew, move the mirror aside."
_LAST_IDS = text(
    """WITH RECURSIVE known(namespace) AS (
        SELECT min(namespace) FROM journal UNION ALL
        SELECT (SELECT min(namespace) FROM journal WHERE namespace > known.namespace)
        FROM known WHERE namespace IS NOT NULL)
    SELECT namespace, (SELECT max(id) FROM journal WHERE journal.namespace = known.namespace) AS id
    FROM known WHERE namespace IS NOT NULL"""
)


@dataclass(frozen=True, slots=True)
class _Line:
    """What the file must say of each line, and how it hangs on the one before in its namespace."""

    namespace: str
    id: int
    previous: str
    hash: str


_LINE = TypeAdapter(_Line)


class JournalMirror:
    """Keeps `file` up to the journal; several threads may ask for it."""

    def __init__(self, database: Database, file: Path) -> None:
        self._database = database
        self._file = file
        self._lock = threading.Lock()
        self._size = -1  # bytes of the file as we know it
        self._tips: dict[str, _Line] = {}
        self._broken: dict[str, int] = {}  # the first line of a namespace that does not follow from the one before

    def sync(self) -> None:
        """Append what the journal has and the file has not.

        Raises `StoreUnusable` when the file cannot be written or holds something else, which is then left alone.
        """
        with self._lock, usable(f"The journal's mirror {self._file} cannot be written"):
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            size = self._file.stat().st_size if self._file.exists() else 0
            whole = size if size == self._size else self._read()
            with open(self._file, "ab", opener=_privately) as stream:
                stream.truncate(whole)
                for row in self._missing():
                    line = {**row._mapping, "at": row.at.isoformat(timespec="microseconds")}
                    stream.write(json.dumps(line, ensure_ascii=False, sort_keys=True).encode() + b"\n")
                    self._note(_Line(row.namespace, row.id, row.previous, row.hash))
                stream.flush()
                os.fsync(stream.fileno())
                self._size = stream.seek(0, os.SEEK_END)

    def close(self) -> None:
        """Append the last lines; when that cannot be, the next owner does it."""
        try:
            self.sync()
        except StoreUnusable as error:
            log.warning("%s", error)

    def check(self) -> Check:
        """Compare the last line of each namespace in the file with the journal's line of that id."""
        name = "journal mirror"
        try:
            self.sync()
        except StoreUnusable as error:
            return Check(name, False, str(error), "Make the file writable, or set RECOLLECT_JOURNAL_MIRROR to another.")
        if not self._tips:
            return Check(name, True, "empty, as the journal is")
        query = select(journal.c.id, journal.c.hash)
        ids = (tip.id for tip in self._tips.values())
        with self._database.reading() as connection:
            known = {row.id: row.hash for row in select_in(connection, query, journal.c.id, ids)}
        for namespace, tip in sorted(self._tips.items()):
            if known.get(tip.id) != tip.hash:
                seen = "has lost" if tip.id not in known else "holds otherwise"
                return Check(name, False, f"it knows line {tip.id} of {namespace}, which the journal {seen}", _ADVICE)
        for namespace, number in sorted(self._broken.items()):
            return Check(name, False, f"line {number} of {namespace} does not follow from the one before", _ADVICE)
        return Check(name, True, f"up to line {max(tip.id for tip in self._tips.values())}")

    def _read(self) -> int:
        """Read the whole file; return where its last whole line ends, behind which a crash may have left a part."""
        foreign = StoreUnusable(f"The file {self._file} is no mirror of a journal and stays as it is.")
        self._tips, self._broken, whole, part = {}, {}, 0, b""
        with self._file.open("rb") if self._file.exists() else BytesIO() as stream:
            for line in stream:
                if line.endswith(b"\n"):
                    try:
                        self._note(_LINE.validate_json(line, strict=True))
                    except ValueError:
                        raise foreign from None
                    whole += len(line)
                else:
                    part = line[: len(_BEGINS)]
        if not _BEGINS.startswith(part):
            raise foreign
        return whole

    def _note(self, line: _Line) -> None:
        before = self._tips.get(line.namespace)
        if line.previous != (before.hash if before else FIRST):
            self._broken.setdefault(line.namespace, line.id)
        self._tips[line.namespace] = line

    def _missing(self) -> Iterable[Row[Any]]:
        """Return the lines that the file lacks, by their ids; each namespace has its own last one."""
        with self._database.reading() as connection:
            last = {row.namespace: row.id for row in connection.execute(_LAST_IDS)}
        tips = {name: self._tips[name].id if name in self._tips else 0 for name in last}
        lacking = [self._after(name, tips[name]) for name, number in sorted(last.items()) if number > tips[name]]
        return heapq.merge(*lacking, key=lambda row: row.id)

    def _after(self, namespace: str, number: int) -> Iterator[Row[Any]]:
        while True:
            query = select(journal).where(journal.c.namespace == namespace, journal.c.id > number)
            with self._database.reading() as connection:
                page = connection.execute(query.order_by(journal.c.id).limit(_PAGE)).all()
            yield from page
            if len(page) < _PAGE:
                return
            number = page[-1].id


def _privately(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)

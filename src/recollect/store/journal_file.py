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
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from sqlalchemy import Row, select, text

from recollect.domain.results import Check
from recollect.errors import StoreUnusable
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


class _Tip(NamedTuple):
    """The last line of a namespace in the file."""

    id: int
    hash: str


class JournalMirror:
    """Keeps `file` up to the journal; several threads may ask for it."""

    def __init__(self, database: Database, file: Path) -> None:
        self._database = database
        self._file = file
        self._lock = threading.Lock()
        self._size = -1  # bytes of the file as we know it
        self._tips: dict[str, _Tip] = {}
        self._broken: dict[str, int] = {}  # the first line of a namespace that does not follow from the one before

    def sync(self) -> None:
        """Append what the journal has and the file has not.

        Raises `StoreUnusable` when the file cannot be written or holds something else, which is then left alone.
        """
        with self._lock:
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
        """Compare the last line of each namespace in the file with the journal's line of that id."""
        name = "journal mirror"
        try:
            self.sync()
        except StoreUnusable as error:
            return Check(name, False, str(error), "Make the file writable, or set RECOLLECT_JOURNAL_MIRROR to another.")
        if not self._tips:
            return Check(name, True, "empty, as the journal is")
        query, ids = select(journal.c.id, journal.c.hash), (tip.id for tip in self._tips.values())
        with self._database.reading() as connection:
            known = {row.id: row.hash for row in select_in(connection, query, journal.c.id, ids)}
        for namespace, tip in sorted(self._tips.items()):
            if known.get(tip.id) != tip.hash:
                seen = "has lost" if tip.id not in known else "holds otherwise"
                return Check(name, False, f"it knows line {tip.id} of {namespace}, which the journal {seen}", _ADVICE)
        for namespace, number in sorted(self._broken.items()):
            return Check(name, False, f"line {number} of {namespace} does not follow from the one before", _ADVICE)
        return Check(name, True, f"up to line {max(tip.id for tip in self._tips.values())}")

    def _append(self) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        size = self._file.stat().st_size if self._file.exists() else 0
        whole = size if size == self._size else self._read()
        with open(self._file, "ab", opener=_privately) as stream:
            stream.truncate(whole)
            for line in self._missing():
                stream.write(json.dumps(line, ensure_ascii=False, sort_keys=True).encode() + b"\n")
                self._note(line)
            stream.flush()
            os.fsync(stream.fileno())
            self._size = stream.seek(0, os.SEEK_END)

    def _read(self) -> int:
        """Read the whole file; return where its last whole line ends, behind which a crash may have left a part."""
        self._tips, self._broken, whole = {}, {}, 0
        if not self._file.exists():
            return 0
        with self._file.open("rb") as stream:
            for line in _whole_lines(stream):
                whole += len(line)
                self._note(self._parsed(line))
            stream.seek(whole)
            part = stream.read(len(_BEGINS))
        if not _BEGINS.startswith(part):
            raise self._foreign()
        return whole

    def _note(self, line: dict[str, Any]) -> None:
        before = self._tips.get(line["namespace"], _Tip(0, FIRST))
        if line["previous"] != before.hash:
            self._broken.setdefault(line["namespace"], line["id"])
        self._tips[line["namespace"]] = _Tip(line["id"], line["hash"])

    def _missing(self) -> Iterator[dict[str, Any]]:
        """Yield the lines that the file lacks, by their ids; each namespace has its own last one."""
        with self._database.reading() as connection:
            last = {row.namespace: row.id for row in connection.execute(_LAST_IDS)}
        tips = {name: self._tips[name].id if name in self._tips else 0 for name in last}
        lacking = [self._after(name, tips[name]) for name, number in sorted(last.items()) if number > tips[name]]
        for row in heapq.merge(*lacking, key=lambda row: row.id):
            yield {**row._mapping, "at": row.at.isoformat(timespec="microseconds")}

    def _after(self, namespace: str, number: int) -> Iterator[Row[Any]]:
        while True:
            query = select(journal).where(journal.c.namespace == namespace, journal.c.id > number)
            with self._database.reading() as connection:
                page = connection.execute(query.order_by(journal.c.id).limit(_PAGE)).all()
            yield from page
            if len(page) < _PAGE:
                return
            number = page[-1].id

    def _parsed(self, line: bytes) -> dict[str, Any]:
        try:
            found = json.loads(line)
        except ValueError:
            raise self._foreign() from None
        kinds = {"id": int, "namespace": str, "previous": str, "hash": str}
        if not isinstance(found, dict) or any(type(found.get(name)) is not kind for name, kind in kinds.items()):
            raise self._foreign()
        return found

    def _foreign(self) -> StoreUnusable:
        return StoreUnusable(f"The file {self._file} is no mirror of a journal and stays as it is.")


def _whole_lines(stream: BinaryIO) -> Iterator[bytes]:
    return (line for line in stream if line.endswith(b"\n"))


def _privately(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)

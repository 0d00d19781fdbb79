"""The files beside the database that follow the journal, so that lines cut off its end, or a chain made anew, show.

The mirror has every line, one JSON object a line, for whoever keeps logs elsewhere; it is only ever appended to. The
tips are a small file in the data folder with the last line and the count of each namespace's chain. A file that is
ahead of the database, or says otherwise, stays as it is until somebody moves it aside.
"""

from __future__ import annotations

import heapq
import json
import logging
import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import Connection, Row, select

from recollect.domain.results import Check
from recollect.errors import StoreUnusable
from recollect.store.files import usable
from recollect.store.journal import FIRST, SIGNED, chained, last_ids
from recollect.store.sql.database import Database
from recollect.store.sql.statements import count, select_in
from recollect.store.sql.tables import journal

TIPS = "journal.tips"
"""The name of the file of tips in a data folder."""

log = logging.getLogger(__name__)

_PAGE = 1_000
_BEGINS = b'{"action": '  # as the names of a line are sorted
_ADVICE = "Lines were cut off or changed by hand: bring back a backup with `recollect backup restore FILE --force`."


@dataclass(frozen=True, slots=True)
class _Line:
    """The fields that the file must have of each line, and the hash of the line before it in its namespace."""

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

    def sync(self, *, verify: bool = False) -> None:
        """Append what the journal has and the file has not; `verify` reads the file again and checks each line's hash.

        Raises `StoreUnusable` when the file cannot be written or holds something else, which is then left alone.
        """
        with self._lock, usable(f"The journal's mirror {self._file} cannot be written"):
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            size = self._file.stat().st_size if self._file.exists() else 0
            whole = size if size == self._size and not verify else self._read_file(verify=verify)
            with open(self._file, "ab", opener=_open_private) as stream:
                stream.truncate(whole)
                for row in self._missing_lines():
                    line = {**row._mapping, "at": row.at.isoformat(timespec="microseconds")}
                    stream.write(json.dumps(line, ensure_ascii=False, sort_keys=True).encode() + b"\n")
                    self._note_line(_Line(row.namespace, row.id, row.previous, row.hash))
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
        advice = f"{_ADVICE} To trust the journal as it is, move {self._file} aside."
        try:
            self.sync(verify=True)
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
                return Check(name, False, f"it knows line {tip.id} of {namespace}, which the journal {seen}", advice)
        for namespace, number in sorted(self._broken.items()):
            seen = f"line {number} of {namespace} was changed, or does not follow from the one before"
            return Check(name, False, seen, advice)
        return Check(name, True, "goes as far as the journal")

    def _read_file(self, *, verify: bool) -> int:
        """Read the whole file; return where its last whole line ends, behind which a crash may have left a part."""
        foreign = StoreUnusable(f"The file {self._file} is no mirror of a journal and stays as it is.")
        self._tips, self._broken, whole, part = {}, {}, 0, b""
        with self._file.open("rb") if self._file.exists() else BytesIO() as stream:
            for line in stream:
                if line.endswith(b"\n"):
                    try:
                        known = _LINE.validate_json(line, strict=True)
                    except ValueError:
                        raise foreign from None
                    self._note_line(known, honest=not verify or _hash_of(json.loads(line)) == known.hash)
                    whole += len(line)
                else:
                    part = line[: len(_BEGINS)]
        if not _BEGINS.startswith(part):
            raise foreign
        return whole

    def _note_line(self, line: _Line, *, honest: bool = True) -> None:
        """Take a line as the tip of its namespace; remember the first line that does not follow from the tip before."""
        before = self._tips.get(line.namespace)
        if not honest or line.previous != (before.hash if before else FIRST):
            self._broken.setdefault(line.namespace, line.id)
        self._tips[line.namespace] = line

    def _missing_lines(self) -> Iterable[Row[Any]]:
        """Yield the lines that the file lacks, by their ids; each namespace has its own last line."""
        with self._database.reading() as connection:
            last = last_ids(connection)
        tips = {name: self._tips[name].id if name in self._tips else 0 for name in last}
        lacking = [self._lines_after(name, tips[name]) for name, number in sorted(last.items()) if number > tips[name]]
        return heapq.merge(*lacking, key=lambda row: row.id)

    def _lines_after(self, namespace: str, number: int) -> Iterator[Row[Any]]:
        """Yield, page by page, the journal's lines of a namespace with ids above `number`."""
        while True:
            query = select(journal).where(journal.c.namespace == namespace, journal.c.id > number)
            with self._database.reading() as connection:
                page = connection.execute(query.order_by(journal.c.id).limit(_PAGE)).all()
            yield from page
            if len(page) < _PAGE:
                return
            number = page[-1].id


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _hash_of(fields: dict[str, Any]) -> str:
    """Return the hash that a line of the mirror must have; an empty string for one that cannot have any."""
    try:
        line = {name: fields[name] for name in SIGNED} | {"at": datetime.fromisoformat(fields["at"])}
        return chained(fields["previous"], line)
    except (KeyError, TypeError, ValueError):
        return ""


@dataclass(frozen=True, slots=True)
class _Tip:
    """The last line of a chain, and how many lines there were up to it."""

    id: int
    hash: str
    lines: int


_TIPS = TypeAdapter(dict[str, _Tip])


class JournalTips:
    """Keeps `file` up to the ends of the journal's chains. A new store begins it; a later one that lacks it says so."""

    def __init__(self, database: Database, file: Path) -> None:
        self._database = database
        self._file = file
        self._lock = threading.Lock()
        if not (database.read_only or file.exists()):
            with database.reading() as connection:
                new = not last_ids(connection)
            if new:
                with suppress(OSError):  # the next to write says so
                    begin_tips(file)

    def sync(self) -> None:
        """Write down the end of each chain that goes on from where it was last seen; the others stay as they are.

        Raises `StoreUnusable` when the file cannot be read or written, or holds something else.
        """
        with self._lock, usable(f"The file {self._file} cannot be written"):
            known = self._read_file()
            with self._database.reading() as connection:
                wanted = {name: one for name, one in last_ids(connection).items() if known.get(name, _NONE).id != one}
                grown = known | {
                    name: _next_tip(connection, name, number, known.get(name, _NONE))
                    for name, number in wanted.items()
                    if not _lacks_tip(connection, name, known.get(name, _NONE))
                }
            if grown != known or not self._file.exists():
                begin_tips(self._file, grown)

    def close(self) -> None:
        """Write down the last ends; when that cannot be, the next owner does it."""
        try:
            self.sync()
        except StoreUnusable as error:
            log.warning("%s", error)

    def check(self) -> Check:
        """Compare what was last seen of each chain with the journal."""
        name, trust = "journal ends", f"To trust the journal as it is, write `{{}}` into {self._file}."
        advice = f"{_ADVICE} {trust}"
        try:
            with self._lock, usable(f"The file {self._file} cannot be read"):
                known = self._read_file()
        except StoreUnusable as error:
            return Check(name, False, str(error), advice)
        if gone := known.pop("", None):
            seen = f"{self._file} was missing on {gone.hash}: a journal made anew before that would not show"
            return Check(
                name,
                False,
                seen,
                f"Compare with a backup (`recollect backup verify FILE`), unless you moved it. {trust}",
            )
        with self._database.reading() as connection:
            lost = [one for one, tip in sorted(known.items()) if _lacks_tip(connection, one, tip)]
        seen = f"the journal of {', '.join(lost)} was cut off or written anew since it was last seen"
        return Check(name, not lost, seen if lost else "the journal continues without gaps", advice)

    def _read_file(self) -> dict[str, _Tip]:
        """Return the tips; for a file that is missing one without a namespace, whose hash is the day."""
        if not self._file.exists():
            return {"": _Tip(0, f"{datetime.now(UTC):%Y-%m-%d}", 0)}
        data = self._file.read_bytes()
        try:
            return _TIPS.validate_json(data, strict=True) if data else {}
        except ValueError:
            raise StoreUnusable(f"The file {self._file} was changed by hand.") from None


def begin_tips(file: Path, tips: Mapping[str, _Tip] = MappingProxyType({})) -> None:
    """Write a file of tips; without any it trusts the journal that it finds."""
    new = file.with_name(f"{file.name}.new")
    with open(new, "wb", opener=_open_private) as stream:
        stream.write(_TIPS.dump_json(dict(tips)))
    new.replace(file)


_NONE = _Tip(0, FIRST, 0)


def _next_tip(connection: Connection, namespace: str, number: int, known: _Tip) -> _Tip:
    """Return the tip of a chain at line `number`, counted on from the tip that was known before."""
    newer = count(
        connection, journal, journal.c.namespace == namespace, journal.c.id > known.id, journal.c.id <= number
    )
    last = connection.execute(select(journal.c.hash).where(journal.c.id == number)).scalar_one()
    return _Tip(number, last, known.lines + newer)


def _lacks_tip(connection: Connection, namespace: str, tip: _Tip) -> bool:
    """Say whether the journal no longer has this line, or another number of lines up to it."""
    mine = (journal.c.namespace == namespace) & (journal.c.id <= tip.id)
    last = connection.execute(select(journal.c.hash).where(mine, journal.c.id == tip.id)).scalar()
    return tip != _NONE and (last != tip.hash or count(connection, journal, mine) != tip.lines)

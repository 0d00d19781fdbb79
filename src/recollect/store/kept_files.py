"""Databases that a restore or a repair puts aside, and their working folders: none outlives what was forgotten.

They hold whatever stood in the store then, also what is forgotten later. So each goes after a week, and until then the
answers of `forget` and `doctor` name it.
"""

from __future__ import annotations

import logging
import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from recollect.domain.results import Check
from recollect.store.files import flush_to_disk, folder_of, remove

log = logging.getLogger(__name__)

KEPT_DAYS = 7
"""The number of days for which a database that a restore or a repair put aside is kept."""

_SCRATCH = ".recollect-"
"""The beginning of the names of working folders."""

_ASIDE: Final = re.compile(r"\.(?:before-restore|damaged)-(\d{8}T\d{6})[-\w]*")
_LEFT: Final = timedelta(days=1)  # no restore and no repair takes so long

LOGS = ("-wal", "-shm")
"""The endings of the names of a database's log and its index, which lie beside it."""


def put_in_place(database: Path, fresh: Path, place: Path, keep: str, derived: Iterable[Path] = ()) -> Path | None:
    """Let a database take the place of the store's, which is kept under a name with `keep` in it, unless that is empty.

    What is `derived` from the old database goes. Returns where the old one lies. When anything fails, all is put back.
    """
    kept = None
    with ExitStack() as undo:
        if keep:
            kept = _second_name(database, keep)
            undo.callback(_put_back, database, kept)
        for path in (*(database.with_name(f"{database.name}{end}") for end in LOGS), *derived):
            aside = place / path.name
            if path.exists():  # what belongs to the old database would be read into the new one
                if kept and path.name.endswith("-wal") and path.stat().st_size:
                    aside = kept.with_name(f"{kept.name}-wal")
                path.rename(aside)
                undo.callback(aside.rename, path)
        fresh.replace(database)
        flush_to_disk(database.parent)
        undo.pop_all()
    return kept


def _second_name(database: Path, keep: str) -> Path:
    """Give the database a second name, by which it is kept when the first is taken from it."""
    stem = f"{database.name}.{keep}-{datetime.now(UTC):%Y%m%dT%H%M%S}"
    names = (stem, *(f"{stem}-{number}" for number in range(2, 1000)))
    kept = next(one for name in names if not (one := database.with_name(name)).exists())
    try:
        os.link(database, kept)
    except OSError:  # a file system without links
        shutil.copy2(database, kept)
    return kept


def _put_back(database: Path, kept: Path) -> None:
    """Give a kept database its first name back."""
    kept.replace(database)
    kept.unlink(missing_ok=True)  # two names of one file: `replace` leaves both


@contextmanager
def scratch(folder: Path) -> Iterator[Path]:
    """Give a folder beside the target, on the same disk, that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix=_SCRATCH, dir=folder) as scratch:
        yield Path(scratch)


def kept_aside(database: Path) -> dict[Path, datetime]:
    """Return the databases that were put aside beside a store's own, and when, the oldest first."""
    beside = [path for path in sorted(database.parent.glob("*")) if path.name.startswith(database.name)]
    found = {path: match for path in beside if (match := _ASIDE.fullmatch(path.name, len(database.name)))}
    times: dict[Path, datetime] = {}
    for path, match in found.items():
        with suppress(ValueError):  # a name of somebody else's
            times[path] = datetime.strptime(match[1], "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
    return times


def remove_old(database: Path, now: datetime) -> None:
    """Delete the databases that were put aside a week ago, and working folders of processes that were killed."""
    old = [path for path, since in kept_aside(database).items() if now - since >= timedelta(days=KEPT_DAYS)]
    left = (now - _LEFT).timestamp()
    old += [path for path in folder_of(database).glob(f"{_SCRATCH}*") if path.lstat().st_mtime < left]
    for path in old:
        log.info("%s is deleted, as forgotten memories may be in it", path.name)
        remove(path)


def remaining(database: Path) -> list[str]:
    """Name what may still hold a memory that is forgotten now, and how to be rid of it."""
    return [
        f"{path.name}, which was put aside, may still hold it until {since + timedelta(days=KEPT_DAYS):%Y-%m-%d}; "
        f"`rm {shlex.quote(str(path))}` deletes that file now."
        for path, since in kept_aside(database).items()
    ]


def check_kept(database: Path, now: datetime) -> Check:
    """Tell of each database that was put aside its age, its size and what removes it."""
    told = [
        f"{path.name}, {max(0, (now - since).days)} days old, {path.stat().st_size / 1e6:.1f} MB "
        f"(`rm {shlex.quote(str(path))}`)"
        for path, since in kept_aside(database).items()
    ]
    seen = f"may hold what was forgotten since, and go after {KEPT_DAYS} days: {'; '.join(told)}" if told else "none"
    return Check("databases put aside", True, seen)

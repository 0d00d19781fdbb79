"""Databases that a restore or a repair put aside, and what a killed one left: none of them outlives what was forgotten.

They hold whatever stood in the store then, also what is forgotten later. So each goes after a week, and until then the
answers of `forget` and `doctor` name it.
"""

from __future__ import annotations

import logging
import re
import shlex
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from recollect.domain.results import Check
from recollect.store.backup import SCRATCH
from recollect.store.files import KEPT_DAYS, folder_of, remove

log = logging.getLogger(__name__)

_NAME: Final = re.compile(r"\.(?:before-restore|damaged)-(\d{8}T\d{6})[-\w]*")
_LEFT: Final = timedelta(days=1)  # no restore and no repair takes so long


def kept(database: Path) -> dict[Path, datetime]:
    """Return the databases that were put aside beside a store's own, and when, the oldest first."""
    beside = [path for path in sorted(database.parent.glob("*")) if path.name.startswith(database.name)]
    found = {path: match for path in beside if (match := _NAME.fullmatch(path.name, len(database.name)))}
    times: dict[Path, datetime] = {}
    for path, match in found.items():
        with suppress(ValueError):  # a name of somebody else's
            times[path] = datetime.strptime(match[1], "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
    return times


def remove_old(database: Path, now: datetime) -> None:
    """Delete the databases that were put aside a week ago, and working folders of processes that were killed."""
    old = [path for path, since in kept(database).items() if now - since >= timedelta(days=KEPT_DAYS)]
    left = (now - _LEFT).timestamp()
    old += [path for path in folder_of(database).glob(f"{SCRATCH}*") if path.lstat().st_mtime < left]
    for path in old:
        log.info("%s is deleted, as forgotten memories may be in it", path.name)
        remove(path)


def remaining(database: Path) -> list[str]:
    """Name what may still hold a memory that is forgotten now, and how to be rid of it."""
    return [
        f"{path.name}, which was put aside, may still hold it until {since + timedelta(days=KEPT_DAYS):%Y-%m-%d}; "
        f"`rm {shlex.quote(str(path))}` deletes that file now."
        for path, since in kept(database).items()
    ]


def check(database: Path, now: datetime) -> Check:
    """Tell of each database that was put aside its age, its size and what removes it."""
    told = [
        f"{path.name}, {max(0, (now - since).days)} days old, {path.stat().st_size / 1e6:.1f} MB "
        f"(`rm {shlex.quote(str(path))}`)"
        for path, since in kept(database).items()
    ]
    seen = f"may hold what was forgotten since, and go after {KEPT_DAYS} days: {'; '.join(told)}" if told else "none"
    return Check("databases put aside", True, seen)

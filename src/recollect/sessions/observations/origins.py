"""Who said what an occurrence says: by the tool that showed it and what that was given, never by the text itself."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Final

from recollect.domain.origin import Authority, SaidBy
from recollect.domain.origin import Origin as Stamp
from recollect.sessions.observations.occurrence import Occurrence, Origin, programs

_LONGEST: Final = 300  # characters of an address or a command
_FETCHERS: Final = frozenset(
    "curl wget http https xh aria2c lynx w3m links gh glab hub ssh scp rsync nc telnet dig whois ftp sftp".split()
)
_ASKS_NETWORK: Final = {
    "npm": "view info show search audit outdated",
    "pnpm": "view info show search audit outdated",
    "yarn": "info npm audit",
    "pip": "index search download",
    "cargo": "search info",
    "gem": "search info",
    "brew": "info search",
    "docker": "search pull",
    "git": "ls-remote clone",
    "kubectl": "logs",
    "aws": "",
    "gcloud": "",
    "az": "",
}
_ADDRESS: Final = re.compile(r"\b(?:https?|ftp)://([\w.-]+)[^\s'\"<>|;)]*", re.IGNORECASE)
_LOOPBACK: Final = re.compile(r"localhost|127\.[\d.]+|0\.0\.0\.0", re.IGNORECASE)
_FOREIGN: Final = re.compile(
    r"(?:^|/)(?:node_modules|vendor|third_party|site-packages|dist-packages|\.venv|venv|\.cargo/registry|go/pkg/mod|"
    r"downloads?|tmp)/",
    re.IGNORECASE,
)


def stamp_of(one: Occurrence, folder: str, outside: str) -> Stamp:
    """Return the origin of an occurrence in a project's folder.

    What the assistant reports after it read something from `outside` in the same turn may only repeat that.
    """
    match one.origin:
        case Origin.PROMPT | Origin.PLAN:
            return Stamp()
        case Origin.WEB:
            return Stamp(said_by=SaidBy.WEB, came_from=_given(one, "url", "query", "prompt"))
        case Origin.COMMAND:
            return _of_command(one)
        case Origin.FILE | Origin.EDIT | Origin.SEARCH:
            said_by = SaidBy.FOREIGN_FILE if _is_foreign(one, folder) else SaidBy.FILE
            return Stamp(said_by=said_by, came_from=(one.path or _given(one, "path", "pattern"))[:_LONGEST])
        case Origin.REPORT:
            return Stamp(said_by=SaidBy.WEB, came_from=outside) if outside else Stamp(said_by=SaidBy.REPORT)
        case _:
            return Stamp(said_by=SaidBy.TOOL, came_from=one.tool[:_LONGEST])


def outside_after(outside: str, one: Occurrence, stamp: Stamp) -> str:
    """Return what of outside the assistant has read in this turn; a prompt begins a new one."""
    if one.origin is Origin.PROMPT:
        return ""
    return stamp.came_from or str(stamp.said_by) if stamp.authority is Authority.OUTSIDE else outside


def _of_command(one: Occurrence) -> Stamp:
    command = one.command.strip()
    address = next((found for found in _ADDRESS.finditer(command) if not _LOOPBACK.fullmatch(found[1])), None)
    if address is not None:
        return Stamp(said_by=SaidBy.WEB, came_from=address[0][:_LONGEST])
    fetches = any(name in _FETCHERS or _asks_network(name, rest) for name, rest in programs(command))
    return Stamp(said_by=SaidBy.WEB if fetches else SaidBy.COMMAND, came_from=command[:_LONGEST])


def _asks_network(name: str, rest: str) -> bool:
    words = _ASKS_NETWORK.get(name)
    return words is not None and (not words or rest.partition(" ")[0] in words.split())


def _is_foreign(one: Occurrence, folder: str) -> bool:
    path = one.path.replace("\\", "/")
    if not path:
        return False
    if _FOREIGN.search(path.removeprefix(folder)):
        return True
    whole = path.startswith(("/", "~"))
    return bool(whole and folder) and not PurePosixPath(path).is_relative_to(folder)


def _given(one: Occurrence, *names: str) -> str:
    said = (value for name in names if isinstance(value := one.input.get(name), str) and value.strip())
    return " ".join(next(said, "").split())[:_LONGEST]

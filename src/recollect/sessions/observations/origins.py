"""The origin of an occurrence: by its tool and the tool's input, never by the text itself."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import reduce
from typing import Any, Final

from recollect.domain.origin import Authority, SaidBy, with_address
from recollect.domain.origin import Origin as Stamp
from recollect.sessions.observations.command_lines import programs
from recollect.sessions.observations.occurrence import Occurrence, Origin, tool_occurrence

_MAX_ADDRESS: Final = 300  # characters of an address or a command
_FETCHERS: Final = frozenset("curl wget http https xh aria2c lynx w3m links gh glab hub whois ftp".split())
_ASKS_NETWORK: Final = {
    "npm": "view info show search audit",
    "pnpm": "view info show search audit",
    "yarn": "info npm audit",
    "pip": "index search download",
    "cargo": "search info",
    "gem": "search info",
    "brew": "info search",
    "docker": "search",
    "git": "ls-remote",
}
_ADDRESS: Final = re.compile(r"\b(?:https?|ftp)://([\w.-]+)[^\s'\"<>|;)]*", re.IGNORECASE)
_OWN_HOST: Final = re.compile(
    r"[\w-]+|127\.[\d.]+|0\.0\.0\.0|10\.[\d.]+|192\.168\.[\d.]+|172\.(?:1[6-9]|2\d|3[01])\.[\d.]+"
)
"""Names without a dot, and private addresses: machines of whoever works here."""
_FOREIGN: Final = re.compile(
    r"(?:^|/)(?:node_modules|vendor|third_party|site-packages|dist-packages|\.venv|venv|\.cargo/registry|go/pkg/mod|"
    r"downloads?)/|^/(?:usr|opt|etc|var|tmp|private/tmp)/",
    re.IGNORECASE,
)


def stamp_of(occurrence: Occurrence, folder: str, outside: str) -> Stamp:
    """Return the origin of an occurrence in a project's folder.

    A report of the assistant after it read something from `outside` in the same turn may only repeat that text.
    """
    match occurrence.origin:
        case Origin.PROMPT | Origin.PLAN:
            return Stamp()
        case Origin.WEB:
            return Stamp(
                said_by=SaidBy.WEB, came_from=_first_argument(occurrence, "url") or _requested_addresses(occurrence)
            )
        case Origin.COMMAND:
            return _stamp_of_command(occurrence)
        case Origin.FILE | Origin.EDIT | Origin.SEARCH:
            said_by = SaidBy.FOREIGN_FILE if _is_foreign_file(occurrence, folder) else SaidBy.FILE
            return Stamp(
                said_by=said_by,
                came_from=(occurrence.path or _first_argument(occurrence, "path", "pattern"))[:_MAX_ADDRESS],
            )
        case Origin.REPORT:
            return Stamp(said_by=SaidBy.WEB, came_from=outside) if outside else Stamp(said_by=SaidBy.REPORT)
        case _:
            return Stamp(said_by=SaidBy.TOOL, came_from=occurrence.tool[:_MAX_ADDRESS])


def outside_after(outside: str, occurrence: Occurrence, stamp: Stamp) -> str:
    """Return the outside addresses that the assistant has read in this turn; a prompt begins a new turn."""
    if occurrence.origin is Origin.PROMPT:
        return ""
    return (
        with_address(outside, stamp.came_from or str(stamp.said_by))
        if stamp.authority is Authority.OUTSIDE
        else outside
    )


def read_outside(tool: str, arguments: Mapping[str, Any], folder: str, outside: str) -> str:
    """Return the outside addresses read in this turn, after a further tool call, in a session that is over.

    Of a subagent only the report is known, and that may repeat anything.
    """
    call = tool_occurrence(tool, arguments, "")
    if call.origin is Origin.REPORT:
        return with_address(outside, call.tool)
    return outside_after(outside, call, stamp_of(call, folder, ""))


def _requested_addresses(occurrence: Occurrence) -> str:
    """Return the addresses that a request in words names, else the whole request."""
    asked = _first_argument(occurrence, "query", "prompt")
    return reduce(with_address, (found[0].rstrip(".,:") for found in _ADDRESS.finditer(asked)), "") or asked


def _stamp_of_command(occurrence: Occurrence) -> Stamp:
    """Return the origin of a command's output: the web where the command fetches from there, else the command."""
    command = occurrence.command.strip()
    addresses = list(_ADDRESS.finditer(command))
    address = next((found for found in addresses if not _OWN_HOST.fullmatch(found[1])), None)
    fetching = [(name, rest) for name, rest in programs(command) if name in _FETCHERS or _asks_network(name, rest)]
    if address is not None:
        return Stamp(said_by=SaidBy.WEB, came_from=address[0][:_MAX_ADDRESS])
    fetches = any(not _asks_own_machine(name, rest) for name, rest in fetching)
    return Stamp(said_by=SaidBy.WEB if fetches else SaidBy.COMMAND, came_from=command[:_MAX_ADDRESS])


def _asks_network(name: str, rest: str) -> bool:
    """Say whether a command asks the network: by its name alone, or with one of the subcommands that do."""
    words = _ASKS_NETWORK.get(name)
    return words is not None and (not words or rest.partition(" ")[0] in words.split())


def _asks_own_machine(name: str, rest: str) -> bool:
    """Return whether a command asks this user's own machine, such as `curl -s localhost:8010/health`."""
    hosts = [word.partition("://")[2] or word for word in rest.split() if not word.startswith("-")]
    asked = next((host for host in hosts if re.match(r"[\w.-]+(?::\d+)?(?:/|$)", host)), "")
    return name in ("curl", "wget", "http", "xh") and bool(_OWN_HOST.fullmatch(re.split(r"[:/]", asked)[0]))


def _is_foreign_file(occurrence: Occurrence, folder: str) -> bool:
    """Return whether a file belongs to no project here: an installed package, a download, a file of the system."""
    path = occurrence.path.replace("\\", "/")
    return bool(path) and bool(_FOREIGN.search(path.removeprefix(folder)))


def _first_argument(occurrence: Occurrence, *names: str) -> str:
    """Return the first of these inputs of a tool that holds a text, on one line."""
    values = (value for name in names if isinstance(value := occurrence.input.get(name), str) and value.strip())
    return " ".join(next(values, "").split())[:_MAX_ADDRESS]

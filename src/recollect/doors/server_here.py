"""The server of a team as the environment of this process tells of it, without the settings, which take long to import.

Hooks and the pipe of MCP wait for nothing more.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from recollect import process
from recollect.doors.server_client import ServerClient
from recollect.errors import InvalidInput
from recollect.projects import find_project
from recollect.server_url import check_token, parse


def client_here(given: Mapping[str, str], folder: str = "") -> ServerClient:
    """Return what asks the server for the project of a folder, by default the working folder.

    `given` are the settings that stood before the command. Raises `InvalidInput` for a setting that cannot be used.
    """
    told = process.variables()

    def setting(name: str) -> str:
        return given.get(name) or told.get(f"{process.PREFIX}{name.upper()}", "")

    try:
        insecure = process.yes(setting("insecure"))
        url = parse(setting("url"), insecure=insecure)
    except ValueError as error:
        raise InvalidInput("url", f"Invalid setting RECOLLECT_URL: {error}") from None
    try:
        token = check_token(setting("token"))
    except ValueError as error:
        raise InvalidInput("token", f"Invalid setting RECOLLECT_TOKEN: {error}") from None
    home = Path(process.home(given.get("home", ""), told))
    return ServerClient(url, token, setting("team"), setting("project") or _project(folder, home))


def _project(folder: str, home: Path) -> str:
    try:
        return find_project(Path(folder) if folder else Path.cwd(), home).name
    except OSError:  # the working folder is gone, or may not be looked at
        return "default"

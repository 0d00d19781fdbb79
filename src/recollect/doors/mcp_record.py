"""What was written down of how sessions of MCP begin, so that they begin without the SDK: by version and toolsets.

For the default toolset it comes with the package, as agents do not wait for a server that begins slowly.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from recollect.process import read_private

SHIPPED: Final = Path(__file__).with_name("mcp_openings.json")
"""The record of the default toolset; `python -m recollect.doors.mcp_listing` writes it."""
PATTERN: Final = "mcp-*.json"
HANDSHAKE: Final = "handshake"
"""Under this stand the protocol versions that `initialize` negotiates, oldest first."""
OPENINGS: Final = ("initialize", "server/discover")
META_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
NEEDED: Final = (META_VERSION, "io.modelcontextprotocol/clientInfo", "io.modelcontextprotocol/clientCapabilities")
_SOURCES: Final = Path(__file__).parents[1]
_OFFERING: Final = ("doors", "domain")


def file_in(home: Path) -> Path:
    """Return the file of this installation in a data folder: another version, or a changed source, has another."""
    found = [(one.name, one.stat()) for top in _OFFERING for one in sorted((_SOURCES / top).glob("*.py"))]
    text = str([(name, about.st_mtime_ns, about.st_size) for name, about in found])
    return home / f"mcp-{zlib.crc32(f'{_SOURCES}{text}'.encode()):08x}.json"


def known(file: Path) -> dict[str, Any]:
    """Return what comes with the package, and what was written down here of other toolsets."""
    return dict(json.loads(SHIPPED.read_text(encoding="utf-8"))) | read(file)


def read(file: Path) -> dict[str, Any]:
    """Return what was written down; nothing where the file is absent, damaged, or may be another user's."""
    try:
        found = json.loads(read_private(str(file)) or b"{}")
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def key(version: str, sets: Sequence[str]) -> str:
    """Return under what the answers for a protocol version and these toolsets stand."""
    return " ".join((version, *sets))


def version_of(message: dict[str, Any], handshake: Sequence[str]) -> str:
    """Return the protocol version of a message that opens a session, or carries its own; empty where it is unsaid."""
    params = message.get("params") or {}
    if message.get("method") == "initialize":
        about, asked = params.get("clientInfo"), params.get("protocolVersion")
        if not (handshake and isinstance(asked, str) and isinstance(about, dict) and "capabilities" in params):
            return ""
        return (asked if asked in handshake else handshake[-1]) if {"name", "version"} <= about.keys() else ""
    meta = params.get("_meta")
    version = meta.get(META_VERSION) if isinstance(meta, dict) and all(name in meta for name in NEEDED) else ""
    return version if isinstance(version, str) else ""

"""How sessions of MCP begin, as the SDK would answer: written down, so that no agent waits for the SDK to be imported.

`scripts/mcp_openings.py` writes it; a test holds it to what the SDK says.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

FILE: Final = Path(__file__).with_name("mcp_openings.json")
OPENINGS: Final = ("initialize", "server/discover")
META_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
NEEDED: Final = (META_VERSION, "io.modelcontextprotocol/clientInfo", "io.modelcontextprotocol/clientCapabilities")


class Record:
    """What is offered in these toolsets, by the version of the protocol."""

    def __init__(self, sets: Sequence[str]) -> None:
        self._sets = sets
        self._known: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))

    def result(self, method: str, version: str) -> dict[str, Any] | None:
        """Return the recorded result of a method in a protocol version; None where none is recorded."""
        found: dict[str, Any] | None = self._known["versions"].get(version, {}).get(method)
        if found is None or method != "tools/list":
            return found
        names = dict.fromkeys(name for toolset in self._sets for name in self._known["toolsets"][toolset])
        return found | {"tools": [self._known["tools"][name] for name in names]}

    def version_of(self, message: dict[str, Any]) -> str:
        """Return the protocol version in a message that opens a session or names its own; empty without any."""
        params = message.get("params") or {}
        if message.get("method") == "initialize":
            about, asked, known = params.get("clientInfo"), params.get("protocolVersion"), self._known["handshake"]
            if not (isinstance(asked, str) and isinstance(about, dict) and "capabilities" in params):
                return ""
            return (asked if asked in known else str(known[-1])) if {"name", "version"} <= about.keys() else ""
        meta = params.get("_meta")
        version = meta.get(META_VERSION) if isinstance(meta, dict) and all(name in meta for name in NEEDED) else ""
        return version if isinstance(version, str) else ""

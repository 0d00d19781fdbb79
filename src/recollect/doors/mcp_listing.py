"""A short-lived process that answers how a session of MCP begins, and writes it down for later sessions.

What is offered depends on this version alone, so it needs no store, and the client is answered though none can be
opened.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from recollect.doors import mcp, mcp_record
from recollect.doors.daemon.runtime import write_private
from recollect.doors.sampling import BackChannel


def answer(message: dict[str, Any], opening: dict[str, Any] | None, sets: list[str]) -> dict[str, Any]:
    """Return the response to one message about what is offered."""
    server = mcp.build(lambda _: _no_call, lambda _: sets)
    lines: list[str] = []

    async def say(line: str) -> None:
        lines.append(line)

    anyio.run(partial(mcp.exchange, server, opening, message, None, say, BackChannel()))
    return dict(json.loads(lines[-1]))


def learn(file: Path, message: dict[str, Any], sets: list[str]) -> dict[str, Any]:
    """Answer a message that opens a session; return the response and the record, to which it adds the tools too."""
    opened, record = answer(message, None, sets), mcp_record.read(file)
    if version := mcp_record.version_of(message, HANDSHAKE_PROTOCOL_VERSIONS) if "result" in opened else "":
        listed = answer(_listing(message), message, sets)
        results = {str(message["method"]): opened["result"], "tools/list": listed["result"]}
        record |= {mcp_record.HANDSHAKE: HANDSHAKE_PROTOCOL_VERSIONS, mcp_record.key(version, sets): results}
        with suppress(OSError):  # the data folder cannot be used: calls will say so
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_private(file, json.dumps(record))
            for old in file.parent.glob(mcp_record.PATTERN):
                if old != file:
                    old.unlink(missing_ok=True)
    return {"response": opened, "record": record}


def _listing(opening: dict[str, Any]) -> dict[str, Any]:
    """Return the request for the tools, in the era of the message that opens a session."""
    meta = (opening.get("params") or {}).get("_meta")
    params = {"params": {"_meta": meta}} if opening["method"] != "initialize" and meta else {}
    return {"jsonrpc": "2.0", "id": "list", "method": "tools/list"} | params


def _no_call(*_: object) -> Any:
    raise ValueError("only what is offered is asked here")


def main() -> None:
    """Answer the message in the first argument on standard output."""
    asked = json.loads(sys.argv[1])
    found = learn(Path(asked["file"]), asked["message"], asked["toolsets"])
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()

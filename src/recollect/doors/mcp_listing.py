"""A short-lived process that answers how a session of MCP begins, and writes it down for later sessions.

What is offered depends on this version alone, so it needs no store, and the client is answered though none can be
opened.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_MODERN_VERSION

from recollect.client.runtime import write_private
from recollect.doors import mcp, mcp_record
from recollect.doors.toolset_names import DEFAULT

_ANYBODY = {"capabilities": {}, "clientInfo": {"name": "any", "version": "1"}}

Message = dict[str, Any]


def answer(message: Message, opening: Message | None, sets: list[str]) -> Message:
    """Return the response to one message about what is offered; `opening` is the `initialize` that came before it."""
    server = mcp.build(lambda _: _no_call, lambda _: sets)

    async def asked() -> Message:
        to_server, reading = anyio.create_memory_object_stream[SessionMessage | Exception](2)
        writing, from_server = anyio.create_memory_object_stream[SessionMessage](2)
        async with to_server, from_server, anyio.create_task_group() as tasks:
            tasks.start_soon(server.run, reading, writing, server.create_initialization_options())
            for one in (opening, message) if opening and message["method"] != "initialize" else (message,):
                await to_server.send(SessionMessage(jsonrpc_message_adapter.validate_python(one)))
                said = await from_server.receive()
            tasks.cancel_scope.cancel()
        return dict(said.message.model_dump(mode="json", by_alias=True, exclude_unset=True))

    return anyio.run(asked)


def learn(file: Path, message: Message, sets: list[str]) -> Message:
    """Answer a message that opens a session; return the response and the record, to which it adds the tools too."""
    opened, record = answer(message, None, sets), mcp_record.read(file)
    if "result" in opened and (found := _recorded(message, opened["result"], sets)):
        record |= found
        with suppress(OSError):  # the data folder cannot be used: calls will say so
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_private(file, json.dumps(record))
            for old in file.parent.glob(mcp_record.PATTERN):
                if old != file:
                    old.unlink(missing_ok=True)
    return {"response": opened, "record": record}


def shipped() -> Message:
    """Return the record of the default toolset for each version of the protocol."""
    asked = [("initialize", _ANYBODY | {"protocolVersion": version}) for version in HANDSHAKE_PROTOCOL_VERSIONS]
    meta = dict(zip(mcp_record.NEEDED, (LATEST_MODERN_VERSION, _ANYBODY["clientInfo"], {}), strict=True))
    record: Message = {}
    for method, params in (*asked, ("server/discover", {"_meta": meta})):
        message = {"jsonrpc": "2.0", "id": 0, "method": method, "params": params}
        record |= _recorded(message, answer(message, None, list(DEFAULT))["result"], list(DEFAULT))
    return dict(json.loads(json.dumps(record)))


def _recorded(message: Message, opened: Message, sets: list[str]) -> Message:
    """Return what is written down of a message that opens a session; nothing where it says no version."""
    version = mcp_record.version_of(message, HANDSHAKE_PROTOCOL_VERSIONS)
    if not version:
        return {}
    results = {str(message["method"]): opened, "tools/list": answer(_listing(message), message, sets)["result"]}
    return {mcp_record.HANDSHAKE: HANDSHAKE_PROTOCOL_VERSIONS, mcp_record.key(version, sets): results}


def _listing(opening: Message) -> Message:
    """Return the request for the tools, in the era of the message that opens a session."""
    meta = (opening.get("params") or {}).get("_meta")
    params = {"params": {"_meta": meta}} if opening["method"] != "initialize" and meta else {}
    return {"jsonrpc": "2.0", "id": "list", "method": "tools/list"} | params


def _no_call(*_: object) -> Any:
    raise ValueError("only what is offered is asked here")


def main() -> None:
    """Answer the message in the first argument on standard output; without any write the record that is shipped."""
    if len(sys.argv) == 1:
        mcp_record.SHIPPED.write_text(json.dumps(shipped(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        return
    asked = json.loads(sys.argv[1])
    found = learn(Path(asked["file"]), asked["message"], asked["toolsets"])
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()

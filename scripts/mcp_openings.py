"""Write down how sessions of MCP begin, as the SDK answers: `src/recollect/doors/mcp_openings.json`."""

from __future__ import annotations

import json
from typing import Any

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_MODERN_VERSION

from recollect.doors import mcp, mcp_record, toolsets
from recollect.doors.toolset_names import SETS

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
                received = await from_server.receive()
            tasks.cancel_scope.cancel()
        return dict(received.message.model_dump(mode="json", by_alias=True, exclude_unset=True))

    return anyio.run(asked)


def record() -> Message:
    """Return for each version of the protocol how a session begins, and the tools, which are the same in all."""
    openings = [("initialize", _ANYBODY | {"protocolVersion": version}) for version in HANDSHAKE_PROTOCOL_VERSIONS]
    meta = dict(zip(mcp_record.NEEDED, (LATEST_MODERN_VERSION, _ANYBODY["clientInfo"], {}), strict=True))
    known: Message = {"toolsets": {one: toolsets.tool_names([one]) for one in SETS}, "tools": {}, "versions": {}}
    for method, params in (*openings, ("server/discover", {"_meta": meta})):
        opening = {"jsonrpc": "2.0", "id": 0, "method": method, "params": params}
        asking = {"params": {"_meta": meta}} if "_meta" in params else {}
        listing = answer({"jsonrpc": "2.0", "id": 1, "method": "tools/list"} | asking, opening, list(SETS))["result"]
        tools = {tool["name"]: tool for tool in listing.pop("tools")}
        if tools != (known["tools"] or tools):
            raise ValueError("versions of the protocol list other tools: write them down for each")
        known["tools"] = tools
        version = params.get("protocolVersion", LATEST_MODERN_VERSION)
        known["versions"][version] = {method: answer(opening, None, list(SETS))["result"], "tools/list": listing}
    known["handshake"] = HANDSHAKE_PROTOCOL_VERSIONS
    return dict(json.loads(json.dumps(known)))


def _no_call(*_: object) -> Any:
    raise ValueError("only what is offered is asked here")


if __name__ == "__main__":
    mcp_record.FILE.write_text(json.dumps(record(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

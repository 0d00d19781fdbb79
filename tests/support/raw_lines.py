"""Lines of standard input that are no message of MCP, and the id and the code of JSON-RPC in the answer to each."""

from __future__ import annotations

import json
from typing import Final

_HEAD: Final = (
    b'{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "memory", "arguments": {"query": "'
)

NO_MESSAGES: Final[dict[str, tuple[bytes, int | None, int]]] = {
    "no JSON": (b"{nonsense", None, -32700),
    "plain text": (b"hello?", None, -32700),
    "cut off": (b'{"jsonrpc": "2.0", "id": 7, "meth', None, -32700),
    "another encoding": (json.dumps({"jsonrpc": "2.0"}).encode("utf-16"), None, -32700),
    "a byte of another encoding": (_HEAD + b'caf\xe9"}}}', None, -32700),
    "deeply nested": (b"[" * 100_000, None, -32700),
    "a batch": (b'[{"jsonrpc": "2.0", "id": 7, "method": "ping"}]', None, -32600),
    "a number": (b"5", None, -32600),
    "no version": (b'{"id": 7, "method": "ping"}', 7, -32600),
    "a method that is no text": (b'{"jsonrpc": "2.0", "id": 7, "method": 5}', 7, -32600),
    "no method": (b'{"jsonrpc": "2.0", "id": 7}', 7, -32600),
    "a truth value as id": (b'{"jsonrpc": "2.0", "id": true, "method": "ping"}', None, -32600),
    "null as id": (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', None, -32600),
    "params in a list": (b'{"jsonrpc": "2.0", "id": 7, "method": "ping", "params": [1]}', 7, -32600),
    "half a character": (_HEAD + b'\\ud83d"}}}', 7, -32600),
}

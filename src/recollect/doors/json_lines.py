"""One line of standard input as a message of JSON-RPC, or the answer that any other line gets; for both servers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from recollect.errors import not_utf8

Message = dict[str, Any]
"""A message of JSON-RPC."""

_NOT_JSON: Final = -32700
_INVALID: Final = -32600


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a line is no message: the code of JSON-RPC, a sentence, and the id of the request where it can be read."""

    code: int
    why: str
    id: int | str | None = None

    def answer(self) -> Message:
        """Return the error as a JSON-RPC message."""
        return {"jsonrpc": "2.0", "id": self.id, "error": {"code": self.code, "message": self.why}}


def read_line(line: bytes) -> Message | Refused:
    """Return the message of a line; `params` that are null are left out."""
    try:
        message = json.loads(line.decode())
    except UnicodeDecodeError as error:
        return Refused(_NOT_JSON, f"Parse error: {not_utf8(error)}")
    except (ValueError, RecursionError):
        return Refused(_NOT_JSON, "Parse error: a line is one JSON object")
    if not isinstance(message, dict):
        return Refused(_INVALID, "Invalid request: a message is one JSON object")
    if message.get("params", {}) is None:
        del message["params"]
    if is_answer(message):
        return message
    number = message.get("id")
    if wrong := _fault_in(message):
        return Refused(_INVALID, f"Invalid request: {wrong}", number if _is_id(number) else None)
    return message


def is_answer(message: Message) -> bool:
    """Return whether a message answers a request, and makes none."""
    return "method" not in message and ("result" in message or "error" in message)


def _fault_in(message: Message) -> str:
    """Return why an object is no request or notification; empty for a valid message."""
    if message.get("jsonrpc") != "2.0":
        return '`jsonrpc` must be "2.0"'
    if not isinstance(message.get("method"), str):
        return "`method` must be a string"
    if not _is_id(message.get("id", 0)):
        return "`id` must be a string or a whole number"
    params = message.get("params", {})
    if not isinstance(params, dict) or not isinstance(params.get("_meta", {}), dict):
        return "`params` and its `_meta` must be objects"
    if not _is_text(message):
        return "a lone surrogate is not text"
    return ""


def _is_id(number: object) -> bool:
    return isinstance(number, int | str) and not isinstance(number, bool) and _is_text(number)


def _is_text(value: object) -> bool:
    """Return whether every text in a value can be written as UTF-8."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True

"""The log of a team's server: one JSON object a line on standard error, each with its request.

No line holds the text of a memory or a token: of an error that nobody foresaw only its kind and its place are written.
"""

from __future__ import annotations

import logging
import sys
import time
import traceback
from typing import Any, Final

from pythonjsonlogger.json import JsonFormatter

from recollect.doors.current_request import request_id
from recollect.spans import trace_id

_CHATTY: Final = ("alembic", "httpx", "httpx2", "uvicorn.error", "mcp", "sse_starlette", "asyncio", "chromadb")
_LOGGED: Final = ("asctime", "levelname", "name", "message")


class _Formatter(JsonFormatter):
    """Writes records without what exceptions say, which may be a value of a memory."""

    def formatException(self, ei: Any) -> str:  # noqa: N802 - the standard library's name
        return f"{ei[0].__name__ if ei[0] else ''} at\n{''.join(traceback.format_tb(ei[2]))}"

    def add_fields(self, log_data: dict[str, Any], record: logging.LogRecord, message_dict: dict[str, Any]) -> None:
        super().add_fields(log_data, record, message_dict)
        if found := request_id.get():
            log_data["request_id"] = found
        if trace := trace_id():
            log_data["trace_id"] = trace


def log_handler() -> logging.Handler:
    """Return a handler that writes records as JSON lines to standard error."""
    found = logging.StreamHandler(sys.stderr)
    names = {"asctime": "time", "levelname": "level", "name": "logger"}
    form = _Formatter(" ".join(f"%({one})s" for one in _LOGGED), rename_fields=names, datefmt="%Y-%m-%dT%H:%M:%SZ")
    form.converter = time.gmtime
    found.setFormatter(form)
    return found


def log_to_stderr() -> None:
    """Send the log of this process to standard error, one JSON object a line."""
    logging.basicConfig(handlers=[log_handler()], level=logging.INFO, force=True)
    logging.raiseExceptions = False  # nobody reads standard error any more
    for chatty in _CHATTY:
        logging.getLogger(chatty).setLevel(logging.WARNING)

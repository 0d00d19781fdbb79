"""What comes in and goes out: JSON objects that hold nothing but JSON, and answers that any client can read."""

from __future__ import annotations

import json
from typing import Any, Final

from pydantic_core import from_json
from starlette.requests import Request
from starlette.responses import Response

from recollect.doors.serving.errors import error_body
from recollect.errors import InvalidInput, RecollectError, TooManyRequests, Unauthorized

JSON: Final = "application/json"


class UnsupportedMediaType(RecollectError):
    """A body is of another type than JSON."""

    status = 415


async def read_object(request: Request) -> dict[str, Any]:
    """Return the body of a request; raise `InvalidInput` for what is no JSON object, `UnsupportedMediaType` for HTML.

    An empty body is an empty object. NaN, lone surrogates and what nests beyond 200 levels are no JSON here.
    """
    raw = await request.body()
    kind = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
    if kind != JSON:
        raise UnsupportedMediaType(f"Unsupported type: A body is `{JSON}`.")
    if not raw:
        return {}
    try:
        found = from_json(raw, allow_inf_nan=False)
    except ValueError as error:
        raise InvalidInput("body", f"Invalid body: It is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise InvalidInput("body", "Invalid body: Must be a JSON object")
    return found


def answered(body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return a response of JSON that nobody on the way keeps."""
    return Response(body, status, {"Cache-Control": "no-store"} | (headers or {}), JSON)


def failed(error: RecollectError) -> Response:
    """Return the response for an error: its kind, its sentence and the field that it is about."""
    body = error_body(error)
    if isinstance(error, InvalidInput):
        body["field"] = error.field
    headers: dict[str, str] = {}
    if isinstance(error, Unauthorized):
        headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, TooManyRequests):
        headers["Retry-After"] = str(max(1, round(error.retry_after)))
    text = json.dumps(body, ensure_ascii=False)
    return answered(text.encode("utf-8", "replace"), error.status, headers)

"""What comes in and goes out over HTTP: JSON objects that hold nothing but JSON, and errors as sentences.

No answer and no line of the log says what a memory says, unless it was asked for.
"""

from __future__ import annotations

import json
import logging
import math
import traceback
from typing import Any, Final

from pydantic_core import from_json
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from starlette.requests import Request
from starlette.responses import Response

from recollect.client.transport import KEY
from recollect.doors.current_request import request_id
from recollect.errors import InvalidInput, RecollectError, StoreUnusable, TooManyRequests, Unauthorized, not_utf8

log = logging.getLogger(__name__)

JSON: Final = "application/json"
_LONGEST_KEY: Final = 200


class UnsupportedMediaType(RecollectError):
    """A body is of another type than JSON."""

    status = 415


async def read_object(request: Request) -> dict[str, Any]:
    """Return the JSON object in the body of a request, an empty object without a body.

    Raises `InvalidInput` where it is no JSON object, `UnsupportedMediaType` for a body of another type. NaN, lone
    surrogates and more than 200 levels are no JSON here.
    """
    raw = await request.body()
    kind = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
    if kind != JSON:
        raise UnsupportedMediaType(f"Unsupported type: A body is `{JSON}`.")
    if not raw:
        return {}
    try:
        found = from_json(raw.decode(), allow_inf_nan=False)
    except UnicodeDecodeError as error:
        raise InvalidInput("body", f"Invalid body: {not_utf8(error)}") from None
    except ValueError as error:
        raise InvalidInput("body", f"Invalid body: It is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise InvalidInput("body", "Invalid body: Must be a JSON object")
    return found


def key_of(request: Request) -> str:
    """Return the idempotency key of a request; raise `InvalidInput` for one that is too long or no plain text."""
    key = request.headers.get(KEY, "")
    if len(key) > _LONGEST_KEY or not (key.isascii() and key.isprintable()):
        raise InvalidInput(
            "Idempotency-Key", f"Invalid Idempotency-Key: Must have at most {_LONGEST_KEY} printable ASCII characters"
        )
    return key


def answered(body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return a response with JSON that no cache stores."""
    return Response(body, status, {"Cache-Control": "no-store"} | (headers or {}), JSON)


def failed(error: RecollectError) -> Response:
    """Return the response for an error: its class name, its sentence, its details, and the id of the request."""
    headers: dict[str, str] = {}
    if isinstance(error, Unauthorized):
        headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, TooManyRequests):
        headers |= {"Retry-After": str(max(1, math.ceil(error.retry_after))), **error.fields}
    known = request_id.get()
    text = json.dumps(error.public() | ({"request_id": known} if known else {}), ensure_ascii=False)
    return answered(text.encode("utf-8", "replace"), error.status, headers)


def to_recollect_error(error: Exception, who: str = "the memory daemon") -> RecollectError:
    """Return an error with a message for users; the log gets the traceback, never values, which may be memory text."""
    if isinstance(error, RecollectError):
        return error
    place = "".join(traceback.format_tb(error.__traceback__))
    where = f" for the request {known}" if (known := request_id.get()) else ""
    log.error("%s%s at\n%s", type(error).__name__, where, place)
    if isinstance(error, DBAPIError):
        why = str(error.orig).partition("\n")[0]  # the lines after it hold values
        return StoreUnusable(f"The store cannot be used: {why}.")
    if isinstance(error, OSError):
        return StoreUnusable(f"The store cannot be used: {error.strerror or error}.")
    if isinstance(error, SQLAlchemyError):
        return StoreUnusable(f"The store cannot be used: {type(error).__name__}.")
    return RecollectError(f"Internal error in {who}: {type(error).__name__}; see its log{where}.")

"""How an error ends over HTTP: a sentence for users, and in the log where it happened, never what a memory says."""

from __future__ import annotations

import logging
import traceback
from typing import Any

from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from starlette.responses import JSONResponse

from recollect.errors import RecollectError, StoreUnusable

log = logging.getLogger(__name__)


def to_recollect_error(error: Exception, who: str = "the memory daemon") -> RecollectError:
    """Return an error with a message for users; the log gets the traceback, never values, which may be memory text."""
    if isinstance(error, RecollectError):
        return error
    place = "".join(traceback.format_tb(error.__traceback__))
    log.error("%s at\n%s", type(error).__name__, place)
    if isinstance(error, DBAPIError):
        why = str(error.orig).partition("\n")[0]  # the lines after it hold values
        return StoreUnusable(f"The store cannot be used: {why}.")
    if isinstance(error, OSError):
        return StoreUnusable(f"The store cannot be used: {error.strerror or error}.")
    if isinstance(error, SQLAlchemyError):
        return StoreUnusable(f"The store cannot be used: {type(error).__name__}.")
    return RecollectError(f"Internal error in {who}: {type(error).__name__}; see its log.")


def error_body(error: RecollectError) -> dict[str, Any]:
    """Return an error as JSON: its kind for programs, and its sentence."""
    return {"error": type(error).__name__, "message": str(error)}


def error_response(error: RecollectError) -> JSONResponse:
    """Return the response for an error, with its own status."""
    return JSONResponse(error_body(error), error.status)

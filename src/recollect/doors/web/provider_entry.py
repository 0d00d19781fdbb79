"""The way into the page through an identity provider: to it, and back with proof of who came.

What the sign-in needs when the browser comes back lies in a cookie of that browser until then, so any replica of the
server may end what another began.
"""

from __future__ import annotations

from typing import Final

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from recollect.doors.http.access import Access
from recollect.doors.http.sign_in import SignIn
from recollect.doors.web import PAGE
from recollect.doors.web.entry import Browser, own_address
from recollect.errors import NotFound

_LIFE: Final = 600  # seconds that a person may take at the provider
_LONGEST: Final = 1_000  # characters of an address that fits into a cookie beside the rest


async def to_provider(access: Access, request: Request) -> Response:
    """Send a browser to the provider; raise `NotFound` where there is none, or another refusal."""
    sign_in = _sign_in(access)
    wanted = request.query_params.get("next", "")
    onward = own_address(wanted if len(wanted) <= _LONGEST else "", f"{PAGE}/")
    sent = await run_sync(sign_in.begin, onward, limiter=sign_in.threads)
    response = RedirectResponse(sent.url, 303)
    response.set_cookie(
        _cookie_name(sign_in), sent.kept, _LIFE, path="/", secure=sign_in.secure, httponly=True, samesite="lax"
    )
    return response


async def from_provider(access: Access, request: Request) -> tuple[Browser, str]:
    """Return the browser that comes back from the provider, let in, and the address that it wants to see.

    Raises `Unauthorized`.
    """
    sign_in = _sign_in(access)
    kept = request.cookies.get(_cookie_name(sign_in), "")
    name, onward = await run_sync(sign_in.finish, request.query_params, kept, limiter=sign_in.threads)
    return await run_sync(access.recognized, name), own_address(onward, f"{PAGE}/")


def forget(access: Access, response: Response) -> None:
    """Delete the cookie of the sign-in, which has ended, with success or without."""
    response.delete_cookie(_cookie_name(_sign_in(access)), path="/", secure=_sign_in(access).secure, httponly=True)


def _cookie_name(sign_in: SignIn) -> str:
    """Return the name of the cookie; with the prefix no other host of the domain can set it."""
    return "__Host-recollect_sign_in" if sign_in.secure else "recollect_sign_in"


def _sign_in(access: Access) -> SignIn:
    if access.sign_in is None:
        raise NotFound("There is nothing at this address.")
    return access.sign_in

"""The route of the page in the HTTP application, which starts without what renders the screens."""

from __future__ import annotations

from anyio.to_thread import run_sync
from starlette.types import ASGIApp, Receive, Scope, Send

from recollect.doors.http.access import Access


class PageRoute:
    """Answers the addresses of the page; what renders them is imported when one is asked for first."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._site: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if self._site is None:
            self._site = await run_sync(self._page_app)
        await self._site(scope, receive, send)

    def _page_app(self) -> ASGIApp:
        from recollect.doors.web.site import Site  # Jinja2 and the screens take longer than a start may

        return Site(self._access)

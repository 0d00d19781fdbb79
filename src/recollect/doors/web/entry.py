"""Who may open the page: browsers that were let in, and which requests of a browser are its own.

A browser is known by a cookie that holds a random name. The daemon knows that name until it ends; a team's servers know
it as a token that was made for the browser, and ends with the one that its person has pasted. After twelve hours both
open nothing. Nothing here imports what renders the page.
"""

from __future__ import annotations

import hmac
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

from starlette.requests import cookie_parser
from starlette.types import Scope

from recollect.doors.http.asker import Asker
from recollect.doors.web import CODE_LIFE, PAGE
from recollect.errors import Forbidden

COOKIE: Final = "recollect_page"
LIFE: Final = 12 * 3600.0  # seconds that a browser stays signed in
_MOST: Final = 1_000  # browsers, and as many addresses that nobody has opened yet
_OWN: Final = (b"same-origin", b"none")
_LEADS_AWAY: Final = re.compile(r"//|/\.|\\")
_NAVIGATION: Final = (b"navigate", b"document")


class Step(NamedTuple):
    """A verb with its fields, and where it is run."""

    place: dict[str, str]
    verb: str
    fields: dict[str, Any]


@dataclass
class Undo:
    """The steps that take a change back, the message after them, and the next screen if it is another one."""

    steps: list[Step]
    done: str
    to: str = ""
    code: str = field(default_factory=lambda: secrets.token_urlsafe(9))


@dataclass
class Browser:
    """A browser that was let in: `asker` looks up who that is by now, or raises `Unauthorized`.

    `place` is the team and project that it begins with. A message is shown once, and a change can be taken back as
    long as it is among the last ones.
    """

    asker: Callable[[], Asker]
    place: dict[str, str]
    user: str
    expires: float = field(default_factory=lambda: time.monotonic() + LIFE)
    name: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    """The value of its cookie."""
    folder: str = ""
    """The folder in which the page was opened; its project is that of `place`."""
    message: str = ""
    changes: OrderedDict[str, Undo] = field(default_factory=OrderedDict)
    undo_code: str = ""
    """The code of the change that the message is about."""

    def changed(self, message: str, undo: Undo | None = None) -> None:
        """Show a message with the next screen, and keep the way to undo the change."""
        self.message, self.undo_code = message, ""
        if undo is not None:
            self.undo_code = undo.code
            self.changes[undo.code] = undo
            while len(self.changes) > 20:
                self.changes.popitem(last=False)

    @property
    def form_token(self) -> str:
        """Return the token in its forms: it follows from the name, which no other site knows."""
        return hmac.new(self.name.encode(), b"form", "sha256").hexdigest()

    def sent(self, token: str) -> bool:
        """Return whether a form came from a page that this browser received."""
        return hmac.compare_digest(token.encode(), self.form_token.encode())


class Browsers:
    """The browsers that were let in, and the one-time addresses that let one in."""

    def __init__(self) -> None:
        self._browsers: OrderedDict[str, Browser] = OrderedDict()
        self._codes: OrderedDict[str, tuple[float, Browser, bool]] = OrderedDict()

    def code_for(self, browser: Browser, *, seen: bool = False) -> str:
        """Return the code of a one-time address that lets this browser in; `seen` if other users may see the code."""
        code = secrets.token_urlsafe(32)
        self._codes[code] = (time.monotonic() + CODE_LIFE, browser, seen)
        while len(self._codes) > _MOST:
            self._codes.popitem(last=False)
        return code

    def redeem(self, code: str, of_another_user: Callable[[], bool] = lambda: False) -> Browser | None:
        """Return the browser that a one-time code lets in, once; a code that others may see works for its own user."""
        until, browser, seen = self._codes.get(code, (0.0, None, False))
        if seen and of_another_user():
            return None
        self._codes.pop(code, None)
        return browser if time.monotonic() < until else None

    def let_in(self, browser: Browser) -> Browser:
        """Keep a browser, and return it."""
        self._browsers[browser.name] = browser
        while len(self._browsers) > _MOST:
            self._browsers.popitem(last=False)
        return browser

    def known(self, name: str) -> Browser | None:
        """Return the browser that a cookie names, None for none or one whose time has passed."""
        browser = self._browsers.get(name)
        if browser is not None and time.monotonic() >= browser.expires:
            self._browsers.pop(name, None)
            return None
        return browser

    def leave(self, name: str) -> None:
        """Forget a browser."""
        self._browsers.pop(name, None)


def is_page(path: str) -> bool:
    """Return whether an address belongs to the page."""
    return path == PAGE or path.startswith(f"{PAGE}/")


def own_address(address: str, other: str) -> str:
    """Return the address where it is a screen of ours, else `other`: no form leads a browser elsewhere."""
    path = unquote(address.partition("?")[0])
    ours = path.startswith(f"{PAGE}/") and not path.startswith((f"{PAGE}/open", f"{PAGE}/sign-"))
    leads_away = any(map(_LEADS_AWAY.search, (path, address)))
    return address if ours and address.isprintable() and not leads_away else other


def check_origin(scope: Scope, headers: Mapping[bytes, bytes]) -> None:
    """Raise `Forbidden` for a request that another site sends through a browser; other sites may only link here."""
    site = headers.get(b"sec-fetch-site")
    reads = scope["method"] in ("GET", "HEAD")
    opened = (headers.get(b"sec-fetch-mode"), headers.get(b"sec-fetch-dest")) == _NAVIGATION
    if site is not None and site not in _OWN and not (reads and opened):
        raise Forbidden("Cross-site request rejected: only the page itself sends its forms.")
    origin = headers.get(b"origin")
    if origin is not None and not _same_host(origin, headers.get(b"host", b"")):
        raise Forbidden("Cross-origin request rejected: a proxy in front must pass the header `Host` on unchanged.")


def _same_host(origin: bytes, host: bytes) -> bool:
    try:
        return bool(host) and urlsplit(origin).netloc == host.lower()
    except ValueError:
        return False


def cookie_of(headers: Mapping[bytes, bytes]) -> str:
    """Return the value of the cookie in a request."""
    return cookie_parser(headers.get(b"cookie", b"").decode("latin-1")).get(COOKIE, "")

"""One request for a screen: who asks, where they look, what the address and the form say, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from starlette.datastructures import QueryParams

from recollect.app import App
from recollect.domain.requests import Caller
from recollect.domain.results import Memory
from recollect.doors.http.access import Access
from recollect.doors.web import PAGE
from recollect.doors.web.authors import who
from recollect.doors.web.checkup import Checkup
from recollect.doors.web.entry import Browser, Step, Undo, own_address
from recollect.doors.web.verbs import perform
from recollect.errors import InvalidInput

PLACE: Final = ("team", "project")
LEVELS: Final = ("allow_private", "allow_secret")
_BROWSER_ONLY: Final = ("user", *PLACE)


@dataclass(frozen=True)
class Shown:
    """A screen: its template, and the data behind it and behind the JSON of the same address."""

    template: str
    data: dict[str, Any]
    status: int = 200


@dataclass(frozen=True)
class Done:
    """The result of a form: the next screen, its message, the way to undo it, and the work behind the answer."""

    to: str
    message: str
    undo: Undo | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    after: Callable[[], None] | None = None


@dataclass
class Visit:
    """A request of somebody who was let in. What names a team or project in the address narrows where they look."""

    access: Access
    checkup: Checkup
    asker: Any
    browser: Browser | None
    path: str
    query: QueryParams
    form: QueryParams
    parameters: Mapping[str, str]
    zone: ZoneInfo | None = None
    """The zone in which times are shown; without one that of this machine."""

    def __post_init__(self) -> None:
        narrowed = {name: self.query[name] for name in _BROWSER_ONLY if self.query.get(name)}
        if at := self.query.get("at"):  # one choice of a form names both
            narrowed["team"], _, narrowed["project"] = at.partition("/")
        if self.browser is not None:
            narrowed = self.browser.place | {name: narrowed[name] for name in PLACE if name in narrowed}
        self.place: dict[str, str] = narrowed

    @property
    def folder(self) -> str:
        """Return the folder in which the page was opened, where the screen shows the project of that folder."""
        browser = self.browser
        return browser.folder if browser is not None and self.place == browser.place else ""

    def authors(self, memories: Collection[Memory]) -> dict[int, str]:
        """Return the speaker of each memory, and the way it came in, in words."""
        sessions = {memory.session_id for memory in memories if memory.session_id}
        with self.caller() as caller:
            agents = self.app.sessions.agents_of(caller, sessions) if sessions else {}
            return {memory.id: who(memory, caller.user, agents.get(memory.session_id or "", "")) for memory in memories}

    def run(self, name: str, **fields: Any) -> Any:
        """Run a verb for the user of this request, in the current place; let its errors through."""
        return self.run_in(self.place, name, **fields)

    def run_in(self, place: Mapping[str, str], name: str, **fields: Any) -> Any:
        """Run a verb for the user of this request, in a place of their choice."""
        with self.asker.asking(QueryParams(dict(place)))(name) as (app, caller):
            return perform(app, name, fields, caller)

    def step(self, verb: str, **fields: Any) -> Step:
        """Return a step that undoes a change in this place."""
        return Step(dict(self.place), verb, fields | self.levels)

    @contextmanager
    def caller(self) -> Iterator[Caller]:
        """Yield the caller for verbs."""
        with self.asker.asking(QueryParams(self.place))("page") as (_, caller):
            yield caller

    def writes(self, memory: Memory) -> bool:
        """Return whether the user may change a memory."""
        return memory.namespace in self.writable()

    def writable(self) -> frozenset[str]:
        """Return the namespaces that who asks may write."""
        with self.caller() as caller:
            return frozenset(caller.namespace(scope) for scope in caller.writes)

    def administer(self, name: str, **fields: Any) -> Any:
        """Run a verb of administration; the page of the own machine has none."""
        if not self.team_server:
            raise InvalidInput("page", "A store of one's own has no users and teams: the server of a team has.")
        return self.asker.administer(name, fields)

    @property
    def app(self) -> App:
        """Return the store."""
        return self.access.app

    @property
    def team_server(self) -> bool:
        """Say whether this is the server of a team."""
        return bool(self.access.administration)

    @property
    def levels(self) -> dict[str, bool]:
        """Return for each level but public whether the address lets its memories in."""
        return {name: True for name in LEVELS if self.value(name)}

    def value(self, name: str, default: str = "") -> str:
        """Return the value of a field of the form or the address, without spaces around it."""
        return str(self.form.get(name, self.query.get(name, default))).strip()

    def values(self, name: str) -> list[str]:
        """Return all values of a field of the form and the address."""
        return [value for value in (*self.form.getlist(name), *self.query.getlist(name)) if value.strip()]

    def number(self, name: str, default: int, most: int = 2**31 - 1, least: int = 0) -> int:
        """Return a whole number from the address; raise `InvalidInput` for any other text."""
        text = self.value(name)
        if not text:
            return default
        if not (text.isascii() and text.isdecimal() and len(text) <= 10 and least <= int(text) <= most):
            raise InvalidInput(name, f"Invalid {name}: Must be a whole number from {least} to {most}")
        return int(text)

    def pages(self, size: int, total: int) -> dict[str, int | None]:
        """Return the offsets of this page and of the next page of a list, None on the last page."""
        offset = self.number("offset", 0)
        return {"offset": offset, "next": offset + size if offset + size < total else None}

    def fields(self, levels: bool = True) -> dict[str, str]:
        """Return the fields that keep a form in the same place and with the same levels."""
        named = {name: self.place[name] for name in PLACE if self.place.get(name)}
        if not self.team_server:
            named.pop("team", None)
        return named | (dict.fromkeys(self.levels, "1") if levels else {})

    def link(self, path: str, /, **more: Any) -> str:
        """Return an address of the page in the same place, with more behind `?`; what is empty is left out."""
        user = {"user": self.place["user"]} if self.browser is None and "user" in self.place else {}
        parameters: dict[str, Any] = self.fields() | user | more
        pairs = [
            (name, element)
            for name, value in parameters.items()
            for element in (value if isinstance(value, list) else [value])
        ]
        words = urlencode(
            [(name, "1" if value is True else str(value)) for name, value in pairs if value not in (None, "", False)]
        )
        return f"{PAGE}/{path}" + (f"?{words}" if words else "")

    def back(self, path: str) -> str:
        """Return the address that the form names for afterwards, if that is a screen of ours; else that of `path`."""
        return own_address(self.value("back"), self.link(path))

    def here(self, **changed: Any) -> str:
        """Return this address with some of its parameters changed."""
        parameters: dict[str, Any] = {}
        for name, value in self.query.multi_items():
            parameters.setdefault(name, []).append(value)
        for name in ("format", "at", "typing", *_BROWSER_ONLY):
            parameters.pop(name, None)
        return self.link(self.path.removeprefix(f"{PAGE}/"), **(parameters | changed))

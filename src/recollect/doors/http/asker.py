"""The sender of a request that was let in, what it asks, and with which rights."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from starlette.datastructures import QueryParams

from recollect.app import App
from recollect.domain.requests import Caller
from recollect.doors.http.events import Event

Asking = Callable[[str], AbstractContextManager[tuple[App, Caller]]]
"""Gives, for the operation of this name, the store and who asks, with the rights that they have by now."""


class Asker(ABC):
    """Whoever was let in with one request; the log calls them by `names`."""

    names: Mapping[str, str] = {}

    @abstractmethod
    def confirm(self) -> None:
        """Check the sign-in that this process remembers once more; raise `Unauthorized` where it has ended."""

    @abstractmethod
    def asking(self, query: QueryParams, also: Collection[str] = ()) -> Asking:
        """Return a function that opens app and caller for an operation, by the parameters of an address.

        The address may hold `also` further parameters; raises `InvalidInput` for any other, or a missing parameter.
        """

    @abstractmethod
    def event(self, query: QueryParams, fields: dict[str, Any], client: dict[str, Any]) -> Event:
        """Return the work of an event of a session, under the settings of the client that sent it."""


class Asked(NamedTuple):
    """A request that was let in: who sends it, what stands behind `?`, its body and its idempotency key."""

    who: Any
    query: QueryParams
    body: dict[str, Any]
    key: str

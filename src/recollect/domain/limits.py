"""Limits of a deployment: what each user and each team may hold and ask, and how much of that they have used."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Annotated, Final, NamedTuple

from pydantic import Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from recollect.domain import fields
from recollect.domain.answer import LAZY, Answer
from recollect.domain.fields import Allowed, Request
from recollect.errors import InvalidInput

_HIGHEST: Final = 10**15
_FORM: Final = (
    'must be JSON such as {"user": {"memories": 10000, "requests_minute": 600}, "team": {"projects": 200}}; a user may '
    "have memories, bytes, requests_minute and requests_day, a team projects too, each a whole number from 0 (no limit)"
)


Most = Annotated[
    fields.Whole | None,
    Field(ge=0, le=_HIGHEST),
    Allowed(f"Must be a whole number from 0, which is no limit, to {_HIGHEST:,}"),
]
_KIND: Final = "Whether it is a user or a team"
_WHOSE: Final = "Name of the user or team"


class HolderKind(StrEnum):
    """The kinds of those that limits hold for."""

    USER = "user"
    TEAM = "team"


class Resource(StrEnum):
    """What can be limited: what is held at a time, and how often somebody may ask."""

    MEMORIES = "memories"
    BYTES = "bytes"
    PROJECTS = "projects"
    REQUESTS_MINUTE = "requests_minute"
    REQUESTS_DAY = "requests_day"

    @property
    def words(self) -> str:
        """Return what is counted, as a sentence names it."""
        return _WORDS[self]


_WORDS: Final = {
    Resource.MEMORIES: "memories",
    Resource.BYTES: "bytes of content",
    Resource.PROJECTS: "projects",
    Resource.REQUESTS_MINUTE: "requests a minute",
    Resource.REQUESTS_DAY: "requests a day",
}
HELD: Final = (Resource.MEMORIES, Resource.BYTES, Resource.PROJECTS)
"""What is held: a write beyond the limit is refused."""
ASKED: Final = (Resource.REQUESTS_MINUTE, Resource.REQUESTS_DAY)
"""How often somebody may ask."""
OF_KIND: Final = {
    HolderKind.USER: tuple(resource for resource in Resource if resource is not Resource.PROJECTS),
    HolderKind.TEAM: tuple(Resource),
}
"""What can be limited for each kind of holder: a project belongs to a team."""


class Holder(NamedTuple):
    """A user or a team."""

    kind: HolderKind
    name: str

    @property
    def words(self) -> str:
        """Return the holder as a sentence names them."""
        return f"the {self.kind} {self.name}"


Limits = Mapping[Resource, int]
"""The most of each resource; 0, and what is absent, is no limit."""
Defaults = Mapping[HolderKind, Limits]
"""The limits of every user and every team for whom an admin has set no other."""


def holder_of(namespace: str) -> Holder | None:
    """Return who holds what a namespace holds: the user, or the team, also of a project."""
    kind, _, name = namespace.partition(":")
    match kind:
        case "user":
            return Holder(HolderKind.USER, name)
        case "team" | "project":
            return Holder(HolderKind.TEAM, name.partition("/")[0])
        case _:
            return None


def read_limits(text: str) -> dict[HolderKind, dict[Resource, int]]:
    """Return the limits in a setting's JSON; raise `ValueError` for another form."""
    try:
        found = _form().validate_json(text) if text else {}
    except ValidationError:
        raise ValueError(_FORM) from None
    if any(resource not in OF_KIND[kind] for kind, limits in found.items() for resource in limits):
        raise ValueError(_FORM)
    return found


@cache
def _form() -> TypeAdapter[dict[HolderKind, dict[Resource, int]]]:
    return TypeAdapter(dict[HolderKind, dict[Resource, Annotated[int, Field(strict=True, ge=0, le=_HIGHEST)]]])


class SetLimits(Request):
    """Limits of a user or a team, in place of those in the settings; 0 is no limit."""

    kind: HolderKind = Field(description=_KIND)
    whose: fields.CallerName = Field(description=_WHOSE)
    memories: Most = Field(default=None, description="Most live memories: what is forgotten or replaced counts no more")
    bytes: Most = Field(default=None, description="Most bytes that their contents have together, as UTF-8")
    projects: Most = Field(default=None, description="Most projects with memories or registered; for teams only")
    requests_minute: Most = Field(default=None, description="Most requests a minute")
    requests_day: Most = Field(default=None, description="Most requests a day")

    def limits(self) -> dict[Resource, int]:
        """Return the limits that are set; raise `InvalidInput` without any, or for a limit that there is not.

        A project belongs to a team, so a user has no limit on projects.
        """
        found = {resource: getattr(self, resource) for resource in Resource if getattr(self, resource) is not None}
        if not found:
            raise InvalidInput("memories", f"Missing limit: Give any of {', '.join(OF_KIND[self.kind])}")
        for resource in found:
            if resource not in OF_KIND[self.kind]:
                allowed = ", ".join(OF_KIND[self.kind])
                raise InvalidInput(
                    resource, f"Invalid {resource}: A {self.kind} has none of its own. Allowed: {allowed}"
                )
        return found


class ClearLimits(Request):
    """Limits of a user or a team that are to be those of the settings again."""

    kind: HolderKind = Field(description=_KIND)
    whose: fields.CallerName = Field(description=_WHOSE)
    resource: Resource | None = Field(default=None, description="Only the limit on this; default: all")


class ListLimits(Request):
    """The limits in the settings, and those that admins have set in their place."""


class ShowLimits(Request):
    """The limits of the caller and of the teams that the caller is a member of, and what is used of them."""


@dataclass(frozen=True, config=LAZY)
class Limit(Answer):
    """A limit of a user or a team; without a name it is that of all for whom no other is set."""

    kind: HolderKind
    name: str
    resource: Resource
    most: int


@dataclass(frozen=True, config=LAZY)
class LimitList(Answer):
    """Limits: first those in the settings, then those that admins have set; 0 is no limit."""

    limits: tuple[Limit, ...]


@dataclass(frozen=True, config=LAZY)
class ResourceUse(Answer):
    """How much of a resource is used, and the limit on it, if any.

    Requests come back by and by; at `full_at` all of them are back.
    """

    resource: Resource
    used: int
    most: int | None = None
    full_at: datetime | None = None


@dataclass(frozen=True, config=LAZY)
class HolderUse(Answer):
    """What a user or a team uses."""

    kind: HolderKind
    name: str
    uses: tuple[ResourceUse, ...]


@dataclass(frozen=True, config=LAZY)
class Usage(Answer):
    """What the caller uses, then what each of their teams uses."""

    holders: tuple[HolderUse, ...]

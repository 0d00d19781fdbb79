"""What an address says: the team and the project that a request is narrowed to. Who asks, the token alone says."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

from starlette.datastructures import QueryParams

from recollect.auth.principal import Principal
from recollect.domain.requests import Caller
from recollect.errors import InvalidInput

_NARROWS: Final = ("team", "project")
_LONGEST: Final = 200


class Address(NamedTuple):
    """The team and the project of a request; each may be empty."""

    team: str
    project: str

    def caller(self, principal: Principal) -> Caller:
        """Return whom the operations see; raise `Forbidden` for a team or a project without a role."""
        return principal.caller(self.team, self.project)


def read(asked: QueryParams, also: Collection[str] = ()) -> Address:
    """Return what the part of an address behind `?` says; raise `InvalidInput` for anything else that stands there."""
    given = asked.multi_items()
    for name, value in given:
        if name not in (*_NARROWS, *also):
            known = ", ".join(f"`{one}`" for one in (*_NARROWS, *also))
            raise InvalidInput(
                name, f"Unknown parameter: An address takes {known}; who asks comes from the token alone."
            )
        if name in _NARROWS and (len(value) > _LONGEST or "\0" in value or not value.isprintable()):
            raise InvalidInput(name, f"Invalid {name}: Must have at most {_LONGEST} characters, all of them printable")
    if twice := [name for name in _NARROWS if [one for one, _ in given].count(name) > 1]:
        raise InvalidInput(twice[0], f"Invalid {twice[0]}: Must be given once")
    return Address(asked.get("team", "").strip(), asked.get("project", "").strip())


def none(asked: QueryParams) -> Address:
    """Refuse any part of an address behind `?`, for requests that name what they are about in their bodies."""
    if given := next(iter(asked), None):
        raise InvalidInput(given, "Unknown parameter: This address takes none.")
    return Address("", "")

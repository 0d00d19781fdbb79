"""Roles in teams by the groups of an identity provider."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from typing import Final

from pydantic import TypeAdapter, ValidationError

from recollect.domain.enums import Role
from recollect.domain.requests import Team

_FORM: Final = 'must be JSON such as {"engineers": {"crew": "writer"}}, with the roles reader, writer and admin'

GroupRoles = Mapping[str, Mapping[str, Role]]
"""The roles by team that each group gives."""


def read(text: str) -> dict[str, dict[str, Role]]:
    """Return the roles by team and group in a setting's JSON; raise `ValueError` for another form."""
    try:
        return _form().validate_json(text) if text else {}
    except ValidationError:
        raise ValueError(_FORM) from None


def roles_by_team(rules: GroupRoles, groups: Collection[str]) -> dict[str, Role | None]:
    """Return the highest role that some groups give in each team of the rules; None where they give none."""
    found: dict[str, Role | None] = {team: None for teams in rules.values() for team in teams}
    for group in rules.keys() & set(groups):
        for team, role in rules[group].items():
            before = found[team]
            found[team] = role if before is None or role.covers(before) else before
    return found


@cache
def _form() -> TypeAdapter[dict[str, dict[str, Role]]]:
    return TypeAdapter(dict[str, dict[Team, Role]])

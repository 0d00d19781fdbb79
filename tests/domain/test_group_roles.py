"""Roles by groups: the highest role of any group counts, and a group that is gone takes its role along."""

from __future__ import annotations

import pytest

from recollect import Settings
from recollect.domain.enums import Role
from recollect.domain.group_roles import read, roles_by_team
from recollect.errors import InvalidInput

RULES = read(
    '{"engineers": {"crew": "writer"}, "leads": {"crew": "admin", "dock": "reader"}, "all": {"crew": "reader"}}'
)


@pytest.mark.parametrize(
    ("groups", "crew", "dock"),
    [
        ((), None, None),
        (("unknown",), None, None),
        (("all",), Role.READER, None),
        (("all", "engineers"), Role.WRITER, None),
        (("leads", "all", "engineers"), Role.ADMIN, Role.READER),
    ],
)
def test_the_highest_role_counts(groups: tuple[str, ...], crew: Role | None, dock: Role | None) -> None:
    """Each team of the rules has a role or none, whatever the order of the groups."""
    assert roles_by_team(RULES, groups) == {"crew": crew, "dock": dock}
    assert roles_by_team(RULES, groups[::-1]) == {"crew": crew, "dock": dock}


@pytest.mark.parametrize("text", ["crew", "[]", '{"a": "crew"}', '{"a": {"crew": "owner"}}', '{"a": {"": "writer"}}'])
def test_another_form_is_refused(text: str) -> None:
    """A setting that gives no roles is an error at the start, and says how it must look."""
    with pytest.raises(InvalidInput, match="RECOLLECT_OIDC_GROUPS: must be JSON such as"):
        Settings(oidc_groups=text)

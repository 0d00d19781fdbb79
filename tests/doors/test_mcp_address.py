"""The address of MCP over HTTP: it says who asks, and an address that does not is refused."""

from __future__ import annotations

import pytest
from starlette.datastructures import QueryParams

from recollect import Caller
from recollect.doors.serving.mcp_http import caller_of
from recollect.errors import InvalidInput


def test_an_address_names_its_caller() -> None:
    """User, project and team come from the address; what else stands there makes no part of the caller."""
    asked = QueryParams("user=ada&project=engine&team=crew&toolset=store")
    assert caller_of(asked) == Caller(user="ada", project="engine", team="crew")


@pytest.mark.parametrize(("address", "field"), [("project=engine", "user"), ("user=ada&project=+", "project")])
def test_an_address_without_a_name_is_refused(address: str, field: str) -> None:
    """The error is of the missing field, and says how an address is written."""
    with pytest.raises(InvalidInput, match=rf"^Missing {field}: The address says who asks: `/mcp\?user=NAME") as raised:
        caller_of(QueryParams(address))
    assert raised.value.field == field

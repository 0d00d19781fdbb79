"""The address of a request to the daemon: it says who asks, and an address that does not is refused."""

from __future__ import annotations

import pytest
from starlette.datastructures import QueryParams

from local_access import local_access
from recollect import Caller, Settings
from recollect.errors import InvalidInput


def test_an_address_names_its_caller(settings: Settings) -> None:
    """User, project and team come from the address, beside what else it may say."""
    asked = QueryParams("user=ada&project=engine&team=crew&toolset=store")
    with local_access(None, settings).asking(asked, ("toolset",))("memory") as (_, caller):
        assert caller == Caller(user="ada", project="engine", team="crew")


@pytest.mark.parametrize(("address", "field"), [("project=engine", "user"), ("user=ada&project=+", "project")])
def test_an_address_without_a_name_is_refused(settings: Settings, address: str, field: str) -> None:
    """The error is of the missing field, and says how an address is written."""
    with pytest.raises(InvalidInput, match=rf"^Missing {field}: The address says who asks: `/mcp\?user=NAME") as raised:
        local_access(None, settings).asking(QueryParams(address))
    assert raised.value.field == field


@pytest.mark.parametrize("address", ["user=ada&project=engine&projct=x", "user=ada&user=bob&project=engine"])
def test_an_address_says_nothing_else(settings: Settings, address: str) -> None:
    """A misspelt name is refused, and so is one that is given twice."""
    with pytest.raises(InvalidInput):
        local_access(None, settings).asking(QueryParams(address))

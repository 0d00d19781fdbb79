"""What type checkers know of the verbs is what the table says."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import ModuleType

import pytest

from recollect import AsyncConnection, Connection
from recollect.domain.verbs import BY_NAME, VERBS, Verb
from recollect.errors import InvalidInput


def test_the_types_are_those_of_the_table(module: Callable[[str], ModuleType]) -> None:
    """The file that type checkers read is what `scripts/python_verbs.py` would write now."""
    script = module("python_verbs")
    assert script.TYPES.read_text(encoding="utf-8") == script.stub(), "run scripts/python_verbs.py"


def test_an_unknown_name_is_told_what_may_be_given() -> None:
    """The names that are allowed are those of the types: how a memory came in is not among them."""
    with pytest.raises(InvalidInput) as told:
        BY_NAME["remember"].check(["content", "contnt"])
    assert str(told.value).startswith("Unknown parameter: `contnt`. Did you mean `content`? Allowed: ")
    assert "`source`" not in str(told.value)


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_a_method_takes_what_its_request_takes(verb: Verb) -> None:
    """Awaited or not, a method takes the fields of its request, the required ones first, and says what it is for."""
    waits, awaited = getattr(Connection, verb.name), getattr(AsyncConnection, verb.name)
    assert inspect.iscoroutinefunction(awaited)
    assert not inspect.iscoroutinefunction(waits)
    assert inspect.signature(waits) == inspect.signature(awaited)
    taken = [one for one in inspect.signature(waits).parameters.values() if one.name != "self"]
    assert {one.name for one in taken} == verb.fields.keys()
    required = [one.name for one in taken if one.default is one.empty]
    assert required == [one.name for one in taken if one.kind is one.POSITIONAL_OR_KEYWORD]
    assert waits.__doc__ == awaited.__doc__ == verb.request.__doc__

"""What type checkers know of the verbs is what the table says."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import ModuleType

import pytest

from recollect import AsyncConnection, Connection
from recollect.domain.verbs import VERBS, Verb


def test_the_types_are_those_of_the_table(module: Callable[[str], ModuleType]) -> None:
    """The file that type checkers read is what `scripts/python_verbs.py` would write now."""
    script = module("python_verbs")
    assert script.TYPES.read_text(encoding="utf-8") == script.stub(), "run scripts/python_verbs.py"


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

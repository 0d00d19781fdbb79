"""The table of operations: every verb is told who asks, and none takes anybody for granted."""

from __future__ import annotations

import dataclasses
import inspect
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from types import FunctionType

import pytest

from recollect import App, Caller, doors, memory, transfer
from recollect.auth import administration
from recollect.auth.principal import Principal
from recollect.domain.verbs import ADMIN, PARTS, VERBS, Verb
from recollect.doors.handlers import HANDLERS, perform

_NO_DEFAULT = inspect.Parameter.empty


def functions() -> Iterator[FunctionType]:
    """Yield every function of the verbs, of import and export and of the doors, private ones and methods too."""
    for room in (memory, transfer, doors):
        for found in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            module = import_module(found.name)
            inside = [one for one in vars(module).values() if getattr(one, "__module__", "") == found.name]
            for one in inside:
                methods = vars(one).values() if isinstance(one, type) else ()
                yield from (each for each in (one, *methods) if isinstance(each, FunctionType))


@pytest.mark.parametrize("operation", [*VERBS, *PARTS.values()], ids=lambda one: one.name)
def test_every_operation_requires_its_caller(operation: Verb) -> None:
    """What runs a verb is `(app, request, caller)` with its types; one that writes takes the request's id, by name."""
    signature = inspect.signature(HANDLERS[operation.name], eval_str=True)
    app, request, caller, *more = signature.parameters.values()
    assert (app.annotation, request.annotation, caller.annotation) == (App, operation.request, Caller)
    assert signature.return_annotation == operation.answer
    assert {one.default for one in (app, request, caller)} == {_NO_DEFAULT}
    assert caller.name.strip("_") == "caller"
    assert all(one.kind is one.KEYWORD_ONLY for one in more)
    assert ("request_id" in {one.name for one in more}) is operation.writes


@pytest.mark.parametrize("operation", ADMIN, ids=lambda one: one.name)
def test_every_verb_of_administration_requires_its_principal(operation: Verb) -> None:
    """What runs a verb of administration is `(app, request, principal)` with the types of the table."""
    signature = inspect.signature(administration.HANDLERS[operation.name], eval_str=True)
    found = [one.annotation for one in signature.parameters.values()]
    assert [*found, signature.return_annotation] == [App, operation.request, Principal, operation.answer]


def test_verbs_of_one_request_take_the_same_fields() -> None:
    """What one of them hides of a request all of them hide: the OpenAPI document has one schema for them."""
    taken: dict[type, set[str]] = {}
    for one in (*VERBS, *PARTS.values(), *ADMIN):
        assert taken.setdefault(one.request, set(one.fields)) == set(one.fields)


def test_nobody_speaks_by_default() -> None:
    """No function that takes a caller has a default for it, `perform` among them, and the open store names nobody."""
    callers = {one: inspect.signature(one).parameters.get("caller") for one in functions()}
    assert callers[perform] is not None
    assert [one.__qualname__ for one, caller in callers.items() if caller and caller.default is not _NO_DEFAULT] == []
    assert "caller" not in {field.name for field in dataclasses.fields(App)}

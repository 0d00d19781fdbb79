"""Every verb of the table as a method, made here once for calls that wait and calls that are awaited.

Type checkers read `verbs.pyi` instead, which `scripts/python_verbs.py` writes from the same table.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

from recollect.domain.fields import unknown_name
from recollect.domain.verbs import VERBS, Verb
from recollect.errors import InvalidInput


def parameters(verb: Verb) -> list[Parameter]:
    """Return the parameters of a verb: required fields by place or name, all others by name only."""
    fields = verb.fields.items()
    by_place, by_name = Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY
    required = [Parameter(name, by_place) for name, field in fields if field.is_required()]
    return required + [
        Parameter(name, by_name, default=field.get_default(call_default_factory=True))
        for name, field in fields
        if not field.is_required()
    ]


class _Named:
    """Names what there is when something else is asked for."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(unknown_name("method", name, [verb.name for verb in VERBS]), name=name, obj=self)


class Verbs(_Named):
    """A method for each verb, which waits for its answer; `perform` runs it."""


class AsyncVerbs(_Named):
    """A method for each verb, which is awaited; `perform` runs it."""


def _add_verb(verb: Verb) -> None:
    """Give both kinds of connection a method for this verb."""
    taken = parameters(verb)
    by_place = [parameter.name for parameter in taken if parameter.kind is Parameter.POSITIONAL_OR_KEYWORD]

    def fields(given: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        if len(given) > len(by_place):
            names = ", ".join(f"`{name}`" for name in by_place) or "nothing"
            raise InvalidInput("arguments", f"Too many arguments: `{verb.name}` takes {names} without a name")
        for name in by_place[: len(given)]:
            if name in named:
                raise InvalidInput(name, f"Invalid {name}: It is given twice")
        return dict(zip(by_place, given, strict=False)) | named

    def wait(self: Any, /, *given: Any, **named: Any) -> Any:
        return self.perform(verb.name, **fields(given, named))

    async def awaited(self: Any, /, *given: Any, **named: Any) -> Any:
        return await self.perform(verb.name, **fields(given, named))

    signature = Signature([Parameter("self", Parameter.POSITIONAL_ONLY), *taken], return_annotation=verb.answer)
    for home, method in ((Verbs, wait), (AsyncVerbs, awaited)):
        _name_method(method, home, verb, signature)


def _name_method(method: Callable[..., Any], home: type, verb: Verb, signature: Signature) -> None:
    """Give a method the name, docstring and signature of its verb, and set it on the class."""
    method.__name__, method.__qualname__ = verb.name, f"{home.__name__}.{verb.name}"
    method.__doc__ = verb.request.__doc__
    method.__signature__ = signature  # type: ignore[attr-defined]
    setattr(home, verb.name, method)


for _verb in VERBS:
    _add_verb(_verb)

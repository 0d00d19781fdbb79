"""Reads or rewrites every string of a request, whatever the nesting.

A value that is neither text nor a known harmless type is refused, so that nothing passes the gate unread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Final
from uuid import UUID

from pydantic import BaseModel

_HARMLESS: Final = (type(None), bool, int, float, complex, Decimal, date, time, timedelta, UUID, Enum)
_SEQUENCES: Final = (list, tuple, set, frozenset)


def strings_of(noun: BaseModel) -> Iterator[tuple[str, str]]:
    """Yield each string with the dotted name of its field; raise `TypeError` for a value that cannot be read."""
    yield from _strings_in(noun, "")


def _strings_in(value: object, field: str) -> Iterator[tuple[str, str]]:
    """Yield the name of the field and the text of each string in a value, those in mappings, lists and models too."""
    if isinstance(value, _HARMLESS):
        return
    if isinstance(value, str):
        yield field, value
    elif isinstance(value, BaseModel):
        declared = type(value).model_fields
        for name, part in value:
            if name not in declared:
                yield field or "extra", name
            label = name if name in declared else "extra"
            yield from _strings_in(part, f"{field}.{label}" if field else label)
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from _strings_in(key, field)
            yield from _strings_in(part, field)
    elif type(value) in _SEQUENCES:
        for part in value:  # type: ignore[attr-defined]  # one of `_SEQUENCES`
            yield from _strings_in(part, field)
    else:
        raise TypeError(f"the gate cannot read `{field}`: {type(value).__name__} is not text, a number or a time")


def rewrite(value: Any, change: Callable[[str], str]) -> Any:
    """Return the value with every string changed; nested models are built again, so that they are validated."""
    if isinstance(value, _HARMLESS):
        return value
    if isinstance(value, str):
        return change(value)
    if isinstance(value, BaseModel):
        return type(value)(**rewritten_fields(value, change))
    if isinstance(value, Mapping):
        return {rewrite(key, change): rewrite(part, change) for key, part in value.items()}
    return type(value)(rewrite(part, change) for part in value)


def rewritten_fields(noun: BaseModel, change: Callable[[str], str]) -> dict[str, Any]:
    """Return the fields that were set when the model was built, with every string changed."""
    filled = noun.model_fields_set | set(noun.model_extra or {})
    return {
        name if name in type(noun).model_fields else change(name): rewrite(part, change)
        for name, part in noun
        if name in filled
    }

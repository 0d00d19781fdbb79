"""The JSON of requests and answers: their schemas, and answers as each door gives them.

From a checked request to the small flat JSON schema that models read: its types, enums and bounds.

How answers look from outside: JSON objects for readers, JSON that rebuilds the answer for the daemon's clients.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, get_args

from pydantic import TypeAdapter
from pydantic.fields import FieldInfo

from recollect.domain.fields import Request
from recollect.domain.results import Prompt
from recollect.prompt.neutral import neutral_json


def public_json(kind: Any, answer: Any) -> dict[str, Any]:
    """Return an answer of this type (an operation's `answer`) as the JSON object that every door shows."""
    body = _adapter(kind).dump_python(answer, mode="json", by_alias=True)
    return {get_args(kind)[0].plural: body} if isinstance(body, list) else dict(body)


def agent_json(kind: Any, answer: Any) -> dict[str, Any]:
    """Return an answer as agents get it: its JSON object without what they could take for more than data.

    Memories in a prompt are neutral already, within a fence that has to stay one.
    """
    body = public_json(kind, answer)
    return body if isinstance(answer, Prompt) else neutral_json(body)


def public_schema(kind: Any) -> dict[str, Any]:
    """Return the JSON schema of what doors show of an answer of this type: an object."""
    body = _adapter(kind).json_schema(mode="serialization")
    kinds = body.pop("$defs", {})
    if "$ref" in body:
        body = kinds[body["$ref"].rpartition("/")[2]]
    elif body["type"] == "array":
        plural = get_args(kind)[0].plural
        body = {"type": "object", "properties": {plural: body}, "required": [plural]}
    return body | ({"$defs": kinds} if kinds else {})


def wire_json(kind: Any, answer: Any) -> Any:
    """Return an answer as JSON with every field, for a client that builds it again."""
    return _adapter(kind).dump_python(answer, mode="json", round_trip=True)


def wire_bytes(kind: Any, answer: Any) -> bytes:
    """Return what `wire_json` returns as text in UTF-8."""
    return _adapter(kind).dump_json(answer, round_trip=True)


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


Schema = dict[str, Any]

_BOUNDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
_HUGE = 10_000  # a bound beyond it only keeps a number storable


def input_schema(
    request: type[Request],
    names: Sequence[str],
    only: Mapping[str, Sequence[str]] | None = None,
    unlisted: Sequence[str] = (),
) -> Schema:
    """Return the schema of these fields of `request`, in that order; one that is marked with `*` is described.

    `only` narrows the choices of a field; those of `unlisted` fields, which the request checks, are left out.
    """
    whole = request.model_json_schema()
    kinds = whole.get("$defs", {})
    properties: dict[str, Schema] = {}
    for name, _, _ in (name.partition("*") for name in names):
        properties[name] = _flat(whole["properties"][name], kinds)
        if name in (only or {}):
            properties[name]["enum"] = [str(choice) for choice in (only or {})[name]]
        if name in unlisted:
            for one in (properties[name], properties[name].get("items", {})):
                one.pop("enum", None)
        if f"{name}*" in names:
            properties[name]["description"] = first_sentence(request.model_fields[name])
    required = [name for name in whole.get("required", ()) if name in properties]
    needed = {"required": required} if required else {}
    return {"type": "object", "properties": properties, **needed, "additionalProperties": False}


def answer_schema(several: Sequence[Schema], names: Sequence[str]) -> Schema:
    """Return the schema of an object that is one of several: the types of these properties, and what all require."""
    known = {
        name: _types(one, whole.get("$defs", {})) for whole in several for name, one in whole["properties"].items()
    }
    required = [name for name in names if all(name in whole.get("required", ()) for whole in several)]
    return {"type": "object", "properties": {name: known[name] for name in names}, "required": required}


def first_sentence(field: FieldInfo) -> str:
    """Return the description of a field for models: its first sentence, and its default."""
    return (field.description or "").partition(". ")[0] + default_of(field)


def default_of(field: FieldInfo) -> str:
    """Return what a field is when it is not given, in words to put behind its description."""
    value = field.default
    if field.is_required() or value in (None, False, (), ""):
        return ""
    return f" (default {value:g})" if isinstance(value, float) else f" (default {value})"


def _resolved(one: Schema, kinds: Schema) -> Schema:
    if "anyOf" in one:
        one = next(branch for branch in one["anyOf"] if branch.get("type") != "null")
    return _resolved(kinds[one["$ref"].rpartition("/")[2]], kinds) if "$ref" in one else one


def _types(one: Schema, kinds: Schema) -> Schema:
    one = _resolved(one, kinds)
    return {"type": one["type"]} | ({"items": _types(one["items"], kinds)} if "items" in one else {})


def _flat(one: Schema, kinds: Schema) -> Schema:
    one = _resolved(one, kinds)
    flat: Schema = {"type": one["type"]}
    if "enum" in one:
        flat["enum"] = list(one["enum"])
    if "items" in one:
        flat["items"] = _flat(one["items"], kinds)
    for theirs, ours in _BOUNDS.items():
        bound = one.get(theirs, one.get(ours))
        if bound is not None and abs(bound) < _HUGE:
            flat[ours] = int(bound) if bound == int(bound) else bound
    return flat

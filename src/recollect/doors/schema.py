"""From a checked request to the small flat JSON schema that models read: its types, enums and bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic.fields import FieldInfo

from recollect.domain.fields import Request
from recollect.text.sentences import first_sentence

Schema = dict[str, Any]

_BOUNDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
_HUGE = 10_000  # a bound beyond it only keeps a number storable


def input_schema(
    request: type[Request],
    names: Sequence[str],
    only: Mapping[str, Sequence[str]] | None = None,
    unlisted: Sequence[str] = (),
) -> Schema:
    """Return the schema of these fields of `request`, in that order; a name that ends with `*` gets its description.

    `only` narrows the choices of a field. `unlisted` fields, whose choices the request checks, list none.
    """
    whole = request.model_json_schema()
    kinds = whole.get("$defs", {})
    properties: dict[str, Schema] = {}
    for name, _, _ in (name.partition("*") for name in names):
        properties[name] = _flat_schema(whole["properties"][name], kinds)
        if name in (only or {}):
            properties[name]["enum"] = [str(choice) for choice in (only or {})[name]]
        if name in unlisted:
            for schema in (properties[name], properties[name].get("items", {})):
                schema.pop("enum", None)
        if f"{name}*" in names:
            properties[name]["description"] = short_description(request.model_fields[name])
    required = [name for name in whole.get("required", ()) if name in properties]
    needed = {"required": required} if required else {}
    return {"type": "object", "properties": properties, **needed, "additionalProperties": False}


def answer_schema(several: Sequence[Schema], names: Sequence[str]) -> Schema:
    """Return a schema that fits each of several objects: the types of the properties, and which all of them require."""
    known = {
        name: _types_only(schema, whole.get("$defs", {}))
        for whole in several
        for name, schema in whole["properties"].items()
    }
    required = [name for name in names if all(name in whole.get("required", ()) for whole in several)]
    return {"type": "object", "properties": {name: known[name] for name in names}, "required": required}


def short_description(field: FieldInfo) -> str:
    """Return the description of a field for models: its first sentence, and its default."""
    return first_sentence(field.description or "").removesuffix(".") + default_of(field)


def default_of(field: FieldInfo) -> str:
    """Return the default of a field in words to put behind its description, empty where it has none."""
    value = field.default
    if field.is_required() or value in (None, False, (), ""):
        return ""
    return f" (default {value:g})" if isinstance(value, float) else f" (default {value})"


def _resolve(schema: Schema, kinds: Schema) -> Schema:
    """Return the schema behind a reference, and of alternatives the first that is not null."""
    if "anyOf" in schema:
        schema = next(branch for branch in schema["anyOf"] if branch.get("type") != "null")
    return _resolve(kinds[schema["$ref"].rpartition("/")[2]], kinds) if "$ref" in schema else schema


def _types_only(schema: Schema, kinds: Schema) -> Schema:
    schema = _resolve(schema, kinds)
    return {"type": schema["type"]} | ({"items": _types_only(schema["items"], kinds)} if "items" in schema else {})


def _flat_schema(schema: Schema, kinds: Schema) -> Schema:
    """Return the schema with only type, choices, items and bounds that matter."""
    schema = _resolve(schema, kinds)
    flat: Schema = {"type": schema["type"]}
    if "enum" in schema:
        flat["enum"] = list(schema["enum"])
    if "items" in schema:
        flat["items"] = _flat_schema(schema["items"], kinds)
    for theirs, ours in _BOUNDS.items():
        bound = schema.get(theirs, schema.get(ours))
        if bound is not None and abs(bound) < _HUGE:
            flat[ours] = int(bound) if bound == int(bound) else bound
    return flat

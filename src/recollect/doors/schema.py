"""From a checked request to the small flat JSON schema that a model reads; nothing here knows any one tool.

What pydantic writes is kept where it says something: types, enums and bounds. Titles, `null`, references, defaults and
the lengths that only stop abuse are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from recollect.domain import Request

Schema = dict[str, Any]

_BOUNDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
_HUGE = 10_000  # a bound beyond it only keeps a number storable


def input_schema(
    request: type[Request],
    said: Mapping[str, str],
    only: Mapping[str, Sequence[str]] | None = None,
    told: Sequence[str] = (),
) -> Schema:
    """Return the schema of those fields of `request` that `said` describes, in that order.

    `only` narrows the choices of a field to those a caller may make here; those of fields `told` of elsewhere are left
    out.
    """
    whole = request.model_json_schema()
    kinds = whole.get("$defs", {})
    properties = {name: _flat(whole["properties"][name], kinds) for name in said}
    for name, choices in (only or {}).items():
        properties[name]["enum"] = [str(choice) for choice in choices]
    for name in told:
        for one in (properties[name], properties[name].get("items", {})):
            one.pop("enum", None)
    for name, words in said.items():
        if words:
            properties[name]["description"] = words
    required = [name for name in whole.get("required", ()) if name in said]
    needed = {"required": required} if required else {}
    return {"type": "object", "properties": properties, **needed, "additionalProperties": False}


def _flat(one: Schema, kinds: Schema) -> Schema:
    if "anyOf" in one:
        one = next(branch for branch in one["anyOf"] if branch.get("type") != "null")
    if "$ref" in one:
        one = kinds[one["$ref"].rpartition("/")[2]]
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

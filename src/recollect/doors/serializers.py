"""How answers look from outside: JSON objects for readers, JSON that rebuilds the answer for the daemon's clients."""

from __future__ import annotations

from functools import cache
from typing import Any, get_args

from pydantic import TypeAdapter

from recollect.domain.results import Prompt
from recollect.prompt.neutral import neutral_json


def public_json(kind: Any, answer: Any) -> dict[str, Any]:
    """Return an answer of this type (an operation's `answer`) as the JSON object that every door shows."""
    body = _type_adapter(kind).dump_python(answer, mode="json", by_alias=True)
    return {get_args(kind)[0].plural: body} if isinstance(body, list) else dict(body)


def agent_json(kind: Any, answer: Any) -> dict[str, Any]:
    """Return an answer as JSON for agents, with nothing in it that they could take for more than data.

    Memories in a prompt are neutral already, within a fence that must stay whole.
    """
    body = public_json(kind, answer)
    return body if isinstance(answer, Prompt) else neutral_json(body)


def public_schema(kind: Any) -> dict[str, Any]:
    """Return the JSON schema of the object that doors show for an answer of this type."""
    body = _type_adapter(kind).json_schema(mode="serialization")
    kinds = body.pop("$defs", {})
    if "$ref" in body:
        body = kinds[body["$ref"].rpartition("/")[2]]
    elif body["type"] == "array":
        plural = get_args(kind)[0].plural
        body = {"type": "object", "properties": {plural: body}, "required": [plural]}
    return body | ({"$defs": kinds} if kinds else {})


def wire_json(kind: Any, answer: Any) -> Any:
    """Return an answer as JSON with every field, for a client that builds it again."""
    return _type_adapter(kind).dump_python(answer, mode="json", round_trip=True)


def wire_bytes(kind: Any, answer: Any) -> bytes:
    """Return the JSON of `wire_json` as text in UTF-8."""
    return _type_adapter(kind).dump_json(answer, round_trip=True)


@cache
def _type_adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)

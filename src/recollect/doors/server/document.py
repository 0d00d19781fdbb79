"""The OpenAPI document: what each operation takes and answers, from the types that the operations declare."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema, to_json

from recollect.auth import administration
from recollect.domain.verbs import Verb
from recollect.doors import operations
from recollect.doors.server.bodies import JSON

_HANDLERS: Final = operations.HANDLERS | administration.HANDLERS
_REFERENCE: Final = "#/components/schemas/{model}"
_EXAMPLES: Final = Path(__file__).with_name("examples.json")
ERROR: Final[dict[str, Any]] = {
    "title": "Error",
    "description": "Why a request was refused or failed, as one sentence.",
    "type": "object",
    "properties": {
        "error": {"type": "string", "title": "Error", "description": "Kind of the error, for programs"},
        "message": {"type": "string", "title": "Message", "description": "One sentence for people"},
        "field": {"type": "string", "title": "Field", "description": "Field of the request that it is about"},
    },
    "required": ["error", "message"],
    "additionalProperties": False,
}
_FAILURES: Final[dict[int, tuple[str, str, str]]] = {
    401: ("Unauthorized", "No token, or one that is not valid", "Invalid token: it is unknown, has expired or was …"),
    403: ("Forbidden", "The token gives no right to that", "You have no right to write in the scope `team`: …"),
    404: ("NotFound", "No such thing in the namespaces that the token may see", "No memory with ID 7."),
    409: ("ModelMismatch", "The store is in another state than the request needs", "This store was built with …"),
    413: ("TooLarge", "The body is larger than the server takes", "Request too large: At most 8,388,608 bytes …"),
    415: ("UnsupportedMediaType", "The body is no JSON", "Unsupported type: A body is `application/json`."),
    422: ("InvalidInput", "A field is missing, unknown or out of range, or holds a secret", "Missing query: …"),
    429: ("TooManyRequests", "The token asks too often; `Retry-After` says when to try again", "Too many requests: …"),
    503: ("StoreUnusable", "The database or the model cannot be used just now", "The database cannot be used: …"),
}
NARROWING: Final[list[dict[str, Any]]] = [
    {
        "name": name,
        "in": "query",
        "required": False,
        "description": about,
        "schema": {"type": "string", "minLength": 1, "maxLength": 200},
    }
    for name, about in (
        ("team", "Team whose memories are seen. Default: the only team of the user"),
        ("project", "Project whose memories are seen. Default: none"),
    )
]
IDEMPOTENCY: Final[dict[str, Any]] = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "Under the same key a retry gets the first answer again, and nothing is written twice",
    "schema": {"type": "string", "maxLength": 200, "pattern": "^[!-~]*$"},
}
TOKEN: Final = {"type": "http", "scheme": "bearer", "description": "A token, as `recollect token add` prints it"}


class _Wire(GenerateJsonSchema):
    """Describes answers with every field, as `wire_json` writes them: ids are texts, and nothing is left out."""

    def int_schema(self, schema: core_schema.IntSchema) -> dict[str, Any]:
        return {"type": "string"} if "serialization" in schema else super().int_schema(schema)

    def field_is_required(self, field: Any, total: bool) -> bool:
        del field, total
        return True


def reference(name: str) -> dict[str, str]:
    """Return a reference to a schema of the document."""
    return {"$ref": _REFERENCE.format(model=name)}


def failures(statuses: Iterable[int] = _FAILURES) -> dict[int | str, dict[str, Any]]:
    """Return how a request may fail, for FastAPI."""
    found: dict[int | str, dict[str, Any]] = {}
    for status in statuses:
        kind, about, message = _FAILURES[status]
        example = {"error": kind, "message": message}
        found[status] = {
            "description": about,
            "content": {JSON: {"schema": reference("Error"), "example": example}},
        }
    return found


@cache
def examples() -> dict[str, dict[str, Any]]:
    """Return for each operation a `request` and its `answer`."""
    return dict(json.loads(_EXAMPLES.read_text(encoding="utf-8")))


class Schemas:
    """The types of the operations of a table as JSON schemas, and the components that they refer to."""

    def __init__(self, operations: Sequence[Verb]) -> None:
        asked = {one.name: TypeAdapter(one.request) for one in operations}
        answers = {one.name: TypeAdapter(one.answer) for one in operations}
        self._requests, defined = _described(asked, GenerateJsonSchema)
        self._answers, others = _described(answers, _Wire)
        self.components = {"Error": ERROR} | defined | _renamed(self._answers, others, defined)

    def route(self, operation: Verb, *, narrowed: bool = True) -> dict[str, Any]:
        """Return what FastAPI is told of the route of an operation."""
        parameters = [*NARROWING, *([IDEMPOTENCY] if operation.writes else [])] if narrowed else []
        return {
            "summary": operation.name.replace("_", " ").capitalize(),
            "description": inspect.getdoc(_HANDLERS[operation.name]) or "",
            "responses": _answering(self._answers[operation.name], None) | failures(),
            "openapi_extra": _taking(self.request(operation), {}, parameters),
        }

    def request(self, operation: Verb) -> dict[str, Any]:
        """Return the schema of what an operation takes."""
        return dict(self._requests[operation.name])


def _described(
    kinds: dict[str, TypeAdapter[Any]], generator: type[GenerateJsonSchema]
) -> tuple[dict[str, Any], dict[str, Any]]:
    inputs = [(name, "validation", adapter) for name, adapter in kinds.items()]
    found, whole = TypeAdapter.json_schemas(
        inputs,  # type: ignore[arg-type]
        ref_template=_REFERENCE,
        schema_generator=generator,
    )
    return {name: found[name, "validation"] for name in kinds}, whole.get("$defs", {})


def _renamed(answers: dict[str, Any], defined: dict[str, Any], taken: dict[str, Any]) -> dict[str, Any]:
    """Give answers other names than requests have, where they differ, in all that refers to them."""
    clashing = [one for one in defined if one in taken and taken[one] != defined[one]]
    text = json.dumps([answers, {f"{name}Answer" if name in clashing else name: one for name, one in defined.items()}])
    for name in clashing:
        text = text.replace(f'"{_REFERENCE.format(model=name)}"', f'"{_REFERENCE.format(model=name + "Answer")}"')
    found = json.loads(text)
    answers.update(found[0])
    return dict(found[1])


def packed(body: Any) -> bytes:
    """Return JSON as text in UTF-8."""
    return to_json(body)


def whole(api: FastAPI, components: dict[str, Any]) -> dict[str, Any]:
    """Return the document of an application."""
    if api.openapi_schema is None:
        found = get_openapi(
            title=api.title,
            version=api.version,
            openapi_version="3.1.0",
            description=api.description,
            routes=api.routes,
        )
        for name, example in examples().items():
            told = found["paths"][f"/v1/{name}"]["post"]  # FastAPI would leave out what is null in an example
            told["requestBody"]["content"][JSON]["example"] = example["request"]
            told["responses"]["200"]["content"][JSON]["example"] = example["answer"]
        kept = found.setdefault("components", {})
        kept["schemas"] = components
        kept["securitySchemes"] = {"token": TOKEN}
        found["security"] = [{"token": []}]
        api.openapi_schema = found
    return api.openapi_schema


def memory(taken: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    """Return what FastAPI is told of the route of the one tool `memory`."""
    return {
        "summary": "Memory",
        "description": "Remember, recall or forget, as the MCP tool `memory` does, by `action`.",
        "responses": _answering(answer, {"message": "Memory stored successfully with ID: 1", "id": "1"}) | failures(),
        "openapi_extra": _taking(
            taken, {"action": "remember", "content": "The harbour deploys on Fridays."}, [*NARROWING, IDEMPOTENCY]
        ),
    }


def hook(event: str, request: dict[str, Any]) -> dict[str, Any]:
    """Return what FastAPI is told of the route of an event of a session."""
    settings = {"type": "object", "description": "Settings of the client's project, which only turn off or lower"}
    taken = {
        "type": "object",
        "properties": {"fields": request, "settings": settings},
        "required": ["fields"],
        "additionalProperties": False,
    }
    text = {"type": "string", "description": "What to put before the prompt; empty where nothing is relevant"}
    kept = {"type": "boolean", "description": "Whether there was room for the rest of the work, which is done later"}
    answer = {"type": "object", "properties": {"text": text, "taken": kept}, "required": ["text", "taken"]}
    return {
        "summary": f"Event {event}",
        "description": "Take an event of a coding agent's session. A prompt is answered; all else is worked off later.",
        "responses": _answering(answer, {"text": "", "taken": True}) | failures(),
        "openapi_extra": _taking(taken, {"fields": _EVENT | _EVENTS.get(event, {}), "settings": {}}, NARROWING),
    }


def probe(summary: str, description: str, *, unready: bool = False) -> dict[str, Any]:
    """Return what FastAPI is told of a route that needs no token."""
    answer = {"type": "object", "properties": {"ready": {"type": "boolean"}}, "required": ["ready"]}
    responses = _answering(answer, {"ready": True})
    if unready:
        responses[503] = _answering(answer, {"ready": False})[200] | {"description": "Not yet, or not now"}
    return {
        "summary": summary,
        "description": description,
        "responses": responses,
        "openapi_extra": {"security": []},
        "tags": ["state"],
    }


_EVENT: Final[dict[str, Any]] = {"session_id": "s1", "agent": "claude-code"}
_EVENTS: Final[dict[str, dict[str, Any]]] = {
    "prompt:submit": {"prompt": "Who deploys the harbour?"},
    "tool:post": {"tool": "Bash", "input": {"command": "make test"}, "output": "12 passed"},
    "session:start": {"source": "startup"},
    "session:end": {"reason": "exit"},
}


def _answering(schema: dict[str, Any], example: Any) -> dict[int | str, dict[str, Any]]:
    content = {JSON: {"schema": schema, "example": example}}
    return {200: {"description": "Answer", "content": content}}


def _taking(schema: dict[str, Any], example: Any, parameters: list[dict[str, Any]]) -> dict[str, Any]:
    content = {JSON: {"schema": schema, "example": example}}
    return {"parameters": parameters, "requestBody": {"required": True, "content": content}}

"""The OpenAPI document: what each operation takes and answers, from the types that the operations declare."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from recollect import __version__
from recollect.domain.verbs import ADMIN, VERBS, Verb
from recollect.doors import memory_tool
from recollect.doors.handlers import HANDLERS
from recollect.doors.http.events import OPERATIONS, operation_of
from recollect.doors.http.messages import JSON

if TYPE_CHECKING:
    from recollect.doors.http.access import Access

_SCHEMAS: Final = "#/components/schemas/{model}"
_SESSIONS: Final = frozenset(
    (*OPERATIONS.values(), "prompt_submit", "list_sessions", "show_session", "correct_observation")
)
_ERROR: Final[dict[str, Any]] = {
    "title": "Error",
    "description": "Why a request was refused or failed, as one sentence.",
    "type": "object",
    "properties": {
        "error": {"type": "string", "title": "Error", "description": "Kind of the error, for programs"},
        "message": {"type": "string", "title": "Message", "description": "One sentence for people"},
        "field": {"type": "string", "title": "Field", "description": "Field of the request that it is about"},
        "kinds": {
            "type": "array",
            "items": {"type": "string"},
            "title": "Kinds",
            "description": "Kinds of the secrets that were found",
        },
        "limit": {"type": "string", "title": "Limit", "description": "The limit that is reached, such as `memories`"},
        "used": {"type": "integer", "title": "Used", "description": "How much of it is used"},
        "most": {"type": "integer", "title": "Most", "description": "How much is allowed"},
        "retry_after": {"type": "number", "title": "Retry after", "description": "Seconds until it may be asked again"},
        "request_id": {"type": "string", "title": "Request id", "description": "Where the log tells of the request"},
    },
    "required": ["error", "message"],
    "additionalProperties": False,
}
_FAILURES: Final[dict[int, tuple[str, str, str]]] = {
    401: ("Unauthorized", "No token, or one that is not valid", "Invalid token: it is unknown, has expired or was …"),
    403: (
        "Forbidden",
        "The token gives no right to that, or a limit is reached",
        "You have no right to write in the scope `team`: …",
    ),
    404: ("NotFound", "No such thing in the namespaces that the token may see", "No memory with ID 7."),
    405: ("MethodNotAllowed", "The address takes another method", "This address takes another method: …"),
    408: ("TooSlow", "The body did not arrive in time", "Request too slow: Its body must come within 60 seconds."),
    409: ("ModelMismatch", "The store is in another state than the request needs", "This store was built with …"),
    413: ("TooLarge", "The body is larger than the server takes", "Request too large: At most 8,388,608 bytes …"),
    415: ("UnsupportedMediaType", "The body is no JSON", "Unsupported type: A body is `application/json`."),
    422: ("InvalidInput", "A field is missing, unknown or out of range, or holds a secret", "Missing query: …"),
    429: (
        "TooManyRequests",
        "The token, its user or the team asks too often; `Retry-After` says when to try again",
        "Too many requests: …",
    ),
    500: (
        "RecollectError",
        "A fault of the server; its log has the place",
        "Internal error in the server: …; see its log.",
    ),
    503: ("StoreUnusable", "The database or the model cannot be used just now", "The database cannot be used: …"),
}
_KEY: Final[dict[str, Any]] = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "Under the same key a retry gets the first answer again, and nothing is written twice",
    "schema": {"type": "string", "maxLength": 200, "pattern": "^[!-~]*$"},
}
_TOKEN: Final = {"type": "http", "scheme": "bearer", "description": "A token, as `recollect token add` prints it"}
_EVENT: Final[dict[str, Any]] = {"session_id": "s1", "agent": "claude-code"}
_EVENTS: Final[dict[str, dict[str, Any]]] = {
    "prompt:submit": {"prompt": "Who deploys the harbour?"},
    "tool:pre": {"tool": "Bash", "input": {"command": "make deploy"}},
    "tool:post": {"tool": "Bash", "input": {"command": "make test"}, "output": "12 passed"},
    "turn:end": {"output": "The harbour is deployed."},
    "session:start": {"source": "startup"},
    "session:end": {"reason": "exit"},
}
_HEALTH: Final = "Report that the process is running."
_READY: Final = "Report whether the database and the model can be used; the vector index is not needed."


class _Wire(GenerateJsonSchema):
    """Describes answers with every field, as `wire_json` writes them: ids are texts, and nothing is left out."""

    def int_schema(self, schema: core_schema.IntSchema) -> dict[str, Any]:
        return {"type": "string"} if "serialization" in schema else super().int_schema(schema)

    def field_is_required(self, field: Any, total: bool) -> bool:
        del field, total
        return True


def parameter(name: str, about: str, *, required: bool = False) -> dict[str, Any]:
    """Return the description of a parameter behind `?` in an address."""
    kind = {"type": "string", "minLength": 1, "maxLength": 200}
    return {"name": name, "in": "query", "required": required, "description": about, "schema": kind}


def document(access: Access) -> dict[str, Any]:
    """Return the OpenAPI document of an application with this access."""
    administration = [one for one in ADMIN if one.name in access.administration]
    handlers = HANDLERS | access.administration
    verbs = [*VERBS, *map(operation_of, OPERATIONS), *administration]
    requests, asked = _schemas_of({one.name: one.request for one in verbs}, GenerateJsonSchema)
    answers, defined = _schemas_of({one.name: one.answer for one in verbs}, _Wire)
    for one in verbs:  # those of one request take the same fields
        taken = asked.get(requests[one.name].get("$ref", "").rpartition("/")[2], {}).get("properties", {})
        for hidden in taken.keys() - one.fields.keys():
            del taken[hidden]

    def described(one: Verb, **more: Any) -> dict[str, Any]:
        return {
            "summary": one.name.replace("_", " ").capitalize(),
            "description": inspect.getdoc(handlers[one.name]) or "",
            "requestBody": _request_body(requests[one.name]),
            "responses": _answer_response(answers[one.name]) | _failure_responses(),
            **more,
        }

    paths: dict[str, Any] = {}
    for one in VERBS:
        more = {"operationId": one.name, "tags": ["sessions" if one.name in _SESSIONS else "memories"]}
        parameters = [*access.parameters, *([_KEY] if one.writes else [])]
        paths[f"/v1/{one.name}"] = {"post": described(one, parameters=parameters, **more)}
    for one in administration:
        more = {"operationId": f"admin_{one.name}", "tags": ["administration"]}
        paths[f"/v1/admin/{one.name}"] = {"post": described(one, **more)}
    if "/v1/admin/show_limits" in paths:
        shown = paths["/v1/admin/show_limits"]["post"] | {"operationId": "limits"}
        paths["/v1/limits"] = {"get": {name: part for name, part in shown.items() if name != "requestBody"}}
    paths["/v1/memory"] = {"post": _describe_memory([*access.parameters, _KEY])}
    for event in OPERATIONS:
        paths[f"/v1/hooks/{event}"] = {"post": _describe_hook(event, requests[operation_of(event).name], access)}
    paths["/healthz"] = {"get": _describe_probe("Health", _HEALTH)}
    paths["/readyz"] = {"get": _describe_probe("Readiness", _READY, unready=True)}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Recollect",
            "description": f"Memory for AI agents and their teams. {access.about}",
            "version": __version__,
        },
        "paths": paths,
        "components": {"schemas": {"Error": _ERROR} | asked | defined, "securitySchemes": {"token": _TOKEN}},
        "security": [{"token": []}],
    }


def _schemas_of(kinds: dict[str, Any], generator: type[GenerateJsonSchema]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the schemas of these types by name, and the components that they refer to."""
    inputs: Any = [(name, "validation", TypeAdapter(kind)) for name, kind in kinds.items()]
    found, whole = TypeAdapter.json_schemas(inputs, ref_template=_SCHEMAS, schema_generator=generator)
    return {name: found[name, "validation"] for name in kinds}, whole.get("$defs", {})


def _describe_memory(parameters: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the description of the tool `memory`."""
    example = {"action": "remember", "content": "The harbour deploys on Fridays."}
    answer = {"message": "Memory stored successfully with ID: 1", "id": "1"}
    return {
        "summary": "Memory",
        "description": "Remember, recall or forget, as the MCP tool `memory` does, by `action`.",
        "operationId": "memory",
        "tags": ["memories"],
        "parameters": parameters,
        "requestBody": _request_body(memory_tool.input_schema(), example),
        "responses": _answer_response(memory_tool.output_schema(), answer) | _failure_responses(),
    }


def _describe_hook(event: str, request: dict[str, Any], access: Access) -> dict[str, Any]:
    """Return the description of an event of a session."""
    client, about, example = access.client
    properties = {
        "fields": request | {"description": "Fields of the event, as `/v1/session_start` and so on take them"},
        client: {"type": "object", "description": about},
        "id": {"type": "string", "description": "Names the event, so that it is taken once if it is sent again"},
        "late": {
            "type": "boolean",
            "description": "Whether nobody waits for the answer any more, so that a prompt is only noted",
        },
    }
    taken = {"type": "object", "properties": properties, "required": ["fields"], "additionalProperties": False}
    text = {
        "type": "string",
        "description": "What to put before the prompt, the use of a tool or after its output; empty where nothing is "
        "relevant",
    }
    kept = {"type": "boolean", "description": "Whether there was room for the rest of the work, which is done later"}
    answer = {"type": "object", "properties": {"text": text, "taken": kept}, "required": ["text", "taken"]}
    return {
        "summary": f"Event {event}",
        "description": "Take an event of a coding agent's session. The answer to the start of a session, to a prompt, "
        "to the use of a tool, to a command that failed and to the end of a turn may hold a text for the agent "
        "(`text`); all else is later.",
        "operationId": f"hook_{event.replace(':', '_')}",
        "tags": ["sessions"],
        "parameters": access.event_parameters,
        "requestBody": _request_body(taken, {"fields": _EVENT | _EVENTS.get(event, {}), client: example}),
        "responses": _answer_response(answer, {"text": "", "taken": True}) | _failure_responses(),
    }


def _describe_probe(summary: str, description: str, *, unready: bool = False) -> dict[str, Any]:
    """Return the description of an address that needs no token."""
    answer = {"type": "object", "properties": {"ready": {"type": "boolean"}}, "required": ["ready"]}
    responses = _answer_response(answer, {"ready": True})
    if unready:
        responses["503"] = _answer_response(answer, {"ready": False})["200"] | {"description": "Not yet, or not now"}
    told = {"summary": summary, "description": description, "operationId": summary.lower(), "tags": ["state"]}
    return told | {"responses": responses, "security": []}


def _failure_responses() -> dict[str, Any]:
    """Return the responses of failed requests by status."""
    return {
        str(status): {
            "description": about,
            "content": _json_content({"$ref": _SCHEMAS.format(model="Error")}, {"error": kind, "message": message}),
        }
        for status, (kind, about, message) in _FAILURES.items()
    }


def _answer_response(schema: dict[str, Any], example: Any = None) -> dict[str, Any]:
    return {"200": {"description": "Answer", "content": _json_content(schema, example)}}


def _request_body(schema: dict[str, Any], example: Any = None) -> dict[str, Any]:
    return {"required": True, "content": _json_content(schema, example)}


def _json_content(schema: dict[str, Any], example: Any = None) -> dict[str, Any]:
    return {JSON: {"schema": schema} | ({} if example is None else {"example": example})}

"""The page on the HTTP API, made from the OpenAPI document: `docs/api.md` is what this writes."""

from __future__ import annotations

from typing import Any, Final

_HEAD: Final = """# The HTTP API

What `recollect serve --host` answers ([deploy.md](deploy.md)). This page is made from `/openapi.json`, which also has
every answer as a JSON schema, and an example of each request and answer.

A request is `POST` with a JSON object, `Authorization: Bearer TOKEN`, and where it is about a team or a project
`?team=…&project=…`. Fields in **bold** are required. Where an operation writes, `Idempotency-Key` makes a retry safe.
Every error is `{"error": kind, "message": sentence}`, with `field` where one is wrong.
"""
_TITLES: Final = {"memories": "Memories", "sessions": "Sessions", "administration": "Administration", "state": "State"}


def page(document: dict[str, Any]) -> str:
    """Return the page for a document."""
    parts = [_HEAD]
    for tag, title in _TITLES.items():
        rows = [
            f"| `{method.upper()} {path}` | {_line(told['description'])} | {_fields(told, document)} |"
            for path, methods in document["paths"].items()
            for method, told in methods.items()
            if tag in told.get("tags", ())
        ]
        parts.append(f"## {title}\n\n| request | what it does | fields |\n|---|---|---|\n" + "\n".join(rows) + "\n")
    return "\n".join(parts)


def _line(text: str) -> str:
    return text.partition("\n")[0].replace("|", "\\|")


def _fields(told: dict[str, Any], document: dict[str, Any]) -> str:
    if "requestBody" not in told:
        return ""
    schema = told["requestBody"]["content"]["application/json"]["schema"]
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    required = schema.get("required", ())
    names = [f"**`{name}`**" if name in required else f"`{name}`" for name in schema.get("properties", {})]
    return ", ".join(sorted(names, key=lambda name: not name.startswith("**")))

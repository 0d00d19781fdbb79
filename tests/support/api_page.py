"""The page on the HTTP API, made from the OpenAPI document: `docs/api.md` is what this writes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

_HEAD: Final = """# The HTTP API

This is the API of [a team's server](deploy.md), which `recollect serve --host …` starts. This page is made from
`/openapi.json` of such a server, which also has the JSON schema of every answer.

## A request

Ada stores a memory in the project `shop` of her team, and asks for it:

```sh
curl "https://memory.example.com/v1/remember?project=shop" --header "Authorization: Bearer $TOKEN" \\
  --json '{"content": "Production deploys go out on Tuesday mornings", "tags": ["deploy"]}'
curl "https://memory.example.com/v1/recall?project=shop" --header "Authorization: Bearer $TOKEN" \\
  --json '{"query": "when do we deploy?"}'
```

The first answer; `id` is a string everywhere:

```json
{"status": "stored", "id": "1", "notes": [], "what": "Memory", "near": [], "said": ""}
```

The second answer, with one hit. `match` is the probability, 0–1, that the memory answers the question ([how recall
decides](concepts.md#how-recall-decides)); `parts` add up to `score`, and `signals` are what `match` was made of:

```json
{"hits": [
  {"memory": {
     "source": "tool", "trust": 0.5, "said_by": "person", "came_from": null, "review": null,
     "content": "Production deploys go out on Tuesday mornings", "key": null, "scope": "project",
     "fact_type": "general", "type": null, "concepts": [], "category": null, "tags": ["deploy"],
     "importance": 0.5, "confidence": 0.5, "sensitivity": "public",
     "title": "Production deploys go out on Tuesday mornings", "subtitle": "",
     "abstract": "Production deploys go out on Tuesday mornings",
     "overview": "Production deploys go out on Tuesday mornings", "files_read": [], "files_modified": [],
     "when": [],
     "session_id": null, "project": null, "discovery_tokens": null, "observed_at": null, "ttl_days": null,
     "speaker": null, "position": null, "id": "1", "namespace": "project:crew/shop", "author": "ada",
     "content_hash": "9e6e14860094e0d70c3d0e93da5039e2687204c2fbe201b3a8d2ad5ec83ab192",
     "accessed_count": 0, "recalled_count": 0, "created_at": "2026-03-01T12:00:00Z",
     "updated_at": "2026-03-01T12:00:00Z", "last_accessed_at": null, "expires_at": null, "deleted_at": null,
     "superseded_by": null, "merged_into": null, "merged_from": [], "entities": [], "standing": null},
   "match": 0.857, "score": 0.845,
   "parts": {"match": 0.52, "recency": 0.2, "importance": 0.075, "trust": 0.05},
   "signals": {
     "cosine": 0.514, "bm25": 0.0, "coverage": 1.0, "fuzzy": 0.0, "speaker_named": false, "late": 0.517,
     "rare": 0.517, "passage": 1.0, "phrase": 1.0, "around": 1.0,
     "before": {"bm25": 0.0, "cosine": 0.0, "late": 0.0},
     "after": {"bm25": 0.0, "cosine": 0.0, "late": 0.0}, "in_session": false, "questions": 0.0,
     "questions_before": 0.0, "length": 45, "rarest": 0.415, "identifier": 0.0},
   "certainty": "strong", "layer": "content", "older_than": null, "contradicts": null, "passage": ""}],
 "message": "1 memory found.", "notes": [], "index": null, "nearest": null}
```

- A request is `POST` with a JSON object; an empty body is `{}`. `--json` needs curl 7.82; before, use `--data` and
  `--header "Content-Type: application/json"`.
- The token says who asks. `?team=…` is needed only by members of several teams. `?project=…` names the project: its
  memories are read besides your personal ones and those of the team, and a memory with the scope `project`, the
  default, is stored there. Without it no project is seen, and such a memory is refused with 403. The name must be
  exactly the one that others use; for a repository that is `github.com/acme/shop`. The field `project` of a memory is
  only a label. `?zone=Europe/Berlin` says in which time zone a day begins and a time without a zone is meant; without
  it that is UTC.
- `forget`, `memory_forget` and `forget_fact` answer an unknown id with 200 and `"status": "not_found"`.
- [Users, teams and tokens](deploy.md#users-teams-and-tokens) explains how to get a token; `/healthz` and `/readyz`
  need none. MCP is at `/mcp` ([MCP over HTTP](frameworks.md#mcp)).

## Errors

Every error is `{"error": kind, "message": sentence, "request_id": id}`; the server's log has a line with that id.
`kind` is also the name of the [Python class](python.md#errors); those of 405, 408 and 415 have none.

| status | `error` | meaning | does a retry help? |
|---|---|---|---|
| 401 | `Unauthorized` | no token, or one that is unknown, expired or revoked | no |
| 403 | `Forbidden` | the token gives no right to this, or not in this team or project | no |
| 403 | `QuotaFull` | you or the team hold `used` of `most` by the limit `limit` | after forgetting |
| 404 | `NotFound` | you can see no such memory, user or team; or no such address | no |
| 405 | `MethodNotAllowed` | the address takes another method | no |
| 408 | `TooSlow` | the body did not arrive within 60 seconds | yes |
| 409 | `Conflict` | the memory is not in the expected state, such as that of `if_hash` | after reading it again |
| 409 | `ModelMismatch`, `StoreOwned` | the server's store belongs to another model or process | no, tell the operator |
| 413 | `TooLarge` | the body is larger than `RECOLLECT_MAX_BODY_MIB` | no |
| 415 | `UnsupportedMediaType` | the body is not `application/json` | no |
| 422 | `InvalidInput` | `field` is wrong; for `Idempotency-Key`, it was used for another request | no |
| 422 | `SecretFound` | `field` contains secrets of the `kinds` named; nothing was stored | no |
| 429 | `TooManyRequests` | more requests than allowed | after `retry_after` seconds (`Retry-After`) |
| 500 | `RecollectError` | a fault of the server; its log has the place | rarely |
| 503 | `StoreUnusable`, `ModelUnusable` | the database or the model cannot be used now | yes |

**Retries.** A write with the header `Idempotency-Key` can be sent again safely: the same request under the same key
gets the first answer and is not done twice, on every replica. A key is at most 200 printable ASCII characters. It
counts per user, operation and place where the memory is stored, and is kept for seven days at least. Only a success is
kept: after an error the request is run again.
"""
_TITLES: Final = {"memories": "Memories", "sessions": "Sessions", "administration": "Administration", "state": "State"}
_FIELDS: Final = """## Fields

A field without a default may be left out, unless it is **bold** in the tables above. Where one name has several
meanings, the operations stand before the meaning. In `update_memory` a field that is left out stays as it is, whatever
its default. `type` is the kind of work in which something was observed, `fact_type` the kind of knowledge; only
`memory_store` calls the latter `type`. `POST /v1/memory` takes what [the MCP tool](tools.md#memory) takes.

| field | type and limits | default | meaning |
|---|---|---|---|
"""
_SHOWN: Final = 3  # operations that are named before a meaning


def page(document: dict[str, Any]) -> str:
    """Return the page for a document."""
    parts = [_HEAD]
    same = _originals(document)
    for tag, title in _TITLES.items():
        rows = [
            f"| `{method.upper()} {path}` | {_what(path, told, same)} | {_fields(path, told, document, same)} |"
            for path, methods in document["paths"].items()
            for method, told in methods.items()
            if tag in told.get("tags", ())
        ]
        parts.append(f"## {title}\n\n| request | what it does | fields |\n|---|---|---|\n" + "\n".join(rows) + "\n")
    return "\n".join([*parts, _FIELDS + "\n".join(_meanings(document, same)) + "\n"])


def _originals(document: dict[str, Any]) -> dict[str, str]:
    """Return for each address that does the same as an earlier one the path of that."""
    first: dict[str, str] = {}
    found = {}
    for path, methods in document["paths"].items():
        for told in methods.values():
            if "requestBody" not in told or "/hooks/" in path:
                continue
            original = first.setdefault(told["description"], path)
            if original != path:
                found[path] = original
    return found


def _what(path: str, told: dict[str, Any], same: dict[str, str]) -> str:
    if path in same:
        return f"Same as `{same[path]}`."
    return told["description"].partition("\n")[0].replace("|", "\\|")


def _fields(path: str, told: dict[str, Any], document: dict[str, Any], same: dict[str, str]) -> str:
    schema = _schema(told, document)
    if path in same or schema is None:
        return ""
    required = schema.get("required", ())
    names = [f"**`{name}`**" if name in required else f"`{name}`" for name in schema.get("properties", {})]
    return ", ".join(sorted(names, key=lambda name: not name.startswith("**")))


def _schema(told: dict[str, Any], document: dict[str, Any]) -> dict[str, Any] | None:
    """Return the schema of what an operation takes, None where it takes no body."""
    if "requestBody" not in told:
        return None
    return _resolved(told["requestBody"]["content"]["application/json"]["schema"], document)


def _resolved(schema: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in schema:
        return schema
    return dict(document["components"]["schemas"][schema["$ref"].rpartition("/")[2]])


def _meanings(document: dict[str, Any], same: dict[str, str]) -> Iterator[str]:
    """Yield a row for each field and what it means somewhere, by the names of the fields."""
    found: dict[str, dict[tuple[str, str, str], list[str]]] = {}
    for path, methods in document["paths"].items():
        if path in same or path == "/v1/memory":
            continue
        for told in methods.values():
            for name, field in (_schema(told, document) or {}).get("properties", {}).items():
                default = field.get("default")
                shown = "" if default in (None, "", [], {}) else f"`{str(default).lower()}`"
                cells = (_type(field, document), shown, field.get("description", ""))
                rows = found.setdefault(name, {})
                if not shown:  # what changes a memory has no default where what stores it has one
                    cells = next((one for one in rows if one[::2] == cells[::2]), cells)
                rows.setdefault(cells, []).append(path.rpartition("/")[2])
    for name in sorted(found):
        for (kind, default, meaning), where in found[name].items():
            named = ", ".join(f"`{one}`" for one in where[:_SHOWN])
            more = f" and {len(where) - _SHOWN} more" if len(where) > _SHOWN else ""
            place = f"{named}{more}: " if len(found[name]) > 1 else ""
            yield f"| `{name}` | {kind} | {default} | {place}{meaning} |".replace("  |", " |")


def _type(field: dict[str, Any], document: dict[str, Any]) -> str:
    """Return the type of a field and what bounds it; whether it may be null goes unsaid, as absent says the same."""
    field = next((one for one in field.get("anyOf", ()) if one.get("type") != "null"), field)
    field = field | _resolved(field, document)
    if "enum" in field:
        return ", ".join(f"`{one}`" for one in field["enum"])
    low = field.get("ge", field.get("minimum"))
    high = field.get("le", field.get("maximum"))
    match field.get("type"):
        case "array":
            most = f", at most {field['maxItems']:,}" if "maxItems" in field else ""
            return f"list of {_type(field['items'], document)}{most}"
        case "string" if field.get("format") == "date-time":
            return "day or ISO time"
        case "string":
            return f"string, at most {field['maxLength']:,} characters" if "maxLength" in field else "string"
        case "number" | "integer" as kind if low is not None and high is not None:
            return f"{kind}, {low:g} or more" if high > 10**9 else f"{kind}, {low:g}–{high:,.0f}"
        case "number" if "gt" in field:
            return f"number above {field['gt']:g}, at most {high:,g}"
        case kind:
            return str(kind)

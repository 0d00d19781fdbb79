"""The tools that MCP clients are offered, in sets: which fields of an operation a model may set.

A tool is a projection of the table of operations. Like `memory_tool` this knows nothing of transports. The tools here
declare no output schema, since clients put the whole declaration into every session; answers still carry an object.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

from recollect.app import App
from recollect.domain.enums import ObservationType
from recollect.domain.fields import one_of
from recollect.domain.origin import SaidBy
from recollect.domain.requests import Caller, Update
from recollect.domain.results import Listed, Outcome, Prompt, Purged, Recalled, Stats, Summarized
from recollect.domain.verbs import BY_NAME, Verb
from recollect.doors import memory_tool
from recollect.doors.arguments import says_nothing, taken
from recollect.doors.handlers import perform
from recollect.doors.memory_tool import ToolAnswer
from recollect.doors.schema import Schema, input_schema
from recollect.doors.serializers import agent_json
from recollect.doors.toolset_names import SETS
from recollect.errors import InvalidInput
from recollect.search.budget import printed

_OBSERVED: Final = tuple(ObservationType)[:6]
"""The observation types that a caller may set; the others are set by the lifecycle only."""

_LABELS = "type concepts category tags"
_FILTERS = "type fact_type concepts category tags project session_id"
_LONG = "fact_type concepts"
_SEEN = "allow_private allow_secret"
_PAGE = "limit offset"
_WROTE = {"type": _OBSERVED}


@dataclass(frozen=True)
class Tool:
    """One operation as a tool: the fields that a model may set; `*` marks those whose names do not say enough.

    `only` narrows the choices of a field. Fields are `unlisted` whose choices another tool of the set lists.
    """

    name: str
    description: str
    fields: str
    only: Mapping[str, Sequence[str]] = field(default_factory=dict)
    unlisted: str = ""

    @property
    def operation(self) -> Verb:
        """Return the verb of the table that the tool runs."""
        return BY_NAME[self.name]

    @cached_property
    def schema(self) -> Schema:
        """Return the schema of the tool's arguments."""
        return input_schema(self.operation.request, self.fields.split(), self.only, self.unlisted.split())


_SEARCH: Final = Tool(
    "search_memories",
    "Search by meaning, words and typos; best first, scored part by part.",
    f"query* limit {_FILTERS} since* until min_score max_tokens* scope {_SEEN}",
    unlisted=_LONG,
)

STORE: Final = (
    Tool(
        "store_memory",
        "Store something worth keeping. The same content again refreshes it; secrets are refused.",
        f"content* title subtitle {_LABELS} fact_type importance trust sensitivity ttl_days files_read files_modified "
        f"when session_id project discovery_tokens observed_at* key* id* supersedes* scope {_SEEN}",
        only=_WROTE,
    ),
    _SEARCH,
    Tool(
        "list_memories",
        "List memories: metadata and a preview each.",
        f"{_PAGE} order {_FILTERS} scope {_SEEN}",
        unlisted=_LONG,
    ),
    Tool("get_memory", "Read one memory whole; counts the access.", f"id* {_SEEN}"),
    Tool(
        "update_memory",
        'Change fields of a memory; absent ones stay, "" removes a label.',
        f"id* content title subtitle {_LABELS} importance trust sensitivity ttl_days files_read files_modified when "
        f"{_SEEN}",
        only=_WROTE,
    ),
    Tool("delete_memory", "Delete a memory for good; journalled.", f"id* {_SEEN}"),
    Tool("search_by_file", "List what was learnt with a file read or modified.", f"file* {_PAGE} {_SEEN}"),
    Tool("search_by_concept", "List memories of one concept.", f"concept {_PAGE} {_SEEN}"),
    Tool(
        "get_timeline",
        "List the latest memories in the order of their creation.",
        f"order {_PAGE} type project session_id since* until {_SEEN}",
    ),
    Tool(
        "store_fact",
        "Store a triple; other facts stay valid, unless it replaces them.",
        f"subject predicate object confidence memory_id* valid_from* valid_to replaces* sensitivity scope {_SEEN}",
    ),
    Tool(
        "query_facts",
        "Find facts by any part.",
        f"subject predicate object memory_id* as_of* history* {_PAGE} {_SEEN}",
    ),
    Tool("purge_expired", "Remove expired memories for good.", f"scope {_SEEN}"),
    Tool(
        "summarize_old",
        "Condense old memories into one summary per category; originals rank below it.",
        "older_than_days* category scope",
    ),
)

_RESTORE: Final = Tool("restore", "Bring back a memory that was hidden, merged, replaced or condensed.", f"id* {_SEEN}")
_HISTORY: Final = Tool("history", "What happened to a memory: when, by whom, which fields.", f"id* {_SEEN}")

DUAL: Final = (
    Tool(
        "memory_store",
        "Store a memory, or update the one with `id`. Secrets are refused. "
        "Without `ttl_days` it is kept for good, unless RECOLLECT_RETENTION is `importance`.",
        "content* id summary* type importance* tags ttl_days scope",
    ),
    Tool(
        "memory_recall",
        "Search: an index line per match, then details within max_tokens.",
        "query* max_tokens* limit* fact_type category tags since* until scope",
    ),
    Tool("memory_forget", "Hide a memory, or delete it for good.", "id* hard*"),
    Tool(
        "memory_remember",
        "Store knowledge of one kind; what resembles it is merged or skipped.",
        "content* category abstract* overview* scope",
    ),
    _RESTORE,
    _HISTORY,
)

MORE: Final = (
    _SEARCH,
    _RESTORE,
    Tool(
        "find_similar",
        "List what says nearly the same as a text or a memory.",
        f"content* id* threshold* limit fact_type category scope {_SEEN}",
    ),
    Tool(
        "format_for_prompt",
        "The most useful memories as fenced Markdown.",
        "query* max_entries* max_tokens* fact_type category scope",
    ),
    Tool("forget_fact", "Delete a fact for good.", f"id* {_SEEN}"),
    _HISTORY,
    Tool("stats", "Count memories by scope, kind and state.", f"scope {_SEEN}"),
)

TOOLSETS: Final[Mapping[str, tuple[Tool, ...]]] = dict(zip(SETS, ((), STORE, DUAL, MORE), strict=True))
"""The sets by name; `memory` has one tool, which is `memory_tool` itself."""

TOOLS: Final = {tool.name: tool for tools in TOOLSETS.values() for tool in tools}
"""Every tool but `memory` by its name."""

NAMES: Final = frozenset((memory_tool.NAME, *TOOLS))


def tool_names(toolsets: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the tools in these toolsets, in their order."""
    return tuple(
        dict.fromkeys(
            name
            for toolset in toolsets
            for name in ((memory_tool.NAME,) if toolset == "memory" else [tool.name for tool in TOOLSETS[toolset]])
        )
    )


def run(app: App, name: str, arguments: dict[str, Any], caller: Caller, request_id: str = "") -> ToolAnswer:
    """Run one call of any tool."""
    if name == memory_tool.NAME:
        return memory_tool.run(app, arguments, caller, request_id)
    if name not in TOOLS:
        known = ", ".join(f"`{one}`" for one in sorted(NAMES))
        raise InvalidInput("name", f"Unknown tool: `{name}`. Allowed: {known}")
    tool = TOOLS[name]
    ours = taken(name, arguments, tool.schema["properties"], tool.operation.request.model_fields)
    answer = _to_answer(tool, perform(app, name, parse(tool, ours.given), caller.saying(SaidBy.ASSISTANT), request_id))
    return memory_tool.with_note(answer, ours.note)


def parse(tool: Tool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the request's fields without empty arguments; in an update an empty argument empties its field."""
    properties, required = tool.schema["properties"], tool.schema.get("required", ())
    given = {
        name: value
        for name, value in arguments.items()
        if name in required or memory_tool.is_blank(value) or not says_nothing(value)
    }
    given = {name: value for name, value in given.items() if value is not None}
    if missing := next((name for name in required if memory_tool.is_blank(given.get(name))), None):
        raise InvalidInput(missing, f"Missing {missing}: `{tool.name}` requires `{missing}`")
    if tool.operation.request is Update:
        fields = {name: _new_value(value, properties[name]["type"]) for name, value in given.items()}
    else:
        fields = {name: value for name, value in given.items() if not memory_tool.is_blank(value)}
    kind = str(fields.get("type") or "").strip().lower()
    if kind and tool.only.get("type") is _OBSERVED and kind not in _OBSERVED:
        raise InvalidInput("type", f"Invalid type: {one_of(_OBSERVED)}")
    return fields


def _new_value(value: Any, kind: str) -> Any:
    """Return the value for an update, where a blank text empties the field."""
    empty: dict[str, Any] = {"string": "", "array": []}
    return empty.get(kind) if memory_tool.is_blank(value) else value


def _to_answer(tool: Tool, result: Any) -> ToolAnswer:
    """Return a message for a write, and compact JSON for a read."""
    if isinstance(result, Listed):
        result = replace(result, after=None)  # tools page by `offset`
    body = agent_json(tool.operation.answer, result)
    match result:
        case Prompt():
            return ToolAnswer((result.text or "Nothing relevant is remembered.",), body)
        case Recalled(index=None):
            return memory_tool.recall_answer(result)
        case Recalled():  # its budget holds for the object
            return ToolAnswer((printed(body), memory_tool.DATA), body)
        case Outcome():
            return memory_tool.write_answer(result, "`supersedes`" if "supersedes" in tool.fields else "")
        case Purged() | Summarized():
            return ToolAnswer((result.message,), body)
        case Stats():
            return ToolAnswer((printed(body),), body)
        case _:
            return memory_tool.data_answer(printed(body), body)

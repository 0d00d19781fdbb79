"""The tools that MCP clients are offered, in sets: which fields of an operation a model may set, and what it is told.

A tool is a projection of the table of operations. Like `memory_tool` this knows nothing of transports: it takes a name
and arguments and gives back an `Answer`. The tools here declare no output schema, since a client shows models what it
is told of a tool in every session and their answers explain themselves; programs find each answer as an object all the
same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from recollect.domain import (
    FOUR,
    SIX,
    Caller,
    Observation,
    Order,
    Outcome,
    Prompt,
    Purged,
    Recalled,
    Summarized,
    Update,
    one_of,
)
from recollect.doors import memory_tool
from recollect.doors.memory_tool import Answer
from recollect.doors.schema import Schema, input_schema
from recollect.doors.shape import shaped
from recollect.errors import InvalidInput, RecollectError
from recollect.operations.table import BY_NAME, Operation, perform
from recollect.policy.budget import printed
from recollect.ports import App

_OBSERVED: Final = tuple(Observation)[:6]
"""What a caller may say that a memory observed; the rest is written by the lifecycle alone."""

_SAID: Final = {
    "abstract": "One line",
    "allow_private": "",
    "allow_secret": "",
    "as_of": "Day or ISO time",
    "category": "",
    "concept": "",
    "concepts": "",
    "confidence": "",
    "content": "Self-contained text",
    "discovery_tokens": "",
    "fact_type": "",
    "file": "Path, its end, or a folder",
    "files_modified": "",
    "files_read": "",
    "hard": "For good",
    "history": "Also ended ones",
    "id": "Memory id",
    "importance": "",
    "key": "Unique name: the same key updates",
    "limit": "",
    "max_entries": "Default 20",
    "max_tokens": "Size of the answer",
    "memory_id": "Where it was said",
    "min_score": "",
    "object": "",
    "observed_at": "When it happened: day or ISO time",
    "offset": "",
    "older_than_days": "Default 30",
    "order": "",
    "overview": "One paragraph",
    "predicate": "",
    "project": "",
    "query": "Question or key words",
    "scope": "",
    "sensitivity": "",
    "session_id": "",
    "several": "Others hold on beside it",
    "since": "Day or ISO time",
    "subject": "",
    "subtitle": "",
    "summary": "One line",
    "tags": "",
    "threshold": "Least cosine",
    "title": "",
    "trust": "",
    "ttl_days": "",
    "type": "",
    "until": "",
    "valid_from": "Default now",
    "valid_to": "",
}
"""What a model is told about a field, where its name and its type do not say enough."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One operation as a tool: the fields that a model may set; `said` and `only` where they mean less or else here.

    Fields `told` of elsewhere are those whose choices another tool of the set lists; they are not paid for twice.
    """

    name: str
    description: str
    fields: str
    said: Mapping[str, str] = field(default_factory=dict)
    only: Mapping[str, Sequence[str]] = field(default_factory=dict)
    told: str = ""

    @property
    def operation(self) -> Operation:
        """Return the row of the table that it projects."""
        return BY_NAME[self.name]

    @property
    def schema(self) -> Schema:
        """Return what its arguments must look like."""
        return _schema(self.name)


_LABELS = "type concepts category tags"
_FILTERS = "type fact_type concepts category tags project session_id"
_TOLD = "fact_type concepts"
_SEEN = "allow_private allow_secret"
_PAGE = "limit offset"
_WROTE = {"type": _OBSERVED}

STORE: Final = (
    Tool(
        "store_memory",
        "Store something worth keeping. The same content again refreshes it; secrets are refused.",
        f"content title subtitle {_LABELS} fact_type importance trust sensitivity ttl_days files_read files_modified "
        "session_id project discovery_tokens observed_at key scope",
        only=_WROTE,
    ),
    Tool(
        "search_memories",
        "Search by meaning, words and typos; best first, scored.",
        f"query limit {_FILTERS} since until min_score max_tokens scope {_SEEN}",
        told=_TOLD,
    ),
    Tool(
        "list_memories",
        "List memories: metadata and a preview each.",
        f"{_PAGE} order {_FILTERS} scope {_SEEN}",
        told=_TOLD,
    ),
    Tool("get_memory", "Read one memory whole; counts the access.", f"id {_SEEN}"),
    Tool(
        "update_memory",
        'Change fields of a memory; absent ones stay, "" removes a label.',
        f"id content title subtitle {_LABELS} importance trust sensitivity ttl_days files_read files_modified",
        {"content": ""},
        _WROTE,
    ),
    Tool("delete_memory", "Delete a memory for good; journalled.", "id"),
    Tool("search_by_file", "List what was learnt with a file read or modified.", f"file {_PAGE} {_SEEN}"),
    Tool("search_by_concept", "List memories of one concept.", f"concept {_PAGE} {_SEEN}"),
    Tool(
        "get_timeline",
        "List memories by creation time.",
        f"order {_PAGE} type project session_id since until {_SEEN}",
        only={"order": (Order.NEWEST, Order.OLDEST)},
    ),
    Tool(
        "store_fact",
        "Store a triple. Another object for the same subject and predicate ends the older fact.",
        "subject predicate object confidence memory_id valid_from valid_to several sensitivity scope",
    ),
    Tool(
        "query_facts",
        "Find facts by any part.",
        f"subject predicate object memory_id as_of history {_PAGE} {_SEEN}",
    ),
    Tool("purge_expired", "Remove expired memories for good.", "scope"),
    Tool(
        "summarize_old",
        "Condense old memories into one summary per category; originals are kept aside.",
        "older_than_days category scope",
    ),
)

DUAL: Final = (
    Tool(
        "memory_store",
        "Store a memory, or update the one with `id`. Secrets are refused.",
        "content id summary type importance tags ttl_days scope",
        {"content": "Required to create", "id": "", "importance": "8-10 critical, 1-3 temporary; default 5"},
        {"type": FOUR},
    ),
    Tool(
        "memory_recall",
        "Search: an index line per match, then details within max_tokens.",
        "query max_tokens limit fact_type category tags since until scope",
        {"max_tokens": "Default 2000", "limit": "Most details"},
    ),
    Tool("memory_forget", "Hide a memory, or delete it for good.", "id hard"),
    Tool(
        "memory_remember",
        "Store knowledge of one kind; what resembles it is merged or skipped.",
        "content category abstract overview scope",
        {"category": ""},
        {"category": SIX},
    ),
)

MORE: Final = (
    Tool("restore", "Bring back a memory that was hidden, merged, corrected or condensed.", "id"),
    Tool(
        "find_similar",
        "List what says nearly the same as a text or a memory.",
        f"content id threshold limit fact_type category scope {_SEEN}",
        {"content": "Either a text", "id": "or a memory id"},
    ),
    Tool(
        "format_for_prompt",
        "The most worthwhile memories as fenced Markdown.",
        "query max_entries max_tokens fact_type category scope",
        {"query": "Default: what is used most", "max_tokens": "Default 1000"},
    ),
    Tool("forget_fact", "Delete a fact for good.", "id"),
    Tool("history", "What happened to a memory, by whom.", "id"),
    Tool("stats", "Count memories by scope, kind and state.", f"scope {_SEEN}"),
)

TOOLSETS: Final[Mapping[str, tuple[Tool, ...]]] = {"memory": (), "store": STORE, "dual": DUAL, "more": MORE}
"""The sets by name; `memory` has one tool, which is `memory_tool` itself."""

DEFAULT: Final = ("memory",)

TOOLS: Final = {tool.name: tool for tools in TOOLSETS.values() for tool in tools}
"""Every tool but `memory` by its name."""

NAMES: Final = frozenset((memory_tool.NAME, *TOOLS))


def chosen(names: Sequence[str]) -> tuple[str, ...]:
    """Return the toolsets of these names, each once, or the default where there are none.

    Raises `InvalidInput` for a name that is none.
    """
    wanted = tuple(dict.fromkeys(names)) or DEFAULT
    if unknown := next((name for name in wanted if name not in TOOLSETS), None):
        known = ", ".join(f"`{name}`" for name in TOOLSETS)
        raise InvalidInput("toolset", f"Unknown toolset: `{unknown}`. Allowed: {known}")
    return wanted


def offered(toolsets: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the tools in these toolsets, in their order."""
    return tuple(
        name
        for one in toolsets
        for name in ((memory_tool.NAME,) if one == "memory" else [tool.name for tool in TOOLSETS[one]])
    )


def call(app: App, name: str, arguments: dict[str, Any], caller: Caller | None = None, request_id: str = "") -> Answer:
    """Run one call of any tool; whatever is wrong with it comes back as a plain sentence."""
    if name == memory_tool.NAME:
        return memory_tool.call(app, arguments, caller, request_id)
    try:
        tool = _known(name)
        return _answer(tool.operation, perform(app, name, parse(tool, arguments), caller, request_id))
    except RecollectError as error:
        return memory_tool.failure(error)


def parse(tool: Tool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the tool's request. Blank texts count as absent; in an update they take the value away.

    Raises `InvalidInput` for a parameter that is missing or that the tool does not have; the request checks the rest.
    """
    properties = tool.schema["properties"]
    if unknown := next((name for name in sorted(arguments) if name not in properties), None):
        known = ", ".join(f"`{name}`" for name in properties)
        raise InvalidInput(unknown, f"Unknown parameter: `{unknown}`. Allowed: {known}")
    given = {name: value for name, value in arguments.items() if value is not None}
    required = tool.schema.get("required", ())
    if missing := next((name for name in required if memory_tool.blank(given.get(name))), None):
        raise InvalidInput(missing, f"Missing {missing}: `{tool.name}` requires `{missing}`")
    if tool.operation.request is Update:
        fields = {name: _taken(value, properties[name]["type"]) for name, value in given.items()}
    else:
        fields = {name: value for name, value in given.items() if not memory_tool.blank(value)}
    kind = str(fields.get("type") or "").strip().lower()
    if kind and tool.only.get("type") is _OBSERVED and kind not in _OBSERVED:
        raise InvalidInput("type", f"Invalid type: {one_of(_OBSERVED)}")
    return {name: memory_tool.identified(name, value) for name, value in fields.items()}


@cache
def _schema(name: str) -> Schema:
    tool = TOOLS[name]
    said = {one: tool.said.get(one, _SAID[one]) for one in tool.fields.split()}
    return input_schema(tool.operation.request, said, tool.only, tool.told.split())


def _known(name: str) -> Tool:
    if name not in TOOLS:
        raise InvalidInput("name", f"Unknown tool: `{name}`. Allowed: {', '.join(f'`{one}`' for one in sorted(NAMES))}")
    return TOOLS[name]


def _taken(value: Any, kind: str) -> Any:
    """Return what a blank text stands for where something is to be taken away."""
    empty: dict[str, Any] = {"string": "", "array": []}
    return empty.get(kind) if memory_tool.blank(value) else value


def _answer(operation: Operation, result: Any) -> Answer:
    """Return a sentence for what was written, and compact JSON for what was read."""
    body = shaped(operation, result)
    match result:
        case Recalled(index=None):
            return memory_tool.recalled(result)
        case Outcome():
            return Answer((result.message, *result.notes), body)
        case Purged() | Summarized():
            return Answer((result.message,), body)
        case Prompt():
            return Answer((result.text or "Nothing relevant is remembered.",), body)
        case _:
            return Answer((printed(body),), body)

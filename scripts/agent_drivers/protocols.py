"""The model APIs that agents speak: what a request says, and the answer that holds a text or one call of a tool.

Anthropic Messages, OpenAI Responses and Chat Completions, and Gemini `generateContent`, as far as released agents need
them, whole or as a stream of events. Nothing here keeps a state: a request holds its conversation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

Json = dict[str, Any]
Event = tuple[str, Json | str]
"""The name of an event, empty where the protocol gives none, and its data."""

_NAMES: Final = {
    "memory": r"recollect.*memory$|^memory$",
    "shell": r"^(Bash|bash|shell|shell_command|exec_command|run_shell_command|local_shell)$",
    "write": r"^(Write|write|write_file|apply_patch)$",
}
_WAIT: Final = "WaitForMcpServers"
_WAITED: Final = "toolu_waited_"
"""Claude Code's tool that waits for MCP servers, and how the id of its calls begins."""
_COMMAND: Final = ("command", "cmd")
_PATH: Final = ("file_path", "filePath", "path")
SEARCH: Final = "(look for tools)"
"""The answer by which a model looks for a tool that is not offered yet."""


@dataclass(frozen=True)
class Tool:
    """A tool that a request offers: its name, its namespace, its schema, and whether it takes bare text."""

    name: str
    schema: Json
    namespace: str = ""
    bare: bool = False


@dataclass(frozen=True)
class Step:
    """What the model does next, after some seconds: it says `text`, or calls the tool of a `kind`.

    Kinds are memory, shell and write.
    """

    kind: str = ""
    arguments: Json = field(default_factory=dict)
    text: str = "Done."
    seconds: float = 0.0


@dataclass(frozen=True)
class Call:
    """A call of one of the tools that were offered, its arguments as that tool's schema names them."""

    tool: Tool
    arguments: Json | str


@dataclass
class Request:
    """What a request says in any protocol: texts and results, each with its place in the conversation, and tools."""

    said: list[tuple[int, str]] = field(default_factory=list)
    """What stands under the role of the user, that is the prompts and all that agents put beside them."""
    results: list[tuple[int, str]] = field(default_factory=list)
    tools: list[Tool] = field(default_factory=list)
    search: bool = False
    """Whether tools must be looked for before they can be called, and that has not happened yet."""
    stream: bool = False
    body: str = ""
    """All of it, as JSON."""

    def offered(self, kind: str) -> Tool | None:
        """Return the tool of a kind, None where the request offers none."""
        named = (one for one in self.tools if re.search(_NAMES[kind], one.namespace + one.name))
        return next(named, None)

    def call(self, step: Step) -> Call | None:
        """Return the call that a step asks for, None where it asks for none or no such tool is offered."""
        tool = self.offered(step.kind) if step.kind else None
        return Call(tool, _arguments(step, tool)) if tool else None


class Dialect(Protocol):
    """One protocol: reads a request, and writes an answer."""

    def read(self, body: Json) -> Request:
        """Return what a request says."""
        ...

    def whole(self, answer: Call | str, body: Json, number: int) -> Json:
        """Return an answer in one piece."""
        ...

    def events(self, whole: Json) -> Iterator[Event]:
        """Yield the same answer as a stream."""
        ...


def _arguments(step: Step, tool: Tool) -> Json | str:
    """Return a step's arguments under the names of the tool's own schema; what it demands beside them is filled in."""
    properties = tool.schema.get("properties", {})
    if tool.bare:  # the form of a patch
        lines = "".join(f"+{line}\n" for line in str(step.arguments["content"]).splitlines())
        return f"*** Begin Patch\n*** Add File: {step.arguments['path']}\n{lines}*** End Patch\n"
    filled = {name: "as asked" for name in tool.schema.get("required", ()) if name == "description"}
    found: Json = {}
    for name, value in step.arguments.items():
        names = {"command": _COMMAND, "path": _PATH}.get(name, (name,))
        theirs = next((one for one in names if one in properties), name)
        listed = properties.get(theirs, {}).get("type") == "array" and isinstance(value, str)
        found[theirs] = ["bash", "-lc", value] if listed and name == "command" else value
    return filled | found


def _tokens(value: object) -> int:
    return max(1, len(json.dumps(value)) // 4)


def _texts(content: Any, key: str = "text") -> Iterator[str]:
    """Yield the texts of a message, whose content is a text or a list of parts."""
    if isinstance(content, str):
        yield content
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict) and isinstance(part.get(key), str):
            yield part[key]


class AnthropicMessages:
    """Anthropic's `/v1/messages`."""

    def read(self, body: Json) -> Request:
        found, waited = Request(stream=bool(body.get("stream"))), False
        for place, message in enumerate(body.get("messages", [])):
            if message["role"] == "user":
                found.said += [(place, text) for text in _texts(message["content"])]
                parts = message["content"] if isinstance(message["content"], list) else []
                results = [part for part in parts if part.get("type") == "tool_result"]
                done = [part for part in results if not part["tool_use_id"].startswith(_WAITED)]
                waited = waited or done != results
                found.results += [(place, " ".join(_texts(part.get("content")))) for part in done]
        found.tools = [Tool(one["name"], one.get("input_schema", {})) for one in body.get("tools", [])]
        found.search = not waited and any(one.name == _WAIT for one in found.tools)
        return found

    def whole(self, answer: Call | str, body: Json, number: int) -> Json:
        block: Json = {"type": "text", "text": answer}
        if isinstance(answer, Call):
            block = {
                "type": "tool_use",
                "id": f"toolu_{number:06}",
                "name": answer.tool.name,
                "input": answer.arguments,
            }
        elif answer == SEARCH:
            block = {"type": "tool_use", "id": f"{_WAITED}{number:06}", "name": _WAIT, "input": {}}
        usage = {"input_tokens": _tokens(body), "output_tokens": 20}
        return {
            "id": f"msg_{number:06}",
            "type": "message",
            "role": "assistant",
            "model": body.get("model", "scripted"),
            "content": [block],
            "stop_reason": "tool_use" if block["type"] == "tool_use" else "end_turn",
            "stop_sequence": None,
            "usage": usage | {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0},
        }

    def events(self, whole: Json) -> Iterator[Event]:
        (block,) = whole["content"]
        calls = block["type"] == "tool_use"
        empty: Json = {"input": {}} if calls else {"text": ""}
        delta: Json = {"type": "text_delta", "text": block.get("text")}
        if calls:
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        ended = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
        for data in (
            {"type": "message_start", "message": whole | {"content": [], "stop_reason": None}},
            {"type": "content_block_start", "index": 0, "content_block": block | empty},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 20}},
            {"type": "message_stop"},
        ):
            yield str(data["type"]), data


class OpenAIResponses:
    """OpenAI's `/v1/responses`, with tools in namespaces and tools that must be looked for."""

    def read(self, body: Json) -> Request:
        found = Request(stream=bool(body.get("stream")))
        items = body.get("input", [])
        tools = list(body.get("tools", []))
        searched = False
        for place, item in enumerate([{"role": "user", "content": items}] if isinstance(items, str) else items):
            if item.get("role") == "user":
                found.said += [(place, text) for text in _texts(item.get("content"))]
            elif item.get("type") == "tool_search_output":
                tools += item.get("tools", [])
                searched = True
            elif str(item.get("type")).endswith("_output"):
                output = item.get("output")
                found.results.append((place, output if isinstance(output, str) else " ".join(_texts(output))))
        found.search = not searched and any(one.get("type") == "tool_search" for one in tools)
        for one in tools:
            space = one["name"] if one.get("type") == "namespace" else ""
            for tool in one.get("tools", []) if space else [one]:
                if "name" in tool:
                    schema, bare = tool.get("parameters") or {}, tool.get("type") == "custom"
                    found.tools.append(Tool(tool["name"], schema, space, bare))
        return found

    def whole(self, answer: Call | str, body: Json, number: int) -> Json:
        used = {"input_tokens": _tokens(body), "output_tokens": 20, "total_tokens": _tokens(body) + 20}
        details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
        return {
            "id": f"resp_{number:06}",
            "object": "response",
            "created_at": 0,
            "status": "completed",
            "model": body.get("model"),
            "output": [self._item(answer, number) | {"status": "completed"}],
            "parallel_tool_calls": False,
            "tool_choice": "auto",
            "tools": [],
            "usage": used | details,
        }

    def _item(self, answer: Call | str, number: int) -> Json:
        call = {"call_id": f"call_{number:06}"}
        if answer == SEARCH:
            asked = {"query": "memory remember recall recollect", "limit": 5}
            return {"type": "tool_search_call", "id": f"ts_{number}", "execution": "client", "arguments": asked} | call
        if isinstance(answer, str):
            part = {"type": "output_text", "text": answer, "annotations": []}
            return {"type": "message", "role": "assistant", "id": f"msg_{number}", "content": [part]}
        named = {"name": answer.tool.name} | call
        if answer.tool.bare:
            return {"type": "custom_tool_call", "id": f"ctc_{number}", "input": answer.arguments} | named
        space = {"namespace": answer.tool.namespace} if answer.tool.namespace else {}
        arguments = {"arguments": json.dumps(answer.arguments)}
        return {"type": "function_call", "id": f"fc_{number}"} | arguments | named | space

    def events(self, whole: Json) -> Iterator[Event]:
        (item,) = whole["output"]
        begun = item | {"status": "in_progress"} | ({"content": []} if "content" in item else {})
        at: Json = {"output_index": 0}
        found: list[Json] = [
            {"type": "response.created", "response": whole | {"status": "in_progress", "output": []}},
            {"type": "response.output_item.added", "item": begun} | at,
        ]
        for part in item.get("content", ()):
            delta = {"item_id": item["id"], "content_index": 0, "delta": part["text"]}
            found.append({"type": "response.output_text.delta"} | delta | at)
        found.append({"type": "response.output_item.done", "item": item} | at)
        found.append({"type": "response.completed", "response": whole})
        yield from ((str(data["type"]), data) for data in found)


class ChatCompletions:
    """OpenAI's `/v1/chat/completions`."""

    def read(self, body: Json) -> Request:
        found = Request(stream=bool(body.get("stream")))
        for place, message in enumerate(body.get("messages", [])):
            texts = [(place, text) for text in _texts(message.get("content"))]
            if message["role"] == "user":
                found.said += texts
            elif message["role"] == "tool":
                found.results += texts or [(place, "")]
        offered = [one["function"] for one in body.get("tools") or [] if "function" in one]
        found.tools = [Tool(one["name"], one.get("parameters", {})) for one in offered]
        return found

    def whole(self, answer: Call | str, body: Json, number: int) -> Json:
        message: Json = {"role": "assistant", "content": answer}
        if isinstance(answer, Call):
            called = {"name": answer.tool.name, "arguments": json.dumps(answer.arguments)}
            call = {"index": 0, "id": f"call_{number:06}", "type": "function", "function": called}
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
        reason = "tool_calls" if isinstance(answer, Call) else "stop"
        return {
            "id": f"chatcmpl-{number}",
            "object": "chat.completion",
            "created": 0,
            "model": body.get("model"),
            "choices": [{"index": 0, "message": message, "finish_reason": reason}],
            "usage": {"prompt_tokens": _tokens(body), "completion_tokens": 20, "total_tokens": _tokens(body) + 20},
        }

    def events(self, whole: Json) -> Iterator[Event]:
        (choice,) = whole["choices"]
        chunk = whole | {"object": "chat.completion.chunk"}
        begun = {"index": 0, "delta": choice["message"], "finish_reason": None}
        ended = {"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}
        yield "", chunk | {"choices": [begun], "usage": None}
        yield "", chunk | {"choices": [ended]}
        yield "", "[DONE]"


class GeminiContents:
    """Gemini's `generateContent`; whether it streams is said by the address."""

    def read(self, body: Json) -> Request:
        found = Request()
        for place, content in enumerate(body.get("contents", [])):
            parts = content.get("parts", [])
            if content.get("role", "user") == "user":
                found.said += [(place, text) for text in _texts(parts)]
                answers = (one["functionResponse"] for one in parts if "functionResponse" in one)
                found.results += [(place, json.dumps(one.get("response"), ensure_ascii=False)) for one in answers]
        declared = [one for tool in body.get("tools") or [] for one in tool.get("functionDeclarations", [])]
        found.tools = [Tool(one["name"], one.get("parametersJsonSchema", {})) for one in declared]
        return found

    def whole(self, answer: Call | str, body: Json, number: int) -> Json:
        if isinstance(answer, Call):
            part: Json = {"functionCall": {"name": answer.tool.name, "args": answer.arguments}}
        elif body.get("generationConfig", {}).get("responseMimeType") == "application/json":
            part = {"text": json.dumps({"reasoning": answer, "next_speaker": "user", "complexity_score": 50})}
        else:
            part = {"text": answer}
        used = {"promptTokenCount": _tokens(body), "candidatesTokenCount": 20, "totalTokenCount": _tokens(body) + 20}
        candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
        return {
            "candidates": [candidate],
            "usageMetadata": used,
            "responseId": f"r{number}",
            "modelVersion": "scripted",
        }

    def events(self, whole: Json) -> Iterator[Event]:
        yield "", whole


DIALECTS: Final[dict[str, Dialect]] = {
    "/messages": AnthropicMessages(),
    "/responses": OpenAIResponses(),
    "/chat/completions": ChatCompletions(),
    ":generateContent": GeminiContents(),
    ":streamGenerateContent": GeminiContents(),
}
"""By the end of the address that is asked."""

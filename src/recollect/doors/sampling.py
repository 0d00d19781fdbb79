"""Questions to the model of an MCP client, in both eras of the protocol.

A client of a session is sent `sampling/createMessage` while its call waits. One that says its protocol version itself
gets the question as the result of its call, and calls again with the answer.
"""

from __future__ import annotations

import json
import secrets
import warnings
from collections.abc import Mapping
from typing import Any, Final

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectSendStream
from mcp import MCPError
from mcp.shared.message import SessionMessage
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from recollect.ports.chat import Question

ROUNDS: Final = 4
"""Questions that one call may have."""
Answers = dict[str, str]


def given(context: Any, params: types.CallToolRequestParams, *, replies: bool) -> Answers | None:
    """Return what the client's model has answered so far, by digest; None where it cannot be asked.

    What a client sends back is its own word, like the answer of its model.
    """
    capabilities = context.session.client_capabilities
    if capabilities is None or capabilities.sampling is None:
        return None
    if not is_modern(context):
        return {} if replies and context.session.can_send_request else None
    return _kept(params.request_state) | {
        digest: _text(answer) for digest, answer in (params.input_responses or {}).items()
    }


def is_modern(context: Any) -> bool:
    """Return whether the client says its protocol version with each request."""
    return context.protocol_version in MODERN_PROTOCOL_VERSIONS


def wanted(question: Question, answers: Mapping[str, str]) -> types.InputRequiredResult:
    """Return the result that asks the client for an answer, and hands it those that it gave before."""
    asked = types.CreateMessageRequest(params=_params(question))
    return types.InputRequiredResult(input_requests={question.digest: asked}, request_state=json.dumps(dict(answers)))


async def asked(context: Any, question: Question) -> str:
    """Ask the client of a session; return what its model says, nothing where it refuses, fails or takes too long."""
    params = _params(question)
    with warnings.catch_warnings(), anyio.move_on_after(question.seconds):
        warnings.simplefilter("ignore")  # the protocol means to leave sampling, and its clients have nothing else yet
        try:
            answer = await context.session.create_message(
                params.messages,
                max_tokens=params.max_tokens,
                system_prompt=params.system_prompt,
                temperature=params.temperature,
                related_request_id=context.request_id,
            )
        except (MCPError, ValueError):
            return ""
        return _text(answer)
    return ""


class BackChannel:
    """What was sent to clients in the middle of single messages, under ids that no two of them share."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[Any, MemoryObjectSendStream[SessionMessage | Exception]]] = {}

    def sent(
        self, message: types.JSONRPCRequest, to_server: MemoryObjectSendStream[SessionMessage | Exception]
    ) -> types.JSONRPCRequest:
        """Return the request as the client gets it."""
        number = secrets.token_hex(16)
        self._open[number] = (message.id, to_server)
        return message.model_copy(update={"id": number})

    async def answered(self, reply: dict[str, Any]) -> None:
        """Hand an answer to who waits for it; raise `ValueError` for what is none, or an answer to nothing."""
        message = types.jsonrpc_message_adapter.validate_python(reply)
        if not isinstance(message, types.JSONRPCResponse | types.JSONRPCError) or str(message.id) not in self._open:
            raise ValueError("nothing was asked under this id")
        number, to_server = self._open.pop(str(message.id))
        await to_server.send(SessionMessage(message.model_copy(update={"id": number})))

    def forget(self, to_server: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        """Wait no longer for answers that belong to an exchange that has ended."""
        self._open = {number: one for number, one in self._open.items() if one[1] is not to_server}


def _params(question: Question) -> types.CreateMessageRequestParams:
    said = types.SamplingMessage(role="user", content=types.TextContent(type="text", text=question.text))
    return types.CreateMessageRequestParams(
        messages=[said], system_prompt=question.instructions, max_tokens=question.most, temperature=0.0
    )


def _text(answer: Any) -> str:
    """Return the text of a client's answer, nothing where it has none."""
    content = getattr(answer, "content", None)
    parts = content if isinstance(content, list) else [content]
    return "\n".join(one.text for one in parts if isinstance(one, types.TextContent))


def _kept(state: str | None) -> Answers:
    """Return the earlier answers that a client brings back; what cannot be read is none."""
    try:
        found = json.loads(state or "{}")
    except (ValueError, RecursionError):
        return {}
    return {str(name): str(text) for name, text in found.items()} if isinstance(found, dict) else {}

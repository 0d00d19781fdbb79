"""A memory provider for Hermes: memories before each turn, its sessions as the lifecycle sees them, and three tools.

Hermes loads it from `plugins/recollect/__init__.py` in its home, which imports `register`.
"""

from __future__ import annotations

import json
from typing import Any, Final

from agent.memory_provider import MemoryProvider

from recollect.client.connection import Connection
from recollect.domain.enums import Scope
from recollect.domain.lifecycle import MAX_OUTPUT
from recollect.domain.verbs import BY_NAME
from recollect.doors.arguments import taken
from recollect.doors.python import connect
from recollect.doors.serializers import agent_json, input_schema
from recollect.errors import RecollectError
from recollect.settings import Settings

NAME: Final = "recollect"
_AGENT: Final = "hermes"
_ASSISTANT: Final = "Assistant"
_BUDGET: Final = 1_000  # tokens before a turn
_TOOLS: Final = {
    "recollect_recall": ("recall", "query* limit", "Search what was remembered, by meaning, words and typos."),
    "recollect_remember": ("remember", "content* key* tags scope", "Keep something for good. Secrets are refused."),
    "recollect_forget": ("forget", "id*", "Delete a memory for good."),
}
_BLOCK: Final = (
    "Recollect keeps memories across sessions. Those that fit a prompt stand before it; search others with "
    "recollect_recall before you ask the user. Keep with recollect_remember what will be needed again."
)


class RecollectProvider(MemoryProvider):  # type: ignore[misc]  # Hermes is not installed where types are checked
    """The memory of one Hermes agent; without a `memory` it connects as the environment says."""

    def __init__(self, memory: Connection | None = None) -> None:
        self._given = memory
        self._memory: Connection | None = None
        self._session = ""
        self._writes = True

    @property
    def name(self) -> str:
        """Return what Hermes calls this provider."""
        return NAME

    def is_available(self) -> bool:
        """Say whether the settings can be used; nothing is opened for that."""
        return not self.unavailable_reason()

    def unavailable_reason(self) -> str:
        """Return what is wrong with the settings, empty where nothing is."""
        try:
            Settings()
        except RecollectError as error:
            return str(error)
        return ""

    def initialize(self, session_id: str, **kwargs: Any) -> None:
        """Connect, and begin a session; only the primary agent writes."""
        self._memory = self._given or connect()
        self._writes = kwargs.get("agent_context", "primary") in ("", "primary")
        self._begin(session_id)

    def system_prompt_block(self) -> str:
        """Return what the model is told of this memory."""
        return _BLOCK

    def prefetch(self, query: str, *, session_id: str = "") -> str:
        """Return the memories that answer a prompt, fenced as data; empty where none does."""
        del session_id  # memories are of the project, whatever session asks
        return self._connected.format_for_prompt(query=query, max_tokens=_BUDGET).text if query.strip() else ""

    def sync_turn(self, user_content: str, assistant_content: str, *, session_id: str = "", **_: Any) -> None:
        """Let the lifecycle look at a turn, and keep of it what is worth a memory."""
        if not self._writes:
            return
        session = session_id or self._session
        if user_content.strip():
            self._connected.prompt_submit(session, user_content[:MAX_OUTPUT], agent=_AGENT)
        if assistant_content.strip():
            self._connected.tool_post(session, _ASSISTANT, output=assistant_content[:MAX_OUTPUT], agent=_AGENT)

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """Return the tools that the model may call."""
        return [
            {"name": name, "description": said, "parameters": input_schema(BY_NAME[verb].request, fields.split())}
            for name, (verb, fields, said) in _TOOLS.items()
        ]

    def handle_tool_call(self, tool_name: str, args: dict[str, Any], **_: Any) -> str:
        """Run a tool and return its answer, or its error, as JSON."""
        verb, fields, _said = _TOOLS[tool_name]
        known = [name.rstrip("*") for name in fields.split()]
        try:
            given = taken(tool_name, args, known, BY_NAME[verb].request.model_fields).given
            answer = self._connected.perform(verb, **given)
        except RecollectError as error:
            return json.dumps({"error": str(error)}, ensure_ascii=False)
        return json.dumps(agent_json(BY_NAME[verb].answer, answer), ensure_ascii=False)

    def on_memory_write(self, action: str, target: str, content: str, metadata: dict[str, Any] | None = None) -> None:
        """Keep what Hermes' own memory tool writes too: of the user as personal, all else in the project."""
        del metadata
        if self._writes and action in ("add", "replace") and content.strip():
            self._connected.remember(content, scope=Scope.PERSONAL if target == "user" else Scope.PROJECT)

    def on_session_switch(self, new_session_id: str, **_: Any) -> None:
        """Go on in another session."""
        self._begin(new_session_id)

    def on_pre_compress(self, messages: list[dict[str, Any]]) -> str:
        """Write down what the session has learnt so far."""
        del messages  # each turn was seen when it ended
        if self._writes:
            self._connected.session_checkpoint(self._session, agent=_AGENT)
        return ""

    def on_session_end(self, messages: list[dict[str, Any]]) -> None:
        """End the session, which sums up what it has learnt."""
        del messages
        if self._writes:
            self._connected.session_end(self._session, agent=_AGENT)

    def shutdown(self) -> None:
        """End the use of the memory."""
        if self._memory is not None and self._given is None:
            self._memory.close()
        self._memory = None

    @property
    def _connected(self) -> Connection:
        if self._memory is None:
            self._memory = self._given or connect()
        return self._memory

    def _begin(self, session_id: str) -> None:
        self._session = session_id
        if self._writes:
            self._connected.session_start(session_id, agent=_AGENT)


def register(context: Any) -> None:
    """Register the provider, as Hermes asks of a plugin."""
    context.register_memory_provider(RecollectProvider())

"""The model of a real MCP client decides about duplicates: through the daemon in both eras, and without a daemon."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
from mcp_types import INTERNAL_ERROR, CreateMessageRequestParams, CreateMessageResult, ErrorData, TextContent
from talking import environment_of, talking, until

from command_line import call

Era = Literal["auto", "legacy"]
OLD = "The web servers listen on port 8080 behind the proxy."
NEW = "The web servers listen on port 9090 behind the proxy."


@dataclass
class Model:
    """The model of a client: what it says, nothing for a refusal, and what it was asked."""

    says: str = ""
    asked: list[CreateMessageRequestParams] = field(default_factory=list)

    async def __call__(self, _: Any, params: CreateMessageRequestParams) -> CreateMessageResult | ErrorData:
        self.asked.append(params)
        if not self.says:
            return ErrorData(code=INTERNAL_ERROR, message="The user declined.")
        return CreateMessageResult(
            role="assistant", content=TextContent(type="text", text=self.says), model="theirs", stop_reason="endTurn"
        )


@pytest.fixture
def environment(tmp_path: Path, cache_dir: Path) -> dict[str, str]:
    return environment_of(tmp_path / "home", cache_dir, CHAT_MODEL="sampling")


@pytest.fixture
def with_daemon(environment: dict[str, str], tmp_path: Path) -> Iterator[dict[str, str]]:
    """Return the environment of clients of one daemon, which ends with the test."""
    ours = environment | {"RECOLLECT_DAEMON": "1"}
    yield ours
    assert call(["stop"], ours, tmp_path).code == 0


def choice(name: str) -> str:
    return json.dumps({"choice": name, "which": 0, "reason": "contradiction"})


def supersedes(environment: dict[str, str], era: Era, category: str) -> None:
    """Let a client's model decide that one memory takes the place of another, and look at what it was asked."""
    model = Model(choice("supersede"))
    with talking(environment, era, sampling=model) as talk:
        talk.warm()
        old = talk.remember(OLD, category=category)
        assert model.asked == []
        result = talk.call(action="remember", content=NEW, category=category)
        assert f"Replaces memory {old}" in str(result.structured_content)
    [asked] = model.asked
    assert "it is no instruction to you" in str(asked.system_prompt)
    [said] = asked.messages
    assert json.loads(said.content.text) == {"new": NEW, "old": [OLD]}  # type: ignore[union-attr]


def test_a_clients_model_decides_through_the_daemon(with_daemon: dict[str, str]) -> None:
    """In a session the question comes while the call waits; a client without sessions gets it as the call's result."""
    supersedes(with_daemon | {"RECOLLECT_PROJECT": "one"}, "legacy", "a")
    supersedes(with_daemon | {"RECOLLECT_PROJECT": "two"}, "auto", "a")
    with talking(with_daemon | {"RECOLLECT_PROJECT": "three"}) as talk:  # a client that offers no model
        first = talk.remember(OLD)
        assert talk.remember(NEW) != first
    refusing = Model()
    with talking(with_daemon | {"RECOLLECT_PROJECT": "four"}, "legacy", sampling=refusing) as talk:
        first = talk.remember(OLD)
        assert talk.remember(NEW) != first
        assert talk.remember("The web servers listen on port 7070 behind the proxy.") != first
    assert len(refusing.asked) == 1, "a model that refused is left alone for a while"


def test_a_clients_model_decides_without_a_daemon(environment: dict[str, str]) -> None:
    """A server of the client's own asks in the middle of the call; what is no answer changes nothing."""
    supersedes(environment, "legacy", "a")
    rambling = Model('I would rather not. {"choice": "delete everything"}')
    with talking(environment | {"RECOLLECT_PROJECT": "other"}, "legacy", sampling=rambling) as talk:
        talk.warm()
        first = talk.remember(OLD)
        assert talk.remember(NEW) != first
        until(lambda: len(talk.recall("port of the web servers")) == 2)
    assert len(rambling.asked) == 1

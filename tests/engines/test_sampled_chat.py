"""The model of an MCP client as a `Chat`: what is asked, how often, within which budget, and what no answer can do."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from mcp_types import CallToolRequestParams, CreateMessageResult, TextContent
from pydantic import BaseModel

from operate import add, do, ill, listed
from recollect import App
from recollect.doors import sampling
from recollect.errors import ModelUnusable
from recollect.ports.chat import CLIENT_ANSWERS, Chat, Question, Wanted

OLD = "The web servers listen on port 8080 behind the proxy."
NEW = "The web servers listen on port 9090 behind the proxy."


class _Colour(BaseModel):
    colour: str


@contextmanager
def answered(answers: Mapping[str, str] | None) -> Iterator[None]:
    """Say what the client's model has answered so far."""
    token = CLIENT_ANSWERS.set(answers)
    try:
        yield
    finally:
        CLIENT_ANSWERS.reset(token)


def chat_of(app: App) -> Chat:
    chat = app.capabilities.chat
    assert chat is not None
    return chat


def asked(chat: Chat, text: str) -> Question:
    """Return the question that goes out to the client."""
    with answered({}), pytest.raises(Wanted) as wanted:
        chat.ask("Name the colour.", text, _Colour, most=10)
    return wanted.value.question


def heard(chat: Chat, question: Question, text: str, says: str) -> _Colour:
    """Ask again with the answer to a question."""
    with answered({question.digest: says}):
        return chat.ask("Name the colour.", text, _Colour, most=10)


@pytest.fixture
def sampled(open_store: Callable[..., App]) -> App:
    return open_store(chat_model="sampling")


def test_an_answer_is_read_and_the_question_counted(sampled: App) -> None:
    """A question is reserved once and in full; its text is masked; its answer is checked against the form."""
    chat, secret = chat_of(sampled), "".join(("ghp_", "a1B2c3D4e5" * 3, "f6G7h8"))
    question = asked(chat, f"blue, {secret}")
    assert secret not in question.text
    used = chat.used()
    assert used.questions == 1
    assert used.tokens > len(question.text) + 10
    assert heard(chat, question, f"blue, {secret}", 'Sure: {"colour": "blue"}') == _Colour(colour="blue")
    assert chat.used() == used


def test_nobody_is_asked_where_no_client_offers_a_model(sampled: App) -> None:
    """The command line, a hook and a client without the capability go by the rules, at no cost."""
    with pytest.raises(ModelUnusable, match="Nobody is there to ask"):
        chat_of(sampled).ask("Name the colour.", "blue", _Colour, most=10)
    assert chat_of(sampled).used().questions == 0
    add(sampled, OLD)
    add(sampled, NEW)
    assert len(listed(sampled)) == 2


@pytest.mark.parametrize("says", ["blue", '{"colour": 7}', '{"shade": "blue"}', ""])
def test_what_is_no_answer_is_none(sampled: App, says: str) -> None:
    """Another form is refused; after no answer at all the client is left alone for a while."""
    chat = chat_of(sampled)
    question = asked(chat, "blue")
    with pytest.raises(ModelUnusable, match="no answer of the form"):
        heard(chat, question, "blue", says)
    if says:
        assert asked(chat, "green")
    else:
        with answered({}), pytest.raises(ModelUnusable, match="a moment ago"):
            chat.ask("Name the colour.", "green", _Colour, most=10)


def test_a_question_that_nobody_answered_is_not_asked_again(sampled: App) -> None:
    """A client that gave its call up after the question may repeat it: then the rules decide."""
    chat = chat_of(sampled)
    asked(chat, "blue")
    with answered({}), pytest.raises(ModelUnusable, match="a moment ago"):
        chat.ask("Name the colour.", "blue", _Colour, most=10)


def test_the_budget_holds(open_store: Callable[..., App]) -> None:
    """A question that does not fit is not asked."""
    chat = chat_of(open_store(chat_model="sampling", chat_tokens_hour=100))
    with answered({}), pytest.raises(ModelUnusable, match="budget"):
        chat.ask("Name the colour.", "blue", _Colour, most=10)


def test_nothing_is_written_before_the_answer(sampled: App) -> None:
    """A write that has a question leaves nothing; run again with the answer, it is done once."""
    old = add(sampled, OLD)
    before = do(sampled, "history", id=str(old))
    with answered({}), pytest.raises(Wanted) as wanted:
        do(sampled, "remember", content=NEW)
    assert len(listed(sampled)) == 1
    assert do(sampled, "history", id=str(old)) == before
    says = json.dumps({"choice": "supersede", "which": 0, "reason": "contradiction"})
    with answered({wanted.value.question.digest: says}):
        outcome = do(sampled, "remember", content=NEW)
    assert f"Replaces memory {old}" in outcome.notes[0]
    assert ill(sampled) == []


def _context(*, sampling_offered: bool = True, version: str = "2026-07-28") -> Any:
    capabilities = SimpleNamespace(sampling={} if sampling_offered else None)
    session = SimpleNamespace(client_capabilities=capabilities, can_send_request=True)
    return SimpleNamespace(session=session, protocol_version=version)


@pytest.mark.parametrize("state", [None, "", "no JSON", "[1]", "7", "[" * 100_000, '{"a": "b"}'])
def test_a_state_that_was_tampered_with_is_no_more_than_answers(state: str | None) -> None:
    """What a client brings back is read as answers of its own model, or as nothing."""
    said = CreateMessageResult(role="assistant", content=TextContent(type="text", text="yes"), model="theirs")
    params = CallToolRequestParams(name="memory", request_state=state, input_responses={"digest": said})
    found = sampling.given(_context(), params, replies=True)
    assert found == {"digest": "yes"} | ({"a": "b"} if state == '{"a": "b"}' else {})


def test_who_cannot_be_asked_is_not() -> None:
    """Not a client without the capability, and not one of a session whose answers would reach another process."""
    params = CallToolRequestParams(name="memory")
    assert sampling.given(_context(sampling_offered=False), params, replies=True) is None
    assert sampling.given(_context(version="2025-11-25"), params, replies=False) is None
    assert sampling.given(_context(version="2025-11-25"), params, replies=True) == {}

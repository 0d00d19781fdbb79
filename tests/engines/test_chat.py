"""The language model: what is sent, what is taken for an answer, and that the budget holds."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import BaseModel

from chat_server import ChatServer, Reply, chat_server
from clock import Clock
from recollect import Settings
from recollect.engines.chat import PydanticAiChat, TokenLedger, open_chat
from recollect.errors import InvalidInput, ModelUnusable
from recollect.settings import variables_of
from recollect.store.sql.database import Database, open_file
from recollect.store.sql.migrations import migrate
from recollect.store.sql.token_ledger import SqlTokenLedger
from run_operations import token


class Colour(BaseModel):
    """What is asked for."""

    name: str


@pytest.fixture
def server() -> Iterator[ChatServer]:
    """Return a running server."""
    with chat_server() as running:
        running.says({"name": "red"})
        yield running


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Database]:
    """Return an empty database file."""
    found = open_file(tmp_path / "memory.db")
    migrate(found)
    yield found
    found.close()


def a_chat(server: ChatServer, ledger: TokenLedger, *, seconds: float = 20.0, retries: int = 1) -> PydanticAiChat:
    """Return the model of a server."""
    found = open_chat("tiny", server.url, "key of the server", ledger, seconds=seconds, retries=retries)
    assert found is not None
    return found


def ask(chat: PydanticAiChat, text: str = "The sky.") -> Colour:
    """Ask for a colour."""
    return chat.ask("Name the colour.", text, Colour, most=50)


def test_a_typed_answer_over_the_real_protocol(server: ChatServer, file: Database, clock: Clock) -> None:
    """The task is an instruction, the text a message of its own; what was used is what the server tells."""
    chat = a_chat(server, SqlTokenLedger(file, clock, 10_000, 20_000))
    assert ask(chat) == Colour(name="red")
    (body,) = server.asked
    assert (body["model"], body["max_tokens"], body["temperature"]) == ("tiny", 50, 0.0)
    assert [one["role"] for one in body["messages"]] == ["system", "user"]
    assert "Name the colour." in body["messages"][0]["content"]
    assert server.texts == ["The sky."]
    assert server.keys == ["Bearer key of the server"]
    used = chat.used()
    assert (used.hour, used.day, used.questions, used.tokens) == (120, 120, 1, 120)


def test_the_same_question_is_asked_once(server: ChatServer, file: Database, clock: Clock) -> None:
    """An answer is kept by the hash of what was asked, and another text is another question."""
    chat = a_chat(server, SqlTokenLedger(file, clock, 10_000, 20_000))
    assert [ask(chat), ask(chat)] == [Colour(name="red")] * 2
    ask(chat, "The sea.")
    assert len(server.asked) == 2


def test_no_secret_is_sent(server: ChatServer, file: Database, clock: Clock) -> None:
    """A secret in the text is masked before a model sees it."""
    ask(a_chat(server, SqlTokenLedger(file, clock, 10_000, 20_000)), f"The key is {token()}.")
    assert token() not in str(server.asked)
    assert "[redacted:" in server.texts[0]


@pytest.mark.parametrize(
    "bad",
    [
        Reply("no idea"),
        Reply('{"name": '),
        Reply('{"name": ["red"]}'),
        Reply('{"name": "re', finish="length"),
        Reply("I cannot help with that.", finish="content_filter"),
        Reply(""),
    ],
)
def test_an_answer_of_no_use_is_asked_for_again_once(
    server: ChatServer, file: Database, clock: Clock, bad: Reply
) -> None:
    """What is cut off, malformed, of another form or a refusal is asked for again, and then given up."""
    chat = a_chat(server, SqlTokenLedger(file, clock, 10_000, 20_000))
    server.says(bad, {"name": "red"})
    assert ask(chat) == Colour(name="red")
    server.says(bad)
    with pytest.raises(ModelUnusable):
        ask(chat, "The sea.")
    assert len(server.asked) in (3, 4)


def test_words_around_the_answer_are_left_out(server: ChatServer, file: Database, clock: Clock) -> None:
    """Small models put their JSON into a block of code, with a sentence before it."""
    server.says(Reply('Here it is:\n```json\n{"name": "red"}\n```'))
    assert ask(a_chat(server, SqlTokenLedger(file, clock, 10_000, 20_000))) == Colour(name="red")


@pytest.mark.parametrize("bad", [Reply(status=500), Reply(status=401), Reply(status=429), Reply(raw="<html>")])
def test_a_server_that_fails_is_left_alone_for_a_while(
    server: ChatServer, file: Database, clock: Clock, bad: Reply
) -> None:
    """An error of the server is one of ours that names no text, and the next question does not wait for it."""
    chat = a_chat(server, SqlTokenLedger(file, clock, 10_000, 20_000))
    server.says(bad)
    for _ in range(2):
        with pytest.raises(ModelUnusable) as error:
            ask(chat)
        assert "sky" not in str(error.value)
    assert len(server.asked) == 1


def test_a_slow_server_is_not_waited_for(server: ChatServer, file: Database, clock: Clock) -> None:
    """A question takes no longer than its seconds, and what was reserved for it stays used."""
    chat = a_chat(server, SqlTokenLedger(file, clock, 10_000, 20_000), seconds=0.5)
    server.says(Reply(hangs=True))
    with pytest.raises(ModelUnusable, match=r"longer than 0\.5 s"):
        ask(chat)
    assert chat.used().hour > 50


def test_a_server_that_is_away_is_told_of(file: Database, clock: Clock) -> None:
    """Where nobody listens there is no answer."""
    chat = open_chat(
        "tiny", "http://127.0.0.1:9/v1", "", SqlTokenLedger(file, clock, 9_000, 9_000), seconds=5, retries=0
    )
    assert chat is not None
    with pytest.raises(ModelUnusable):
        ask(chat)
    with pytest.raises(ModelUnusable, match="does not answer at 127"):
        chat.reach()


def test_a_server_that_is_there_is_reached_without_a_question(server: ChatServer, file: Database, clock: Clock) -> None:
    """The doctor's look asks nothing and costs no token."""
    chat = a_chat(server, SqlTokenLedger(file, clock, 9_000, 9_000))
    chat.reach()
    assert chat.used().questions == 0


def test_nothing_is_asked_beyond_the_budget(server: ChatServer, file: Database, clock: Clock) -> None:
    """A question whose bound is above what is left is not asked, and a model that wastes its tokens is cut off."""
    chat = a_chat(server, SqlTokenLedger(file, clock, 1_500, 3_000))
    server.says(Reply('{"name": "red"}', tokens=(600, 600)))
    ask(chat)
    with pytest.raises(ModelUnusable, match="budget"):
        ask(chat, "The sea.")
    assert len(server.asked) == 1
    clock.now += timedelta(hours=1)
    ask(chat, "The sea.")
    assert chat.used().hour == 1_200


def test_a_server_cannot_tell_of_fewer_tokens_than_it_was_sent(
    server: ChatServer, file: Database, clock: Clock
) -> None:
    """A fifth of the bytes is the least that counts, so that a budget for few questions lets few pass."""
    chat = a_chat(server, SqlTokenLedger(file, clock, 100_000, 100_000))
    server.says(Reply('{"name": "red"}', tokens=(1, 0)))
    ask(chat, "The sky. " * 1_000)
    assert chat.used().tokens >= 1_800


def test_no_redirect_is_followed(server: ChatServer, file: Database, clock: Clock) -> None:
    """What was asked reaches no other host than the one that is configured."""
    with chat_server() as other:
        other.says({"name": "blue"})
        server.says(Reply(status=307, location=f"{other.url}/chat/completions"))
        with pytest.raises(ModelUnusable):
            ask(a_chat(server, SqlTokenLedger(file, clock, 10_000, 20_000)))
        assert other.asked == []


def test_an_answer_that_does_not_end_is_ended(server: ChatServer, file: Database, clock: Clock) -> None:
    """At two million bytes nothing more is read, long before the time is up."""
    server.says(Reply(raw="x", endless=True))
    with pytest.raises(ModelUnusable, match="cannot be asked"):
        ask(a_chat(server, SqlTokenLedger(file, clock, 10_000, 20_000), seconds=60.0))
    assert server.sent < 100_000_000


def test_a_model_needs_a_server(file: Database, clock: Clock) -> None:
    """Without a model nothing is opened; a bare name without an address is refused."""
    ledger = SqlTokenLedger(file, clock, 1, 1)
    assert open_chat("", "", "", ledger, seconds=1, retries=0) is None
    with pytest.raises(InvalidInput, match="RECOLLECT_CHAT_URL"):
        open_chat("tiny", "", "", ledger, seconds=1, retries=0)


def test_a_key_stays_with_its_owner() -> None:
    """The key stands in no repr and in no file or command of an agent, and an address may hold no password."""
    settings = Settings(chat_model="tiny", chat_url="http://127.0.0.1:1/v1", chat_key="only mine")
    assert "only mine" not in repr(settings)
    assert "only mine" not in str(variables_of(settings))
    with pytest.raises(InvalidInput, match="RECOLLECT_CHAT_KEY"):
        Settings(chat_url="http://me:word@127.0.0.1/v1")

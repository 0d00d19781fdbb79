"""At a session's end a language model judges what was kept and what was not; it writes nothing of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from chat_server import ChatServer, Reply, chat_server
from recollect import App, Memory
from recollect.domain.lifecycle import ShownObservation
from recollect.domain.origin import SaidBy
from recollect.errors import InvalidInput
from recollect.sessions.second_look import ADDED
from run_operations import do, ill, listed, recalled, shown

RULE = "From now on nobody edits gen/ by hand, because `make api` overwrites it."
CENTS = "Decision: amounts are integer cents in the database, because the export must match to the cent."
ANCHOR = "the index of the docs has a broken anchor"
NOTHING = Reply("no idea")
Said = Reply | list[int]


@pytest.fixture
def server() -> Iterator[ChatServer]:
    """Return a running server."""
    with chat_server() as running:
        yield running


@pytest.fixture
def app(open_store: Callable[..., App], server: ChatServer) -> App:
    """Return a store that asks the server, with a session that kept two statements and not what a command told."""
    found = open_store(chat_model="tiny", chat_url=server.url)
    says(server, NOTHING, NOTHING)
    for said in (RULE, CENTS):
        do(found, "prompt_submit", session_id="s1", prompt=said)
    command = {"command": "make docs", "description": "Build the docs"}
    do(found, "tool_post", session_id="s1", tool="Bash", input=command, output=ANCHOR)
    server.asked.clear()
    return found


def says(server: ChatServer, of_people: Said, of_tools: Said) -> None:
    """Let the server say what of people's and of tools' texts is worth a memory, and nothing of use beside that."""

    def script(task: str, _: str) -> Reply:
        if "`worth`" not in task:
            return Reply(json.dumps({"choice": "create", "reason": "new_subject"})) if "`create`" in task else NOTHING
        said = of_people if "people typed" in task else of_tools
        return said if isinstance(said, Reply) else Reply(json.dumps({"worth": said}))

    server.script = script


def asked(server: ChatServer) -> list[str]:
    """Return the texts of the questions of what is worth a memory."""
    return [text for one, text in zip(server.asked, server.texts, strict=True) if "`worth`" in str(one["messages"][0])]


def ended(app: App) -> tuple[ShownObservation, ...]:
    """End the session, and return what its log shows of each event."""
    do(app, "session_end", session_id="s1")
    found: tuple[ShownObservation, ...] = do(app, "show_session", session_id="s1").observations
    return found


def memories(app: App) -> list[Memory]:
    """Return what is stored, the oldest first."""
    return [shown(app, one) for one in sorted(listed(app))]


def test_what_the_weights_dropped_is_kept_as_it_was_said(app: App, server: ChatServer) -> None:
    """It has its own words and its own origin, and stands in the summary."""
    says(server, [0, 1], [0])
    *_, tool, _ = ended(app)
    assert (tool.decision, tool.reason) == ("kept", ADDED)
    made = shown(app, int(tool.memory_id or 0))
    assert ANCHOR in made.content
    assert made.stamp.said_by is SaidBy.COMMAND
    summary = memories(app)[-2 if memories(app)[-1].id == made.id else -1]
    assert "broken anchor" in summary.content
    assert ill(app) == []


def test_what_does_not_last_is_hidden_and_can_be_brought_back(app: App, server: ChatServer) -> None:
    """The log names how, and the summary no longer quotes it."""
    rule = next(one for one in memories(app) if "gen/" in one.content)
    says(server, [1], [])
    first, *_ = ended(app)
    assert first.decision == "dropped"
    assert f"`recollect undo {rule.id}`" in first.reason
    assert rule.id not in listed(app)
    assert rule.id not in recalled(app, "who edits gen/ by hand?")
    assert not any("gen/" in one.content for one in memories(app))
    with pytest.raises(InvalidInput, match=f"`recollect undo {rule.id}`"):
        do(app, "correct_observation", session_id="s1", number=first.number, keep=True)
    do(app, "restore", id=str(rule.id))
    assert shown(app, rule.id).content == rule.content
    assert ill(app) == []


def test_no_output_of_a_tool_says_anything_about_the_words_of_a_person(app: App, server: ChatServer) -> None:
    """People and tools are two questions, so that what a page says is read with none of a person's words."""
    says(server, [0, 1], [])
    ended(app)
    people, tools = asked(server)
    assert "gen/" in people
    assert "anchor" not in people
    assert "anchor" in tools
    assert "gen/" not in tools


@pytest.mark.parametrize("said", [NOTHING, Reply(status=500), [], [7, -1]])
def test_without_an_answer_of_use_all_stays(app: App, server: ChatServer, said: Said) -> None:
    """A refusal, an error, an answer that finds all worthless, and numbers of no text change nothing."""
    before = [one.content for one in memories(app)]
    says(server, said, said)
    *_, tool, _ = ended(app)
    assert [one.content for one in memories(app)][: len(before)] == before
    assert tool.decision == "dropped"


def test_what_a_person_decided_on_stays(app: App, server: ChatServer) -> None:
    """What somebody kept, dropped or pinned is no question any more."""
    rule, cents, anchor = do(app, "show_session", session_id="s1").observations
    do(app, "correct_observation", session_id="s1", number=rule.number, keep=False)
    do(app, "correct_observation", session_id="s1", number=anchor.number, keep=True)
    do(app, "pin", id=cents.memory_id)
    before = [one.content for one in memories(app)]
    says(server, [0], [])
    ended(app)
    assert asked(server) == []
    assert [one.content for one in memories(app)][: len(before)] == before


def test_a_question_shows_at_most_twelve_texts(app: App, server: ChatServer) -> None:
    """Many texts are several questions; the number of a text is its own in all of them."""
    for number in range(12):
        do(app, "prompt_submit", session_id="s1", prompt=f"Please look at table {number} of the report again.")
    said: list[int] = []

    def script(task: str, text: str) -> Reply:
        if "people typed" in task:
            said.extend(map(int, json.loads(text)))
        return Reply(json.dumps({"worth": [0, 1, 2]})) if "`worth`" in task else NOTHING

    server.script = script
    ended(app)
    assert len(asked(server)) == 3, "two of people's texts, one of what a tool told"
    assert sorted(said) == list(range(14))
    assert any("table 0 " in one.content for one in memories(app))
    assert not any("table 11 " in one.content for one in memories(app))


def test_where_everything_is_kept_nobody_is_asked(open_store: Callable[..., App], server: ChatServer) -> None:
    """Who turned the judging off wants all of it."""
    app = open_store(chat_model="tiny", chat_url=server.url, modules_off="memorability")
    says(server, [], [])
    do(app, "prompt_submit", session_id="s1", prompt=RULE)
    ended(app)
    assert asked(server) == []

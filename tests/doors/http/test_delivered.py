"""Only what was delivered counts as shown: the index of a start that nobody heard comes with the next prompt."""

from __future__ import annotations

import json
import socket
import threading
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from recollect import App
from recollect.doors import handlers
from run_operations import add, do
from stdio_client import until
from team_server import Listening, Talk, TeamServer, listening

if TYPE_CHECKING:
    from conftest import Clock

RULE = "Nobody deploys on Fridays, because the support team is away."
FENCE = "<memory-index>"


@pytest.fixture
def told(app: App) -> int:
    """Store a rule, and return its id."""
    return add(app, RULE, fact_type="decision", trust=0.9)


def report(talk: Talk, event: str, session: str = "s1", late: bool = False, **fields: Any) -> str:
    """Report an event as a hook does, work off what it leaves to do, and return the text of the answer."""
    answer = talk.post(f"/v1/hooks/{event}", {"fields": {"session_id": session} | fields, "late": late})
    assert answer.status_code == 200, answer.text
    assert talk.client.app.access.events.finish(60)  # type: ignore[attr-defined]
    return str(answer.json()["text"])


def start(talk: Talk, source: str = "startup", **more: Any) -> str:
    """Begin a session."""
    return report(talk, "session:start", source=source, **more)


def prompt(talk: Talk, text: str = "thanks", **more: Any) -> str:
    """Submit a prompt, for which nothing is relevant unless it says more."""
    return report(talk, "prompt:submit", prompt=text, **more)


def test_a_delivered_index_is_not_repeated(talk: Talk, told: int) -> None:
    """The start's answer holds the index; the prompts after it do not, nor a rule that stood there whole."""
    assert RULE in start(talk)
    assert prompt(talk) == ""
    assert prompt(talk, "may I deploy on Fridays, while support is away?") == ""


def test_each_start_and_each_compaction_gets_the_index(talk: Talk, told: int, clock: Clock) -> None:
    """A session that is resumed, cleared or compacted gets it again; another session gets its own."""
    for source in ("startup", "resume", "compact", "clear"):
        assert FENCE in start(talk, source)
        assert prompt(talk) == ""
        clock.pass_days(0.01)
    assert FENCE in start(talk, session="s2")


def test_a_late_start_is_only_queued(talk: Talk, told: int) -> None:
    """A start that comes when nobody waits any more leaves the index owed, and the next prompt gets it, once."""
    assert start(talk, late=True) == ""
    assert FENCE in prompt(talk)
    assert prompt(talk) == ""


def test_a_late_prompt_gets_nothing_and_owes_nothing_less(talk: Talk, told: int) -> None:
    """The index is owed until a prompt is answered."""
    start(talk, late=True)
    assert prompt(talk, "Please carry on.", late=True) == ""
    assert FENCE in prompt(talk)


def test_the_owed_index_stands_before_what_is_relevant(talk: Talk, told: int, app: App) -> None:
    """Both come in one answer; what stands in the index whole is not said twice, and what has a title only may be."""
    limits = "Parcelwing allows 10 requests a second; use X-PW-Reset for a retry, as Retry-After is rounded down to 0."
    more = add(app, limits, title="Limits", type="discovery")
    asked = "how many requests a second does Parcelwing allow, and may I deploy on Fridays?"
    start(talk, late=True)
    text = prompt(talk, asked)
    index, _, context = text.partition("<memory-context>")
    assert f"- [{more}] Limits" in index
    assert f"- [{more}]" in context
    assert limits in context
    assert text.count(RULE) == 1
    assert prompt(talk, asked) == ""


def test_what_nobody_typed_gets_the_owed_index(talk: Talk, told: int) -> None:
    """A report in the place of the first prompt gets what the start owed, and no memories beside it."""
    start(talk, late=True)
    text = prompt(talk, "<task-notification>may I deploy on Fridays, while support is away?</task-notification>")
    assert FENCE in text
    assert "<memory-context>" not in text


def test_an_empty_store_owes_nothing_more(talk: Talk, app: App) -> None:
    """What is stored after a start with nothing to tell does not bring an index into the session."""
    assert start(talk) == ""
    add(app, RULE, fact_type="decision", trust=0.9)
    assert FENCE not in prompt(talk)


def test_what_was_shown_is_noted_where_it_was_delivered(talk: Talk, app: App, told: int) -> None:
    """The session names the moments at which memories were shown; an index counts as no use of a memory."""
    for _ in range(3):
        add(app, "The label printer wants blue paper, since the white one jams.", title="The printer")
    start(talk)
    [shown] = talk.post("/v1/show_session", {"session_id": "s1"}).json()["injections"]
    assert str(told) in map(str, shown["memory_ids"])
    assert do(app, "get_memory", id=str(told)).accessed_count == 0
    assert do(app, "get_memory", id=str(told)).recalled_count == 0


def test_a_hook_that_gave_up_leaves_the_index_owed(
    team: TeamServer, told: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer on a connection that is closed by then shows nothing: the next prompt gets the index, once."""
    with listening(team) as server:
        give_up(server, team, monkeypatch, "session:start", source="startup")
        assert FENCE in asked(server, team, "prompt:submit", prompt="thanks")
        assert FENCE not in asked(server, team, "prompt:submit", prompt="thanks again")
        give_up(server, team, monkeypatch, "session:start", session_id="s2", source="startup")
        give_up(server, team, monkeypatch, "prompt:submit", session_id="s2", prompt="thanks")
        assert FENCE in asked(server, team, "prompt:submit", session_id="s2", prompt="thanks")


def asked(server: Listening, team: TeamServer, event: str, **fields: Any) -> str:
    """Report an event over a connection, and return the text of the answer."""
    with socket.create_connection(place_of(server)) as link:
        link.sendall(request(team, event, fields))
        answer = b"".join(iter(lambda: link.recv(65_536), b""))
    return str(json.loads(answer.partition(b"\r\n\r\n")[2])["text"])


def give_up(server: Listening, team: TeamServer, monkeypatch: pytest.MonkeyPatch, event: str, **fields: Any) -> None:
    """Report an event and close the connection before the answer is there, as a hook does that has no time left."""
    began, go, over = threading.Event(), threading.Event(), threading.Event()
    name = {"session:start": "answer_start", "prompt:submit": "answer_prompt"}[event]
    work, ended = handlers.HANDLERS[name], team.access.measures.ended

    def waiting(*given: Any, **more: Any) -> Any:
        began.set()
        assert go.wait(60)
        return work(*given, **more)

    def noted(*given: Any) -> None:
        ended(*given)
        over.set()

    with monkeypatch.context() as patched:
        patched.setitem(handlers.HANDLERS, name, waiting)
        patched.setattr(team.access.measures, "ended", noted)
        with socket.create_connection(place_of(server)) as link:
            link.sendall(request(team, event, fields))
            assert began.wait(60)
        until(lambda: not server.process.server_state.connections)
        go.set()
        assert over.wait(60)
    assert team.access.events.finish(60)


def place_of(server: Listening) -> tuple[str, int]:
    """Return where a server listens."""
    address = urlsplit(server.url)
    return str(address.hostname), int(address.port or 0)


def request(team: TeamServer, event: str, fields: dict[str, Any]) -> bytes:
    """Return the request of a hook."""
    body = json.dumps({"fields": {"session_id": "s1"} | fields}).encode()
    head = (
        f"POST /v1/hooks/{event}?project=engine HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
        f"Authorization: Bearer {team.tokens['ada']}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body

"""Texts that somebody made to be slow to read: a write, a search, a prompt and a tool's output end in time."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import suppress
from time import monotonic, sleep, thread_time

import pytest

from callers import ADA
from recollect import App
from recollect.domain.lifecycle import SubmitPrompt
from recollect.errors import InvalidInput, SecretFound
from recollect.memory.embed import embed_pending
from recollect.sessions.pipeline import answer_prompt
from run_operations import add, do, ill, recalled

LONGEST = 200_000
HOSTILE = {
    "one letter": "a",
    "spaces": " ",
    "dashes": "-",
    "underscores": "_a",
    "brackets": "[{(<",
    "mixed scripts": "redacted: api_keyпарольё",
    "labels": "password: x\n",
    "base64": "QUJDREVG",
    "JSON": json.dumps({"a": [{"b": '\\"c'}]}),
    "words": "The quick harbour crane lifts nine amber boxes. ",
    "tokens": "password: AQaQAQaQ",
}
OFTEN = ("underscores", "mixed scripts", "tokens")
SHAPES = [pytest.param(name, marks=() if name in OFTEN else pytest.mark.full) for name in HOSTILE]


def long(name: str, length: int = LONGEST) -> str:
    """Return a hostile text of so many characters."""
    return (HOSTILE[name] * length)[:length]


def most_at_rest(work: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds of processor time that some work takes, and the longest time without another thread."""
    done = threading.Event()
    gaps = [0.0]

    def answer() -> None:
        last = monotonic()
        while not done.is_set():
            sleep(0.01)
            gaps.append(monotonic() - last)
            last = monotonic()

    other = threading.Thread(target=answer)
    other.start()
    start = thread_time()
    try:
        work()
    except (InvalidInput, SecretFound):
        pass
    finally:
        taken = thread_time() - start
        done.set()
        other.join()
    return taken, max(gaps)


@pytest.mark.full_cases("underscores", "tokens")
@pytest.mark.parametrize("name", SHAPES)
def test_every_verb_ends_in_time(app: App, name: str) -> None:
    """The longest text is stored or refused within ten seconds, and others are answered meanwhile; so is a query."""
    taken, unanswered = most_at_rest(lambda: do(app, "remember", content=long(name)))
    assert taken < 10
    assert unanswered < 2
    asked, unanswered = most_at_rest(lambda: do(app, "recall", query=long(name, 20_000)))
    assert asked < 4
    assert unanswered < 2


@pytest.mark.full_cases("mixed scripts", "tokens")
@pytest.mark.parametrize("name", SHAPES)
def test_a_session_ends_in_time(app: App, name: str) -> None:
    """A prompt is answered within its second, in a store that holds such texts too; its events are read in seconds."""
    with suppress(SecretFound):
        add(app, f"what about {long(name, 3_000)}")
    prompt = SubmitPrompt(session_id="s1", prompt=f"How do we deploy? {long(name, 60_000)}")
    answer_prompt(app, prompt, ADA)  # the first one loads what all share
    answered, _ = most_at_rest(lambda: answer_prompt(app, prompt, ADA))
    assert answered < 1
    shown = {"session_id": "s1", "tool": "Bash", "input": {"command": f"make {long(name, 4_000)}"}}
    read, unanswered = most_at_rest(lambda: do(app, "tool_post", output=long(name), **shown))
    assert read < 8
    assert unanswered < 2


def test_a_long_text_waits_for_its_vectors(open_store: Callable[..., App]) -> None:
    """It is found by its words at once, and by its meaning when the background has embedded it."""
    app = open_store(background=True)
    do(app, "remember", content=long("words", 60_000))
    assert recalled(app, "amber boxes") == {1}
    ends = monotonic() + 60
    while app.records.embeddings.unembedded(1):
        assert monotonic() < ends
        sleep(0.05)
    assert recalled(app, "machines that lift boxes in a harbor") == {1}


@pytest.mark.full
def test_a_long_text_keeps_nobody_from_stopping(app: App) -> None:
    """Embedding it ends in its middle when the process ends, and begins anew when another process has started."""
    do(app, "remember", content=long("words", 60_000))
    asked = iter((False, False))
    assert not embed_pending(app.records, app.embedder, stopping=lambda: next(asked, True))
    assert app.records.embeddings.unembedded(1)
    assert embed_pending(app.records, app.embedder)
    assert ill(app) == []

"""Boundaries: another topic is noticed once, with its time and keywords, also after a restart."""

from __future__ import annotations

from datetime import timedelta

import pytest

from ranked_memories import NOW
from recollect.sessions import boundaries
from recollect.sessions.boundaries import OUTPUTS, Boundary, Window, window_after
from recollect.text.terms import jaccard, topic_words

INVOICES = "The invoice parser reads invoice totals and tax rates from every invoice"
MORE_INVOICES = "The invoice parser now reads tax rates of every invoice"
KNOWN = "harbour violin copper glacier lantern meadow thunder pepper salt window orchard pebble ribbon oak reed".split()
OTHER = "anchor candle desert engine forest garden".split()
DEPLOYMENT = "Kubernetes cluster rollout failed: the ingress certificate of the cluster expired"


def played(*outputs: str) -> list[Boundary | None]:
    """Return the boundary before each output of a session that begins with the first, one a minute."""
    window = Window()
    found: list[Boundary | None] = []
    for minute, output in enumerate(outputs):
        window, boundary = window_after(window, output, NOW + timedelta(minutes=minute))
        found.append(boundary)
    return found


def a_full_window() -> Window:
    """Return the state after five outputs about invoices."""
    window = Window()
    for _ in range(OUTPUTS):
        window, _boundary = window_after(window, INVOICES, NOW)
    return window


def test_a_short_topic_is_not_judged() -> None:
    """Before a topic has five outputs, another one is no boundary."""
    assert played(*[INVOICES] * 4, DEPLOYMENT) == [None] * 5


def test_another_topic_is_a_boundary() -> None:
    """A boundary has the time of the first output of the new topic and its keywords, the most frequent first."""
    *same, boundary = played(*[INVOICES] * 4, MORE_INVOICES, INVOICES, DEPLOYMENT)
    assert same == [None] * 6
    assert boundary is not None
    assert boundary.at == NOW + timedelta(minutes=6)
    assert boundary.keywords[0] == "cluster"
    assert {"kubernetes", "ingress", "certificate"} <= set(boundary.keywords)


def test_a_session_begins_without_a_boundary() -> None:
    """The first output has no topic before it."""
    assert played(DEPLOYMENT) == [None]


def test_a_topic_is_new_once() -> None:
    """What follows in the new topic is no boundary, and the way back is one when five outputs have passed."""
    found = played(*[INVOICES] * 5, *[DEPLOYMENT] * 5, INVOICES)
    assert [place for place, one in enumerate(found) if one] == [5, 10]


@pytest.mark.parametrize("output", ["", "ok", "42 17 2026", "and then it was", "passed"])
def test_an_output_that_says_nothing_changes_nothing(output: str) -> None:
    """Fewer than three topic words are neither a boundary nor remembered."""
    window = a_full_window()
    assert window_after(window, output, NOW) == (window, None)


@pytest.mark.parametrize(("words", "is_new"), [(6, False), (7, True)])
def test_another_topic_begins_below_the_threshold(words: int, is_new: bool) -> None:
    """One word of twenty in common, a Jaccard similarity of 0.05, is the same topic; one of twenty-one is another."""
    assert boundaries.THRESHOLD == 0.05
    window, _boundary = window_after(Window(), " ".join(KNOWN), NOW)
    prompt = " ".join([KNOWN[0], *OTHER][:words])
    assert jaccard(topic_words(prompt), topic_words(" ".join(KNOWN))) == pytest.approx(1 / (14 + words))
    assert (window_after(window, prompt, NOW, prompt=True)[1] is not None) is is_new


@pytest.mark.parametrize(("shared", "is_new"), [(1, False), (0, True)])
def test_an_output_that_shares_words_goes_on(shared: int, is_new: bool) -> None:
    """An output of other words opens a topic; one that shares some with the topic so far does not."""
    before, after = KNOWN[:5], [*KNOWN[:shared], *OTHER][:5]
    assert bool(played(*[" ".join(before)] * OUTPUTS, " ".join(after))[-1]) is is_new


def test_all_of_the_window_counts() -> None:
    """What shares a word with any of the last five texts goes on, whatever the last of them says."""
    texts = [" ".join(KNOWN[start : start + 3]) for start in range(0, 15, 3)]
    window = Window(outputs=tuple(frozenset(topic_words(one)) for one in texts))
    assert window_after(window, " ".join([KNOWN[0], *OTHER[:4]]), NOW)[1] is None
    assert window_after(window, " ".join(OTHER[:5]), NOW)[1] is not None


def asked(prompt: str, *, minutes: float = 1, outputs: int = OUTPUTS) -> Boundary | None:
    """Return the boundary before a prompt that comes so long after outputs about invoices."""
    window = Window()
    for _ in range(outputs):
        window, _boundary = window_after(window, INVOICES, NOW)
    return window_after(window, prompt, NOW + timedelta(minutes=minutes), prompt=True)[1]


@pytest.mark.parametrize("minutes", [0, 2, 60])
@pytest.mark.parametrize("outputs", [1, OUTPUTS])
@pytest.mark.parametrize(
    "prompt",
    [
        "next: the ingress certificate of the cluster expired over night, look why the rollout did not renew it",
        "the badge shows nothing for warehouse Bristol",
    ],
)
def test_a_prompt_that_opens_another_topic_is_a_boundary(prompt: str, outputs: int, minutes: float) -> None:
    """A prompt of other words begins a topic, however short the one before was and without any pause."""
    found = asked(prompt, minutes=minutes, outputs=outputs)
    assert found is not None
    assert found.at == NOW + timedelta(minutes=minutes)


@pytest.mark.parametrize("minutes", [1, 600])
@pytest.mark.parametrize(
    "prompt",
    [
        "never round tax rates in the invoice parser, finance compares every total",
        "and now the invoice parser and its tax rates and totals from every invoice again",
        "run the tests again please",
        "thanks, that was it",
    ],
)
def test_a_prompt_that_goes_on_is_none(prompt: str, minutes: float) -> None:
    """What is said in the words of the topic, and what says less than three keywords, belong to it after any pause."""
    assert asked(prompt, minutes=minutes) is None


def test_a_first_prompt_has_no_topic_before_it() -> None:
    """A session that begins with a prompt begins without a boundary, and the prompt is its topic."""
    window, boundary = window_after(Window(), DEPLOYMENT, NOW, prompt=True)
    assert boundary is None
    assert len(window.outputs) == 1


def test_the_window_slides() -> None:
    """An output is compared with the last five; what came before those is forgotten."""
    words = [f"{one}{two}" for one in ("red", "tall", "cold", "wide") for two in ("house", "river", "stone", "cloud")]
    chain = [" ".join(words[start : start + 6]) for start in range(10)]
    window = Window()
    for output in chain[: OUTPUTS + 1]:
        window, boundary = window_after(window, output, NOW)
        assert boundary is None
    assert len(window.outputs) == OUTPUTS
    assert window.outputs[0] == window_after(Window(), chain[1], NOW)[0].outputs[0]


def test_the_state_survives_a_restart() -> None:
    """A window read back from JSON is the same value and finds the same boundary; so is a boundary."""
    window = a_full_window()
    read = Window.model_validate_json(window.model_dump_json())
    assert read == window
    assert window_after(read, DEPLOYMENT, NOW) == window_after(window, DEPLOYMENT, NOW)
    boundary = window_after(read, DEPLOYMENT, NOW)[1]
    assert boundary is not None
    assert Boundary.model_validate_json(boundary.model_dump_json()) == boundary

"""The budget: a whole answer never has more tokens than asked for, and holds the best that fits."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from ranked_memories import a_memory
from recollect.domain.enums import FactType, Layer, Scope
from recollect.domain.fields import MIN_TOKENS
from recollect.domain.results import Hit, Index, IndexLine, Recalled, found_message
from recollect.domain.search import Signals
from recollect.search.budget import estimate, printed, recalled_within
from recollect.text import layers

quick = hypothesis_settings(deadline=None, database=None)
budgets = st.integers(MIN_TOKENS, 1500)
texts = st.text(st.sampled_from('ab é字,."\\\n{'), min_size=1, max_size=200).filter(str.strip)
limits = st.integers(0, 8)


def tokens(text: str) -> int:
    """Count words and marks, as a tokenizer does that splits at both."""
    return len(re.findall(r"\w+|[^\w\s]", text))


def quarters(text: str) -> int:
    """Count every four characters, wherever words end: pieces have fewer tokens than their whole."""
    return len(text) // 4


def size(answer: Recalled) -> int:
    """Count the tokens of an answer as a door prints it."""
    return tokens(printed(answer.public()))


def a_hit(number: int, content: str, **fields: Any) -> Hit:
    """Return a hit with the layers that nobody wrote."""
    made = {"abstract": layers.abstract(content), "overview": layers.overview(content)}
    memory = a_memory(id=number, content=content, **made | fields)
    return Hit(memory, 0.5, 1.0 - number / 1000, {"match": 0.5}, Signals())


def whole(contents: list[str], limit: int = 100, notes: tuple[str, ...] = ()) -> Recalled:
    """Return all there is to say of `contents`, the best first."""
    hits = [a_hit(number, content) for number, content in enumerate(contents, 1)]
    lines = tuple(IndexLine(hit.memory.id, layers.one_line(hit.memory.abstract), hit.score) for hit in hits)
    return Recalled(tuple(hits[:limit]), found_message(len(lines)), notes, Index(lines, len(lines), 0))


def ids(answer: Recalled) -> tuple[list[int], list[int]]:
    """Return the ids of the index and those of the details."""
    assert answer.index is not None
    return [line.id for line in answer.index.lines], [hit.memory.id for hit in answer.hits]


def words(count: int, word: str = "word") -> str:
    """Return a sentence of so many words."""
    return " ".join(f"{word}{number}" for number in range(count))


@quick
@given(st.lists(texts, max_size=15), limits, st.lists(texts, max_size=3), budgets)
def test_the_budget_holds(contents: list[str], limit: int, notes: list[str], most: int) -> None:
    """Whatever was found, the printed answer has at most the tokens asked for."""
    assert size(recalled_within(whole(contents, limit, tuple(notes)), most, tokens)) <= most


@quick
@given(st.lists(texts, max_size=15), limits, st.lists(texts, max_size=3), budgets)
def test_the_budget_holds_with_any_tokenizer(contents: list[str], limit: int, notes: list[str], most: int) -> None:
    """It holds too where a text has more tokens than its pieces, and where tokens are estimated."""
    for count in (quarters, estimate):
        answer = recalled_within(whole(contents, limit, tuple(notes)), most, count)
        assert count(printed(answer.public())) <= most


@quick
@given(st.lists(texts, max_size=15), limits, budgets)
def test_the_counts_add_up(contents: list[str], limit: int, most: int) -> None:
    """Details and omitted make all matches, index lines and unlisted too, and details are of listed matches."""
    answer = recalled_within(whole(contents, limit), most, tokens)
    assert answer.index is not None
    assert len(answer.hits) + answer.index.omitted == len(contents)
    assert len(answer.index.lines) + answer.index.unlisted == len(contents)
    assert len(answer.hits) <= limit
    assert set(ids(answer)[1]) <= set(ids(answer)[0])
    assert answer.message == found_message(len(contents))


@quick
@given(st.lists(texts, max_size=15), limits, budgets)
def test_the_best_come_first(contents: list[str], limit: int, most: int) -> None:
    """The index lists the best matches without a gap, and the details keep their order."""
    listed, shown = ids(recalled_within(whole(contents, limit), most, tokens))
    assert listed == list(range(1, len(listed) + 1))
    assert shown == sorted(shown)


@quick
@given(st.lists(texts, max_size=15), budgets)
def test_no_room_is_left_for_a_line(contents: list[str], most: int) -> None:
    """As long as one more index line would fit beside the details, there is no match without a line."""
    everything = whole(contents)
    answer = recalled_within(everything, most, tokens)
    assert everything.index is not None
    assert answer.index is not None
    listed = len(answer.index.lines)
    if listed < len(contents):
        longer = Index(everything.index.lines[: listed + 1], len(contents), len(contents) - listed - 1)
        assert size(replace(answer, index=longer)) > most - 2  # the commas after the last line and detail


@quick
@given(st.lists(texts, max_size=12), budgets)
def test_each_is_shown_as_deep_as_fits(contents: list[str], most: int) -> None:
    """A match is shown less deep, or not at all, only where deeper it would not fit beside the better ones."""
    everything = whole(contents)
    answer = recalled_within(everything, most, tokens)
    before: tuple[Hit, ...] = ()
    given_up = {hit.memory.id: hit.layer for hit in answer.hits}
    for hit in everything.hits:
        if hit.memory.id not in ids(answer)[0]:
            continue
        if given_up.get(hit.memory.id) is not Layer.CONTENT:
            assert size(replace(answer, hits=(*before, hit))) > most - 2  # commas after the last line and detail
        before += tuple(shown for shown in answer.hits if shown.memory.id == hit.memory.id)
    assert before == answer.hits


@pytest.mark.parametrize(("most", "layer"), [(1400, "content"), (260, "overview"), (120, None)])
def test_the_deepest_layer_that_fits(most: int, layer: str | None) -> None:
    """All of a memory where there is room, else its overview, else no more than its index line."""
    answer = recalled_within(whole([f"It began. {words(80)}. {words(900, 'late')}."]), most, tokens)
    assert [str(hit.layer) for hit in answer.hits] == ([layer] if layer else [])
    assert ids(answer)[0] == [1]


def test_a_long_abstract_is_a_detail() -> None:
    """An abstract that somebody wrote too long for the index is shown whole where nothing deeper fits."""
    long = words(40, "abstract")
    everything = whole([words(500)])
    hit = a_hit(1, words(500), abstract=long, overview=words(400))
    everything = replace(everything, hits=(hit,), index=Index((IndexLine(1, layers.one_line(long), 0.9),), 1, 0))
    answer = recalled_within(everything, 200, tokens)
    assert [(hit.layer, hit.text) for hit in answer.hits] == [(Layer.ABSTRACT, long)]


def test_a_smaller_one_after_one_that_does_not_fit() -> None:
    """What does not fit is passed over, and a later one that does is shown."""
    listed, shown = ids(recalled_within(whole([words(900), "A short one.", words(900), "Another."]), 230, tokens))
    assert (listed, shown) == ([1, 2, 3, 4], [2, 4])


def test_the_best_has_priority() -> None:
    """A better match takes the room even where two lesser ones would fit in its place."""
    best, lesser = words(100), words(60)
    most = size(recalled_within(whole([best, lesser, lesser]), 100_000, tokens)) - 2 * 60
    assert ids(recalled_within(whole([best, lesser, lesser]), most, tokens))[1] == [1]


def test_a_budget_without_bounds_shows_everything() -> None:
    """Where everything fits, every match is listed and shown whole, and nothing is omitted."""
    answer = recalled_within(whole([words(n) for n in range(1, 60)]), 1_000_000, tokens)
    assert answer.index is not None
    assert (answer.index.omitted, answer.index.unlisted) == (0, 0)
    assert all(hit.layer is Layer.CONTENT for hit in answer.hits)


@pytest.mark.parametrize("count", [tokens, estimate])
def test_the_smallest_answer_is_honest(count: Callable[[str], int]) -> None:
    """The least budget holds at least how many there are, and that all of them are omitted."""
    everything = whole([words(300)] * 150, notes=("A note as long as this one finds no room in so small an answer.",))
    answer = recalled_within(everything, MIN_TOKENS, count)
    body = json.loads(printed(answer.public()))
    assert body["message"] == "150 memories found."
    assert (body["details"], body["omitted"], body["unlisted"]) == ([], 150, 150 - len(body["index"]))
    assert count(printed(body)) <= MIN_TOKENS


def test_nothing_found() -> None:
    """Where nothing was found, the answer says so, and nothing is omitted."""
    assert recalled_within(whole([]), MIN_TOKENS, tokens).public() == {
        "message": "Nothing relevant found.",
        "index": [],
        "details": [],
        "omitted": 0,
        "unlisted": 0,
    }


def test_notes_leave_room_for_matches() -> None:
    """Notes come whole or not at all, and take no more than half of the room."""
    short, long = 'Also searched for "quokka" (spelling of "quoka").', words(60)
    answer = recalled_within(whole([words(15)] * 3, notes=(long, short)), 130, tokens)
    assert answer.notes == (short,)
    assert ids(answer)[0]
    assert recalled_within(whole([words(15)] * 3, notes=(long, short)), 1000, tokens).notes == (long, short)


def test_a_detail_names_its_layer_and_its_labels() -> None:
    """A detail has its text under the name of its layer, and labels only where they say something."""
    plain = a_hit(7, "We deploy on Fridays.")
    assert plain.detail() == {
        "id": "7",
        "content": "We deploy on Fridays.",
        "certainty": "weak",
        "author": "ada",
        "updated_at": "2026-03-01",
    }
    labels = {"key": "deploys", "category": "ops", "tags": ("ci", "cd")}
    rich = replace(a_hit(7, "We.", fact_type=FactType.DECISION, scope=Scope.TEAM, **labels), layer=Layer.OVERVIEW)
    assert rich.detail() == {
        "id": "7",
        "overview": "We.",
        "fact_type": "decision",
        "scope": "team",
        "key": "deploys",
        "category": "ops",
        "tags": ["ci", "cd"],
        "certainty": "weak",
        "author": "ada",
        "updated_at": "2026-03-01",
    }


@pytest.mark.parametrize("abstract", ["短尾矮袋鼠" * 40, "a/b.c-" * 33, "ก " * 90, "🎉" * 150, "x" * 200, "(" * 200])
@pytest.mark.parametrize("count", [tokens, quarters, estimate, len])
def test_no_line_takes_the_room_of_many(abstract: str, count: Callable[[str], int]) -> None:
    """A line that has many more tokens than twenty words have is shortened, and never to nothing."""
    everything = replace(whole(["x"]), index=Index((IndexLine(1, abstract, 0.5),), 1, 0))
    answer = recalled_within(everything, 5000, count)
    assert answer.index is not None
    [line] = answer.index.lines
    assert line.abstract
    assert count(line.abstract) <= 48
    assert count(line.abstract) > 20 or line.abstract == abstract
    assert line.abstract == abstract or (line.abstract.endswith("…") and abstract.startswith(line.abstract[:-1]))


def test_counting_is_cheap() -> None:
    """Each piece is counted once, and a huge one is not counted to its end to learn that it does not fit."""
    counted: list[str] = []

    def counting(text: str) -> int:
        counted.append(text)
        return tokens(text)

    contents = [words(20_000, f"w{n}x") for n in range(10)]
    answer = recalled_within(whole(contents), 1200, counting)
    assert answer.hits
    assert {hit.layer for hit in answer.hits} == {Layer.OVERVIEW}
    assert len(counted) == len(set(counted))
    assert sum(map(len, counted)) < sum(map(len, contents)) / 4


def test_the_same_answer_twice() -> None:
    """The same matches and the same budget give the same answer."""
    contents = [words(n * 7 % 90 + 1) for n in range(50)]
    assert recalled_within(whole(contents), 900, tokens) == recalled_within(whole(contents), 900, tokens)

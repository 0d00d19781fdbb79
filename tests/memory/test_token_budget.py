"""The dual response: a line for all that matches, then details, and never more tokens than were asked for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from callers import ADA
from recollect import App, Draft, Get, Query, Recalled, Settings, forget, get_memory, recall, remember
from recollect.client.connection import from_wire
from recollect.domain.enums import Layer, Profile, Sensitivity
from recollect.domain.fields import MAX_TOKENS, MIN_TOKENS
from recollect.domain.requests import Forget
from recollect.domain.results import NOTHING, Index, IndexLine, found_message
from recollect.doors.serializers import wire_json
from recollect.errors import InvalidInput
from recollect.memory.embed import embed_pending
from recollect.search import budget
from recollect.search.recall import ESTIMATED
from stores import open_app

pytestmark = pytest.mark.slow

QUERY = "quokka"  # which stands in all of them
CONTENTS = {
    "short": "The quokka is our mascot.",
    "paragraph": "The quokka lives on Rottnest Island. " + "It eats leaves at night and sleeps through the heat. " * 9,
    "book": "A quokka handbook, chapter by chapter. " + "Keep a quokka cool, calm and well fed. " * 700,
    "code": 'def quokka(x):\n\tif x["é"]:\n\t\treturn {"quokka": [1, 2]}  # \\"quoted\\"\n' * 12,
    "chinese": "quokka 短尾矮袋鼠是一种小型有袋动物，主要分布在澳大利亚西南部的岛屿上，以植物的叶子为食。" * 6,
    "thai": "quokka " + "ควอกกาเป็นสัตว์มีกระเป๋าหน้าท้องขนาดเล็กอาศัยอยู่ในออสเตรเลีย" * 20,
    "korean": "quokka " + "쿼카는 호주에 사는 작은 유대류 동물이다 " * 12,
    "noise": "quokka picture " + "iVBORw0KGgoAAAANSUhEUgAA" * 60,
    "emoji": "quokka 🎉🎉👩‍👩‍👧 [SEP] e\u0301tude " * 8,
}
SMALL = {f"note {n}": f"Quokka note {n}: keeper {n % 7} weighed it, {n} grams more than last week." for n in range(25)}


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """Return a store about one animal, from one line to a book, that all tests here only read."""
    settings = Settings(home=tmp_path_factory.mktemp("zoo"), user="ada", team="crew", project="zoo")
    with open_app(settings, clock=lambda: datetime(2026, 3, 1, tzinfo=UTC)) as app:
        for key, content in (CONTENTS | SMALL).items():
            remember(app, Draft(content=content, key=key), ADA)
        remember(app, Draft(content="The coffee machine is broken", key="coffee"), ADA)
        embed_pending(app.records, app.embedder)  # of the book
        yield app


def printed(recalled: Recalled) -> str:
    """Return the answer exactly as `--json` prints it."""
    return budget.printed(recalled.public())


def model_tokens(app: App, text: str) -> int:
    """Count with nothing but the tokenizer itself."""
    return len(app.embedder.spans(text))


def counter(app: App) -> Callable[[str], int]:
    """Return what counts tokens in answers."""
    found = app.embedder.counter()
    assert found is not None
    return found


@hypothesis_settings(deadline=None, database=None, max_examples=40)
@given(
    st.integers(MIN_TOKENS, 6000),
    st.integers(1, 60),
    st.sampled_from(Profile),
    st.sampled_from([QUERY, "quoka", "what do quokkas eat?"]),
)
def test_the_budget_is_never_exceeded(zoo: App, most: int, limit: int, profile: Profile, query: str) -> None:
    """The model's own tokenizer finds at most `max_tokens` in the printed answer, and the counts add up."""
    recalled = recall(zoo, Query(query=query, max_tokens=most, limit=limit, profile=profile, min_score=0.1), ADA)
    body = json.loads(printed(recalled))
    assert model_tokens(zoo, printed(recalled)) <= counter(zoo)(printed(recalled)) <= most
    assert body["unlisted"] + len(body["index"]) == body["omitted"] + len(body["details"])
    assert len(body["details"]) <= limit


@pytest.mark.parametrize("most", [64, 100, 300, 1000, 3000, 100_000])
def test_all_matches_are_listed_best_first(zoo: App, most: int) -> None:
    """The index is the ranking of all matches, as far as it fits, whatever the limit of the details is."""
    everything = recall(zoo, Query(query=QUERY, limit=100), ADA)
    recalled = recall(zoo, Query(query=QUERY, max_tokens=most, limit=3), ADA)
    assert recalled.index is not None
    ranking = [hit.memory.id for hit in everything.hits]
    listed = [line.id for line in recalled.index.lines]
    assert listed == ranking[: len(listed)]
    assert recalled.message == f"{len(ranking)} memories found."
    assert (len(listed) == len(ranking)) is (recalled.index.unlisted == 0)
    matches = {hit.memory.id: hit.match for hit in everything.hits}
    assert [line.match for line in recalled.index.lines] == [matches[one] for one in listed]
    assert [hit.memory.id for hit in recalled.hits] == [one for one in ranking[:3] if one in shown(recalled)]


def test_details_keep_a_part_of_the_budget(zoo: App) -> None:
    """However many match, lines leave room for the details of the best."""
    recalled = recall(zoo, Query(query=QUERY, max_tokens=600, limit=5), ADA)
    assert recalled.index is not None
    assert recalled.hits
    assert recalled.index.unlisted > 0
    assert len(recalled.index.lines) > len(recalled.hits)


def test_sixty_matches_are_listed_within_two_thousand_tokens(zoo: App) -> None:
    """Sixty matches of twenty words all have their line in the usual budget, and the best has its details."""
    note = "Depot {} stores its time windows as timestamptz in UTC beside the name of its zone, never with an offset."
    [hit] = recall(zoo, Query(query="what is our mascot?", limit=1), ADA).hits
    lines = tuple(IndexLine(one, note.format(one), 0.5) for one in (hit.memory.id, *range(101, 160)))
    whole = Recalled((hit,), found_message(60), (), Index(lines, omitted=60, unlisted=0))
    answer = budget.recalled_within(whole, 2_000, counter(zoo))
    assert answer.index is not None
    assert (len(note.split()), len(answer.index.lines), answer.hits) == (20, 60, (hit,))


def test_all_that_is_relevant_is_counted(app: App) -> None:
    """The message counts every match, far beyond what the limit shows."""
    for number in range(130):
        remember(app, Draft(content=f"Quokka {number} was weighed by keeper {number % 9}.", key=f"k{number}"), ADA)
    recalled = recall(app, Query(query=QUERY, max_tokens=3000, limit=2), ADA)
    assert recalled.message == "130 memories found."
    assert recalled.index is not None
    assert recalled.index.unlisted + len(recalled.index.lines) == 130


def shown(recalled: Recalled) -> set[int]:
    """Return the ids of the memories with details."""
    return {hit.memory.id for hit in recalled.hits}


def test_a_book_is_shown_as_deep_as_fits(app: App) -> None:
    """All of a long memory where it fits, else the passage that answers, else nothing but its line."""
    remember(app, Draft(content=CONTENTS["book"], key="book"), ADA)
    depth = {}
    for most in (80, 300, 20_000):
        recalled = recall(app, Query(query="quokka handbook", max_tokens=most), ADA)
        assert recalled.index is not None
        depth[most] = [hit.layer for hit in recalled.hits], recalled.index.omitted
    assert depth == {80: ([], 1), 300: ([Layer.PASSAGE], 0), 20_000: ([Layer.CONTENT], 0)}


def test_a_long_memory_is_quoted_where_it_answers(app: App) -> None:
    """Where not all of a long memory fits, its detail is the passage that answers, not its beginning."""
    filling = "The harbour master counts the crates on the quay every morning before breakfast. " * 12
    remember(app, Draft(content=f"{filling}\n\nThe quokka mascot is named Zerline.\n\n{filling}"), ADA)
    query = "what is the name of the quokka mascot?"
    (hit,) = recall(app, Query(query=query, max_tokens=400), ADA).hits
    assert hit.layer is Layer.PASSAGE
    assert "Zerline" in hit.text
    assert hit.text in hit.memory.content
    assert hit.detail()["passage"] == hit.text
    (whole,) = recall(app, Query(query=query, max_tokens=4_000), ADA).hits
    assert whole.layer is Layer.CONTENT


@pytest.mark.parametrize(
    "abstract",
    [" ".join(f"word{n}" for n in range(60)), "quokka " + "短尾矮袋鼠" * 200, "two\nlines of quokka", "quokka " * 200],
)
def test_a_line_has_at_most_twenty_words(app: App, abstract: str) -> None:
    """A longer abstract that somebody wrote is cut to one line of twenty words, and to the tokens of so many."""
    remember(app, Draft(content="The quokka is our mascot. " * 30, abstract=abstract), ADA)
    recalled = recall(app, Query(query="quokka mascot", max_tokens=2000), ADA)
    assert recalled.index is not None
    [line] = recalled.index.lines
    assert 0 < len(line.abstract.split()) <= 20
    assert counter(app)(line.abstract) <= 24
    assert "\n" not in line.abstract
    assert line.abstract.startswith(" ".join(abstract.split())[:10])


def test_sensitive_memories_are_not_in_the_index(app: App) -> None:
    """A private or secret memory has a line only where the query asks to be let in on it; another's never has."""
    for level in Sensitivity:
        remember(app, Draft(content=f"The {level} quokka mascot", key=level, sensitivity=level), ADA)
    remember(
        app,
        Draft(content="The quokka mascot of Eve", scope="personal"),
        ADA.model_copy(update={"user": "eve"}),
    )

    def lines(**allowed: bool) -> set[str]:
        index = recall(app, Query(query="quokka mascot", max_tokens=2000, **allowed), ADA).index
        assert index is not None
        return {line.abstract.split()[1] for line in index.lines}

    assert lines() == {"public"}
    assert lines(allow_private=True) == {"public", "private"}
    assert lines(allow_private=True, allow_secret=True) == {"public", "private", "secret"}


def test_a_forgotten_memory_is_not_in_the_index(app: App) -> None:
    """What was forgotten has no line, and is not counted."""
    memory_id = remember(app, Draft(content="The quokka mascot"), ADA).id
    forget(app, Forget(id=memory_id), ADA)
    recalled = recall(app, Query(query="quokka mascot", max_tokens=500), ADA)
    assert (recalled.message, recalled.index and recalled.index.lines) == (NOTHING, ())


def test_nothing_relevant_is_not_listed(zoo: App) -> None:
    """Where nothing is relevant, the index is empty, and the answer says so."""
    nothing = recall(zoo, Query(query="who won the football world cup", max_tokens=500), ADA)
    assert nothing.public() == {"message": NOTHING, "index": [], "details": [], "omitted": 0, "unlisted": 0}


@pytest.mark.parametrize("profile", Profile)
def test_each_of_the_listed_matches(zoo: App, profile: Profile) -> None:
    """However important or new, a memory below the model's floor is in no index: it is of what matches."""
    query = Query(query=QUERY, max_tokens=MAX_TOKENS, limit=100, profile=profile)
    recalled = recall(zoo, query, ADA)
    assert recalled.index is not None
    assert [hit.memory.id for hit in recalled.hits] == [line.id for line in recalled.index.lines]
    assert min(hit.match for hit in recalled.hits) >= zoo.embedder.card.floor


def test_only_details_count_as_recalled(settings: Settings) -> None:
    """A memory that was only listed has not been recalled; one that was shown has."""
    with open_app(settings, background=False) as app:
        long = remember(app, Draft(content="The quokka is our mascot. " * 200, overview="quokka " * 500), ADA).id
        short = remember(app, Draft(content="The quokka is our mascot."), ADA).id
        recalled = recall(app, Query(query="quokka mascot", max_tokens=200), ADA)
        assert recalled.index is not None
        assert {str(line.id) for line in recalled.index.lines} == {short, long}
        assert get_memory(app, Get(id=short), ADA).recalled_count == 1
        assert get_memory(app, Get(id=long), ADA).recalled_count == 0


def test_the_answer_survives_the_way_through_the_daemon(zoo: App) -> None:
    """Sent as JSON and read again it is the same answer, to the last character."""
    recalled = recall(zoo, Query(query=QUERY, max_tokens=1500), ADA)
    again = from_wire(Recalled, json.loads(json.dumps(wire_json(Recalled, recalled))))
    assert again == recalled
    assert printed(again) == printed(recalled)


def test_without_a_budget_nothing_changes(zoo: App) -> None:
    """Without `max_tokens` there is no index, and every hit is shown whole."""
    recalled = recall(zoo, Query(query=QUERY), ADA)
    assert recalled.index is None
    assert set(recalled.public()) == {"message", "memories"}
    assert {hit.layer for hit in recalled.hits} == {Layer.CONTENT}


@pytest.mark.parametrize("most", [0, 1, 63, -5, 1_000_001, 99.5, "many"])
def test_budgets_out_of_range_are_refused(most: object) -> None:
    """A budget outside of 64–1,000,000 is an error that names the field and says what is allowed."""
    with pytest.raises(InvalidInput, match="Invalid max_tokens: Must be a whole number from 64 to 1000000"):
        Query(query="x", max_tokens=most)


def without_tokenizer(app: App) -> App:
    """Return the same store as long as there is no tokenizer."""

    class Bare:
        """The embedder, but for what counts."""

        def counter(self) -> None:
            """Count nothing."""

        def __getattr__(self, name: str) -> Any:
            return getattr(app.embedder, name)

    return replace(app, embedder=Bare())


@pytest.mark.parametrize("most", [64, 200, 400, 1000, 5000])
def test_without_a_tokenizer_the_size_is_estimated(zoo: App, most: int) -> None:
    """Without a tokenizer the answer is short of the budget rather than over it, and says that it was estimated."""
    recalled = recall(without_tokenizer(zoo), Query(query=QUERY, max_tokens=most), ADA)
    assert model_tokens(zoo, printed(recalled)) <= most
    assert (ESTIMATED in recalled.notes) is (most >= 200)
    assert recalled.message.endswith("memories found.")


@pytest.mark.parametrize("name", CONTENTS)
def test_the_estimate_is_on_the_safe_side(zoo: App, name: str) -> None:
    """What is estimated for a text is no less than what the tokenizer finds, in any script."""
    text = budget.printed(CONTENTS[name])
    assert counter(zoo)(text) <= budget.estimate(text)


def test_unknown_words_are_not_cheap(zoo: App) -> None:
    """A run of characters that the model has one token for counts as many as it has characters."""
    count = counter(zoo)
    assert (model_tokens(zoo, "ก" * 500), count("ก" * 500)) == (1, 500)
    assert count("quokka 🎉 mascot") == model_tokens(zoo, "quokka 🎉 mascot")
    assert count("") == 0


@pytest.mark.parametrize("name", CONTENTS)
def test_pieces_have_no_fewer_tokens_than_their_whole(zoo: App, name: str) -> None:
    """Counting an answer piece by piece never finds less than counting it whole."""
    count, pieces = counter(zoo), [budget.printed({"id": str(n), "content": CONTENTS[name]}) + "," for n in range(3)]
    assert count("".join(pieces)) <= sum(map(count, pieces))

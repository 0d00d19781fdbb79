"""Features: what the indexes find for a query, what neighbours in a session add, and what a text itself tells."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from test_without_model import cold

from callers import ADA
from clock import Clock
from recollect import App, Caller, Draft, Query, Settings, remember
from recollect.domain.enums import Scope, Sensitivity
from recollect.domain.search import NeighbourSignals, Signals
from recollect.search.signals import Candidates, gather
from recollect.search.visibility import view_of
from recollect.search.word_weights import rarity
from stores import open_app

THINGS = "kettle lantern bicycle drawer curtain ladder pillow hammer basket mirror candle carpet bucket shovel".split()
PLACES = ("in the cellar", "behind the barn", "on the balcony", "under the stairs", "near the well")
INSTRUMENT, CELLO, THANKS = (
    ("Bob", "Which instrument did you pick up this winter, Ann?"),
    ("Ann", "The cello! Five lessons so far, though my fingers still hurt."),
    ("Bob", "Then play something at the wedding next week."),
)
NOBODY = NeighbourSignals()
TRANSCRIPT = (
    "Melanie: We spent the weekend in a tent high above the lake.\n"
    "Caroline: How was the weather?\n"
    "Melanie: Cold at night, and we saw a fox.\n"
    "Caroline: I would have loved to see that."
)


def add_turns(app: App, session: str, *turns: tuple[str | None, str], **fields: Any) -> list[int]:
    """Store the turns of a session, speaker and text, and return their ids."""
    return [
        int(remember(app, Draft(content=text, speaker=who, session_id=session, position=place, **fields), ADA).id)
        for place, (who, text) in enumerate(turns)
    ]


def candidates(app: App, text: str, caller: Caller = ADA, **fields: Any) -> Candidates:
    """Gather what is known of each candidate for a query."""
    query = Query(query=text, **fields)
    return gather(app, query, view_of(app, query, caller))


def signals(gathered: Candidates) -> dict[int, Signals]:
    """Return the signals of each candidate."""
    return dict(zip(gathered.ids, gathered.signals_of(gathered.ids), strict=True))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """Return a store that tests only read: one talk among more small matters than a search by meaning brings back."""
    home = tmp_path_factory.mktemp("evidence")
    settings = Settings(home=home, user="ada", team="crew", project="engine")
    with open_app(settings, clock=lambda: datetime(2026, 3, 1, tzinfo=UTC)) as app:
        for thing in THINGS:
            for place in PLACES:
                remember(app, Draft(content=f"The {thing} stands {place}", category="things"), ADA)
        add_turns(app, "music", INSTRUMENT, CELLO, THANKS, observed_at=datetime(2023, 5, 7, 18, tzinfo=UTC))
        remember(app, Draft(content=TRANSCRIPT, key="lake"), ADA)
        yield app


@pytest.fixture(scope="module")
def talk(library: App) -> list[int]:
    """Return the ids of the talk's three turns."""
    view = view_of(library, Query(query="music", session_id="music"), ADA)
    return sorted(library.records.newest(view, 10))


def test_the_answer_stands_beside_the_question(library: App, talk: list[int]) -> None:
    """Who asks for the topic gets the turn after the one that holds its words, with what that one lends it."""
    asked, answer, _ = talk
    found = signals(candidates(cold(library), "which instrument in winter"))
    assert (found[asked].coverage, found[answer].coverage) == (1.0, 0.0)
    assert found[answer].bm25 == 0.0 < found[asked].bm25
    assert found[answer].around == 1.0
    assert found[answer].before == NeighbourSignals(bm25=found[asked].bm25)


def test_the_best_bring_their_neighbours_among_many(library: App, talk: list[int]) -> None:
    """Among more memories than are looked at, the neighbour of one of the best is a candidate, of a worse one not."""
    _, answer, after = talk
    near = "Which lesson hurts behind the barn?"
    far = "Is the violin in the cellar with the drawer and the basket?"
    for text, best in ((near, True), (far, False)):
        gathered = candidates(library, text)
        assert gathered.vector is not None
        nearest = library.vectors.nearest(gathered.vector, view_of(library, Query(query=text), ADA), 50)
        assert (answer in list(nearest)[:20], answer in nearest) == (best, True)
        assert after not in nearest
        assert (after in signals(gathered)) is best
    after_near = signals(candidates(library, near))[after]
    assert (after_near.bm25, after_near.coverage) == (0.0, 0.0)
    assert after_near.before.cosine == signals(candidates(library, near))[answer].cosine > after_near.cosine


def test_each_side_lends_what_stands_there(library: App, talk: list[int]) -> None:
    """What came before and what came after lend their own bm25, cosine and late interaction, and the ends lend none."""
    first, middle, last = (signals(candidates(library, "an instrument for a wedding"))[one] for one in talk)
    as_near = lambda one: NeighbourSignals(one.bm25, one.cosine, one.late)  # noqa: E731
    assert (first.bm25 > 0.0, middle.bm25, last.bm25 > 0.0) == (True, 0.0, True)
    assert (first.before, first.after) == (NOBODY, as_near(middle))
    assert (middle.before, middle.after) == (as_near(first), as_near(last))
    assert (last.before, last.after) == (as_near(middle), NOBODY)
    assert (middle.coverage, middle.around) == (0.0, 1.0)
    assert all(one.in_session for one in (first, middle, last))


def test_what_came_before_may_have_been_a_question(library: App, talk: list[int]) -> None:
    """A turn knows which share of it, and of the turn before, are questions; a question after it does not count."""
    first, middle, last = (signals(candidates(library, "an instrument for a wedding"))[one] for one in talk)
    assert (first.questions, first.questions_before) == (1.0, 0.0)
    assert (middle.questions, middle.questions_before) == (0.0, 1.0)
    assert (last.questions, last.questions_before) == (0.0, 0.0)
    assert middle.length == len(CELLO[1])


def test_a_memory_outside_of_any_session_has_no_neighbours(library: App) -> None:
    """What stands in no session is lent nothing."""
    found = signals(candidates(library, "the kettle in the cellar"))
    best = max(found.values(), key=lambda one: one.bm25)
    assert best.coverage == best.around == 1.0
    assert (best.before, best.after, best.in_session, best.questions_before) == (
        NOBODY,
        NOBODY,
        False,
        0.0,
    )


def test_other_sessions_lend_nothing(app: App) -> None:
    """The same places in another session, and in a session of the same name in another scope, are no neighbours."""
    (alone,) = add_turns(app, "s1", (None, "The heron waits"))
    add_turns(app, "S1", (None, "A marmot whistles"), (None, "A badger digs"))
    add_turns(app, "s1", (None, "A lynx sleeps"), (None, "A beaver builds"), scope=Scope.TEAM)
    found = signals(candidates(app, "heron marmot badger lynx beaver"))
    assert len(found) == 5
    assert (found[alone].before, found[alone].after, found[alone].in_session) == (
        NOBODY,
        NOBODY,
        False,
    )
    assert 0.0 < found[alone].coverage == found[alone].around < 0.5


def test_private_neighbours_lend_nothing_to_a_public_view(app: App) -> None:
    """A private turn beside a public one shows in nothing, until the query lets private memories in."""
    (public,) = add_turns(app, "s1", ("Ann", "It is for the birthday."))
    secret = Draft(
        content="Shall we hide the accordion?",
        session_id="s1",
        position=1,
        speaker="Bob",
        sensitivity=Sensitivity.PRIVATE,
    )
    hidden = int(remember(app, secret, ADA).id)
    for store in (app, cold(app)):
        found = signals(candidates(store, "the accordion for the birthday"))
        assert found.keys() == {public}
        assert found[public].after == NOBODY
        assert not found[public].in_session
        assert found[public].around == found[public].coverage < 1.0
        found = signals(candidates(store, "the accordion for the birthday", allow_private=True))
        assert found.keys() == {public, hidden}
        assert found[public].after.bm25 == found[hidden].bm25 > 0.0
        assert (found[public].in_session, found[public].around) == (True, 1.0)
        assert found[hidden].before.bm25 == found[public].bm25


def test_who_spoke(library: App, talk: list[int]) -> None:
    """Signals say whether the query names the speaker."""

    def signal(text: str, name: str) -> list[Any]:
        found = signals(candidates(library, text))
        return [getattr(found[one], name) for one in talk]

    assert signal("Which instrument is Ann's, for the wedding?", "speaker_named") == [False, True, False]
    assert signal("Which instrument, for the wedding?", "speaker_named") == [False, False, False]


def test_names_of_speakers_are_not_embedded(library: App, talk: list[int]) -> None:
    """The name of whoever speaks in the store, or in a transcript that the words find, leaves the meaning as it is."""
    lake = next(one for one, found in signals(candidates(library, "tent lake fox")).items() if found.coverage == 1.0)
    plain, by_voice, by_speaker = (
        signals(candidates(library, text))[lake].cosine
        for text in ("camping trip by the lake", "Melanie camping trip by the lake", "camping trip by the lake Bob")
    )
    assert plain == pytest.approx(by_voice, abs=1e-6) == pytest.approx(by_speaker, abs=1e-6)
    other = signals(candidates(library, "Zelda camping trip by the lake"))[lake].cosine
    assert abs(other - plain) > 0.01
    assert not signals(candidates(library, "Melanie camping trip by the lake"))[lake].speaker_named


def test_no_hidden_memory_stands_before_a_transcript(app: App, clock: Clock) -> None:
    """Expired memories that hold more of the words do not keep the speakers of a transcript from being known."""
    remember(app, Draft(content=TRANSCRIPT), ADA)
    for number in range(12):
        remember(app, Draft(content=f"Melanie: camping trip by the lake, number {number}", ttl_days=1.0), ADA)
    clock.pass_days(2)
    by_voice, plain = (candidates(app, f"{name}camping trip by the lake").found.text for name in ("Melanie ", ""))
    assert by_voice == plain


def test_a_heading_is_no_name(app: App) -> None:
    """A word that opens one line of a text stays in what is embedded."""
    number = int(remember(app, Draft(content="Accuracy: high.\nClarity: low.\nTone: dry.\nLength: a page."), ADA).id)
    with_it, without = (signals(candidates(app, text))[number].cosine for text in ("Clarity of a text", "of a text"))
    assert with_it > without + 0.01


def test_what_the_query_is(library: App) -> None:
    """Words that nobody stored are the unknown share; the rarest stored one is as rare as its uses in any form."""
    size = library.text.size(view_of(library, Query(query="x"), ADA))
    asked = candidates(library, "lessons").query
    assert (asked.words, asked.unknown, asked.semantic) == (1, 0.0, True)
    assert asked.rarest == pytest.approx(rarity(1, size))
    assert replace(candidates(library, "lesson").query, asks=asked.asks) == asked
    strange = candidates(library, "xqzvw").query
    assert (strange.words, strange.unknown, strange.rarest) == (1, 1.0, 0.0)
    mixed = candidates(library, "lessons xqzvw").query
    assert mixed.words == 2
    assert mixed.unknown == pytest.approx(rarity(0, size) / (rarity(0, size) + rarity(1, size)))
    common = candidates(library, "drawer").query
    assert common.rarest == pytest.approx(rarity(len(PLACES), size))


def test_evidence_is_whole(library: App, talk: list[int]) -> None:
    """Every candidate has a standing and is looked at closely, with cosines as the vectors give them."""
    gathered = candidates(library, "Which instrument did she pick up?")
    assert [*gathered.ids] == list(gathered.places)
    assert gathered.vector is not None
    assert float(np.linalg.norm(gathered.vector)) == pytest.approx(1.0, abs=1e-5)
    exact = library.vectors.cosines(gathered.vector, list(signals(gathered)))
    assert {number: one.cosine for number, one in signals(gathered).items()} == pytest.approx(exact, abs=1e-5)
    assert all(one.late is not None and one.rare is not None for one in signals(gathered).values())
    assert max(signals(gathered), key=lambda one: signals(gathered)[one].late or 0.0) == talk[0]
    assert gathered.found.notes == ()


def test_asking_twice_gives_the_same_evidence(library: App) -> None:
    """The same query finds the same candidates with the same signals, in the same order."""
    first, second = (candidates(library, "an instrument for Ann's wedding") for _ in range(2))
    assert list(signals(first).items()) == list(signals(second).items())
    assert first.query == second.query


def test_evidence_without_the_model(library: App, talk: list[int]) -> None:
    """While the model is loading words alone are evidence, which is said, and nothing pretends to be meaning."""
    gathered = candidates(cold(library), "an instrument for the wedding")
    assert (gathered.query.semantic, gathered.vector) == (False, None)
    assert gathered.found.notes == ("Vector search skipped: the embedding model is still loading.",)
    assert signals(gathered).keys() == {*talk}
    for one in signals(gathered).values():
        assert (one.cosine, one.late, one.rare) == (0.0, None, None)
        assert (one.before.cosine, one.before.late, one.after.cosine, one.after.late) == (0.0, 0.0, 0.0, 0.0)
    with_model = signals(candidates(library, "an instrument for the wedding"))
    blank: dict[str, Any] = {
        "cosine": 0.0,
        "late": None,
        "rare": None,
        "before": NOBODY,
        "after": NOBODY,
    }
    for one in talk:
        assert replace(signals(gathered)[one], **blank) == replace(with_model[one], **blank)


def test_nothing_stored_is_no_evidence(app: App) -> None:
    """A store without memories gives no candidates, and no error."""
    gathered = candidates(app, "anything at all")
    assert (gathered.ids, len(gathered.columns), gathered.query.unknown) == ([], 0, 1.0)
    assert candidates(app, "?!").query.words == 0


@pytest.mark.parametrize(
    ("fields", "count"),
    [
        ({"category": "things", "min_score": 0.0, "limit": 2}, 50),
        ({"category": "things", "min_score": 0.0, "limit": 100}, len(THINGS) * len(PLACES)),
        ({"category": "things", "limit": 2}, 0),
        ({"min_score": 0.0, "limit": 2}, 50),
        ({"category": "nowhere", "min_score": 0.0, "limit": 2}, 0),
    ],
)
def test_filters_without_a_least_score_take_the_newest(library: App, fields: dict[str, Any], count: int) -> None:
    """Where words find too little, a query that asks for whatever there is gets the newest that pass."""
    found = signals(candidates(cold(library), "xqzvw", **fields))
    query = Query(query="xqzvw", **fields)
    newest = library.records.newest(view_of(library, query, ADA), count)
    assert found.keys() == {*newest}
    assert not any(one.bm25 or one.cosine or one.fuzzy for one in found.values())


def test_what_words_find_is_not_filled_up(library: App) -> None:
    """Where as many as are wanted were found, the newest are left out; where fewer, those found stay beside them."""
    fields: dict[str, Any] = {"category": "things", "min_score": 0.0}
    barn = signals(candidates(cold(library), "barn", limit=len(THINGS), **fields))
    assert len(barn) == len(THINGS)
    assert all(one.bm25 > 0.0 for one in barn.values())
    more = candidates(cold(library), "barn", limit=len(THINGS) + 1, **fields)
    assert {number: one for number, one in signals(more).items() if one.bm25} == barn
    assert len(signals(more)) == len(THINGS) * len(PLACES)
    assert more.found.core == barn.keys()


def test_a_filter_keeps_neighbours_out(open_store: Callable[..., App]) -> None:
    """A neighbour that the query filters out is no candidate and lends nothing."""
    app = open_store()
    kept = add_turns(app, "s1", ("Ann", "The heron waits"), category="birds")
    remember(app, Draft(content="The lynx sleeps", session_id="s1", position=1, category="cats"), ADA)
    found = signals(candidates(app, "heron and lynx", category="birds"))
    assert [*found] == kept
    assert (found[kept[0]].in_session, found[kept[0]].after) == (False, NOBODY)

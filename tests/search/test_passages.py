"""Proximity: how much of a query stands together, within a few sentences and within a clause."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from recollect.search.passages import Proximity
from recollect.text.normalization import fold
from recollect.text.terms import stem

quick = hypothesis_settings(deadline=None, database=None)
FAR = " so it went on" * 20  # 280 characters


def shares(query: str, text: str) -> tuple[float, float]:
    """Measure a text against a query whose words all weigh the same."""
    return shares_of(Proximity({stem(fold(word)): 1.0 for word in query.split()}), text)


def shares_of(measured: Proximity, text: str) -> tuple[float, float]:
    """Return the two shares of one text."""
    passage, phrase = measured.shares([text])[0].tolist()
    return passage, phrase


@pytest.mark.parametrize(
    ("text", "passage", "phrase"),
    [
        ("We saw the lake from the tent", 1.0, 1.0),
        ("From the TENT, at last, all the lakes", 1.0, 1.0),
        (f"The lake{FAR[:140]} and the tent", 1.0, 0.5),
        (f"The lake{FAR} and the tent", 0.5, 0.5),
        (f"The lake and a lake{FAR} and the tent{FAR} tent by the lake", 1.0, 1.0),
        ("A flake in the intent", 0.0, 0.0),
        ("Nothing of it", 0.0, 0.0),
        ("", 0.0, 0.0),
    ],
    ids=["together", "forms and case", "a few sentences", "far apart", "at the end", "inside words", "none", "empty"],
)
def test_words_that_stand_together(text: str, passage: float, phrase: float) -> None:
    """Both words within 80 characters are a phrase, within 250 a passage, and farther apart each stands alone."""
    assert shares("tent lake", text) == (passage, phrase)


def test_a_rare_word_counts_for_more() -> None:
    """A share is of the weight, not of the number of words, and a word that comes twice counts once."""
    measured = Proximity({"lake": 3.0, "tent": 1.0})
    assert shares_of(measured, "lake, lake, lake") == (0.75, 0.75)
    assert shares_of(measured, "a tent") == (0.25, 0.25)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("happy", "such happiness"),
        ("stories", "one story"),
        ("café", "Le CAFÉ"),
        ("cafe", "le café"),
        ("größe", "Die Grösse und die Größen"),
        ("日本", "私は日本に住む"),
        ("art artist", "art by an artist"),
    ],
)
def test_words_are_found_in_any_form(query: str, text: str) -> None:
    """Inflections, accents and scripts without spaces are met, and of two stems the longer one is meant."""
    assert shares(query, text) == (1.0, 1.0)


def test_one_stem_that_begins_another_is_not_taken_for_it() -> None:
    """An artist is no art: each word of a text stands for one word of the query."""
    assert shares("art artist", "an artist") == (0.5, 0.5)
    assert shares("art artist", "the arts") == (0.5, 0.5)


def test_a_query_without_words_is_nowhere() -> None:
    """Nothing asked is nothing found."""
    assert shares_of(Proximity({}), "the lake") == (0.0, 0.0)
    assert shares_of(Proximity({"": 1.0}), "the lake") == (0.0, 0.0)


def test_no_stretch_reaches_from_one_text_into_another() -> None:
    """Several texts are measured at once, and each as if it were alone."""
    measured = Proximity({"lake": 1.0, "tent": 1.0, "日本": 2.0})
    texts = ["the lake", "a tent", "", "日本", "the lake and the tent", f"lake{FAR} tent"]
    assert measured.shares(texts).tolist() == [list(shares_of(measured, text)) for text in texts]
    assert measured.shares(texts)[:3, 0].tolist() == [0.25, 0.25, 0.0]


@quick
@given(
    st.dictionaries(st.text("abcé日.(*", max_size=3).map(fold), st.floats(0.1, 9.0), max_size=5),
    st.text("abcé日.(* ", max_size=400),
)
def test_shares_are_shares(weights: dict[str, float], text: str) -> None:
    """Whatever is asked and stored, a clause holds no more than a passage, and a passage no more than everything."""
    passage, phrase = shares_of(Proximity(weights), text)
    assert 0.0 <= phrase <= passage <= 1.0

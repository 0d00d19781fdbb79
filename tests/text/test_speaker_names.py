"""Names: who of the store's speakers a query names, and the query without them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.text.speaker_names import name_words, named_speakers, without_names

SPEAKERS = ["Caroline", "Mel Brooks", "user", "assistant", "Zoë", "Al"]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("When did Caroline go to the support group?", {"Caroline"}),
        ("what is caroline's job", {"Caroline"}),
        ("Did Brooks meet Zoe?", {"Mel Brooks", "Zoë"}),
        ("what did the user say to the assistant", set()),
        ("Carolines are a group of islands", set()),
        ("is Al there", set()),
        ("", set()),
    ],
)
def test_named_by_any_word_of_the_name(query: str, names: set[str]) -> None:
    """A speaker is named by a whole word of the name, case and accents aside; a role or two letters name nobody."""
    assert named_speakers(name_words(query), SPEAKERS) == names


def test_without_leaves_the_topic() -> None:
    """The names go, with what hangs on them, and the rest keeps its order."""
    assert (
        without_names("When did Caroline's brother visit Mel?", ["Caroline", "Mel Brooks"]) == "When did brother visit"
    )


def test_a_query_of_names_only_stays() -> None:
    """When nothing else would be left, the names are the topic."""
    assert without_names("Caroline Brooks", ["Caroline", "Mel Brooks"]) == "Caroline Brooks"


@given(st.text(max_size=200))
def test_without_nobody_is_the_query(query: str) -> None:
    """A query that names nobody is embedded as it was typed."""
    assert without_names(query, []) == query

"""A query taken apart: its words, compounds and pairs, who may be named, and what it asks for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from recollect.search.parse import Phrase, parse
from recollect.text.normalization import fold

quick = hypothesis_settings(deadline=None, database=None)


def texts(phrases: tuple[Phrase, ...]) -> tuple[str, ...]:
    """Return the phrases as the query has them."""
    return tuple(one.text for one in phrases)


def test_a_query_keeps_what_carries_meaning() -> None:
    """Stop words are dropped, each word is kept once, and names with punctuation stay whole beside their parts."""
    asked = parse("When do we ship the ship to src/Main.py or user@example.org?")
    assert asked.words == ("ship", "src", "main", "py", "user", "example", "org")
    assert texts(asked.compounds) == ("src/main.py", "user@example.org")


def test_a_query_of_stop_words_keeps_them() -> None:
    """Where nothing else was asked, the stop words are the query."""
    assert parse("to be or not to be").words == ("to", "be", "or", "not")
    assert parse("?!").words == ()


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("what did I decide today", ("decide",)),
        ("the outage of the day before yesterday", ("outage",)),
        ("releases two weeks ago", ("releases",)),
        ("invoices of last month", ("invoices",)),
        ("today", ("today",)),
        ("what happened last week?", ("happened",)),
        ("invoices of March", ("invoices", "march")),
        ("may I deploy this Friday", ("deploy", "friday")),
    ],
)
def test_a_time_relative_to_now_is_no_word(query: str, words: tuple[str, ...]) -> None:
    """No memory says such a time, so it goes unless nothing else was asked; a weekday, a month or a date stays."""
    assert parse(query).words == words


@quick
@given(st.text(max_size=80))
def test_parse_takes_any_text(text: str) -> None:
    """Whatever was typed, the terms are folded, distinct and without white space."""
    asked = parse(text)
    for one in (*asked.words, *texts(asked.compounds)):
        assert one == fold(one)
        assert one.split() == [one]
    assert len(set(asked.words)) == len(asked.words)


def test_phrases_know_their_words() -> None:
    """A compound and a pair come with the words that each has by itself, stop words only where it has no others."""
    asked = parse("the to-do list in src/app.py")
    assert asked.compounds == (Phrase("to-do", ("to", "do")), Phrase("src/app.py", ("src", "app", "py")))
    assert asked.pairs[:3] == (
        Phrase("the to", ("the", "to")),
        Phrase("do list", ("list",)),
        Phrase("list in", ("list",)),
    )


def test_endless_queries_have_few_pairs() -> None:
    """Of a query of any length the first 64 pairs are kept, each once."""
    asked = parse("one two one two " + " ".join(f"w{number}" for number in range(200)))
    assert len(asked.pairs) == 64
    assert texts(asked.pairs)[:3] == ("one two", "two one", "two w0")


def test_what_the_model_reads() -> None:
    """The text for the embedding model has emoji in words; whoever speaks may be named by any longer word."""
    asked = parse("Did Zoë deploy 🚀?")
    assert (asked.text, asked.model_text) == ("Did Zoë deploy 🚀?", "Did Zoë deploy rocket ?")
    assert asked.name_words == {"did", "zoe", "deploy"}

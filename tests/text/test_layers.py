"""Layers: headings made from content are short, plain and say the same as it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from recollect.text import layers

contents = st.text(st.sampled_from("abcdé ,.。!-#*\n`1"), min_size=1, max_size=1500).filter(str.strip)


@hypothesis_settings(deadline=None, database=None)
@given(contents)
def test_layers_keep_to_their_size(content: str) -> None:
    """A title has at most 80 characters, an abstract one line of 20 words and 200 characters, an overview 600."""
    assert 0 < len(layers.title(content)) <= 80
    assert 0 < len(layers.abstract(content)) <= 200
    assert len(layers.abstract(content).split()) <= 20
    assert "\n" not in layers.title(content) + layers.abstract(content)
    assert 0 < len(layers.overview(content)) <= 600


def test_the_first_sentence_is_the_abstract() -> None:
    """The abstract is the first sentence, the overview the first sentences."""
    content = "We deploy on Tuesdays. Rollbacks are done by hand.\n\nAsk Ada."
    assert layers.title(content) == layers.abstract(content) == "We deploy on Tuesdays."
    assert layers.overview(content) == "We deploy on Tuesdays. Rollbacks are done by hand. Ask Ada."


def test_long_sentences_are_cut_at_words() -> None:
    """What is cut ends in an ellipsis after a whole word, and is the beginning of the content."""
    content = " ".join(f"word{number}" for number in range(200))
    for made in (layers.title(content), layers.abstract(content), layers.overview(content)):
        assert made.endswith("…")
        assert content.startswith(made[:-1] + " ")
    assert len(layers.abstract(content).split()) == 20


def test_one_endless_word_is_cut() -> None:
    """A word without end is cut all the same."""
    assert layers.title("x" * 500) == "x" * 79 + "…"


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("# Release notes\n\nAll of it.", "Release notes"),
        ("- first point\n- second point", "first point"),
        ("> quoted text", "quoted text"),
        ("1. Install it\n2. Run it", "Install it"),
        ("```\nmake test\n```", "make test"),
        ("日本語の文。次の文。", "日本語の文。"),
        ("-5 degrees is the limit", "-5 degrees is the limit"),
        ("--force is dangerous", "--force is dangerous"),
        ("`run` starts it", "`run` starts it"),
        ("***", "***"),
    ],
)
def test_markup_is_no_heading(content: str, line: str) -> None:
    """List marks, hashes and quotes at the start are dropped; signs, flags and code stay."""
    assert layers.abstract(content) == line

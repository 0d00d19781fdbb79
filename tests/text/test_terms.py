"""Terms: what a text and a query are made of, in the words that the text index knows."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from recollect import Draft
from recollect.text.normalization import fold
from recollect.text.terms import STOP_WORDS, forms, keywords, name_parts, stem, vocabulary

quick = hypothesis_settings(deadline=None, database=None)


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("TypeScript", "typescript"),
        ("Café", "cafe"),
        ("GRÖSSE", "grosse"),
        ("Größe", "grosse"),
        ("Русский", "русский"),
        ("がっこう", "がっこう"),
        ("日本", "日本"),
    ],
)
def test_fold_drops_case_and_accents(text: str, folded: str) -> None:
    """Case and accents do not count."""
    assert fold(text) == folded


@quick
@given(st.text(max_size=60))
def test_folding_twice_is_folding_once(text: str) -> None:
    """What is folded stays as it is, so that stored and asked words meet."""
    assert fold(fold(text)) == fold(text)


@pytest.mark.parametrize(
    ("name", "inner"),
    [
        ("noImplicitAny", ["no", "Implicit", "Any"]),
        ("parse_config_file", ["parse", "config", "file"]),
        ("HTTPServer2", ["HTTP", "Server", "2"]),
        ("plain", []),
        ("two words", []),
        ("x" * 65 + "Y", []),
    ],
)
def test_names_are_taken_apart(name: str, inner: list[str]) -> None:
    """CamelCase and snake_case names give their parts; plain and endless words give none."""
    assert name_parts(name) == inner


def test_the_vocabulary_holds_names_whole_and_in_parts() -> None:
    """A name is found by itself and by its parts; one-letter and endless words are left out."""
    words = vocabulary(["Set noImplicitAny in a café", "x" * 65])
    assert {"set", "noimplicitany", "implicit", "any", "cafe"} <= words
    assert not words & {"a", "x" * 65}
    assert not any(" " in word for word in words)


@quick
@given(st.text(max_size=80))
def test_the_vocabulary_is_folded_and_bounded(text: str) -> None:
    """Every word is at most 64 characters without white space, so that a list of them can be joined and cut."""
    for word in vocabulary([text]):
        assert 1 < len(word) <= 64 or not word.isascii()
        assert word.split() == [word]


def test_stemming_meets_the_text_index() -> None:
    """Inflections of a word have one stem, the one of Porter that FTS5 uses."""
    assert stem("deploying") == stem("deployed") == stem("deploys") == "deploi"
    assert stem("relational") == "relat"


@pytest.mark.parametrize(
    ("word", "others"),
    [
        ("paint", {"paints", "painted", "painting", "paintings"}),
        ("paintings", {"paint", "paints", "painted", "painting"}),
        ("deployed", {"deploy", "deploys", "deploying"}),
        ("happy", {"happiness"}),
        ("stopped", {"stop", "stops", "stopping"}),
        ("moved", {"move", "moves"}),
        ("42", {"42s"}),
    ],
)
def test_the_forms_of_a_word(word: str, others: set[str]) -> None:
    """The word itself comes first, then its inflections, whichever of them was asked."""
    found = forms(word)
    assert found[0] == word
    assert others < {*found}


@quick
@given(st.text(min_size=1, max_size=20).map(fold).filter(bool) | st.from_regex(r"[a-z]{1,14}", fullmatch=True))
def test_every_form_has_the_same_stem(word: str) -> None:
    """The forms of any word are distinct, the word is the first, and no form has another stem."""
    found = forms(word)
    assert found[0] == word
    assert len({*found}) == len(found)
    assert {stem(one) for one in found} == {stem(word)}


def test_a_word_of_another_script_has_no_other_forms() -> None:
    """English endings are tried on English letters only."""
    assert forms("größe") == ("größe",)
    assert forms("日本") == ("日本",)


def test_stop_words_are_folded_words() -> None:
    """Every stop word is a folded word, else it could never match one."""
    assert all(word == fold(word) and word.isalpha() for word in STOP_WORDS)


def test_labels_become_keywords() -> None:
    """Key, category, speaker, tags, concepts, files and the parts of names find a memory too."""
    draft = Draft(
        content="call parseConfig",
        key="db_url",
        category="ops",
        speaker="Grace",
        tags=["blue-green"],
        concepts=["gotcha"],
        files_read=["src/app.py"],
        files_modified=["docs/runBook.md"],
    )
    found = keywords(draft).split()
    assert {"db_url", "db", "url", "ops", "Grace", "blue-green", "gotcha", "src/app.py", "docs/runBook.md"} <= set(
        found
    )
    assert {"parse", "Config", "run", "Book"} <= set(found)
    assert keywords(Draft(content="plain text")) == ""


def test_keywords_hold_the_date_as_people_write_it() -> None:
    """A memory is found by the day, the month and the year when the thing happened."""
    draft = Draft(content="plain text", observed_at=datetime(2023, 5, 7, 23, 59, tzinfo=UTC))
    assert keywords(draft) == "7 May 2023"
    assert {"may", "2023"} <= vocabulary([keywords(draft)])

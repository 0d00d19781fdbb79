"""Details: sentences, and the one form in which their words, numbers and dates are compared."""

from __future__ import annotations

import pytest

from recollect.policy.twins.details import Kind, key, read, sentences, tokens


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("5MB", ["5 MB"]),
        ("five megabytes", ["5 MB"]),
        ("100 Mb", ["100 Mbit"]),
        ("1,000 users", ["1000", "user"]),
        ("10k rows", ["10000", "row"]),
        ("two hundred and six", ["200", "and", "6"]),
        ("twenty-five", ["25"]),
        ("one million", ["1000000"]),
        ("$20", ["20 $"]),
        ("20 dollars", ["20 $"]),
        ("80 percent", ["80 %"]),
        ("-5 degrees", ["-5", "degre"]),
        ("3 pm", ["3 pm"]),
        ("the 3rd of May 2024", ["05-03", "2024"]),
        ("May 3, 2024", ["05-03", "2024"]),
        ("2024-05-03", ["05-03", "2024"]),
        ("in March", ["in", "month 3"]),
        ("it may rain", ["it", "may", "rain"]),
        ("on Mondays", ["on", "weekday 1"]),
        ("3.10", ["3.10"]),
        ("v1.2.3", ["v1.2.3"]),
    ],
)
def test_numbers_and_dates_have_one_form(text: str, form: list[str]) -> None:
    """Digits and words, units and their names, and every order of a date are written alike; versions stay."""
    assert [one.text for one in tokens(text)] == form


@pytest.mark.parametrize(
    ("word", "kind"),
    [("table", Kind.WORD), ("parse_config", Kind.NAME), ("five", Kind.NUMBER), ("with", Kind.LINK)]
    + [(word, Kind.POLAR) for word in ("not", "never", "без", "kein", "only", "might", "wants", "不")],
)
def test_each_word_has_a_part(word: str, kind: Kind) -> None:
    """Words link, deny or restrict, name or count; all others are plain."""
    assert [one.kind for one in tokens(word)] == [kind]


def test_contractions_and_helpers_are_taken_apart() -> None:
    """What is joined by an apostrophe counts, and be before a verb in -ing does not."""
    assert read("I can't play").texts == read("I cannot play.").texts == read("I can not play").texts
    assert read("Maria is playing").texts == read("Maria plays").texts
    assert read("We used it").texts != read("We use it").texts


def test_endings_are_dropped_and_no_more() -> None:
    """A plural is its word, but important is not import, nor news new."""
    assert read("boxes").texts == read("box").texts
    assert read("important").texts != read("imports").texts
    assert read("news").texts != read("new").texts


def test_the_key_reads_what_counts() -> None:
    """Case and final marks do not count; signs, and capitals that make another word, do."""
    assert key("- The Cat sat!") == key("the cat sat.")
    assert key("C++") != key("C")
    assert key("ask US") != key("ask us")
    assert key(".env") != key("env")


def test_sentences_end_where_people_end_them() -> None:
    """Abbreviations and numbers end no sentence; lines and full stops of other scripts do."""
    assert sentences("Dr. Ada pays 1.5 % to Acme Inc. Bob pays.\n- x")[-1] == "- x"
    assert sentences("See Dr. Ada at 1.5 km. Go!") == ["See Dr. Ada at 1.5 km.", "Go!"]
    assert sentences("会议。结束。") == ["会议。", "结束。"]
    assert sentences("a\n```\nb\nc\n```\nd") == ["a", "```\nb\nc\n```", "d"]

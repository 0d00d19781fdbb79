"""What kind of text a memory is: the share of questions, the speakers of a transcript, a date in words."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from recollect.text import speaker_names, terms

quick = hypothesis_settings(deadline=None, database=None)
ON = datetime(2023, 5, 7, 15, 30, tzinfo=UTC)
TALK = """Ann: I went to the market.
Bob: What did you buy?
Ann: Two melons
and a basket.
Bob: Lovely."""
CODE = '''def area(width, height):
    """Return the area.

    Args:
        width: the width.
        height: the height.

    Returns:
        The product.
    """
    return width * height


def edge(width, height):
    """Return the length of the edge.

    Args:
        width: the width.
        height: the height.

    Returns:
        Twice the sum.
    """
    return 2 * (width + height)
'''


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("What did you buy?", 1.0),
        ("I was out. And you?", 0.5),
        ("Really??! No. Yes. Perhaps...", 0.5),
        ("I was out.", 0.0),
        ("no end", 0.0),
        ("why? why? why", 1.0),
        ("", 0.0),
    ],
)
def test_the_share_of_questions(text: str, share: float) -> None:
    """Asking is the share of sentences that end in a question mark."""
    assert terms.share_of_questions(text) == share


@quick
@given(st.text(alphabet="ab .?!\n", max_size=40))
def test_the_share_of_questions_is_a_share(text: str) -> None:
    """However a text is punctuated, the share is 0–1, and above zero just where a question mark stands."""
    assert 0.0 <= terms.share_of_questions(text) <= 1.0
    assert (terms.share_of_questions(text) > 0.0) == ("?" in text)


def test_who_speaks_in_a_transcript() -> None:
    """The names that open several lines of a transcript are its voices; a second word belongs to the name."""
    assert speaker_names.transcript_speakers(TALK) == {"Ann", "Bob"}
    named = TALK.replace("Bob", "Bob Miller").replace("Ann", "A.-M. Lee")
    assert speaker_names.transcript_speakers(named) == {"A.-M. Lee", "Bob Miller"}
    assert speaker_names.transcript_speakers(TALK + "\nCarol: Hello?") == {"Ann", "Bob"}


@pytest.mark.parametrize(
    "text",
    [
        "Accuracy: every figure was checked.\nClarity: short sentences.\nTone: friendly.\nLength: one page.",
        CODE,
        "Note: alone.\nNote: again.\nNote: and again.\nNote: no dialogue of one.",
        "Ann: Hi\nBob: Hi",
        "Ann: Hi.\n" + "A long story follows.\n" * 20 + "Bob: Hi.\nAnn: Oh.\nBob: Ah.",
        "\n".join(f"{name}: one\n{name}: two" for name in "ABCDEFGHI"),
        "at 12: noon\nat 13: lunch\nat 12: noon\nat 13: lunch",
        "",
    ],
    ids=["headings", "code", "one voice", "too short", "mostly a story", "nine voices", "no names", "empty"],
)
def test_what_is_no_transcript(text: str) -> None:
    """Headings that come once, code, a single voice and a story with some dialogue are no transcript."""
    assert speaker_names.transcript_speakers(text) == frozenset()


def test_a_date_is_written_as_people_write_it() -> None:
    """Day without a nought, month in letters, year."""
    assert terms.date_in_words(ON) == "7 May 2023"
    assert terms.date_in_words(datetime(1999, 12, 31, tzinfo=UTC)) == "31 December 1999"

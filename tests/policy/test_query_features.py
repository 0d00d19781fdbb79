"""Traits: what a query asks for, what a text tells, who speaks in it, and how well a time fits a date."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from recollect.policy import query_features
from recollect.policy.query_features import date_match

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
    ("query", "asked"),
    [
        ("When did Ann move?", True),
        ("  when was it", True),
        ("WHICH YEAR was that?", True),
        ("What date is the launch?", True),
        ("How long did it take?", True),
        ("Whenever you like", False),
        ("What did Ann say when she left?", False),
        ("Which yearbook is hers?", False),
        ("", False),
    ],
)
def test_a_question_for_a_time(query: str, asked: bool) -> None:
    """A query that opens with when, how long, or what date asks for a time; one that only mentions when does not."""
    assert query_features.asks_time(query) is asked


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ("How many cats has Bob?", True),
        ("Tell me how often we deploy", True),
        ("what is the number of replicas", True),
        ("HOW OLD is it?", True),
        ("How do I deploy?", False),
        ("Somehow manyfold", False),
        ("Which numbers of the choir?", False),
    ],
)
def test_a_question_for_a_number(query: str, asked: bool) -> None:
    """How many, how long, how often and the like ask for a number, wherever they stand."""
    assert query_features.asks_number(query) is asked


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("I met her last week.", True),
        ("It opened in 2023", True),
        ("See you on SUNDAY", True),
        ("The May 2023 release", True),
        ("In June they married", True),
        ("You may go now", False),
        ("In May they married", False),
        ("Room 2150 and the weakness of 12345", False),
        ("We use TypeScript", False),
    ],
)
def test_a_text_that_tells_a_time(text: str, told: bool) -> None:
    """Last week, a weekday, a month and a year are times; may alone is none, since it is mostly a verb."""
    assert query_features.tells_time(text) is told


@pytest.mark.parametrize(
    ("text", "told"),
    [("He has 3 cats", True), ("Two melons", True), ("a couple of days", True), ("v2", True), ("Nobody came", False)],
)
def test_a_text_that_tells_a_number(text: str, told: bool) -> None:
    """Digits are numbers, and so are the words of small ones."""
    assert query_features.tells_number(text) is told


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
    assert query_features.questions(text) == share


@quick
@given(st.text(alphabet="ab .?!\n", max_size=40))
def test_the_share_of_questions_is_a_share(text: str) -> None:
    """However a text is punctuated, the share is 0–1, and above zero just where a question mark stands."""
    assert 0.0 <= query_features.questions(text) <= 1.0
    assert (query_features.questions(text) > 0.0) == ("?" in text)


def test_who_speaks_in_a_transcript() -> None:
    """The names that open several lines of a transcript are its voices; a second word belongs to the name."""
    assert query_features.transcript_speakers(TALK) == {"Ann", "Bob"}
    named = TALK.replace("Bob", "Bob Miller").replace("Ann", "A.-M. Lee")
    assert query_features.transcript_speakers(named) == {"A.-M. Lee", "Bob Miller"}
    assert query_features.transcript_speakers(TALK + "\nCarol: Hello?") == {"Ann", "Bob"}


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
    assert query_features.transcript_speakers(text) == frozenset()


def test_a_date_is_written_as_people_write_it() -> None:
    """Day without a nought, month in letters, year."""
    assert query_features.date_in_words(ON) == "7 May 2023"
    assert query_features.date_in_words(datetime(1999, 12, 31, tzinfo=UTC)) == "31 December 1999"


@quick
@given(st.datetimes(datetime(1900, 1, 1), datetime(2099, 12, 31)))
def test_a_written_date_is_read_again(moment: datetime) -> None:
    """What is written of a date, a query that holds it names, and the moment fits it wholly."""
    date = query_features.named_date(f"What happened on {query_features.date_in_words(moment)}?")
    assert date == (moment.year, moment.month, moment.day)
    assert date_match(date, moment.replace(tzinfo=UTC)) == 1.0


@pytest.mark.parametrize(
    ("query", "date"),
    [
        ("What happened on 7 May 2023?", (2023, 5, 7)),
        ("May 7th, 2023", (2023, 5, 7)),
        ("on the 22nd of june", (None, 6, 22)),
        ("the trip of 12 to 14 October", (None, 10, 12)),
        ("Who came in October?", (None, 10, None)),
        ("Who came in May?", (None, 5, None)),
        ("who came in may", (None, 5, None)),
        ("may 2023 figures", (2023, 5, None)),
        ("the 2019 fair in March", (2019, 3, None)),
        ("March 45", (None, 3, None)),
        ("What did she buy in October for 2 kids?", (None, 10, None)),
        ("The 3 fairs of April", (None, 4, None)),
        ("may I", None),
        ("May I come in?", None),
        ("Is it late? May we go in June?", (None, 6, None)),
        ("They may come", None),
        ("maybe in 2023", None),
        ("the 7th", None),
        ("", None),
    ],
)
def test_the_date_that_a_query_names(query: str, date: tuple[int | None, int, int | None] | None) -> None:
    """A date needs a month at least, the day stands beside it; may is a month only where it cannot be the verb."""
    assert query_features.named_date(query) == date


@quick
@given(st.text(alphabet="0127 May,june.th", max_size=60))
def test_a_named_date_could_be_one(query: str) -> None:
    """Whatever a query holds, what is taken for its date has a month of 1–12 and a day of 1–31 or none."""
    date = query_features.named_date(query)
    assert date is None or (1 <= date[1] <= 12 and date[2] in (None, *range(1, 32)))


@pytest.mark.parametrize(
    ("date", "days", "fits"),
    [
        ((2023, 5, 7), 0, 1.0),
        ((2023, 5, 7), 2, 1.0),
        ((2023, 5, 7), 3, 1.0),
        ((2023, 5, 7), 4, 0.6),
        ((2023, 5, 7), 7, 0.6),
        ((2023, 5, 7), 14, 0.6),
        ((2023, 5, 7), 15, 0.0),
        ((2023, 5, 7), -1, 0.6),
        ((2023, 5, 7), -3, 0.0),
        ((2022, 5, 7), 0, 0.0),
        ((None, 5, 7), 0, 1.0),
        ((None, 5, 7), 365, 0.6),
        ((2023, 6, 31), 30, 0.0),
        ((None, 6, 31), 30, 0.0),
        ((2023, 5, None), 0, 1.0),
        ((2023, 5, None), 24, 1.0),
        ((2023, 5, None), 25, 0.5),
        ((2023, 5, None), 40, 0.0),
        ((2023, 5, None), -7, 0.0),
        ((2022, 5, None), 0, 0.0),
        ((None, 5, None), 365, 1.0),
    ],
)
def test_how_well_a_time_fits_a_date(date: tuple[int | None, int, int | None], days: int, fits: float) -> None:
    """What was observed so many days after 7 May 2023 fits that day, a little less after it, or its month."""
    assert date_match(date, ON + timedelta(days=days)) == fits


def test_a_date_is_near_over_the_new_year() -> None:
    """The last days of a year are near the first ones of the next, for a day and for a month, named with its year."""
    new_year = datetime(2024, 1, 1, 9, tzinfo=UTC)
    assert date_match((None, 12, 31), new_year) == date_match((2023, 12, 31), new_year) == 1.0
    assert date_match((None, 12, None), new_year) == date_match((2023, 12, None), new_year) == 0.5
    assert date_match((2024, 12, None), new_year) == 0.0
    assert date_match((None, 1, 1), new_year - timedelta(days=1)) == 0.6


def test_without_a_date_or_a_time_nothing_is_near() -> None:
    """A query without a date fits no time, and a memory without a time no date; leap days are no error."""
    assert date_match(None, ON) == date_match((2023, 5, 7), None) == date_match(None, None) == 0.0
    assert date_match((None, 2, 29), datetime(2024, 3, 1, tzinfo=UTC)) == 1.0
    assert date_match((2023, 2, 29), datetime(2023, 3, 1, tzinfo=UTC)) == 0.0
    assert date_match((2023, 5, 7), ON.astimezone(timezone(timedelta(hours=2)))) == 1.0

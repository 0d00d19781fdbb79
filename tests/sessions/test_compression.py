"""Compression: old memories about the same make a cluster, and its summary keeps what the members have."""

from __future__ import annotations

from datetime import timedelta

import pytest

from ranked_memories import NOW, a_memory
from recollect.domain.enums import Concept, FactType, ObservationType, Sensitivity
from recollect.domain.results import Memory
from recollect.memory.condense import kept_fields
from recollect.sessions.compression import clusters, shared_topic, summary
from recollect.text.terms import jaccard, topic_words

LATER = NOW + timedelta(days=8)
CACHE = (
    "The session cache expires after an hour.",
    "Redis holds the session cache; it expires early under load.",
    "An expired session cache made logins slow.",
)
MAST = ("The mast is oak.", "Sails were mended in Brest.")


def remembered(*texts: str, **fields: object) -> list[Memory]:
    """Return a memory of each text, with ids from one on."""
    return [a_memory(id=place, content=text, **fields) for place, text in enumerate(texts, 1)]


def grouped(memories: list[Memory], *, days: float = 8) -> list[list[int]]:
    """Return the ids of the clusters so many days from now."""
    return [[one.id for one in group] for group in clusters(memories, NOW + timedelta(days=days))]


def test_words_say_what_a_text_is_about() -> None:
    """Stems of words with meaning, whatever their form; two texts share what is in both."""
    assert topic_words("The caches were expiring in 2024") == topic_words("expired cache")
    assert jaccard({"a", "b", "c"}, {"b", "c", "d"}) == 0.5
    assert jaccard(set(), set()) == 0.0


def test_three_about_the_same_are_a_cluster() -> None:
    """What is about something else stays out, and so do two that are alike."""
    assert grouped(remembered(*CACHE, *MAST)) == [[1, 2, 3]]
    assert grouped(remembered(*CACHE[:2], *MAST)) == []


def test_a_chain_of_likeness_is_one_cluster() -> None:
    """A memory joins when it is like any one member, and the order in which they are given makes no difference."""
    chain = remembered("alder birch cedar dogwood", "fir grape hazel ivy", "cedar dogwood fir grape")
    assert grouped(chain) == grouped(chain[::-1]) == [[1, 2, 3]]


@pytest.mark.parametrize(("days", "found"), [(6.9, []), (7, []), (7.1, [[1, 2, 3]])])
def test_only_what_is_older_than_a_week_is_compressed(days: float, found: list[list[int]]) -> None:
    """The age counts from when a memory was last written."""
    assert grouped(remembered(*CACHE), days=days) == found


@pytest.mark.parametrize(
    "fields",
    [
        {"key": "cache"},
        {"ttl_days": 30.0},
        {"type": ObservationType.COMPRESSED_SUMMARY},
        {"superseded_by": 9},
        {"merged_into": 9},
        {"deleted_at": NOW},
        {"sensitivity": Sensitivity.PRIVATE},
        {"namespace": "team:crew"},
        {"updated_at": LATER},
    ],
)
def test_what_must_stand_by_itself_does(fields: dict[str, object]) -> None:
    """Keys, terms, summaries, what is replaced or hidden, other levels and other namespaces are in no cluster."""
    *others, last = remembered(*CACHE)
    assert grouped([*others, last]) == [[1, 2, 3]]
    assert grouped([*others, last.model_copy(update=fields)]) == []


def test_a_summary_has_at_most_forty_members() -> None:
    """A large cluster is several summaries; what is left over and too little for one stays as it is."""
    assert [len(one) for one in grouped(remembered(*[CACHE[0]] * 83))] == [40, 40, 3]
    assert [len(one) for one in grouped(remembered(*[CACHE[0]] * 42))] == [40]


def test_the_summary_says_what_is_central() -> None:
    """Of each member the sentence that is nearest to the others, under a heading, and nothing twice."""
    first, *others = remembered(*CACHE, CACHE[2], category="login")
    first = first.model_copy(update={"content": f"It rained all day. {CACHE[0]} Lunch was late."})
    assert summary([first, *others]).split("\n") == [
        "What 4 memories about login said from 2026-03-01 to 2026-03-01:",
        *(f"- 2026-03-01: {text}" for text in CACHE),
    ]


def test_the_summary_says_titles_that_were_given() -> None:
    """A title that somebody gave tells more than any sentence; what two members say stands once, with the later day."""
    first, *others = remembered(*CACHE)
    named = first.model_copy(update={"title": "Cache: one hour", "observed_at": NOW - timedelta(days=3)})
    again = named.model_copy(update={"id": 9, "observed_at": NOW})
    assert summary([named, *others, again]).split("\n")[1:] == [
        *(f"- 2026-03-01: {text}" for text in CACHE[1:]),
        "- 2026-03-01: Cache: one hour",
    ]


def test_a_summary_is_shorter_and_says_it_once() -> None:
    """Four lines that say nearly the same are one, and long ones are cut below what they stand for."""
    told = "The nightly import of the warehouse file fails when the header has a byte order mark"
    near = remembered(*(f"{told}, as seen in run {number}." for number in range(4)))
    assert len(summary(near).split("\n")) == 2
    long = remembered(*(f"{text[:-1]} " + "and so on and so forth " * 9 for text in CACHE))
    assert len(summary(long)) < sum(len(one.content) for one in long)


def test_the_summary_keeps_what_the_members_have() -> None:
    """Every tag, concept and file once, the highest importance, the mean trust and the strictest level."""
    one, other = (
        a_memory(tags=("a", "b"), files_read=("x.py",), when=("run make a",), importance=0.2, trust=0.4),
        a_memory(
            tags=("b", "c"),
            files_modified=("y.py",),
            concepts=(Concept.GOTCHA,),
            when=("edit y.py",),
            importance=0.9,
            trust=0.8,
        ),
    )
    kept = kept_fields([one, other.model_copy(update={"sensitivity": Sensitivity.PRIVATE})])
    assert kept.pop("trust") == pytest.approx(0.4)
    assert kept == {
        "tags": ("a", "b", "c"),
        "concepts": (Concept.GOTCHA,),
        "files_read": ("x.py",),
        "files_modified": ("y.py",),
        "when": ("run make a", "edit y.py"),
        "importance": 0.9,
        "sensitivity": Sensitivity.PRIVATE,
        "fact_type": FactType.GENERAL,
        "project": None,
    }


def test_the_summary_is_of_the_kind_that_all_members_are() -> None:
    """Several decisions make a decision; where the members differ, the summary is of no kind and no project."""
    one, other = a_memory(fact_type=FactType.DECISION, project="a"), a_memory(fact_type=FactType.DECISION, project="b")
    assert kept_fields([one, other])["fact_type"] is FactType.DECISION
    assert "project" not in kept_fields([one, other])
    assert "fact_type" not in kept_fields([one, a_memory()])


def test_a_cluster_is_named_by_what_its_members_share() -> None:
    """The files or else the words that at least half of them have, the most frequent first, as they are spelt first."""
    assert shared_topic(remembered(*CACHE)) == "cache, expires, session"
    assert shared_topic(remembered(*MAST)) == ""
    one, two, three = remembered(*CACHE, files_modified=("src/cache.py",), files_read=("README.md",))
    assert shared_topic([one, two.model_copy(update={"files_read": ()}), three]) == "cache.py, README.md"

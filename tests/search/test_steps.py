"""Steps of the order: what each puts first, and that none leaves a candidate out."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from recollect.domain.origin import Authority
from recollect.search import steps
from recollect.search.relations import Relations
from recollect.search.scores import Scores
from recollect.search.signals import Candidates
from recollect.search.steps import Evidence, Order, moved_back, moved_up

quick = hypothesis_settings(deadline=None, database=None)
MATCHES = (0.9, 0.6, 0.6, 0.3, 0.1, 0.04)
IDS = [11, 12, 13, 14, 15, 16]


def evidence(matches: tuple[float, ...] = MATCHES, **known: Any) -> Evidence:
    """Return evidence of six candidates that were all stated, with what a test says of them."""
    ids = IDS[: len(matches)]
    said = known.pop("authority", {})
    candidates = SimpleNamespace(
        ids=ids,
        places={one: place for place, one in enumerate(ids)},
        authority={one: said.get(one, Authority.TOLD) for one in ids},
        unapproved=frozenset(one for one, authority in said.items() if authority is Authority.OUTSIDE),
        drafts=frozenset(known.pop("drafts", ())),
    )
    scores = Scores(np.array(known.pop("scores", [0.5] * len(ids))), {})
    least = np.full(len(ids), 0.05)
    found = Evidence(cast(Candidates, candidates), np.array(matches), least, False, scores, None, 0.0, asks_past=False)
    return replace(found, **known)


def after(known: Evidence, *taken: steps.Step) -> list[int]:
    """Return the ids in the order after these steps, from the best match on."""
    order = Order(np.arange(len(known.matches), dtype=np.intp), known.matches)
    for step in (steps.best_match, *taken):
        order = step(known, order)
    return [known.candidates.ids[place] for place in order.places]


def test_matches_that_are_too_close_are_ordered_by_score() -> None:
    """Within two percent of a match the score decides; a better match stays ahead."""
    known = evidence((0.9, 0.6, 0.595, 0.59, 0.5), scores=[0.1, 0.2, 0.3, 0.4, 0.9])
    assert after(known) == [11, 12, 13, 14, 15]
    assert after(known, steps.better_score) == [11, 14, 13, 12, 15]
    assert after(replace(known, scores=Scores(np.array([0.1, 0.4, 0.2, 0.3, 0.9]), {})), *steps.BY_MATCH) == [
        *(11, 12, 14, 13, 15),
    ]


def test_what_fits_the_named_period_comes_first() -> None:
    """The log-odds of what does not fit are lowered, so a near match of the period passes it and a far one does not."""
    known = evidence((0.6, 0.5, 0.01), fits=np.array([0.0, 1.0, 1.0]), loss=1.0)
    assert after(known, steps.named_period) == [12, 11, 13]
    assert after(replace(known, loss=0.0), steps.named_period) == [11, 12, 13]
    assert after(replace(known, fits=None), steps.named_period) == [11, 12, 13]


def test_the_newer_version_comes_before_the_older() -> None:
    """It takes the place before the first of what it replaces, and none where it is ahead already."""
    known = evidence(relations=Relations(newest={11: 14, 12: 14}))
    assert after(known, steps.newer_version) == [14, 11, 12, 13, 15, 16]
    assert after(replace(known, relations=Relations(newest={14: 11})), steps.newer_version) == IDS


def test_asked_for_the_past_the_older_version_comes_first() -> None:
    """So it does where the query names a period which the older one fits better, and never where the newer does."""
    known = evidence(relations=Relations(newest={14: 11}), asks_past=True)
    assert after(known, steps.newer_version)[:2] == [14, 11]
    newer_fits = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    assert after(replace(known, fits=newer_fits), steps.newer_version) == IDS
    older_fits = np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0])
    assert after(replace(known, asks_past=False, fits=older_fits), steps.newer_version)[:2] == [14, 11]


def test_a_summary_comes_before_its_parts() -> None:
    """The parts stay where they are, behind it."""
    known = evidence(relations=Relations(summaries={11: 15, 13: 15}))
    assert after(known, steps.whole_before_parts) == [15, 11, 12, 13, 14, 16]


def test_what_was_told_comes_before_less_authority_on_its_subject() -> None:
    """A file that matches better stands behind all that was stated of its subject, and only behind that."""
    known = evidence(authority={11: Authority.OBSERVED}, relations=Relations(stated={11: [14, 12]}))
    assert after(known, steps.stated_of_subject) == [12, 13, 14, 11, 15, 16]
    absent = replace(known, relations=Relations(stated={11: [14]}))
    order = steps.stated_of_subject(absent, Order(np.array([0, 1], dtype=np.intp), absent.matches))
    assert order.places.tolist() == [0, 1]


@pytest.mark.parametrize(("match", "found"), [(0.9, [12, 13, 14, 11, 15]), (0.69, [12, 13, 14, 15, 11])])
def test_a_page_stands_behind_what_was_told(match: float, found: list[int]) -> None:
    """Behind every likely answer, and behind all that is shown unless the page surely answers itself."""
    known = evidence((match, 0.6, 0.6, 0.3, 0.1), authority={11: Authority.OUTSIDE})
    assert after(known, steps.stated_before_drafts_and_pages) == found
    assert after(evidence((match, 0.04), authority={11: Authority.OUTSIDE}), steps.stated_before_drafts_and_pages) == [
        *(11, 12),
    ]


def test_a_draft_of_a_person_stands_behind_what_was_decided() -> None:
    """A draft gives way to no other draft, and an unsure one to all that is shown."""
    known = evidence(drafts=[11, 12])
    assert after(known, steps.stated_before_drafts_and_pages) == [13, 14, 11, 15, 12, 16]


def test_the_lower_of_two_that_deny_each_other_may_contradict_the_higher() -> None:
    """Behind the first ten, what is denied there stands before; what only repeats a rule contradicts nothing."""
    known = Relations(denials=[(11, 12), (11, 13)], stated={14: [15], 16: [15]}, quotes={16})
    assert known.contradicted([13, 11, 12, 15, 14, 16]) == {11: 13, 12: 11, 14: 15}
    assert known.contradicted([13, 11]) == {11: 12, 14: 15}


@quick
@given(st.permutations(range(8)), st.lists(st.tuples(st.integers(0, 3), st.integers(4, 7)), max_size=6))
def test_what_leads_moves_up_and_nothing_is_lost(places: list[int], ahead: list[tuple[int, int]]) -> None:
    """Each leader stands before what it leads, and every place is kept once."""
    found = moved_up(Order(np.array(places), np.zeros(8)), ahead).places.tolist()
    assert sorted(found) == sorted(places)
    assert all(found.index(first) < found.index(second) for first, second in ahead)


@quick
@given(st.permutations(range(8)), st.dictionaries(st.integers(4, 7), st.integers(0, 3), max_size=4))
def test_what_gives_way_stands_behind_and_all_else_as_before(places: list[int], behind: dict[int, int]) -> None:
    """Each place stands behind the one that goes ahead of it, and those that give way to nothing keep their order."""
    last = np.full(8, -1)
    for low, high in behind.items():
        last[low] = places.index(high)
    found = moved_back(Order(np.array(places), np.zeros(8)), last).places.tolist()
    assert sorted(found) == sorted(places)
    assert [one for one in found if one not in behind] == [one for one in places if one not in behind]
    assert all(found.index(high) < found.index(low) for low, high in behind.items())

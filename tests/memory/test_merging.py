"""Merging: what says the same refreshes, profiles and a model's choice merge, nothing is lost, and it can be undone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from recollect import App, Settings
from recollect.domain.enums import Choice, Sensitivity
from recollect.domain.fields import MAX_CONTENT
from recollect.domain.results import WriteStatus
from recollect.errors import ModelUnusable
from run_operations import (
    OTHER,
    Judge,
    actions,
    add,
    always,
    by_hand,
    do,
    ill,
    judged_by,
    listed,
    recalled,
    rows,
    shown,
    token,
)

if TYPE_CHECKING:
    from conftest import Clock

pytestmark = pytest.mark.slow

FIRST = "The user prefers dark mode in the editor."
MORE = "The user prefers dark mode in the editor. The font is Fira Code."
OTHER_NUMBER = ("The upload limit is 5 MB.", "The upload limit is 6 MB.")
UPLOADS = [
    f"The upload limit of region {name} is {size} MB." for name, size in (("north", 5), ("south", 7), ("west", 9))
]


def test_what_says_nothing_new_confirms(app: App) -> None:
    """What says the same in other words refreshes the memory: surer, with its labels, and not one row more."""
    one = add(app, FIRST, tags=("editor",))
    again = do(app, "remember", content="Note: the user prefers dark mode in the editor", tags=("theme",))
    memory = shown(app, one)
    assert (again.id, again.status) == (str(one), WriteStatus.UPDATED)
    assert (memory.content, memory.tags) == (FIRST, ("editor", "theme"))
    assert memory.confidence == pytest.approx(0.6)
    assert actions(app, one) == ["insert", "refresh"]


def test_what_adds_is_a_memory_of_its_own(app: App) -> None:
    """Without a model to choose, more of the same is stored beside it, and the answer names the older one."""
    one = add(app, FIRST)
    outcome = do(app, "remember", content=MORE)
    assert (outcome.status, [near.id for near in outcome.near]) == (WriteStatus.STORED, [str(one)])
    assert sorted(listed(app)) == [one, int(outcome.id)]


def test_a_merge_says_both(app: App) -> None:
    """Where a model chooses to merge, one memory in sight says both once, with the surer confidence."""
    one = add(app, FIRST, confidence=0.9, category="habits")
    outcome = do(judged_by(app, always(Choice.MERGE)), "remember", content=MORE, tags=("font",))
    memory = shown(app, one)
    assert (outcome.status, outcome.message) == (WriteStatus.MERGED, f"Memory updated successfully (ID: {one})")
    assert memory.content == MORE
    assert (memory.confidence, memory.category, memory.tags) == (0.9, "habits", ("font",))
    assert listed(app) == [one]
    assert recalled(app, "Fira Code font") == {one}
    assert actions(app, one) == ["insert", "merge", "judge"]
    assert do(app, "stats").merged == 2
    assert ill(app) == []


def test_the_notes_of_a_merge_name_what_to_restore(app: App) -> None:
    """The answer says into which memory the text went, and as which one it is kept by itself."""
    one = add(app, FIRST)
    merged, kept = do(judged_by(app, always(Choice.MERGE)), "remember", content=MORE).notes
    assert merged == f"Merged into memory {one}."
    part = kept.removeprefix("The new text by itself is kept as memory ").removesuffix(", which is hidden.")
    do(app, "restore", id=part)
    assert [shown(app, each).content for each in (one, int(part))] == [FIRST, MORE]


@pytest.mark.parametrize(("old", "new"), [OTHER_NUMBER, ("Maria owns billing.", "Jonas owns billing.")])
def test_another_detail_is_another_memory(app: App, old: str, new: str) -> None:
    """Where one number or one name differs, both stay."""
    assert add(app, old) != add(app, new)
    assert len(listed(app)) == 2


def parts_of(settings: Settings, whole: int) -> dict[str, int]:
    """Return what was merged into a memory, by its text."""
    return dict(rows(settings, f"SELECT content, id FROM memory WHERE merged_into = {whole}"))


def test_a_merge_is_taken_apart(app: App, settings: Settings) -> None:
    """Restoring what was merged gives both memories their own text and labels again."""
    judge = judged_by(app, always(Choice.MERGE))
    one = add(judge, OTHER_NUMBER[0], tags=("limit",), confidence=0.4)
    assert do(judge, "remember", content=OTHER_NUMBER[1], tags=("upload",), importance=0.9).status is WriteStatus.MERGED
    two = parts_of(settings, one)[OTHER_NUMBER[1]]
    outcome = do(app, "restore", id=str(two))
    assert outcome.notes == (f"Memory {one} no longer says it.",)
    assert [shown(app, each).content for each in (one, two)] == list(OTHER_NUMBER)
    assert [shown(app, each).tags for each in (one, two)] == [("limit",), ("upload",)]
    assert (shown(app, one).confidence, shown(app, one).importance) == (0.4, 0.5)
    assert parts_of(settings, one) == {}
    assert sorted(listed(app)) == sorted([one, two])
    assert ill(app) == []


def test_the_older_half_can_be_taken_out_too(app: App, settings: Settings) -> None:
    """Restoring the text that was there first leaves the memory with what was added."""
    judge = judged_by(app, always(Choice.MERGE))
    one = add(judge, OTHER_NUMBER[0])
    add(judge, OTHER_NUMBER[1])
    first = parts_of(settings, one)[OTHER_NUMBER[0]]
    do(app, "restore", id=str(first))
    assert (shown(app, one).content, shown(app, first).content) == (OTHER_NUMBER[1], OTHER_NUMBER[0])
    assert ill(app) == []


def test_merges_come_apart_in_any_order(app: App, settings: Settings) -> None:
    """Each statement can be given back by itself; where the whole was changed since, it keeps its text."""
    judge = judged_by(app, always(Choice.MERGE))
    north, south, west = UPLOADS
    one = add(judge, north)
    assert [add(judge, text) for text in (south, west)] == [one, one]
    assert shown(app, one).content == " ".join(UPLOADS)
    parts = parts_of(settings, one)
    assert do(app, "restore", id=str(parts[south])).notes == (f"Memory {one} no longer says it.",)
    assert shown(app, one).content == f"{north} {west}"
    do(app, "update_memory", id=str(one), content=f"{north} {west} That is all.")
    assert do(app, "restore", id=str(parts[west])).notes == (f"Memory {one} keeps its present text.",)
    assert shown(app, one).content == f"{north} {west} That is all."
    assert ill(app) == []


@pytest.mark.parametrize("forgotten", [0, 1, 2])
def test_a_statement_is_forgotten_by_itself(app: App, settings: Settings, forgotten: int) -> None:
    """Of three statements that became one profile one is forgotten: the others are as they were, and it is nowhere."""
    one = add(app, UPLOADS[0], fact_type="profile", tags=("first",))
    for text in UPLOADS[1:]:
        assert add(app, text, fact_type="profile") == one
    parts = {shown(app, part).content: part for part in shown(app, one).merged_from}
    assert sorted(parts) == sorted(UPLOADS)
    gone = do(app, "forget", id=str(parts[UPLOADS[forgotten]]))
    assert gone.notes == (f"Memory {one} no longer says it.",)
    left = [text for text in UPLOADS if text != UPLOADS[forgotten]]
    assert shown(app, one).content == " ".join(left)
    assert not [text for (text,) in rows(settings, "SELECT content FROM memory") if UPLOADS[forgotten] in text]
    do(app, "forget", id=str(parts[left[1]]))
    assert (shown(app, one).content, shown(app, one).merged_from) == (left[0], ())
    assert ill(app) == []


def test_an_earlier_version_is_no_statement(app: App) -> None:
    """Forgetting the text that a new version replaced leaves the new one as it is."""
    one = add(app, "The mast is oak.")
    do(app, "remember", content="The mast is oak. It is tall.", id=str(one))
    (earlier,) = shown(app, one).merged_from
    assert shown(app, earlier).content == "The mast is oak."
    assert do(app, "forget", id=str(earlier)).notes == (f"Memory {one} keeps its present text.",)
    assert shown(app, one).content == "The mast is oak. It is tall."


def test_taking_apart_brings_nothing_else_back(app: App, settings: Settings) -> None:
    """A half that is restored leaves the whole hidden where somebody hid it."""
    judge = judged_by(app, always(Choice.MERGE))
    one = add(judge, OTHER_NUMBER[0])
    add(judge, OTHER_NUMBER[1])
    do(app, "memory_forget", id=str(one))
    two = parts_of(settings, one)[OTHER_NUMBER[1]]
    assert do(app, "restore", id=str(two)).notes == ()
    assert listed(app) == [two]
    assert ill(app) == []


def test_forgetting_the_whole_takes_its_parts(app: App, settings: Settings) -> None:
    """What was merged into a memory goes for good with it."""
    one = add(app, FIRST)
    assert add(judged_by(app, always(Choice.MERGE)), MORE) == one
    do(app, "forget", id=str(one))
    assert rows(settings, "SELECT * FROM memory") == []
    assert rows(settings, "SELECT * FROM word") == []
    assert ill(app) == []


def test_a_profile_always_merges_with_the_most_similar(app: App) -> None:
    """A profile is one with the nearest profile, whatever a judge says, and never with anything else."""
    judge = always(Choice.CREATE)
    app_ = judged_by(app, judge)
    plain = add(app_, "Ada is a software engineer in Madrid.")
    profile = add(app_, "Ada is a software engineer in Berlin.", fact_type="profile")
    merged = do(app_, "memory_remember", content="Ada is a software engineer in Lisbon.", category="profile")
    assert (merged.id, judge.asked) == (str(profile), [])
    assert "Lisbon" in shown(app, profile).content
    assert "Berlin" in shown(app, profile).content
    assert shown(app, plain).content == "Ada is a software engineer in Madrid."


@pytest.mark.parametrize("kind", ["event", "case"])
def test_events_and_cases_are_always_new(app: App, kind: str) -> None:
    """What happened, and what solved a problem, is a memory of its own however often the very same text is told."""
    judge = always(Choice.MERGE)
    texts = [f"The build failed on node {number} and a restart helped." for number in (1, 1, 1, 2)]
    ids = [add(judged_by(app, judge), text, fact_type=kind) for text in texts]
    ids.append(add(judged_by(app, judge), "The build failed on node 3 and a restart helped."))
    assert len(set(ids)) == 5
    assert [shown(app, one).content for one in ids[:4]] == texts
    assert judge.asked == []


def test_a_judge_decides_about_which(app: App) -> None:
    """The judge sees the near ones, nearest first, and its choice holds for the one it names."""
    limits = {add(app, text): text for text in OTHER_NUMBER}
    judge = Judge(lambda _, old: (Choice.MERGE, old.index(OTHER_NUMBER[0])))
    assert shown(app, add(judged_by(app, judge), "The upload limit is 7 MB.")).content.startswith(OTHER_NUMBER[0])
    assert [set(old) for _, old in judge.asked] == [set(limits.values())]


@pytest.mark.parametrize("choice", [(Choice.CREATE, 0), (Choice.MERGE, 7), (Choice.SKIP, -1)])
def test_a_judge_may_leave_it_apart(app: App, choice: tuple[Choice, int]) -> None:
    """CREATE, and any choice about what is not there, makes a new memory."""
    one = add(app, OTHER_NUMBER[0])
    assert add(judged_by(app, always(*choice)), OTHER_NUMBER[1]) != one
    assert len(listed(app)) == 2


def test_a_judge_cannot_destroy(app: App, settings: Settings) -> None:
    """What a judge would skip although it says something new is merged instead."""
    one = add(app, OTHER_NUMBER[0])
    assert add(judged_by(app, always(Choice.SKIP)), OTHER_NUMBER[1]) == one
    assert shown(app, one).content == " ".join(OTHER_NUMBER)
    assert set(parts_of(settings, one)) == set(OTHER_NUMBER)


def test_what_is_skipped_in_another_order_of_words_is_stored_once(app: App) -> None:
    """Where a judge skips what has the very words of a memory, that memory is refreshed and its text stays."""
    old = "Run the migrations before deploying the app."
    one = add(app, f"{old} They take a minute.")
    outcome = do(judged_by(app, always(Choice.SKIP)), "remember", content="Before deploying the app, run migrations")
    assert (int(outcome.id), outcome.status) == (one, WriteStatus.UPDATED)
    assert shown(app, one).content == f"{old} They take a minute."
    assert listed(app) == [one]


def test_a_judge_that_fails_is_done_without(app: App) -> None:
    """Without a choice nothing is merged: both texts are kept, and the answer is the ordinary one."""

    def fail(_new: str, _old: object) -> tuple[Choice, int]:
        raise ModelUnusable("The model is away.")

    one = add(app, FIRST)
    outcome = do(judged_by(app, Judge(fail)), "remember", content=MORE)
    assert outcome.status is WriteStatus.STORED
    assert {shown(app, each).content for each in (one, int(outcome.id))} == {FIRST, MORE}


def test_a_judge_is_not_asked_needlessly(app: App) -> None:
    """A known key, a new key, the same text, and a text like no other need no judge."""
    judge = always(Choice.MERGE)
    app = judged_by(app, judge)
    add(app, OTHER_NUMBER[0])
    add(app, OTHER_NUMBER[0])
    add(app, OTHER_NUMBER[1], key="limit")
    add(app, "A heron stands on the pier.")
    assert judge.asked == []


@pytest.mark.full
def test_what_is_too_long_together_stays_apart(app: App) -> None:
    """Two profiles that no memory can hold together are two, and nothing of either is lost."""
    line = "Ada is a software engineer in Berlin and likes tea. "
    laugh = "ha" * 75  # one token of the model, which keeps the test short
    first = line + "".join(f"She keeps note {number}: {laugh}. " for number in range(MAX_CONTENT // 320))
    second = line + "".join(f"She wrote page {number}: {laugh}. " for number in range(MAX_CONTENT // 320))
    assert max(len(first), len(second)) < MAX_CONTENT < len(first) + len(second)
    ids = [add(app, text, fact_type="profile") for text in (first, second)]
    assert [shown(app, one).content for one in ids] == [first, second]


def test_more_labels_than_a_memory_holds_keep_them_apart(app: App) -> None:
    """A merge that would have more than 200 tags is none."""
    ids = [add(judged_by(app, always(Choice.MERGE)), OTHER_NUMBER[n], tags=tags(n)) for n in (0, 1)]
    assert ids[0] != ids[1]
    assert [len(shown(app, one).tags) for one in ids] == [150, 150]


def tags(start: int) -> tuple[str, ...]:
    """Return 150 tags of one's own."""
    return tuple(f"t{start}-{number}" for number in range(150))


def test_a_keyed_memory_takes_nothing_up(app: App) -> None:
    """Whoever writes to a key writes over it, so nothing else is merged into its memory."""
    keyed = add(app, FIRST, key="theme")
    judged = add(judged_by(app, always(Choice.MERGE)), MORE)
    assert judged != keyed
    assert add(app, "The user prefers light mode in the editor.", key="theme") == keyed
    assert shown(app, judged).content == MORE


def test_a_merge_passes_the_gate_again(app: App, settings: Settings) -> None:
    """A memory that holds what the gate refuses today takes nothing up, which is on record; the new one is stored."""
    one = add(app, "The deploy runs from the small server in the cellar every night.")
    by_hand(settings, "UPDATE memory SET content = content || ? WHERE id = ?", f" Its key is {token()}.", one)
    new = add(judged_by(app, always(Choice.MERGE)), "The deploy runs from the small server in the attic every night.")
    assert new != one
    assert "attic" in shown(app, new).content
    assert ("refuse",) in rows(settings, "SELECT action FROM journal")


@pytest.mark.parametrize("level", [Sensitivity.PRIVATE, Sensitivity.SECRET])
def test_levels_and_namespaces_never_mix(app: App, level: Sensitivity) -> None:
    """What is private, secret, or another's is neither taken into a public memory nor shown to the judge."""
    judge = always(Choice.MERGE)
    add(app, OTHER_NUMBER[0], sensitivity=level)
    add(app, OTHER_NUMBER[0], OTHER)
    add(app, OTHER_NUMBER[0], scope="team")
    new = add(judged_by(app, judge), OTHER_NUMBER[1])
    assert shown(app, new).content == OTHER_NUMBER[1]
    assert judge.asked == []


@pytest.mark.parametrize(("old", "new"), [(1.0, None), (None, 1.0)])
def test_nothing_is_lost_or_kept_by_another_term(app: App, clock: Clock, old: float | None, new: float | None) -> None:
    """What is kept for ever is not merged into what goes tomorrow, nor the other way round."""
    judge = judged_by(app, always(Choice.MERGE))
    terms = {FIRST: old, MORE: new}
    ids = {text: add(judge, text, **({} if days is None else {"ttl_days": days})) for text, days in terms.items()}
    assert len(set(ids.values())) == 2
    clock.pass_days(2)
    assert listed(app) == [ids[text] for text, days in terms.items() if days is None]


def test_a_turn_of_a_talk_is_its_own_memory(app: App) -> None:
    """Two turns that say the same in other words are two memories, and no other is merged into one."""
    judge = judged_by(app, always(Choice.MERGE))
    texts = (FIRST, f"Note: {FIRST}")
    ids = {add(judge, text, session_id="s", position=place) for place, text in enumerate(texts)}
    ids.add(add(judge, MORE))
    assert len(ids) == 3

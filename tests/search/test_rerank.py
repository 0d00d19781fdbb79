"""Reranking in an open store: the best matches are looked at again, and whatever goes wrong is a note."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import pytest

from callers import ADA, own
from recollect import App, Draft, Query, recall, remember
from recollect.app import Capabilities
from recollect.domain.enums import Sensitivity
from recollect.domain.requests import Inspect
from recollect.domain.search import View
from recollect.engines.cross_encoder import CrossEncoderRerank
from recollect.errors import ModelUnusable
from recollect.memory.reports import doctor
from recollect.search.rerank import passages, reranked
from text_vectors import vectors
from tiny_reranker import build

pytestmark = pytest.mark.slow

MATCHES = {1: 0.5, 2: 0.4, 3: 0.3, 4: 0.2}
TEXTS = {1: "the river", 2: "muddy", 3: "golden", 4: "the bridge"}
LOADING = ("Not reranked: the reranker is still loading.",)


@dataclass
class Judge:
    """A reranker that likes the word `golden`, and remembers what it was asked."""

    top: int = 30
    ready: bool = True
    loading: bool = False
    failure: str = ""
    kind: str = "reranker"
    model: str = "judge"
    answer: Callable[[Sequence[str]], Sequence[float]] = lambda texts: [0.9 if "golden" in t else 0.1 for t in texts]
    asked: list[tuple[str, list[str]]] = field(default_factory=list)

    def wait(self, seconds: float) -> bool:
        """Say whether it is not loading; nobody may wait for that."""
        assert seconds == 0.0
        return not self.loading

    def warm(self) -> None:
        """Fail: nobody may load it here."""
        raise AssertionError("nobody may wait for the reranker here")

    def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Judge, and remember the question."""
        self.asked.append((query, list(texts)))
        return self.answer(texts)


def with_judge(app: App, judge: Judge | None) -> App:
    """Return the same store with this reranker."""
    return replace(app, capabilities=Capabilities(rerank=judge))


def written(ids: Sequence[int]) -> dict[int, str]:
    """Read the texts of made-up memories."""
    return {one: TEXTS[one] for one in ids if one in TEXTS}


def never(ids: Sequence[int]) -> dict[int, str]:
    """Fail: nobody may read the memories."""
    raise AssertionError("nothing is to be read where nobody judges")


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a tiny real cross-encoder."""
    return build(tmp_path_factory.mktemp("reranker") / "tiny")


def test_the_stand_in_has_what_a_reranker_has() -> None:
    """The stand-in offers what the capability promises."""
    promised = {name for name in vars(CrossEncoderRerank) if not name.startswith("_")}
    assert promised <= {*vars(Judge), *Judge.__dataclass_fields__}


def test_without_a_reranker_nothing_changes(app: App) -> None:
    """By default there is none: the matches stay, nothing is read, nothing is said."""
    assert app.capabilities.rerank is None
    assert reranked(app, "q", MATCHES, never) == (MATCHES, ())


def test_the_best_are_ordered_anew(app: App) -> None:
    """The passage that the reranker likes moves to the front, and it was asked with the query, best match first."""
    judge = Judge()
    found, notes = reranked(with_judge(app, judge), "where is gold?", MATCHES, written)
    assert max(found, key=lambda one: found[one]) == 3
    assert notes == ()
    assert judge.asked == [("where is gold?", ["the river", "muddy", "golden", "the bridge"])]


def test_only_the_top_is_judged(app: App) -> None:
    """Below the configured number nothing is read or judged, and matches stay as they are."""
    judge = Judge(top=2)
    found, _ = reranked(with_judge(app, judge), "q", MATCHES, written)
    assert judge.asked == [("q", ["the river", "muddy"])]
    assert {one: found[one] for one in (3, 4)} == {3: 0.3, 4: 0.2}


def test_a_single_match_is_not_judged(app: App) -> None:
    """Where there is nothing to put in order, the reranker is not troubled."""
    assert reranked(with_judge(app, Judge()), "q", {1: 0.5}, never) == ({1: 0.5}, ())
    assert reranked(with_judge(app, Judge()), "q", {}, never) == ({}, ())


def test_a_memory_that_cannot_be_read_keeps_its_match(app: App) -> None:
    """A memory that was deleted meanwhile has no passage, and the others are judged without it."""
    judge = Judge()
    found, notes = reranked(with_judge(app, judge), "q", MATCHES | {9: 0.45}, written)
    assert judge.asked == [("q", ["the river", "muddy", "golden", "the bridge"])]
    assert (found[9], notes) == (0.45, ())


def test_nobody_waits_for_it_to_load(app: App) -> None:
    """While the reranker is loading, the matches stay and the answer says so."""
    loading = with_judge(app, Judge(ready=False, loading=True))
    assert reranked(loading, "q", MATCHES, never) == (MATCHES, LOADING)


def test_a_reranker_that_cannot_be_loaded_is_named(app: App) -> None:
    """When the reranker failed to load, the matches stay and the answer says why."""
    failed = with_judge(app, Judge(ready=False, failure="There is no model folder /x."))
    assert reranked(failed, "q", MATCHES, never) == (MATCHES, ("Not reranked: There is no model folder /x.",))


def test_one_that_nobody_loads_is_loaded_at_the_first_need(app: App) -> None:
    """In a process that loads nothing in the background, the first question loads the reranker."""
    judge = Judge(ready=False)
    _, notes = reranked(with_judge(app, judge), "q", MATCHES, written)
    assert (len(judge.asked), notes) == (1, ())


def test_a_failure_at_work_is_a_note(app: App) -> None:
    """When the reranker fails while it judges, the matches stay and the answer says why."""

    def fail(_: Sequence[str]) -> Sequence[float]:
        raise ModelUnusable("The reranker failed at its work: out of memory")

    found, notes = reranked(with_judge(app, Judge(answer=fail)), "q", MATCHES, written)
    assert found == MATCHES
    assert notes == ("Not reranked: The reranker failed at its work: out of memory",)


@pytest.mark.parametrize("scores", [[math.nan] * 4, [0.5, math.nan, 0.5, 0.5], [1.5, 0.1, 0.1, 0.1], [0.5] * 3, []])
def test_scores_that_are_none_are_a_note(app: App, scores: list[float]) -> None:
    """Scores that are no numbers of 0–1, or too few, change nothing and are said."""
    found, notes = reranked(with_judge(app, Judge(answer=lambda _: scores)), "q", MATCHES, written)
    assert found == MATCHES
    assert notes == ("Not reranked: the reranker did not return one number of 0–1 for each passage.",)


# What is judged of a memory


def view_of(app: App, **changes: object) -> View:
    """Return what the store's own caller may see."""
    return View(namespaces=ADA.namespaces(), now=app.clock(), **changes)


def test_the_nearest_stretch_of_a_long_memory_is_judged(app: App) -> None:
    """Of a memory in several chunks the passage is the chunk nearest to the query, wherever it stands."""
    rambling = "The committee discussed the colour of the curtains at length. " * 60
    content = f"{rambling}\nProduction deploys go out on Tuesday mornings.\n{rambling}"
    number = int(remember(app, Draft(content=content), ADA).id)
    vector = vectors(app.embedder, ["when do we ship releases?"], "query")[0]
    passage = passages(app, view_of(app), vector, [number])[number]
    assert "deploys go out on Tuesday" in passage
    assert len(passage) < len(content) / 2


def test_without_a_vector_all_is_judged(app: App) -> None:
    """Without the query's vector the passage is the whole content; who said it stands in front."""
    number = int(remember(app, Draft(content="We ship on Tuesdays", speaker="Grace"), ADA).id)
    assert passages(app, view_of(app), None, [number]) == {number: "Grace: We ship on Tuesdays"}


def test_a_memory_without_vectors_is_judged_whole(app: App) -> None:
    """A memory that the embedding model has not seen yet is passed as it is."""

    class UnembeddedMemory:
        """The vectors of a store whose memories still wait for the model."""

        def best_spans(self, vector: object, ids: Sequence[int]) -> dict[int, tuple[int, int]]:
            return {}

    number = int(remember(app, Draft(content="We ship on Tuesdays"), ADA).id)
    vector = vectors(app.embedder, ["releases"], "query")[0]
    waiting = replace(app, vectors=UnembeddedMemory())
    assert passages(waiting, view_of(app), vector, [number]) == {number: "We ship on Tuesdays"}


def test_what_the_caller_may_not_see_is_never_judged(app: App) -> None:
    """A private memory reaches the reranker only where the query may see private ones."""
    number = int(remember(app, Draft(content="Grace's door code is on the fridge", sensitivity="private"), ADA).id)
    assert passages(app, view_of(app), None, [number]) == {}
    allowed = view_of(app, sensitivities=own(Sensitivity.PUBLIC, Sensitivity.PRIVATE))
    assert number in passages(app, allowed, None, [number])


class LoadedJudge(Judge):
    """A reranker that is loaded already."""

    def warm(self) -> None:
        """Do nothing."""


def test_the_doctor_names_a_reranker_only_where_there_is_one(app: App) -> None:
    """Without a reranker the doctor has no line for it; with one it says which, and how many matches it looks at."""
    assert not [check for check in doctor(app, Inspect(), ADA) if check.name == "reranker"]
    [line] = [one for one in doctor(with_judge(app, LoadedJudge()), Inspect(), ADA) if one.name == "reranker"]
    assert (line.well, line.seen) == (True, "judge, looks at the best 30")


# With the real thing


@pytest.mark.full
def test_a_real_cross_encoder_orders_memories(open_store: Callable[..., App], folder: Path) -> None:
    """A store opened with a cross-encoder has it ready, and its scores move the memories."""
    app = open_store(rerank=str(folder), background=True)
    assert app.capabilities.rerank is not None
    assert app.capabilities.rerank.ready
    golden = int(remember(app, Draft(content="the river is golden"), ADA).id)
    muddy = int(remember(app, Draft(content="the river is muddy"), ADA).id)
    read = partial(passages, app, view_of(app), vectors(app.embedder, ["what is the river"], "query")[0])
    found, notes = reranked(app, "what is the river", {muddy: 0.5, golden: 0.4}, read)
    assert found[golden] > found[muddy]
    assert notes == ()
    assert recall(app, Query(query="what is the river"), ADA).hits
    [line] = [check for check in doctor(app, Inspect(), ADA) if check.name == "reranker"]
    assert (line.well, line.seen) == (True, f"{folder}, looks at the best 30")


def test_a_missing_cross_encoder_stops_nothing(open_store: Callable[..., App], tmp_path: Path) -> None:
    """A store whose reranker is not there opens, remembers and recalls, and the doctor has a line with advice."""
    app = open_store(rerank=str(tmp_path / "nowhere"), background=True)
    remember(app, Draft(content="The mascot is a quokka"), ADA)
    assert [hit.memory.content for hit in recall(app, Query(query="quokka"), ADA).hits] == ["The mascot is a quokka"]
    _, notes = reranked(app, "quokka", MATCHES, never)
    assert notes == (f"Not reranked: There is no model folder {tmp_path / 'nowhere'}.",)
    [line] = [check for check in doctor(app, Inspect(), ADA) if check.name == "reranker"]
    assert not line.well
    assert str(tmp_path / "nowhere") in line.seen
    assert "RECOLLECT_RERANK" in line.advice

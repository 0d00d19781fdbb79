"""Recall and remember while the embedding model is not there: words answer, and the answer says so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

from callers import ADA
from recollect import (
    App,
    Draft,
    FindSimilar,
    Get,
    Query,
    Restore,
    Update,
    find_similar,
    get_memory,
    memory_forget,
    recall,
    remember,
    restore_memory,
    update_memory,
)
from recollect.domain.enums import FactType
from recollect.domain.requests import SoftForget
from recollect.domain.results import WriteStatus
from recollect.domain.search import ModelCard
from recollect.engines.embedder import Embedder
from recollect.memory.embed import embed_pending
from recollect.search.candidates import wait_for_model

if TYPE_CHECKING:
    from recollect.store.sql.writing import Writing


@dataclass
class NotLoadedYet:
    """The real model before its weights are loaded: its card is known, nothing else is."""

    card: ModelCard
    ready: bool = False
    failure: str = ""
    waits: list[float] = field(default_factory=list)

    def wait(self, seconds: float) -> bool:
        """Say at once whether the attempt is over, which is when it failed."""
        self.waits.append(seconds)
        return bool(self.failure)

    def warm(self) -> None:
        """Fail: nobody may wait."""
        raise AssertionError("nobody may wait for the model here")

    def read(self, texts: Sequence[str], kind: str = "document") -> None:
        """Fail: there are no weights."""
        raise AssertionError("a model that is not loaded cannot read")

    def queries_first(self) -> AbstractContextManager[None]:
        """Hold up nothing: nothing is read."""
        return nullcontext()

    def spans(self, text: str) -> None:
        """Fail: there is no tokenizer."""
        raise AssertionError("a model that is not loaded cannot cut")

    def counter(self) -> None:
        """Count nothing: there is no tokenizer either."""


def cold(app: App, failure: str = "") -> App:
    """Return the same store as long as its model is not loaded."""
    return replace(app, embedder=NotLoadedYet(app.embedder.card, failure=failure))


@pytest.mark.parametrize("query", ["quokka", "quoka", "mascot named Zerline", "erlin"])
def test_words_answer_meanwhile(app: App, query: str) -> None:
    """Without the model a memory is found by words, by a typo and by a part, and the answer says what is missing."""
    without = cold(app)
    remember(without, Draft(content="The mascot is a quokka named Zerline"), ADA)
    recalled = recall(without, Query(query=query), ADA)
    assert [hit.memory.content for hit in recalled.hits] == ["The mascot is a quokka named Zerline"]
    assert "Vector search skipped: the embedding model is still loading." in recalled.notes
    assert recalled.hits[0].signals.cosine == 0.0


@pytest.mark.parametrize(
    ("query", "waited_for"), [("quokka mascot", False), ("quokka", False), ("which animal", True), ("quoka", True)]
)
def test_the_model_is_waited_for_where_words_do_not_answer(app: App, query: str, waited_for: bool) -> None:
    """Where memories hold the words of a query it is answered at once; else the model has a moment to come."""
    without = cold(app)
    remember(without, Draft(content="The mascot is a quokka named Zerline"), ADA)
    model = without.embedder
    assert isinstance(model, NotLoadedYet)
    recall(without, Query(query=query), ADA)
    assert bool(model.waits) is waited_for


def test_the_first_recall_finds_what_is_embedded_while_it_waits(app: App) -> None:
    """What another thread embeds while a recall waits for the model is found by that very recall."""
    remember(cold(app), Draft(content="Production deploys go out on Tuesday mornings"), ADA)

    class Coming:
        """The real model, which is loaded, and has embedded what waited for it, once somebody waits."""

        ready = False

        def wait(self, seconds: float) -> bool:
            worker = Thread(target=embed_pending, args=(app.records, app.embedder))
            worker.start()
            worker.join(10)
            self.ready = True
            return True

        def __getattr__(self, name: str) -> object:
            return getattr(app.embedder, name)

    recalled = recall(replace(app, embedder=Coming()), Query(query="when do we ship releases?"), ADA)
    assert [hit.memory.content for hit in recalled.hits] == ["Production deploys go out on Tuesday mornings"]
    assert recalled.notes == ()


@pytest.mark.parametrize("operation", ["remember", "update", "restore"])
def test_a_write_is_embedded_when_the_model_comes_meanwhile(app: App, operation: str) -> None:
    """What was prepared without vectors has them when the write answers, where the model became ready meanwhile."""
    text = "Production deploys go out on Tuesday mornings"
    one = "" if operation == "remember" else remember(app, Draft(content=f"{text}."), ADA).id
    if operation == "restore":
        memory_forget(app, SoftForget(id=one), ADA)

    class Coming:
        """The real model, which is loaded while a transaction is open."""

        ready = False

        def __getattr__(self, name: str) -> object:
            return getattr(app.embedder, name)

    class Open:
        """The records, where the catch-up of a model that has just been loaded ends before a transaction does."""

        @contextmanager
        def writing(self, *place: Any) -> Iterator[Writing]:
            with app.records.writing(*place) as transaction:
                yield transaction
                coming.ready = not app.records.embeddings.unembedded(1)

        def __getattr__(self, name: str) -> object:
            return getattr(app.records, name)

    coming = Coming()
    late = replace(app, embedder=coming, records=Open())
    if operation == "remember":
        remember(late, Draft(content=text), ADA)
    elif operation == "update":
        update_memory(late, Update(id=one, content=text), ADA)
    else:
        restore_memory(late, Restore(id=one), ADA)
    assert coming.ready
    recalled = recall(app, Query(query="when do we ship releases?"), ADA)
    assert recalled.hits[0].signals.cosine > 0.0
    assert recalled.notes == ()


def test_a_failed_model_is_named(app: App) -> None:
    """When the model cannot be loaded, the answer says why."""
    recalled = recall(cold(app, "The weights are not those of the model card."), Query(query="anything"), ADA)
    assert recalled.notes == ("Vector search skipped: The weights are not those of the model card.",)


def test_what_was_written_meanwhile_is_embedded_later(app: App) -> None:
    """A memory written without the model is found by meaning as soon as the model has seen it."""
    remember(cold(app), Draft(content="Production deploys go out on Tuesday mornings"), ADA)
    embed_pending(app.records, app.embedder)
    recalled = recall(app, Query(query="when do we ship releases?"), ADA)
    assert recalled.hits[0].signals.cosine > 0.0
    assert recalled.notes == ()


def test_a_memory_that_waits_for_the_model_is_owned_up_to(app: App) -> None:
    """While memories wait to be embedded, the answer says that meaning was not searched everywhere."""
    remember(cold(app), Draft(content="The pier is long."), ADA)
    recalled = recall(app, Query(query="anything"), ADA)
    assert recalled.notes == ("Some memories have no embeddings yet.",)


def test_changed_content_meanwhile_is_not_found_by_its_old_meaning(app: App) -> None:
    """An update without the model drops the old vectors at once."""
    remember(app, Draft(content="Production deploys go out on Tuesday mornings", key="k"), ADA)
    remember(cold(app), Draft(content="Grace drinks tea", key="k"), ADA)
    hits = recall(app, Query(query="when do we ship releases?", min_score=0.0), ADA).hits
    assert all(hit.memory.content == "Grace drinks tea" for hit in hits)


def test_a_profile_is_one_meanwhile_too(app: App) -> None:
    """Without vectors a profile joins the one that was changed last, so that there is one profile all the same."""
    without = cold(app)
    texts = ("Ada is an engineer.", "Ada lives in Rome.", "Ada lives in Rome and plays chess.")
    outcomes = [remember(without, Draft(content=text, fact_type=FactType.PROFILE), ADA) for text in texts]
    assert [outcome.status for outcome in outcomes] == [WriteStatus.STORED, WriteStatus.MERGED, WriteStatus.MERGED]
    whole = get_memory(without, Get(id=outcomes[0].id), ADA)
    assert whole.content == "Ada is an engineer. Ada lives in Rome and plays chess."
    assert {outcome.id for outcome in outcomes} == {outcomes[0].id}


def test_the_same_in_other_words_is_one_meanwhile_too(app: App) -> None:
    """What says the same as a stored memory refreshes that also before there are vectors."""
    without = cold(app)
    one = remember(without, Draft(content="The user prefers dark mode in the editor."), ADA)
    again = remember(without, Draft(content="Note: the user prefers dark mode in the editor"), ADA)
    assert (again.id, again.status) == (one.id, WriteStatus.UPDATED)


def test_what_is_near_is_told_once_there_are_vectors(app: App) -> None:
    """Without vectors the answer names nothing and says so; `find_similar` decides again when they are there."""
    first = remember(app, Draft(content="The user prefers dark mode in the editor."), ADA)
    outcome = remember(cold(app), Draft(content="The user prefers light mode in the editor."), ADA)
    assert (outcome.status, outcome.near) == (WriteStatus.STORED, ())
    assert [note for note in outcome.notes if "`find_similar`" in note] == list(outcome.notes) != []
    embed_pending(app.records, app.embedder)
    app.vectors.sync()
    assert [one.memory.id for one in find_similar(app, FindSimilar(id=outcome.id), ADA)] == [int(first.id)]


def test_the_stand_in_has_what_a_model_has() -> None:
    """The stand-in for the model offers what the port promises."""
    promised = {name for name in vars(Embedder) if not name.startswith("_")}
    assert promised <= {*vars(NotLoadedYet), *NotLoadedYet.__dataclass_fields__}


@pytest.mark.parametrize(("waiting", "patient"), [(0, True), (8, True), (9, False)])
def test_nobody_waits_for_many_memories(app: App, waiting: int, patient: bool) -> None:
    """A recall waits a moment until the few memories that waited for the model are embedded, never for many."""
    without = cold(app)
    for number in range(waiting):
        remember(without, Draft(content=f"Ship number {number} leaves the harbour"), ADA)
    waits: list[float] = []

    class Embedding:
        """The real model, loaded, while what waited for it is embedded."""

        def wait(self, seconds: float) -> bool:
            waits.append(seconds)
            return False

        def __getattr__(self, name: str) -> object:
            return getattr(app.embedder, name)

    assert wait_for_model(replace(app, embedder=Embedding()))
    assert waits == [0.0, 2.0] if patient else waits == [0.0]

"""Recall and remember while the embedding model is not there: words answer, and the answer says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from recollect import App, Draft, Query, recall, remember
from recollect.domain import ModelCard
from recollect.operations.embed import embed_pending
from recollect.ports import Embedder


@dataclass
class NotLoadedYet:
    """The real model before its weights are loaded: its card is known, nothing else is."""

    card: ModelCard
    ready: bool = False

    def warm(self) -> None:
        """Fail: nobody may wait."""
        raise AssertionError("nobody may wait for the model here")

    def embed(self, texts: Sequence[str], kind: str = "document") -> None:
        """Fail: there are no weights."""
        raise AssertionError("a model that is not loaded cannot embed")

    def read(self, texts: Sequence[str], kind: str = "document") -> None:
        """Fail: there are no weights."""
        raise AssertionError("a model that is not loaded cannot read")

    def spans(self, text: str) -> None:
        """Fail: there is no tokenizer."""
        raise AssertionError("a model that is not loaded cannot cut")

    def counter(self) -> None:
        """Count nothing: there is no tokenizer either."""


@dataclass
class Stubborn:
    """A warm-up that never ends, or that failed."""

    failure: str = ""

    def wait(self, seconds: float) -> bool:
        """Say at once whether the attempt is over, which is when it failed."""
        return bool(self.failure)


def cold(app: App, failure: str = "") -> App:
    """Return the same store as long as its model is not loaded."""
    return replace(app, embedder=NotLoadedYet(app.embedder.card), warmup=Stubborn(failure))


@pytest.mark.parametrize("query", ["quokka", "quoka", "mascot named Zerline", "erlin"])
def test_words_answer_meanwhile(app: App, query: str) -> None:
    """Without the model a memory is found by words, by a typo and by a part, and the answer says what is missing."""
    without = cold(app)
    remember(without, Draft(content="The mascot is a quokka named Zerline"))
    recalled = recall(without, Query(query=query))
    assert [hit.memory.content for hit in recalled.hits] == ["The mascot is a quokka named Zerline"]
    assert "Meaning is not searched yet: the embedding model is still loading." in recalled.notes
    assert recalled.hits[0].signals.cosine == 0.0


def test_a_failed_model_is_named(app: App) -> None:
    """When the model cannot be loaded, the answer says why."""
    recalled = recall(cold(app, "The weights are not those of the model card."), Query(query="anything"))
    assert recalled.notes == ("Meaning is not searched yet: The weights are not those of the model card.",)


def test_what_was_written_meanwhile_is_embedded_later(app: App) -> None:
    """A memory written without the model is found by meaning as soon as the model has seen it."""
    remember(cold(app), Draft(content="Production deploys go out on Tuesday mornings"))
    embed_pending(app.records, app.embedder)
    recalled = recall(app, Query(query="when do we ship releases?"))
    assert recalled.hits[0].signals.cosine > 0.0
    assert recalled.notes == ()


def test_a_memory_that_waits_for_the_model_is_owned_up_to(app: App) -> None:
    """While memories wait to be embedded, the answer says that meaning was not searched everywhere."""

    @dataclass
    class Slow:
        """The records of a store whose courier has not come round yet."""

        waiting: object

        def unembedded(self, limit: int, _: object) -> list[object]:
            return [self.waiting][:limit]

        def __getattr__(self, name: str) -> object:
            return getattr(app.records, name)

    recalled = recall(replace(app, records=Slow(object())), Query(query="anything"))
    assert recalled.notes == (
        "Meaning is not searched everywhere yet: some memories still wait for the embedding model.",
    )


def test_changed_content_meanwhile_is_not_found_by_its_old_meaning(app: App) -> None:
    """An update without the model drops the old vectors at once."""
    remember(app, Draft(content="Production deploys go out on Tuesday mornings", key="k"))
    remember(cold(app), Draft(content="Grace drinks tea", key="k"))
    hits = recall(app, Query(query="when do we ship releases?", min_score=0.0)).hits
    assert all(hit.memory.content == "Grace drinks tea" for hit in hits)


def test_the_stand_in_has_what_a_model_has() -> None:
    """The stand-in for the model offers what the port promises."""
    promised = {name for name in vars(Embedder) if not name.startswith("_")}
    assert promised <= {*vars(NotLoadedYet), *NotLoadedYet.__dataclass_fields__}

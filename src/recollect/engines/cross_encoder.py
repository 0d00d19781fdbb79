"""Reranks with a cross-encoder of sentence-transformers: query and passage are read together, at a price in seconds.

Nothing heavy is imported before the model is loaded, which happens in the background or at the first need.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from recollect.engines.embedding.cards import model_roots
from recollect.engines.embedding.tokens import same_length_text
from recollect.engines.loading import LazyModel
from recollect.engines.sentence_models import LIBRARY_ERRORS, ModelSource, first_line, model_source, open_cross_encoder
from recollect.errors import ModelUnusable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recollect.engines.sentence_models import CrossEncoder

_REVISION: Final = re.compile(r"[0-9a-f]{40}")
_BATCH_PAIRS: Final = 8
_MAX_PAIR_TOKENS: Final = 512  # tokens of a pair: some models read more, but not in the time a recall has
_CHARACTERS_PER_TOKEN: Final = 16  # the most: text beyond it is not tokenized
_PATIENCE_SECONDS: Final = 5.0
_MAX_MATCHES: Final = 30  # matches: more would make a recall wait for seconds


class _Loaded(NamedTuple):
    model: CrossEncoder
    limit: int


class CrossEncoderRerank(LazyModel[_Loaded]):
    """The `Rerank` capability; loads at the first need and may be used by many threads at once."""

    kind = "reranker"

    def __init__(
        self,
        model: str,
        top: int = _MAX_MATCHES,
        models_dir: Path | None = None,
        *,
        patience: float = _PATIENCE_SECONDS,
    ) -> None:
        super().__init__()
        self._name = model
        self._top = top
        self._models_dir = models_dir
        self._patience = patience
        self._scoring = Lock()  # the library truncates by changing the tokenizer's state

    @property
    def model(self) -> str:
        """Return the model's name as it was configured."""
        return self._name

    @property
    def top(self) -> int:
        """Return the largest number of matches that it may be asked about at once."""
        return self._top

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return how relevant each text is to `query`, 0–1, in order; a pair is cut at the model's limit.

        Raises `ModelUnusable` when the model cannot be loaded, fails at its work or takes longer than its patience.
        """
        loaded, end = self._model(), monotonic() + self._patience
        if not self._scoring.acquire(timeout=self._patience):
            raise ModelUnusable("The reranker is busy with other recalls.")
        try:
            return self._score_batches(loaded, query, texts, end)
        finally:
            self._scoring.release()

    def _score_batches(self, loaded: _Loaded, query: str, texts: Sequence[str], end: float) -> list[float]:
        """Return the score of each text, in order; raise `ModelUnusable` after the time `end`."""
        asked = same_length_text(
            query[: loaded.limit * 2]
        )  # about half of the limit, so that every passage keeps the other
        pairs = [(asked, same_length_text(text[: loaded.limit * _CHARACTERS_PER_TOKEN])) for text in texts]
        longest_first = sorted(range(len(pairs)), key=lambda index: -len(pairs[index][1]))
        scores = np.zeros(len(pairs))
        for begin in range(0, len(pairs), _BATCH_PAIRS):
            if begin and monotonic() > end:
                raise ModelUnusable(
                    f"The reranker needed more than {self._patience:g} seconds for {begin} of {len(pairs)} passages. "
                    "Set RECOLLECT_RERANK to a smaller model."
                )
            batch = longest_first[begin : begin + _BATCH_PAIRS]
            scores[batch] = _judge_pairs(loaded.model, [pairs[index] for index in batch])
        return [float(score) for score in scores]

    def _load(self) -> _Loaded:
        model = open_cross_encoder(self._model_source())
        limit = min(int(model.max_seq_length or _MAX_PAIR_TOKENS), _MAX_PAIR_TOKENS)
        model.max_seq_length = limit
        return _Loaded(model, limit)

    def _model_source(self) -> ModelSource:
        """Return the reranker's folder, or its id and commit on the hub; raise `ModelUnusable` without a commit."""
        local = [root / Path(self._name).name for root in model_roots(self._models_dir)]
        if found := next((folder for folder in local if (folder / "config.json").is_file()), None):
            return ModelSource(str(found.absolute()))
        source = model_source(self._name)
        if source.folder is None and not _REVISION.fullmatch(source.revision or ""):
            raise ModelUnusable(
                f"The reranker `{source.name}` needs its revision: RECOLLECT_RERANK={source.name}@COMMIT, the 40 "
                "digits that the hub shows. So no other weights are ever loaded in its place."
            )
        return source


def open_rerank(model: str, models_dir: Path | None = None) -> CrossEncoderRerank | None:
    """Return the reranker of a folder, also one under `models/`, or of `OWNER/NAME@COMMIT` of the hub; None without."""
    return CrossEncoderRerank(model, models_dir=models_dir) if model else None


def _judge_pairs(model: CrossEncoder, pairs: list[tuple[str, str]]) -> NDArray[np.float64]:
    """Return the model's score of each pair, 0–1: float64[n]. Raises `ModelUnusable`."""
    try:
        # Some models are saved with a sigmoid of their own and some without, so it is asked for the bare logits.
        found = model.predict(pairs, batch_size=len(pairs), activation_fn=_unchanged, show_progress_bar=False)
    except LIBRARY_ERRORS as error:
        raise ModelUnusable(f"The reranker failed at its work: {first_line(error)}") from error
    logits = np.asarray(found, dtype=np.float64)
    return np.asarray(0.5 + 0.5 * np.tanh(logits / 2.0))  # the logistic function, without its overflows


def _unchanged(scores: object) -> object:
    return scores

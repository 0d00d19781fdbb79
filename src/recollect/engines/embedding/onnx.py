"""The default embedder: runs the ONNX file that lies beside a model's card, and needs no torch and no network.

Each text is read by itself, in one thread, and several texts at once where there are several cores. The 8-bit model
scales its activations by all that it reads together, so that a text would get another vector in each batch; alone it
always gets the same, and threads that share no text do not wait for each other.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import numpy as np

from recollect import process
from recollect.domain.search import ModelCard
from recollect.engines.embedding.cards import ModelFolder
from recollect.engines.embedding.tokens import Tokenized, Tokens
from recollect.engines.late_interaction import make_reading
from recollect.engines.loading import EmbeddingModel
from recollect.errors import ModelUnusable

if TYPE_CHECKING:
    from onnxruntime import InferenceSession  # type: ignore[import-untyped]

    from recollect.engines.embedder import TokenEmbeddings

MODEL_FILE: Final = "model.onnx"
TOKENIZER_FILE: Final = "tokenizer.json"
INPUTS: Final = ("input_ids", "attention_mask")
SENTENCE: Final = "sentence_embedding"
TOKENS: Final = "token_embeddings"
_MAX_THREADS: Final = 4  # the machine is not ours alone


class _Loaded(NamedTuple):
    session: InferenceSession
    tokens: Tokens
    pools: Mapping[str, ThreadPoolExecutor]  # one for queries, which never wait behind documents


class OnnxEmbedder(EmbeddingModel[_Loaded]):
    """Embeds on the CPU; loads at the first need and may be used by many threads at once.

    The graph takes `input_ids` and `attention_mask`, int64[n, t], and gives `sentence_embedding` float32[n, d] in unit
    rows and `token_embeddings` float32[n, t, d], the last hidden state.
    """

    def __init__(self, model: ModelFolder, *, threads: int | None = None) -> None:
        super().__init__()
        self._folder, self._card = model
        self._threads = threads or min(_MAX_THREADS, os.cpu_count() or 1)

    @property
    def card(self) -> ModelCard:
        """Return the model's card; loads nothing."""
        return self._card

    def read(self, texts: Sequence[str], kind: Literal["query", "document"] = "document") -> list[TokenEmbeddings]:
        """Return each text, in order, as the model reads it: its unit vector, and its tokens.

        A text is cut at the card's `max_tokens`. Neither the other texts nor the number of threads change its vector.
        """
        if not texts:
            return []
        prompt = self._card.query_prompt if kind == "query" else self._card.document_prompt
        model = self._model()

        def reading(tokenized: Tokenized) -> TokenEmbeddings:
            if kind == "document":
                self._give_way()
            return _embed(model.session, tokenized)

        tokenized = model.tokens.tokenized(texts, self._card.max_tokens, prompt)
        longest_first = sorted(range(len(texts)), key=lambda place: -len(tokenized[place].ids))
        try:  # in a pool each time: its threads are waited for when the process ends, others would be cut off inside
            readings = model.pools[kind].map(reading, [tokenized[place] for place in longest_first])
        except RuntimeError as error:
            raise ModelUnusable("Nothing is embedded any more, as this process ends.") from error
        found = dict(zip(longest_first, readings, strict=True))
        return [found[place] for place in range(len(texts))]

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return the character offsets (start, end) of every token of `text`, uncut and without special tokens."""
        return self._model().tokens.spans(text)

    def counter(self) -> Callable[[str], int] | None:
        """Return a function that counts the tokens of a text, or None where the tokenizer cannot be read.

        Loads no weights and waits for nobody who does.
        """
        if self.ready:
            return self._model().tokens.count
        try:
            return Tokens.read(self._folder / TOKENIZER_FILE).count
        except ModelUnusable:
            return None

    def _load(self) -> _Loaded:
        check_file(self._folder / MODEL_FILE, self._card.sha256)
        check_file(self._folder / TOKENIZER_FILE, self._card.tokenizer_sha256)
        tokens = Tokens.read(self._folder / TOKENIZER_FILE)
        pools = {kind: ThreadPoolExecutor(self._threads, f"recollect-{kind}") for kind in ("query", "document")}
        return _Loaded(_open_session(self._folder / MODEL_FILE), tokens, pools)


def check_file(path: Path, expected: str) -> None:
    """Raise `ModelUnusable` unless the file has the SHA-256 (64 hex digits) that the model's card states."""
    if not expected:
        raise ModelUnusable(f"The model card in {path.parent} must state the sha256 of {path.name}.")
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ModelUnusable(f"The model file {path} cannot be read: {error.strerror}.") from error
    if found != expected:
        raise ModelUnusable(
            f"The model file {path} is not the one of its model card: expected sha256 {expected}, found {found}. "
            "Install Recollect again."
        )


def _embed(session: InferenceSession, text: Tokenized) -> TokenEmbeddings:
    """Return the vector and the token embeddings of a tokenized text."""
    ids = np.array([text.ids], dtype=np.int64)
    vectors, states = session.run([SENTENCE, TOKENS], dict(zip(INPUTS, (ids, np.ones_like(ids)), strict=True)))
    return make_reading(vectors[0], states[0][text.places], text.spans)


def _open_session(path: Path) -> InferenceSession:
    """Return an ONNX session on the CPU with a single thread; raise `ModelUnusable` where the model does not load."""
    process.set_default("ORT_DISABLE_TELEMETRY", "1")  # else it reports to its makers; it looks only when it is loaded
    import onnxruntime
    from onnxruntime.capi import onnxruntime_pybind11_state as state  # type: ignore[import-untyped]

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = False  # it would keep what the longest text took
    options.log_severity_level = 3  # errors
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except (
        state.Fail,
        state.InvalidArgument,
        state.InvalidGraph,
        state.InvalidProtobuf,
        state.NoSuchFile,
        state.NotImplemented,
    ) as error:
        raise ModelUnusable(f"The model {path} cannot be loaded: {error}") from error

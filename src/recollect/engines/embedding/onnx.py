"""The default embedder: onnxruntime over the model's own weights, warm in well under a second and without torch.

Also the tokens of a text, counted as the model counts them. Nothing else knows the tokenizers library.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import numpy as np

from recollect import process
from recollect.domain.search import ModelCard
from recollect.engines.embedding.graph import INPUTS, SENTENCE, TOKENS, draw
from recollect.engines.embedding.weights import TOKENIZER, WEIGHTS, find_adapter, find_weights, held_weights
from recollect.engines.late_interaction import make_reading
from recollect.engines.loading import EmbeddingModel
from recollect.errors import ModelUnusable

if TYPE_CHECKING:
    from onnxruntime import InferenceSession  # type: ignore[import-untyped]
    from tokenizers import Encoding, Tokenizer

    from recollect.engines.embedder import Matrix, TokenEmbeddings


class Tokenized(NamedTuple):
    """A text's ids with its special tokens, which of them stand for the text itself, and for which characters."""

    ids: list[int]
    places: list[int]
    spans: list[tuple[int, int]]


class Tokens:
    """A tokenizer that never truncates or pads, so that it has no state and many threads may share it."""

    def __init__(self, definition: str) -> None:
        from tokenizers import Tokenizer

        self._tokenizer: Tokenizer = Tokenizer.from_str(definition)
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        unknown = getattr(self._tokenizer.model, "unk_token", None) or "<unk>"  # the usual name where none is told
        self._unknown: int | None = self._tokenizer.token_to_id(unknown)

    @classmethod
    def read(cls, path: Path) -> Tokens:
        """Read a tokenizer.json; raises `ModelUnusable` when it cannot be read."""
        try:
            definition = path.read_text(encoding="utf-8")
            whole = "model" in json.loads(definition)
        except (OSError, ValueError) as error:
            raise ModelUnusable(f"The tokenizer {path} cannot be read: {error}.") from error
        if not whole:
            raise ModelUnusable(f"{path} is not a tokenizer definition.")
        return cls(definition)

    def tokenized(self, texts: Sequence[str], limit: int, prompt: str = "") -> list[Tokenized]:
        """Return the ids of each text with `prompt` before it, and which of them are of the text itself.

        There are at most `limit`, special tokens included; a cut text keeps its last special one.
        """
        encodings = self._tokenizer.encode_batch([plain(prompt + text) for text in texts])
        return [_tokenized(encoding, limit, len(prompt)) for encoding in encodings]

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return the character offsets (start, end) of every token, without special tokens and without truncation.

        Several tokens of one character (Hangul, rare letters) share that character's span.
        """
        return list(self._tokenizer.encode(plain(text), add_special_tokens=False).offsets)

    def count(self, text: str) -> int:
        """Return how many tokens `text` has, without special tokens.

        A word that the model does not know counts as many as it has characters, since it stands for as much text.
        """
        found = self._tokenizer.encode(plain(text), add_special_tokens=False)
        if self._unknown not in found.ids:
            return len(found.ids)
        pairs = zip(found.ids, found.offsets, strict=True)
        return sum(max(end - start, 1) if one == self._unknown else 1 for one, (start, end) in pairs)


def _tokenized(encoding: Encoding, limit: int, prompt: int) -> Tokenized:
    kept = [*range(limit - 1), len(encoding.ids) - 1] if len(encoding.ids) > limit else [*range(len(encoding.ids))]
    special, offsets = encoding.special_tokens_mask, encoding.offsets
    own = [place for place, one in enumerate(kept) if not special[one] and offsets[one][1] > prompt]
    spans = [(max(offsets[kept[place]][0] - prompt, 0), offsets[kept[place]][1] - prompt) for place in own]
    return Tokenized([encoding.ids[one] for one in kept], own, spans)


def plain(text: str) -> str:
    """Replace lone surrogates, which the library refuses, by "?": one character each, so that offsets stay."""
    return text.encode("utf-8", "replace").decode("utf-8")


_BATCH: Final = 32
_TOKENS: Final = 256  # in one batch: more take no less time each, and a query waits for the batch that runs
_MOST_THREADS: Final = 4  # a query gains nothing from more, and the machine is not ours alone


class _Loaded(NamedTuple):
    session: InferenceSession
    tokens: Tokens


class OnnxEmbedder(EmbeddingModel[_Loaded]):
    """Embeds on the CPU; loads at the first need and may be used by many threads at once."""

    def __init__(
        self, card: ModelCard, models_dir: Path | None, cache_dir: Path, *, threads: int | None = None
    ) -> None:
        super().__init__()
        self._card = card
        self._models_dir = models_dir
        self._cache_dir = cache_dir
        self._threads = threads or min(_MOST_THREADS, os.cpu_count() or 1)

    @property
    def card(self) -> ModelCard:
        """Return the model's card; loads nothing."""
        return self._card

    def read(self, texts: Sequence[str], kind: Literal["query", "document"] = "document") -> list[TokenEmbeddings]:
        """Return each text, in order, as the model reads it: its unit vector, and its tokens.

        A text is cut at the card's `max_tokens`.
        """
        if not texts:
            return []
        prompt = self._card.query_prompt if kind == "query" else self._card.document_prompt
        model = self._model()
        tokenized = model.tokens.tokenized(texts, self._card.max_tokens, prompt)
        ids = [one.ids for one in tokenized]
        found: dict[int, TokenEmbeddings] = {}
        for batch in _batches(ids):
            if kind == "document":
                self._give_way()
            vectors, hidden = _run(model.session, [ids[index] for index in batch])
            for index, vector, states in zip(batch, vectors, hidden, strict=True):
                found[index] = make_reading(vector, states[tokenized[index].places], tokenized[index].spans)
        return [found[index] for index in range(len(texts))]

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return the character offsets (start, end) of every token of `text`, uncut and without special tokens."""
        return self._model().tokens.spans(text)

    def counter(self) -> Callable[[str], int] | None:
        """Return what counts the tokens of a text, or None where no file of the model is there to read it from.

        Loads no weights and waits for nobody who does.
        """
        if self.ready:
            return self._model().tokens.count
        folder = held_weights(self._card, self._models_dir, self._cache_dir)
        try:
            return Tokens.read(folder / TOKENIZER).count if folder else None
        except ModelUnusable:
            return None

    def _load(self) -> _Loaded:
        folder, graph = open_model(self._card, self._models_dir, self._cache_dir)
        tokens = Tokens.read(folder / TOKENIZER)
        return _Loaded(_open_session(graph, folder, self._threads), tokens)


def open_model(card: ModelCard, models_dir: Path | None, cache_dir: Path) -> tuple[Path, bytes]:
    """Return the folder of the card's weights, compared with its hash, and the ONNX graph over them.

    Raises `ModelUnusable` when the weights are absent, altered, or of another architecture.
    """
    if not card.sha256:
        raise ModelUnusable(f"The model card of `{card.id}` needs the sha256 of its weights for the ONNX runtime.")
    folder = find_weights(card, models_dir, cache_dir)
    return folder, draw(folder, card.pooling, find_adapter(card, models_dir))


def _batches(ids: list[list[int]]) -> Iterator[list[int]]:
    """Put together what is about as long, since a batch costs what its longest costs."""
    by_length = sorted(range(len(ids)), key=lambda index: len(ids[index]))
    start = 0
    while start < len(by_length):
        # The longest comes last, so that a batch grows while it fits with the length of its next.
        end = start + 1
        while end < min(len(by_length), start + _BATCH) and len(ids[by_length[end]]) * (end + 1 - start) <= _TOKENS:
            end += 1
        yield by_length[start:end]
        start = end


def _run(session: InferenceSession, ids: list[list[int]]) -> list[Matrix]:
    width = max(map(len, ids))
    tokens, mask = np.zeros((2, len(ids), width), dtype=np.int64)
    for row, text_ids in enumerate(ids):
        tokens[row, : len(text_ids)] = text_ids
        mask[row, : len(text_ids)] = 1
    found: list[Matrix] = session.run([SENTENCE, TOKENS], dict(zip(INPUTS, (tokens, mask), strict=True)))
    return found


def _open_session(graph: bytes, folder: Path, threads: int) -> InferenceSession:
    process.set_default("ORT_DISABLE_TELEMETRY", "1")  # else it reports to its makers; it looks only when it is loaded
    import onnxruntime
    from onnxruntime.capi import onnxruntime_pybind11_state as state  # type: ignore[import-untyped]

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3  # errors
    # Spinning gains half a millisecond a query and burns a core beside the agent's own work.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    home = (folder / WEIGHTS).resolve().parent
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(home))
    try:
        return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    except (
        state.Fail,
        state.InvalidArgument,
        state.InvalidGraph,
        state.InvalidProtobuf,
        state.NotImplemented,
    ) as error:
        raise ModelUnusable(f"The model in {folder} cannot be loaded: {error}") from error

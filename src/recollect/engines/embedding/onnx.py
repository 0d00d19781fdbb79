"""The default embedder: onnxruntime over the model's own weights, warm in well under a second and without torch.

Draws a BERT encoder as an ONNX graph that points into its safetensors file, so that the weights lie on disk once.

Pooling and normalisation are part of the graph. Drawing takes some milliseconds and reads no weights.

The tokens of a text, counted as the model counts them. Nothing else knows the tokenizers library.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import numpy as np

from recollect import process
from recollect.domain.search import ModelCard
from recollect.engines.embedding.weights import TOKENIZER, WEIGHTS, find_weights, held_weights
from recollect.engines.late_interaction import make_reading
from recollect.engines.loading import EmbeddingModel
from recollect.errors import ModelUnusable

if TYPE_CHECKING:
    from onnxruntime import InferenceSession  # type: ignore[import-untyped]

    from recollect.engines.embedder import Matrix, TokenEmbeddings
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer
import struct
from typing import Any

INPUTS: Final = ("input_ids", "attention_mask")
SENTENCE: Final = "sentence_embedding"
TOKENS: Final = "token_embeddings"
_OPERATORS: Final = {"": 20, "com.microsoft": 1}  # the version of each set; onnxruntime has the second built in
_IR_VERSION: Final = 9  # opset 20's own; readable by every onnxruntime we allow
_FLOAT, _INT64 = 1, 7  # of onnx.TensorProto.DataType
_STORED: Final = {"F32": _FLOAT, "F16": 10, "F64": 11, "BF16": 16}
_LONGEST_HEADER: Final = 100_000_000  # bytes, the format's own limit

# `output = Operator input… attribute=JSON`, where `-` is no input. Our own: `Linear` is x Wᵀ + b, `Norm` a
# LayerNormalization, each of the layer that is named last.
_EMBEDDINGS: Final = """
zero = Constant value_ints=[0]
one = Constant value_ints=[1]
last = Constant value_ints=[-1]
length = Shape input_ids start=1 end=2
places = Slice embeddings.position_embeddings.weight zero length zero
words = Gather embeddings.word_embeddings.weight input_ids
type = Slice embeddings.token_type_embeddings.weight zero one zero
placed = Add words places
typed = Add placed type
hidden.0 = Norm typed embeddings.LayerNorm
seen = Cast attention_mask to=6
"""
_LAYER: Final = """
{p}q = Linear {before} {p}attention.self.query
{p}k = Linear {before} {p}attention.self.key
{p}v = Linear {before} {p}attention.self.value
{p}context = MultiHeadAttention {p}q {p}k {p}v - seen num_heads={heads}
{p}attended = Linear {p}context {p}attention.output.dense
{p}residual = Add {p}attended {before}
{p}middle = Norm {p}residual {p}attention.output.LayerNorm
{p}wide = Linear {p}middle {p}intermediate.dense
{p}active = Gelu {p}wide
{p}narrow = Linear {p}active {p}output.dense
{p}sum = Add {p}narrow {p}middle
{after} = Norm {p}sum {p}output.LayerNorm
"""
_POOLINGS: Final = {
    "mean": """
mask = Cast attention_mask to=1
column = Unsqueeze mask last
kept = Mul token_embeddings column
total = ReduceSum kept one keepdims=0
number = ReduceSum column one keepdims=0
least.number = Constant value_float=1e-9
count = Max number least.number
pooled = Div total count
""",
    "cls": """
first = Constant value_int=0
pooled = Gather token_embeddings first axis=1
""",
}
_UNIT: Final = """
norm = ReduceL2 pooled last keepdims=1
least.norm = Constant value_float=1e-12
divisor = Max norm least.norm
sentence_embedding = Div pooled divisor
"""


def draw(folder: Path, pooling: str) -> bytes:
    """Return the ONNX model of the BERT encoder in `folder`; its weights are external data of the resolved file.

    Inputs: `input_ids` and `attention_mask`, int64[n, t], 1 in the mask for a real token.
    Outputs: `sentence_embedding` float32[n, d], unit rows; `token_embeddings` float32[n, t, d], the last hidden state.
    Raises `ModelUnusable` for another architecture, pooling, or a file that is not what it says.
    """
    config = _read_config(folder / "config.json")
    if pooling not in _POOLINGS:
        raise ModelUnusable(f"The pooling `{pooling}` cannot be drawn; known are {', '.join(_POOLINGS)}.")
    try:
        graph = _Graph(folder / WEIGHTS, config["layer_norm_eps"])
        graph.add(_EMBEDDINGS)
        heads, layers = config["num_attention_heads"], config["num_hidden_layers"]
        for index in range(layers):
            after = f"hidden.{index + 1}" if index + 1 < layers else TOKENS
            graph.add(_LAYER.format(p=f"encoder.layer.{index}.", before=f"hidden.{index}", after=after, heads=heads))
        graph.add(_POOLINGS[pooling] + _UNIT)
        return graph.model(config["hidden_size"])
    except KeyError as error:
        raise ModelUnusable(f"The weights in {folder} do not fit their config.json: {error} is missing.") from error


def _read_config(path: Path) -> dict[str, Any]:
    try:
        config: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelUnusable(f"{path} cannot be read: {error}.") from error
    wanted = {"model_type": "bert", "hidden_act": "gelu", "position_embedding_type": "absolute"}
    for field, value in wanted.items():
        found = config.get(field, "absolute" if field == "position_embedding_type" else None)
        if found != value:
            raise ModelUnusable(f"Only BERT encoders can be drawn: {path} has {field} = {found}, not {value}.")
    return config


class _Graph:
    """Collects nodes, and the places of the weights that they use."""

    def __init__(self, weights: Path, epsilon: float) -> None:
        self._stored, self._start = _read_header(weights)
        self._file = weights.resolve().name  # the runtime follows no link out of a folder, as the hub's cache has them
        self._norm = {"axis": -1, "epsilon": float(epsilon)}
        self._known = {*INPUTS, ""}
        self._nodes: list[bytes] = []
        self._weights: list[bytes] = []

    def add(self, lines: str) -> None:
        """Add the nodes of a drawing; raises `KeyError` for a weight that the file lacks."""
        for line in filter(None, lines.splitlines()):
            output, _, operator, *rest = line.split()
            pairs = [one.split("=") for one in rest if "=" in one]
            inputs = [one.strip("-") for one in rest if "=" not in one]
            self._node(output, operator, inputs, {name: json.loads(value) for name, value in pairs})

    def model(self, width: int) -> bytes:
        """Return the ONNX ModelProto."""
        inputs = [_value_info(name, _INT64, "n", "t") for name in INPUTS]
        outputs = [_value_info(SENTENCE, _FLOAT, "n", width), _value_info(TOKENS, _FLOAT, "n", "t", width)]
        graph = _fields(1, *self._nodes) + _fields(2, "bert") + _fields(5, *self._weights)
        graph += _fields(11, *inputs) + _fields(12, *outputs)
        sets = (_fields(1, name) + _fields(2, version) for name, version in _OPERATORS.items())
        return _fields(1, _IR_VERSION) + _fields(7, graph) + _fields(8, *sets)

    def _node(self, output: str, operator: str, inputs: list[str], attributes: dict[str, Any]) -> None:
        if operator == "Linear":
            value, layer = inputs
            self._node(f"{output}.weight", "Transpose", [f"{layer}.weight"], {"perm": [1, 0]})
            self._node(f"{output}.product", "MatMul", [value, f"{output}.weight"], {})
            operator, inputs = "Add", [f"{output}.product", f"{layer}.bias"]
        elif operator == "Norm":
            value, layer = inputs
            operator, inputs, attributes = "LayerNormalization", [value, f"{layer}.weight", f"{layer}.bias"], self._norm
        for name in inputs:
            if name not in self._known:
                self._weight(name)
        self._known.add(output)
        made = [_attribute(name, value) for name, value in attributes.items()]
        home = "com.microsoft" if operator == "MultiHeadAttention" else ""
        self._nodes.append(
            _fields(1, *inputs) + _fields(2, output) + _fields(4, operator) + _fields(5, *made) + _fields(7, home)
        )

    def _weight(self, name: str) -> None:
        stored = self._stored[name]
        (start, end), kind = stored["data_offsets"], _STORED[stored["dtype"]]
        place = {"location": self._file, "offset": str(self._start + start), "length": str(end - start)}
        entries = (_fields(1, key) + _fields(2, value) for key, value in place.items())
        held = name if kind == _FLOAT else f"{name}.stored"
        shape = _fields(1, *stored["shape"])
        self._weights.append(shape + _fields(2, kind) + _fields(8, held) + _fields(13, *entries) + _fields(14, 1))
        self._known |= {name, held}
        if held != name:
            self._node(name, "Cast", [held], {"to": _FLOAT})


def _read_header(path: Path) -> tuple[dict[str, Any], int]:
    """Return what a safetensors file says of each tensor, and at which byte its tensors begin."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(min(length, _LONGEST_HEADER)))
        return {name.removeprefix("bert."): tensor for name, tensor in header.items()}, 8 + length
    except (OSError, ValueError, AttributeError) as error:
        raise ModelUnusable(f"{path} cannot be read as safetensors: {error}.") from error


def _attribute(name: str, value: float | list[int]) -> bytes:
    """Return an ONNX AttributeProto: its name, its value in the field of its kind, and the number of that kind."""
    if isinstance(value, list):
        return _fields(1, name) + _fields(8, *value) + _fields(20, 7)
    if isinstance(value, float):
        return _fields(1, name) + _fields(2, value) + _fields(20, 1)
    return _fields(1, name) + _fields(3, value) + _fields(20, 2)


def _value_info(name: str, kind: int, *shape: int | str) -> bytes:
    places = (_fields(2 if isinstance(one, str) else 1, one) for one in shape)
    return _fields(1, name) + _fields(2, _fields(1, _fields(1, kind) + _fields(2, _fields(1, *places))))


def _fields(number: int, *values: float | str | bytes) -> bytes:
    """Return values in the encoding of protocol buffers, each as a field of this number."""
    return b"".join(_field(number, value) for value in values)


def _field(number: int, value: float | str | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    if isinstance(value, float):
        return _varint(number << 3 | 5) + struct.pack("<f", value)
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(number: int) -> bytes:
    rest, found = number % 2**64, bytearray()
    while rest > 127:
        found.append(rest % 128 + 128)
        rest //= 128
    return bytes([*found, rest])


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
    return folder, draw(folder, card.pooling)


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

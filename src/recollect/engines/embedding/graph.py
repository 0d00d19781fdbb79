"""Draws a BERT or MPNet encoder as an ONNX graph that points into its safetensors file.

So the weights lie on disk once. Pooling and normalisation are part of the graph. Drawing takes some milliseconds and
reads no weights.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from recollect.engines.embedding.weights import WEIGHTS
from recollect.errors import ModelUnusable

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
_SHARED: Final = """
zero = Constant value_ints=[0]
one = Constant value_ints=[1]
last = Constant value_ints=[-1]
length = Shape input_ids start=1 end=2
words = Gather embeddings.word_embeddings.weight input_ids
seen = Cast attention_mask to=6
"""
_BERT: Final = """
places = Slice embeddings.position_embeddings.weight zero length zero
type = Slice embeddings.token_type_embeddings.weight zero one zero
placed = Add words places
typed = Add placed type
hidden.0 = Norm typed embeddings.LayerNorm
"""
# MPNet's places begin at 2, and every layer adds what the distance of two tokens says, by buckets of distances.
_MPNET: Final = """
two = Constant value_ints=[2]
end = Add length two
places = Slice embeddings.position_embeddings.weight two end zero
placed = Add words places
hidden.0 = Norm placed embeddings.LayerNorm
first.place = Constant value_int=0
step = Constant value_int=1
number.of.places = Squeeze length
order = Range first.place number.of.places step
row = Unsqueeze order zero
line = Unsqueeze order last
distance = Sub row line
longest = Constant value_int={longest}
positive = Add distance longest
buckets = Constant value_ints={buckets}
bucket = Gather buckets positive
by.token = Gather encoder.relative_attention_bias.weight bucket
by.head = Transpose by.token perm=[2,0,1]
nearness = Unsqueeze by.head zero
"""
_LAYER: Final = """
{p}q = Linear {before} {p}{query}
{p}k = Linear {before} {p}{key}
{p}v = Linear {before} {p}{value}
{p}context = MultiHeadAttention {p}q {p}k {p}v - seen {bias} num_heads={heads}
{p}attended = Linear {p}context {p}{out}
{p}residual = Add {p}attended {before}
{p}middle = Norm {p}residual {p}{norm}
{p}wide = Linear {p}middle {p}intermediate.dense
{p}active = Gelu {p}wide
{p}narrow = Linear {p}active {p}output.dense
{p}sum = Add {p}narrow {p}middle
{after} = Norm {p}sum {p}output.LayerNorm
"""
_NAMES: Final = {
    "bert": {
        "query": "attention.self.query",
        "key": "attention.self.key",
        "value": "attention.self.value",
        "out": "attention.output.dense",
        "norm": "attention.output.LayerNorm",
        "bias": "-",
    },
    "mpnet": {
        "query": "attention.attn.q",
        "key": "attention.attn.k",
        "value": "attention.attn.v",
        "out": "attention.attn.o",
        "norm": "attention.LayerNorm",
        "bias": "nearness",
    },
}
"""What each architecture calls the weights of a layer, and what its attention adds."""
_FARTHEST: Final = 128  # tokens: MPNet tells no greater distances apart
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


def draw(folder: Path, pooling: str, adapter: Path | None = None) -> bytes:
    """Return the ONNX model of the encoder in `folder`; its weights are external data of the resolved file.

    An `adapter` is a safetensors file of float16 matrices `LAYER.up` [o, r] and `LAYER.down` [r, i], whose product is
    added to the weights of a layer. The runtime adds it once, when it loads the model.

    Inputs: `input_ids` and `attention_mask`, int64[n, t], 1 in the mask for a real token.
    Outputs: `sentence_embedding` float32[n, d], unit rows; `token_embeddings` float32[n, t, d], the last hidden state.
    Raises `ModelUnusable` for another architecture, pooling, or a file that is not what it says.
    """
    config = _read_config(folder / "config.json")
    if pooling not in _POOLINGS:
        raise ModelUnusable(f"The pooling `{pooling}` cannot be drawn; known are {', '.join(_POOLINGS)}.")
    try:
        graph = _Graph(folder / WEIGHTS, config["layer_norm_eps"], _tensors(adapter) if adapter else {})
        graph.add(_SHARED + (_BERT if config["model_type"] == "bert" else _mpnet(config)))
        heads, layers = config["num_attention_heads"], config["num_hidden_layers"]
        names = _NAMES[config["model_type"]]
        for index in range(layers):
            after = f"hidden.{index + 1}" if index + 1 < layers else TOKENS
            prefix = f"encoder.layer.{index}."
            graph.add(_LAYER.format(p=prefix, before=f"hidden.{index}", after=after, heads=heads, **names))
        graph.add(_POOLINGS[pooling] + _UNIT)
        return graph.model(config["hidden_size"])
    except KeyError as error:
        raise ModelUnusable(f"The weights in {folder} do not fit their config.json: {error} is missing.") from error


def _read_config(path: Path) -> dict[str, Any]:
    try:
        config: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelUnusable(f"{path} cannot be read: {error}.") from error
    wanted = {"model_type": tuple(_NAMES), "hidden_act": ("gelu",), "position_embedding_type": ("absolute",)}
    for field, values in wanted.items():
        found = config.get(field, "absolute" if field == "position_embedding_type" else None)
        if found not in values:
            raise ModelUnusable(
                f"Only BERT and MPNet encoders can be drawn: {path} has {field} = {found}, not {' or '.join(values)}."
            )
    return config


def _mpnet(config: dict[str, Any]) -> str:
    """Return the drawing of MPNet's embeddings, with the bucket of each distance of two tokens."""
    longest = config["max_position_embeddings"]
    half = config["relative_attention_num_buckets"] // 2
    buckets = [_bucket(distance, half) for distance in range(-longest, longest + 1)]
    return _MPNET.format(longest=longest, buckets=json.dumps(buckets, separators=(",", ":")))


def _bucket(distance: int, half: int) -> int:
    """Return MPNet's bucket of a distance: one each for the nearest, growing wider up to `_FARTHEST`; forward above."""
    far, exact = abs(distance), half // 2
    if far >= exact:
        scaled = math.log(far / exact) / math.log(_FARTHEST / exact) * (half - exact)
        far = min(exact + int(scaled), half - 1)
    return far + (half if distance > 0 else 0)


class _Graph:
    """Collects nodes, and the places of the weights that they use."""

    def __init__(self, weights: Path, epsilon: float, added: Mapping[str, tuple[list[int], bytes]]) -> None:
        self._stored, self._start = _read_header(weights)
        self._added = added
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
            weight = f"{layer}.weight"
            if f"{layer}.up" in self._added:
                self._node(f"{layer}.change", "MatMul", [f"{layer}.up", f"{layer}.down"], {})
                self._node(f"{layer}.adapted", "Add", [weight, f"{layer}.change"], {})
                weight = f"{layer}.adapted"
            self._node(f"{output}.weight", "Transpose", [weight], {"perm": [1, 0]})
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
        if name in self._added:
            sides, values = self._added[name]
            self._weights.append(
                _fields(1, *sides) + _fields(2, _STORED["F16"]) + _fields(8, f"{name}.stored") + _fields(9, values)
            )
            self._known |= {name, f"{name}.stored"}
            self._node(name, "Cast", [f"{name}.stored"], {"to": _FLOAT})
            return
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


def _tensors(path: Path) -> dict[str, tuple[list[int], bytes]]:
    """Return the shape and the bytes of each float16 tensor of a safetensors file; raises `ModelUnusable`."""
    header, start = _read_header(path)
    header.pop("__metadata__", None)
    if other := next((name for name, one in header.items() if one["dtype"] != "F16"), None):
        raise ModelUnusable(f"{path} holds {other} as {header[other]['dtype']}; an adapter holds F16.")
    whole = path.read_bytes()[start:]
    places = {name: slice(*one["data_offsets"]) for name, one in header.items()}
    return {name: (header[name]["shape"], whole[place]) for name, place in places.items()}


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

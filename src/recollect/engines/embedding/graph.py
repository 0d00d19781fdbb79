"""Draws a BERT encoder as an ONNX graph from its safetensors weights, with numpy and onnx alone.

Pooling and normalisation are part of the graph; nothing here reads or writes a cache.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file

from recollect.engines.embedding.weights import WEIGHTS
from recollect.errors import ModelUnusable

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, TensorProto

Array: TypeAlias = NDArray[Any]

INPUTS: Final = ("input_ids", "attention_mask")
SENTENCE: Final = "sentence_embedding"
TOKENS: Final = "token_embeddings"
POOLINGS: Final = ("mean", "cls")
_OPSET: Final = 20
_IR_VERSION: Final = 9  # opset 20's own; readable by every onnxruntime we allow
_FLOAT: Final = 1  # onnx.TensorProto.FLOAT and INT64, spelt out so that onnx is not imported for them
_INT64: Final = 7


def draw(folder: Path, pooling: str) -> ModelProto:
    """Return the checked ONNX model of the BERT encoder in `folder`.

    Inputs: `input_ids` and `attention_mask`, int64[n, t], 1 in the mask for a real token.
    Outputs: `sentence_embedding` float32[n, d], unit rows; `token_embeddings` float32[n, t, d], the last hidden state.
    Raises `ModelUnusable` for another architecture, pooling, or a file that is not what it says.
    """
    from onnx import checker, helper

    config = _read_config(folder / "config.json")
    if pooling not in POOLINGS:
        raise ModelUnusable(f"The pooling `{pooling}` cannot be exported; known are {', '.join(POOLINGS)}.")
    try:
        bert = _Bert(config, _read_weights(folder / WEIGHTS))
        bert.draw(pooling)
        model = helper.make_model(bert.graph(), opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR_VERSION)
        checker.check_model(model)
    except (KeyError, checker.ValidationError) as error:
        raise ModelUnusable(f"The weights in {folder} do not fit their config.json: {error}.") from error
    return model


def _read_weights(path: Path) -> dict[str, Array]:
    try:
        return dict(load_file(path))
    except (OSError, SafetensorError) as error:
        raise ModelUnusable(f"{path} cannot be read as safetensors: {error}.") from error


def _read_config(path: Path) -> dict[str, Any]:
    try:
        config: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelUnusable(f"{path} cannot be read: {error}.") from error
    wanted = {"model_type": "bert", "hidden_act": "gelu", "position_embedding_type": "absolute"}
    for field, value in wanted.items():
        found = config.get(field, "absolute" if field == "position_embedding_type" else None)
        if found != value:
            raise ModelUnusable(f"Only BERT encoders can be exported: {path} has {field} = {found}, not {value}.")
    return config


class _Bert:
    """Collects the nodes and weights of one encoder; every drawing method returns the name of its result."""

    def __init__(self, config: dict[str, Any], weights: dict[str, Array]) -> None:
        self._weights = {name.removeprefix("bert."): array for name, array in weights.items()}
        self._width: int = config["hidden_size"]
        self._heads: int = config["num_attention_heads"]
        self._layers: int = config["num_hidden_layers"]
        self._epsilon: float = config["layer_norm_eps"]
        self._nodes: list[NodeProto] = []
        self._initializers: dict[str, TensorProto] = {}

    def draw(self, pooling: str) -> None:
        """Draw the whole encoder, from the inputs to both outputs."""
        mask = self._node("Cast", "attention_mask", to=_FLOAT)
        hidden = self._embeddings()
        bias = self._attention_bias(mask)
        for index in range(self._layers):
            hidden = self._layer(hidden, bias, f"encoder.layer.{index}.")
        self._node("Identity", hidden, output=TOKENS)
        pooled = self._mean(hidden, mask) if pooling == "mean" else self._first(hidden)
        norm = self._node("ReduceL2", pooled, self._ints("last", [-1]), keepdims=1)
        self._node("Div", pooled, self._node("Max", norm, self._float("least norm", 1e-12)), output=SENTENCE)

    def graph(self) -> GraphProto:
        """Return what was drawn as an ONNX GraphProto."""
        from onnx import helper

        inputs = [helper.make_tensor_value_info(name, _INT64, ["n", "t"]) for name in INPUTS]
        outputs = [
            helper.make_tensor_value_info(SENTENCE, _FLOAT, ["n", self._width]),
            helper.make_tensor_value_info(TOKENS, _FLOAT, ["n", "t", self._width]),
        ]
        return helper.make_graph(self._nodes, "bert", inputs, outputs, list(self._initializers.values()))

    def _embeddings(self) -> str:
        prefix = "embeddings."
        length = self._node("Shape", "input_ids", start=1, end=2)
        table = self._weight(prefix + "position_embeddings.weight")
        places = self._node("Slice", table, self._ints("zero", [0]), length, self._ints("rows", [0]))
        words = self._node("Gather", self._weight(prefix + "word_embeddings.weight"), "input_ids")
        first_type = self._weights[prefix + "token_type_embeddings.weight"][0]
        total = self._node("Add", self._node("Add", words, places), self._constant("token type", first_type))
        return self._normalised(total, prefix + "LayerNorm")

    def _attention_bias(self, mask: str) -> str:
        absent = self._node("Sub", self._float("one", 1.0), self._node("Unsqueeze", mask, self._ints("heads", [1, 2])))
        return self._node("Mul", absent, self._float("never", -1e9))

    def _layer(self, hidden: str, bias: str, prefix: str) -> str:
        attended = self._linear(
            self._attention(hidden, bias, prefix + "attention.self."), prefix + "attention.output.dense"
        )
        hidden = self._normalised(self._node("Add", attended, hidden), prefix + "attention.output.LayerNorm")
        wide = self._node("Gelu", self._linear(hidden, prefix + "intermediate.dense"))
        narrow = self._linear(wide, prefix + "output.dense")
        return self._normalised(self._node("Add", narrow, hidden), prefix + "output.LayerNorm")

    def _attention(self, hidden: str, bias: str, prefix: str) -> str:
        size = self._width // self._heads
        split = self._ints("split", [0, 0, self._heads, size])
        query, key, value = (
            self._node("Reshape", self._linear(hidden, prefix + name), split) for name in ("query", "key", "value")
        )
        query = self._node("Transpose", query, perm=[0, 2, 1, 3])
        key = self._node("Transpose", key, perm=[0, 2, 3, 1])
        value = self._node("Transpose", value, perm=[0, 2, 1, 3])
        scores = self._node("Mul", self._node("MatMul", query, key), self._float("scale", size**-0.5))
        shares = self._node("Softmax", self._node("Add", scores, bias), axis=-1)
        context = self._node("Transpose", self._node("MatMul", shares, value), perm=[0, 2, 1, 3])
        return self._node("Reshape", context, self._ints("join", [0, 0, self._width]))

    def _mean(self, hidden: str, mask: str) -> str:
        column = self._node("Unsqueeze", mask, self._ints("last", [-1]))
        tokens = self._ints("tokens", [1])
        total = self._node("ReduceSum", self._node("Mul", hidden, column), tokens, keepdims=0)
        count = self._node("ReduceSum", column, tokens, keepdims=0)
        return self._node("Div", total, self._node("Max", count, self._float("least count", 1e-9)))

    def _first(self, hidden: str) -> str:
        return self._node("Gather", hidden, self._constant("first", np.asarray(0, dtype=np.int64)), axis=1)

    def _linear(self, value: str, prefix: str) -> str:
        weight = self._constant(prefix + ".weight", self._weights[prefix + ".weight"].T)
        return self._node("Add", self._node("MatMul", value, weight), self._weight(prefix + ".bias"))

    def _normalised(self, value: str, prefix: str) -> str:
        scale, shift = self._weight(prefix + ".weight"), self._weight(prefix + ".bias")
        return self._node("LayerNormalization", value, scale, shift, axis=-1, epsilon=self._epsilon)

    def _weight(self, name: str) -> str:
        return self._constant(name, self._weights[name])

    def _float(self, name: str, value: float) -> str:
        return self._constant(name, np.asarray(value, dtype=np.float32))

    def _ints(self, name: str, values: list[int]) -> str:
        return self._constant(name, np.asarray(values, dtype=np.int64))

    def _constant(self, name: str, array: Array) -> str:
        from onnx import numpy_helper

        if name not in self._initializers:
            dtype = np.int64 if array.dtype.kind == "i" else np.float32
            self._initializers[name] = numpy_helper.from_array(np.asarray(array, dtype=dtype, order="C"), name)
        return name

    def _node(self, operator: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        from onnx import helper

        output = output or f"{operator}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, inputs, [output], **attributes))
        return output

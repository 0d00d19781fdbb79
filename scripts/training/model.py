"""Make the embedding model that ships: base weights and an adapter become one ONNX file with 8-bit weights.

The graph pools and normalises, and gives the last hidden states of the tokens too. Weights are rounded for each output
channel, to seven of the eight bits: a processor without 8-bit dot products adds two products in 16 bits, which the
eighth bit would overflow, so that its vectors would differ from those of other processors.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import tempfile
from pathlib import Path
from typing import Annotated, Final

import numpy as np
import torch
import typer
from onnxruntime.quantization import QuantType, quantize_dynamic
from rich.console import Console
from safetensors.numpy import load_file
from torch import nn
from transformers import BertConfig, BertModel

from recollect.engines.embedding.cards import CARD_FILE
from recollect.engines.embedding.onnx import MODEL_FILE, TOKENIZER_FILE
from training.base import CONFIG, TOKENIZER, WEIGHTS, Base, base_folder

HERE: Final = Path(__file__).resolve().parent
SHIPPED: Final = HERE.parents[1] / "models" / "notes-MiniLM-L6-v2"
ADAPTER: Final = HERE / "adapter.safetensors"
OPSET: Final = 17
INPUTS: Final = ["input_ids", "attention_mask"]
OUTPUTS: Final = ["sentence_embedding", "token_embeddings"]
out = Console(width=160)


class Encoder(nn.Module):
    """A BERT encoder that also gives the mean of its tokens' last hidden states, at unit length."""

    def __init__(self, model: BertModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return float32[n, d] in unit rows and float32[n, t, d], from int64[n, t] and a mask of 1 for real tokens."""
        states = self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        real = attention_mask.unsqueeze(-1).to(states.dtype)
        mean = (states * real).sum(1) / real.sum(1).clamp(min=1e-9)
        return nn.functional.normalize(mean, dim=1, eps=1e-12), states


def adapted(base: Path, adapter: Path) -> Encoder:
    """Return the base with the adapter's products added: LAYER.up [o, r] times LAYER.down [r, i], for each layer."""
    weights = load_file(base / WEIGHTS)
    matrices = load_file(adapter)
    for layer in sorted({name.rpartition(".")[0] for name in matrices}):
        up, down = (matrices[f"{layer}.{side}"].astype(np.float32) for side in ("up", "down"))
        weights[f"{layer}.weight"] = weights[f"{layer}.weight"] + up @ down
    config = BertConfig(**json.loads((base / CONFIG).read_text(encoding="utf-8")))
    config._attn_implementation = "eager"  # the other implementations cannot be exported
    model = BertModel(config, add_pooling_layer=False).eval()
    absent, _ = model.load_state_dict({name: torch.tensor(one) for name, one in weights.items()}, strict=False)
    if absent:
        raise SystemExit(f"The weights in {base} lack {', '.join(absent)}.")
    return Encoder(model)


def write_onnx(encoder: Encoder, target: Path) -> None:
    """Export the encoder with float32 weights, for any number of texts and tokens."""
    ids = torch.tensor([[101, 7592, 2088, 102, 0], [101, 7592, 2088, 999, 102]])
    axes = {name: {0: "n", 1: "t"} for name in (*INPUTS, "token_embeddings")} | {"sentence_embedding": {0: "n"}}
    torch.onnx.export(
        encoder,
        (ids, (ids > 0).long()),
        str(target),
        input_names=INPUTS,
        output_names=OUTPUTS,
        dynamic_axes=axes,
        opset_version=OPSET,
        dynamo=False,
    )


def make(base: Path, adapter: Path, target: Path) -> None:
    """Write model.onnx and tokenizer.json into `target`, and their hashes into the card there.

    A folder without a card gets that of the model that ships.
    """
    target.mkdir(parents=True, exist_ok=True)
    card = target / CARD_FILE
    if not card.exists():
        shutil.copyfile(SHIPPED / CARD_FILE, card)
    with tempfile.TemporaryDirectory() as folder:
        exact = Path(folder) / "exact.onnx"
        write_onnx(adapted(base, adapter), exact)
        quantize_dynamic(exact, target / MODEL_FILE, per_channel=True, reduce_range=True, weight_type=QuantType.QInt8)
    shutil.copyfile(base / TOKENIZER, target / TOKENIZER_FILE)
    text = card.read_text(encoding="utf-8")
    for name, field in ((MODEL_FILE, "sha256"), (TOKENIZER_FILE, "tokenizer_sha256")):
        digest = hashlib.sha256((target / name).read_bytes()).hexdigest()
        text = re.sub(rf'^{field} = "[0-9a-f]*"', f'{field} = "{digest}"', text, flags=re.MULTILINE)
        out.print(f"{name}: {(target / name).stat().st_size / 1e6:.1f} MB, sha256 {digest}")
    card.write_text(text, encoding="utf-8")


def main(
    folder: Base = None,
    adapter: Annotated[Path, typer.Option(help="The adapter, as `adapter` or `mix` writes it.")] = ADAPTER,
    target: Annotated[
        Path, typer.Option("--out", help="Folder of the model; without a card it gets that of the model that ships.")
    ] = SHIPPED,
) -> None:
    """Make model.onnx and tokenizer.json from the base and an adapter, and note their hashes in the card."""
    make(base_folder(folder), adapter, target)

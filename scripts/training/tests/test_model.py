"""`scripts/train model`: what it makes is what ships, and only weights of the base are taken."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from recollect.engines.embedding import find_model, open_embedder
from training import base, model

TEXTS = ["Deploys run on Fridays at noon.", "which port has the gateway", "Ada reads every migration."]


@pytest.mark.filterwarnings("ignore")  # of the export
def test_what_is_made_is_what_ships(tmp_path: Path) -> None:
    """The base and the adapter give the vectors of the model that ships, and its card with hashes of the new files."""
    model.make(base.base_folder(None), model.ADAPTER, tmp_path / "again")
    made, shipped = find_model("again", tmp_path), find_model(model.SHIPPED.name)
    assert made is not None
    assert shipped is not None
    assert (made.card.id, made.card.tokenizer_sha256) == (shipped.card.id, shipped.card.tokenizer_sha256)
    ours, theirs = (open_embedder(str(one.path), None).read(TEXTS) for one in (made, shipped))
    for one, other in zip(ours, theirs, strict=True):
        assert float(one.vector @ other.vector) > 0.999


def test_other_weights_are_refused(tmp_path: Path) -> None:
    """A folder that lacks a file, and one whose weights are not those of the base, are named."""
    with pytest.raises(typer.BadParameter, match=r"has no model\.safetensors"):
        base.base_folder(tmp_path)
    for name in (base.WEIGHTS, base.CONFIG, base.TOKENIZER):
        (tmp_path / name).write_text("{}", encoding="utf-8")
    with pytest.raises(typer.BadParameter, match="has the sha256"):
        base.base_folder(tmp_path)

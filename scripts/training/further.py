"""Fit the part of the fusion that judges conversations further, on sets that the embedding model has not seen.

`fusion` needs evidence of all sets, gathered by models that were fitted without them. This begins with the
coefficients that ship, stays near them, and needs the new sets alone. The parts for a memory by itself, for words and
for silence stay as they are, so that nothing changes where there is no conversation.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.console import Console

from evaluation.sets import load
from recollect import Settings
from recollect.engines.fusion import Network
from training import network
from training.evidence import Limits, examples_of
from training.fusion import target_of

out = Console(width=160)


def run(folders: list[Path], evidence: Path | None, target: Path) -> None:
    """Ask every question of the sets, and write the coefficients with the part for conversations fitted further."""
    torch.set_num_threads(1)  # more of them wait for one another
    written, sets = json.loads(target.read_text(encoding="utf-8")), load(folders)
    asked = sum(len(one.questions) + len(one.unanswered) for one in sets)
    limits = Limits(questions=asked, foreign=0, requests=0, memories=sum(one.sizes().total() for one in sets))
    some = [network.compiled(examples_of(one, sets, limits, evidence), True, True) for one in sets]
    fused = Network.read(written["fused"])
    talk = network.further((fused.own, fused.talk), some, network.FUSED)
    written["fused"]["talk"] = network.plain(replace(fused, talk=talk))["talk"]
    target.write_text(json.dumps(written) + "\n", encoding="utf-8")
    out.print(f"{target.name} written: {sum(map(len, some)):,} questions and copies of them.")


def main(
    folders: Annotated[list[Path], typer.Argument(help="Evaluation sets: folders with corpus, queries and qrels.")],
    evidence: Annotated[
        Path | None, typer.Option(help="A folder that keeps the evidence of each set. Pickles: only your own.")
    ] = None,
    target: Annotated[
        Path | None, typer.Option(help="The coefficients that change. Default: those of the model that is set.")
    ] = None,
) -> None:
    """Fit the fusion's part for conversations further, on sets that the adapter has not seen."""
    run(folders, evidence, target or target_of(Settings().model))

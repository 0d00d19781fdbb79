"""The pages on deployment hold no block that `scripts/walk` does not run, or say why it does not."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest

Module = Callable[[str], ModuleType]


def test_every_block_of_the_pages_is_known(module: Module) -> None:
    """Each fenced block is in the table of the walk, and so is each program that one calls."""
    walk = module("walk")
    assert list(walk.unknown()) == []
    assert [one.first for one in walk.BLOCKS if bool(one.who) == bool(one.why)] == []


def test_a_block_or_a_program_more_is_noticed(module: Module, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page with another block, another beginning or another program fails."""
    walk = module("walk")
    pages = {page: walk.blocks(page) for page in (walk.DEPLOY, walk.UPKEEP)}
    changed = {walk.DEPLOY: [*pages[walk.DEPLOY], "terraform apply\n"]}
    changed |= {walk.UPKEEP: ["nomad run recollect\n", *pages[walk.UPKEEP][1:]]}
    monkeypatch.setattr(walk, "blocks", lambda page: changed[page])
    told = " ".join(walk.unknown())
    assert all(one in told for one in ("has 14 blocks, of which 13", "begins with 'nomad", "'nomad' is not known"))

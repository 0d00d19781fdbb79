"""A second embedding model for tests: the first one's weights behind a prompt, so that every vector differs."""

from __future__ import annotations

from pathlib import Path

from places import MODELS

NAME = "prompted"
ID = "acme/prompted-MiniLM"


def second_model(folder: Path) -> Path:
    """Lay a card of the second model into a models folder, and return that folder; it needs no export of its own."""
    card = (MODELS / "all-MiniLM-L6-v2" / "card.toml").read_text(encoding="utf-8")
    card = card.replace('id = "sentence-transformers/all-MiniLM-L6-v2"', f'id = "{ID}"')
    card = card.replace('document_prompt = ""', 'document_prompt = "what a sailor wrote down: "')
    (folder / NAME).mkdir(parents=True)
    (folder / NAME / "card.toml").write_text(card, encoding="utf-8")
    return folder

"""A second embedding model for tests: the first one's files behind a prompt, so that every vector differs."""

from __future__ import annotations

from pathlib import Path

from places import DEFAULT_MODEL

NAME = "prompted"
ID = "acme/prompted-MiniLM"


def second_model(
    folder: Path, name: str = NAME, model_id: str = ID, prompt: str = "what a sailor wrote down: "
) -> Path:
    """Lay the second model into a models folder: a card of its own beside links to the files; return that folder."""
    (folder / name).mkdir(parents=True)
    for file in ("model.onnx", "tokenizer.json"):
        (folder / name / file).symlink_to(DEFAULT_MODEL / file)
    card = (DEFAULT_MODEL / "card.toml").read_text(encoding="utf-8")
    card = card.replace('id = "recollect/notes-MiniLM-L6-v2"', f'id = "{model_id}"')
    card = card.replace('document_prompt = ""', f'document_prompt = "{prompt}"')
    (folder / name / "card.toml").write_text(card, encoding="utf-8")
    return folder

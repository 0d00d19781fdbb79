"""The tokens of a text, counted and cut as the model does it; the only module that imports the tokenizers library."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from recollect.errors import ModelUnusable
from recollect.text.separators import with_spaces

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer


class Tokenized(NamedTuple):
    """The ids of a text with its special tokens, which of them stand for the text itself, and for which characters."""

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
        unknown = getattr(self._tokenizer.model, "unk_token", None) or "<unk>"  # the usual name where there is none
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
        encodings = self._tokenizer.encode_batch([same_length_text(prompt + text) for text in texts])
        return [_cut_encoding(encoding, limit, len(prompt)) for encoding in encodings]

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return the character offsets (start, end) of every token, without special tokens and without truncation.

        Several tokens of one character (Hangul, rare letters) share that character's span.
        """
        return list(self._tokenizer.encode(same_length_text(text), add_special_tokens=False).offsets)

    def count(self, text: str) -> int:
        """Return how many tokens `text` has, without special tokens.

        A word that the model does not know counts as many as it has characters, since it stands for as much text.
        """
        found = self._tokenizer.encode(same_length_text(text), add_special_tokens=False)
        if self._unknown not in found.ids:
            return len(found.ids)
        pairs = zip(found.ids, found.offsets, strict=True)
        return sum(max(end - start, 1) if number == self._unknown else 1 for number, (start, end) in pairs)


def same_length_text(text: str) -> str:
    """Replace each character that the library refuses or deletes by a single other, so that offsets stay.

    A lone surrogate becomes "?". The end of a line, a page or a record becomes a space, so that no words join.
    """
    return with_spaces(text).encode("utf-8", "replace").decode("utf-8")


def _cut_encoding(encoding: Encoding, limit: int, prompt: int) -> Tokenized:
    """Return the ids of an encoding, at most `limit`, and its own tokens without the first `prompt` characters."""
    count = len(encoding.ids)
    kept = [*range(limit - 1), count - 1] if count > limit else [*range(count)]
    special, offsets = encoding.special_tokens_mask, encoding.offsets
    own = [place for place, number in enumerate(kept) if not special[number] and offsets[number][1] > prompt]
    spans = [(max(offsets[kept[place]][0] - prompt, 0), offsets[kept[place]][1] - prompt) for place in own]
    return Tokenized([encoding.ids[number] for number in kept], own, spans)

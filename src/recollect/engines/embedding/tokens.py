"""The tokens of a text, counted as the model counts them. Nothing else knows the tokenizers library."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.errors import ModelUnusable

if TYPE_CHECKING:
    from tokenizers import Tokenizer


class Tokens:
    """A tokenizer that never truncates or pads, so that it has no state and many threads may share it."""

    def __init__(self, definition: str) -> None:
        from tokenizers import Tokenizer

        self._tokenizer: Tokenizer = Tokenizer.from_str(definition)
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()

    @classmethod
    def read(cls, path: Path) -> Tokens:
        """Read a tokenizer.json; raises `ModelUnusable` when it cannot be read."""
        try:
            return cls(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise ModelUnusable(f"The tokenizer {path} cannot be read: {error}.") from error

    def ids(self, texts: Sequence[str], limit: int) -> list[list[int]]:
        """Return the ids of each text with its special tokens, at most `limit`; a cut text keeps its last special."""
        encodings = self._tokenizer.encode_batch_fast([plain(text) for text in texts])
        return [ids if len(ids) <= limit else [*ids[: limit - 1], ids[-1]] for ids in (e.ids for e in encodings)]

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return the character offsets (start, end) of every token, without special tokens and without truncation.

        Several tokens of one character (Hangul, rare letters) share that character's span.
        """
        return list(self._tokenizer.encode(plain(text), add_special_tokens=False).offsets)


def plain(text: str) -> str:
    """Replace lone surrogates, which the library refuses, by "?": one character each, so that offsets stay."""
    return text.encode("utf-8", "replace").decode("utf-8")

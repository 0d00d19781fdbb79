"""Explanations: what the comments of a file, or the sentences of a document, say about why it is as it is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby, islice
from typing import Final

_MARK: Final = re.compile(r"^\s*@?(?:#+!?|//+!?|--|/?\*+/?|<!--|;)(?P<said>.*)$")
_BEHIND: Final = re.compile(r"(?<=\s)(?:#|//)\s")  # code
_WHY: Final = re.compile(
    r"\b(?:never|always|must|only|not|because|since|otherwise|so that|needs?|requires?|do not|don'?t|instead|falls? "
    r"back|overrid\w+|careful|beware|note|important|temporar\w+|workaround|on purpose|deliberate\w*|by hand|"
    r"no longer|breaks?|fails?|until|unless|before|after|cannot|can'?t|would|without|history|rejected|limit\w*)\b",
    re.IGNORECASE,
)
_DOCUMENTS: Final = (".md", ".rst", ".txt", ".adoc", ".mdx")
_LEAST: Final = 4
_NO_PROSE: Final = re.compile(r"^#{1,6} |^\||^```")  # headings, tables and fences


def is_document(path: str) -> bool:
    """Say whether a file is prose for people."""
    return path.lower().endswith(_DOCUMENTS)


def explanations(text: str, path: str) -> list[str]:
    """Return the comments of a file that give a reason or a rule, each with the line of code that it stands before.

    Of a document these are its paragraphs that do.
    """
    blocks = _paragraphs(text) if is_document(path) else _comments(text)
    return [block for block in blocks if len(block.split()) >= _LEAST and _WHY.search(block)]


def _paragraphs(text: str) -> list[str]:
    lines = (line.strip() for line in text.split("\n"))
    groups = groupby(lines, key=lambda line: bool(line) and not _NO_PROSE.match(line))
    return [" ".join(group) for is_text, group in groups if is_text]


def _comments(text: str) -> list[str]:
    """Return the blocks of comment lines that explain, with the code after them, and the comments at a line's end."""
    found: list[str] = []
    block: list[str] = []
    for line in [*text.split("\n"), ""]:
        if (mark := _MARK.match(line)) and not line.startswith("#!"):
            block.append(mark["said"].rstrip().removesuffix("-->").removesuffix("*/").strip())
            continue
        said = " ".join(filter(None, block))
        if len(said.split()) >= _LEAST and _WHY.search(said):
            found.append(f"{said} (`{line.strip()}`)" if line.strip() and len(line) < 120 else said)
        block = []
        found += islice(_behind_code(line), 1)
    return found


def _behind_code(line: str) -> Iterator[str]:
    """Yield what a line of code says behind its last mark of a comment, and behind marks before that."""
    for mark in reversed(list(_BEHIND.finditer(line))[-_LEAST - 1 :]):
        code, said = line[: mark.start()].strip(), line[mark.end() :].strip()
        if code and len(said.split()) >= _LEAST:
            yield f"{said} (`{code}`)"

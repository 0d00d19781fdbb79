"""Takes Markdown apart with markdown-it-py: sections by heading, the front matter, headings without markup."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_LONGEST_HEADING: Final = 2_000  # characters that are looked at
_LONGEST_YAML: Final = 65_536
_DEEPEST_YAML: Final = 20  # brackets in brackets: reading takes the square of their number
_BRACKET: Final = re.compile(r"[\[{]|[\]}]")
_FRONT_MATTER: Final = re.compile(r"---[ \t]*\n(.*?\n)(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_PAIR: Final = re.compile(r"^([A-Za-z_][\w-]*)[ \t]*:[ \t]*(.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading that stands in no list and no quote: its first line and the one after it, its level, its source."""

    start: int
    end: int
    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Part:
    """A paragraph and its line: whether it begins an item of a list, whether it is in a quote."""

    line: int
    text: str
    item: bool
    quoted: bool


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands under it up to the next one; `path` are the headings down to it, its own last.

    `parts` are its paragraphs, without code.
    """

    line: int
    path: tuple[str, ...]
    heading: str
    text: str
    parts: tuple[Part, ...] = ()


def blocks(text: str) -> list[Token]:
    """Return the blocks of a text; a block's `map` are its first line and the one after it, from 0."""
    return _markdown_parser("normalize", "block").parse(text)


def headings(tokens: list[Token]) -> Iterator[Heading]:
    """Yield the headings among the blocks of a text."""
    for opening, inline in pairwise(tokens):
        if opening.type == "heading_open" and opening.level == 0 and opening.map:
            start, end = opening.map
            yield Heading(start, end, int(opening.tag[1:]), inline.content)


def sections(text: str, first: int = 1) -> Iterator[Section]:
    """Yield the sections in their order, empty ones too; `first` is the number of the text's first line."""
    lines, tokens = text.split("\n"), blocks(text)
    found = [Heading(0, 0, 0, ""), *headings(tokens)]
    parts = list(_parts_of(tokens, first))[::-1]
    ends = [*(heading.start for heading in found[1:]), len(lines)]
    above: list[Heading] = []
    for heading, end in zip(found, ends, strict=True):
        above = [*(parent for parent in above if parent.level < heading.level), heading]
        source = lines[heading.start].strip() if heading.end == heading.start + 1 else heading.text
        body = "\n".join(lines[heading.end : end]).strip("\n").rstrip()
        own: list[Part] = []
        while parts and parts[-1].line < first + end:
            own.append(parts.pop())
        yield Section(
            first + heading.start, tuple(parent.text for parent in above if parent.text), source, body, tuple(own)
        )


def front_matter(text: str) -> tuple[dict[str, Any], str, int]:
    """Return a YAML head (all its values are texts), the text after it, and that text's first line number."""
    found = _FRONT_MATTER.match(text)
    values = _parse_yaml(found[1]) if found else {}
    if not found or not values:
        return {}, text, 1
    return values, text[found.end() :], found[0].count("\n") + 1


def without_markup(heading: str) -> str:
    """Return the text of a heading, without emphasis, links, code marks and comments."""
    (inline,) = _markdown_parser("normalize", "block", "inline", "text_join").parseInline(heading[:_LONGEST_HEADING])
    shown = (token for token in inline.children or () if token.type != "html_inline")
    words = "".join(" " if token.type.endswith("break") else token.content for token in shown)
    return " ".join(words.split()) or heading


def cut_text(text: str, most: int) -> Iterator[str]:
    """Cut a text into parts of at most `most` characters: between paragraphs, else lines, else anywhere."""
    while len(text) > most:
        ends = (text.rfind(gap, 1, most) for gap in ("\n\n", "\n"))
        end = next((end for end in ends if end > 0 and text[:end].strip()), most)
        yield text[:end].rstrip() if end < most else text[:end]
        text = text[end:].lstrip("\n")
    if text.strip():
        yield text


def _parts_of(tokens: list[Token], first: int) -> Iterator[Part]:
    """Yield the paragraphs among the blocks; `first` is the number of the text's first line."""
    quotes, item = 0, False
    for before, token in pairwise(tokens):
        quotes += (before.type == "blockquote_open") - (before.type == "blockquote_close")
        if token.type == "paragraph_open":
            item = before.type == "list_item_open"
        elif token.type == "inline" and before.type == "paragraph_open" and token.map:
            yield Part(first + token.map[0], token.content, item, quotes > 0)


@cache
def _markdown_parser(*steps: str) -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark")
    parser.core.ruler.enableOnly(steps)
    return parser


def _parse_yaml(head: str) -> dict[str, Any]:
    """Return YAML with every value as text; YAML that is too long, has aliases or is broken is read line by line."""
    import yaml

    try:
        if len(head) > _LONGEST_YAML or _bracket_depth(head) > _DEEPEST_YAML:
            raise yaml.YAMLError
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(head)):
            raise yaml.YAMLError
        found = yaml.load(head, Loader=yaml.BaseLoader)  # noqa: S506 - it makes nothing but texts
    except (yaml.YAMLError, RecursionError):
        pairs = _PAIR.findall(head) if _PAIR.match(head) else []
        found = {name: value.strip(" \t[]\"'") for name, value in pairs}
    return {str(name).lower(): value for name, value in found.items()} if isinstance(found, dict) else {}


def _bracket_depth(head: str) -> int:
    """Return the largest number of brackets open at once, those in texts and comments included."""
    return max(accumulate(1 if found[0] in "[{" else -1 for found in _BRACKET.finditer(head)), default=0)

"""Markdown: its sections, tags and links, and notes that become memories."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, pairwise
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple

from recollect.domain.enums import FactType, Sensitivity
from recollect.domain.fields import MAX_CONTENT
from recollect.domain.transfer import FileSections, ImportItem, ItemKind, Problem
from recollect.gate import masked
from recollect.text import layers
from recollect.transfer.reading import Unreadable, decoded, document, labels, object_of, set_only, time_of

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
    return _markdown("normalize", "block").parse(text)


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
    parts = list(_parts(tokens, first))[::-1]
    ends = [*(one.start for one in found[1:]), len(lines)]
    above: list[Heading] = []
    for heading, end in zip(found, ends, strict=True):
        above = [*(one for one in above if one.level < heading.level), heading]
        source = lines[heading.start].strip() if heading.end == heading.start + 1 else heading.text
        body = "\n".join(lines[heading.end : end]).strip("\n").rstrip()
        own: list[Part] = []
        while parts and parts[-1].line < first + end:
            own.append(parts.pop())
        yield Section(first + heading.start, tuple(one.text for one in above if one.text), source, body, tuple(own))


def front_matter(text: str) -> tuple[dict[str, Any], str, int]:
    """Return a YAML head (all its values are texts), the text after it, and that text's first line number."""
    found = _FRONT_MATTER.match(text)
    values = _yaml(found[1]) if found else {}
    if not found or not values:
        return {}, text, 1
    return values, text[found.end() :], found[0].count("\n") + 1


def without_markup(heading: str) -> str:
    """Return what a heading says, without emphasis, links, code marks and comments."""
    (inline,) = _markdown("normalize", "block", "inline", "text_join").parseInline(heading[:_LONGEST_HEADING])
    shown = (one for one in inline.children or () if one.type != "html_inline")
    words = "".join(" " if one.type.endswith("break") else one.content for one in shown)
    return " ".join(words.split()) or heading


def cut(text: str, most: int) -> Iterator[str]:
    """Cut a text into parts of at most `most` characters: between paragraphs, else lines, else anywhere."""
    while len(text) > most:
        ends = (text.rfind(gap, 1, most) for gap in ("\n\n", "\n"))
        end = next((one for one in ends if one > 0 and text[:one].strip()), most)
        yield text[:end].rstrip() if end < most else text[:end]
        text = text[end:].lstrip("\n")
    if text.strip():
        yield text


def _parts(tokens: list[Token], first: int) -> Iterator[Part]:
    quotes, item = 0, False
    for before, token in pairwise(tokens):
        quotes += (before.type == "blockquote_open") - (before.type == "blockquote_close")
        if token.type == "paragraph_open":
            item = before.type == "list_item_open"
        elif token.type == "inline" and before.type == "paragraph_open" and token.map:
            yield Part(first + token.map[0], token.content, item, quotes > 0)


@cache
def _markdown(*steps: str) -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark")
    parser.core.ruler.enableOnly(steps)
    return parser


def _yaml(head: str) -> dict[str, Any]:
    """Read YAML in which everything is a text; what is too long, has aliases or is broken is read line by line."""
    import yaml

    try:
        if len(head) > _LONGEST_YAML or _depth(head) > _DEEPEST_YAML:
            raise yaml.YAMLError
        if any(isinstance(one, yaml.AliasEvent) for one in yaml.parse(head)):
            raise yaml.YAMLError
        found = yaml.load(head, Loader=yaml.BaseLoader)  # noqa: S506 - it makes nothing but texts
    except (yaml.YAMLError, RecursionError):
        pairs = _PAIR.findall(head) if _PAIR.match(head) else []
        found = {name: value.strip(" \t[]\"'") for name, value in pairs}
    return {str(name).lower(): value for name, value in found.items()} if isinstance(found, dict) else {}


def _depth(head: str) -> int:
    """Return how many brackets at most are open at once, whatever they stand in."""
    return max(accumulate(1 if found[0] in "[{" else -1 for found in _BRACKET.finditer(head)), default=0)


PASSAGE_BEGIN: Final = re.compile(r"<!-- recollect:begin\b[^>]{0,200}-->")
PASSAGE_END: Final = "<!-- recollect:end -->"
PASSAGE: Final = re.compile(
    rf"{PASSAGE_BEGIN.pattern}(?:[^<]++|<(?!!-- recollect:(?:begin|end)\b))*+{re.escape(PASSAGE_END)}(?:\r?\n)?"
)
"""What `recollect install` writes into an instruction file: it is no memory, and no other one begins within it."""

MARK: Final = "<!-- recollect:memory "
"""What begins the comment in a heading of our own export: the fields that the text below it does not say."""

LINKS_TO: Final = "links_to"
_CODE: Final = re.compile(r"(?<!`)(`{1,8})(?!`).*?(?<!`)\1(?!`)", re.DOTALL)
_HASHTAG: Final = re.compile(r"(?<![^\s(,;])#([\w/-]*[^\W\d][\w/-]*)")
_LINK: Final = re.compile(r"(?<!!)\[\[([^\[\]\n]{1,500})\]\]")
_RELATION: Final = re.compile(
    r"(?:\"([^\"]{1,200})\"|'([^']{1,200})'|(\w[\w:/-]{0,200}))\s+\[\[([^\[\]]+)\]\]\s*(?:\(.*\))?"
)
_OBSERVATION: Final = re.compile(r"\[([^\[\]()]{1,100})\]\s+(\S.*)", re.DOTALL)
_NO_CATEGORY: Final = re.compile(r"\s*|x|[^\W\d_]?\W|[\d:., -]+", re.IGNORECASE)


class Statement(NamedTuple):
    """A fact about a note, and the line that says it."""

    line: int
    predicate: str
    object: str


def tags_of(parts: Iterable[Part]) -> list[str]:
    """Return the `#tags` in a text, each once; numbers alone are none."""
    found = (one.strip("/-") for part in parts for one in _HASHTAG.findall(_CODE.sub(" ", part.text)))
    return list(dict.fromkeys(filter(None, found)))


def statements(parts: Iterable[Part], *, observations: bool) -> Iterator[Statement]:
    """Yield the facts that a text states; observations only where they are looked for."""
    for part in parts:
        first, _, rest = _CODE.sub(" ", part.text.strip()).partition("\n")
        relation = _RELATION.fullmatch(first.strip()) if part.item else None
        if relation and (target := _target(relation[4])):
            yield Statement(part.line, relation[1] or relation[2] or relation[3], target)
            first = ""
        if observations and part.item and not part.quoted and (said := _OBSERVATION.fullmatch(part.text.strip())):
            category = " ".join(said[1].split())
            if not _NO_CATEGORY.fullmatch(category):
                yield Statement(part.line, category, " ".join(said[2].split()))
        for one in _LINK.findall(f"{first}\n{rest}"):
            if target := _target(one):
                yield Statement(part.line, LINKS_TO, target)


def _target(link: str) -> str:
    """Return the note that a link names, without the heading in it and the words that are shown for it."""
    return link.partition("|")[0].partition("#")[0].strip()


_ARROW: Final = " › "
_KEY: Final = 400
_TITLE: Final = 500
_LONGEST_TAG: Final = 100
_DAYS: Final = ("date", "created", "created_at", "date created", "updated", "modified", "updated_at", "date modified")
_WORD: Final = re.compile(r"[^\W_]+")


def read_notes(source: BinaryIO, name: str) -> Iterator[ImportItem | Problem | FileSections]:
    """Yield a memory for each section that says something, the facts that it states, and last which sections there are.

    Raises `Unreadable` for what is no text.
    """
    text = decoded(document(source)).replace("\r\n", "\n").replace("\r", "\n")
    head, rest, first = front_matter(PASSAGE.sub(lambda found: "\n" * found[0].count("\n"), text))
    prefix = f"{masked(name).lower()[-_KEY:]}#"
    uses, keys = Counter[str](), list[str]()
    plain: dict[str, str] = {}
    known: set[tuple[str, str]] = set()
    own_title = str(head.get("title") or "").strip()
    title = without_markup(masked(own_title)) if own_title else PurePath(name).name
    shared = _of_head(head) | {"files_read": [masked(name)]}
    for section in sections(rest, first):
        if not section.text.strip():
            continue
        if MARK in section.heading:
            yield _exported(section.heading, section.text.rstrip(), f"{name}:{section.line}")
            continue
        for heading in set(section.path) - plain.keys():
            # without its markup no detector would know a secret again, so that goes first
            plain[heading] = without_markup(masked(heading))
        path = [plain[heading] for heading in section.path]
        own = f"{prefix}{'/'.join(map(_slug, path))[:_KEY]}"
        whole = f"{section.heading}\n\n{section.text}" if section.heading else section.text
        said = _facts(name, title, head, section, known)
        for part in cut(whole, MAX_CONTENT):
            uses[own] += 1
            keys.append(own if uses[own] == 1 else f"{own}~{uses[own]}")
            body = part.removeprefix(section.heading).strip()
            fields = {"content": part, "key": keys[-1]} | _headings(path, body, title) | shared
            fields["tags"] = labels(
                [*_tags(head), *(_slug(one)[:_LONGEST_TAG] for one in path), *tags_of(section.parts)]
            )
            yield ImportItem(kind=ItemKind.MEMORY, where=f"{name}:{section.line}", fields=set_only(fields))
        yield from said
    yield FileSections(where=name, prefix=prefix, keys=frozenset(keys))


def _exported(heading: str, text: str, where: str) -> ImportItem | Problem:
    """Return the memory that an export of ours shows; what was written into its text or its title since counts."""
    shown, _, comment = heading.rpartition(MARK)
    title = shown.lstrip("#").strip()
    try:
        fields = object_of(comment.removesuffix("-->").encode())
        former, before = str(fields.pop("hash")), fields.pop("shown")
    except (Unreadable, KeyError) as error:
        return Problem(where, str(error) if isinstance(error, Unreadable) else "Its heading does not say what it was.")
    above, _, about = text.rpartition("\n")
    body = (above if about.startswith("*") and about.endswith("*") else text).strip("\n")
    lines = body.split("\n")
    if all(line.startswith(">") for line in lines):
        body = "\n".join(line[1:].removeprefix(" ") for line in lines)
    fields["content"] = body or title
    if title != before:
        fields["title"] = title
    return ImportItem(kind=ItemKind.MEMORY, where=where, fields=fields, former_hash=former)


def _headings(path: list[str], body: str, file: str) -> dict[str, Any]:
    """Return the title of a section, and its layers where those of its text would begin with the heading."""
    title = {"title": layers.shortened(_ARROW.join([file, *path]), _TITLE)}
    if not path:
        return title
    body = masked(body)  # what the layers cut off in the middle would be no secret any more
    abstract = layers.one_line(f"{path[-1]}: {layers.abstract(body)}")
    return title | {"abstract": abstract, "overview": layers.overview(body)}


def _facts(
    name: str, title: str, head: dict[str, Any], section: Section, known: set[tuple[str, str]]
) -> Iterator[ImportItem]:
    """Yield what a section states about its note that was not `known` before; it is as private as the note."""
    subject = title if head.get("title") else PurePath(name).stem
    of_basic_memory = "permalink" in head or {"title", "type"} <= head.keys()
    for one in statements(section.parts, observations=of_basic_memory):
        if (one.predicate, one.object) not in known:
            known.add((one.predicate, one.object))
            fields = {"subject": layers.shortened(subject, _TITLE), "predicate": one.predicate, "object": one.object}
            own = _of_head(head)
            fields |= set_only({"sensitivity": own.get("sensitivity"), "valid_from": own.get("observed_at")})
            yield ImportItem(kind=ItemKind.FACT, where=f"{name}:{one.line}", fields=fields)


def _tags(head: dict[str, Any]) -> list[str]:
    """Return the tags of a note; its permalink and its other names are some too."""
    found = [one.lstrip("#") for name in ("tags", "tag") for one in labels(head.get(name))]
    found += [f"alias:{one}" for one in labels(head.get("aliases"))]
    permalink = head.get("permalink")
    return [*found, f"permalink:{permalink}"] if isinstance(permalink, str) and permalink.strip() else found


def _of_head(head: dict[str, Any]) -> dict[str, str]:
    """Take from the front matter what a memory has a field for; an unknown level of sensitivity is the strictest."""
    kinds = (str(head.get(name)).strip().lower() for name in ("fact_type", "type"))
    found = {"fact_type": next((kind for kind in kinds if kind in set(FactType)), str(FactType.CONTEXT))}
    if isinstance(category := head.get("category"), str) and category.strip():
        found["category"] = category.strip()
    if head.get("sensitivity"):
        level = str(head["sensitivity"]).strip().lower()
        found["sensitivity"] = level if level in set(Sensitivity) else str(Sensitivity.SECRET)
    if isinstance(about := head.get("description"), str):
        found["subtitle"] = layers.shortened(" ".join(masked(about).split()), _TITLE)
    days = (time_of(head.get(name)) for name in _DAYS)
    return set_only(found | {"observed_at": next(filter(None, days), None)})


def _slug(heading: str) -> str:
    return "-".join(_WORD.findall(heading.lower())) or "-"

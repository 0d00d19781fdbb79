"""Markdown: instructions such as CLAUDE.md and AGENTS.md, and notes of Obsidian and basic-memory, section by section.

A section's key is its file and the headings above it, so that importing a changed file updates its memories. The tags
of a note become theirs, its links and statements become facts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any, BinaryIO, Final

from recollect.domain.enums import FactType, Sensitivity
from recollect.domain.fields import MAX_CONTENT
from recollect.domain.transfer import FileSections, ImportItem, ItemKind, Problem
from recollect.gate import masked
from recollect.text import layers
from recollect.transfer.installed_passage import PASSAGE
from recollect.transfer.markdown_export import MARK
from recollect.transfer.markdown_links import facts_in, tags_of
from recollect.transfer.markdown_sections import Section, cut_text, front_matter, sections, without_markup
from recollect.transfer.reading import Unreadable, decode_utf8, labels, object_of, read_document, time_of, without_empty

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
    text = decode_utf8(read_document(source)).replace("\r\n", "\n").replace("\r", "\n")
    head, rest, first = front_matter(PASSAGE.sub(lambda found: "\n" * found[0].count("\n"), text))
    prefix = f"{masked(name).lower()[-_KEY:]}#"
    uses, keys = Counter[str](), list[str]()
    plain: dict[str, str] = {}
    known: set[tuple[str, str]] = set()
    own_title = str(head.get("title") or "").strip()
    title = without_markup(masked(own_title)) if own_title else PurePath(name).name
    shared = _front_matter_fields(head) | {"files_read": [masked(name)]}
    for section in sections(rest, first):
        if not section.text.strip():
            continue
        if MARK in section.heading:
            yield _exported_memory(section.heading, section.text.rstrip(), f"{name}:{section.line}")
            continue
        for heading in set(section.path) - plain.keys():
            # without its markup no detector would know a secret again, so that goes first
            plain[heading] = without_markup(masked(heading))
        path = [plain[heading] for heading in section.path]
        own = f"{prefix}{'/'.join(map(_slug_of, path))[:_KEY]}"
        whole = f"{section.heading}\n\n{section.text}" if section.heading else section.text
        facts = _facts_of_section(name, title, head, section, known)
        for part in cut_text(whole, MAX_CONTENT):
            uses[own] += 1
            keys.append(own if uses[own] == 1 else f"{own}~{uses[own]}")
            body = part.removeprefix(section.heading).strip()
            fields = {"content": part, "key": keys[-1]} | _heading_fields(path, body, title) | shared
            fields["tags"] = labels(
                [*_note_tags(head), *(_slug_of(heading)[:_LONGEST_TAG] for heading in path), *tags_of(section.parts)]
            )
            yield ImportItem(kind=ItemKind.MEMORY, where=f"{name}:{section.line}", fields=without_empty(fields))
        yield from facts
    yield FileSections(where=name, prefix=prefix, keys=frozenset(keys))


def _exported_memory(heading: str, text: str, where: str) -> ImportItem | Problem:
    """Return the memory that an export of Recollect shows, with later edits of its text or title."""
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


def _heading_fields(path: list[str], body: str, file: str) -> dict[str, Any]:
    """Return the title of a section, and its layers where those of its text would begin with the heading."""
    title = {"title": layers.shortened(_ARROW.join([file, *path]), _TITLE)}
    if not path:
        return title
    body = masked(body)  # what the layers cut off in the middle would be no secret any more
    abstract = layers.one_line(f"{path[-1]}: {layers.abstract(body)}")
    return title | {"abstract": abstract, "overview": layers.overview(body)}


def _facts_of_section(
    name: str, title: str, head: dict[str, Any], section: Section, known: set[tuple[str, str]]
) -> Iterator[ImportItem]:
    """Yield the facts of a section about its note that were not `known` before; they are as private as the note."""
    subject = title if head.get("title") else PurePath(name).stem
    of_basic_memory = "permalink" in head or {"title", "type"} <= head.keys()
    for statement in facts_in(section.parts, observations=of_basic_memory):
        if (statement.predicate, statement.object) not in known:
            known.add((statement.predicate, statement.object))
            fields = {
                "subject": layers.shortened(subject, _TITLE),
                "predicate": statement.predicate,
                "object": statement.object,
            }
            own = _front_matter_fields(head)
            fields |= without_empty({"sensitivity": own.get("sensitivity"), "valid_from": own.get("observed_at")})
            yield ImportItem(kind=ItemKind.FACT, where=f"{name}:{statement.line}", fields=fields)


def _note_tags(head: dict[str, Any]) -> list[str]:
    """Return the tags of a note; its permalink and its other names are tags too."""
    found = [tag.lstrip("#") for name in ("tags", "tag") for tag in labels(head.get(name))]
    found += [f"alias:{alias}" for alias in labels(head.get("aliases"))]
    permalink = head.get("permalink")
    return [*found, f"permalink:{permalink}"] if isinstance(permalink, str) and permalink.strip() else found


def _front_matter_fields(head: dict[str, Any]) -> dict[str, str]:
    """Return the fields of a memory in the front matter; an unknown level of sensitivity is the strictest."""
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
    return without_empty(found | {"observed_at": next(filter(None, days), None)})


def _slug_of(heading: str) -> str:
    return "-".join(_WORD.findall(heading.lower())) or "-"

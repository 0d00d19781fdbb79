"""An export in Markdown that people read and write in, and that an import knows again, memory by memory."""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, Final

from recollect.domain.enums import Scope
from recollect.prompt.neutral import neutral
from recollect.transfer.installed_passage import PASSAGE_END
from recollect.transfer.markdown_sections import blocks, headings

MARK: Final = "<!-- recollect:memory "
"""What begins the comment in a heading of our own export: the fields that the text below it does not say."""
_BEGIN: Final = "<!-- recollect:begin -->"
_END: Final = PASSAGE_END
_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_LAYERS: Final = frozenset({"content", "abstract", "overview"})


def write_notes(lines: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield the document for the lines of an export: what lives, and the facts that hold."""
    shelves: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    facts: dict[str, list[dict[str, Any]]] = defaultdict(list)
    about: dict[str, Any] = {}
    for line in lines:
        if memory := line.get("memory"):
            if not {"deleted_at", "merged_into", "superseded_by"} & memory.keys():
                shelf = memory.get("category") or str(memory["fact_type"]).capitalize()
                shelves[memory["scope"]][shelf].append(memory)
        elif fact := line.get("fact"):
            if "valid_to" not in fact:
                facts[fact["scope"]].append(fact)
        elif "format" in line:
            about = line
    day = str(about.get("exported_at", ""))[:10]
    yield f"# Memories\n\n{_BEGIN}\nExported on {day}. Texts and titles may be changed before an import.\n{_END}\n"
    for scope in map(str, Scope):
        if shelves[scope] or facts[scope]:
            yield f"\n## {scope.capitalize()}\n"
        for shelf in sorted(shelves[scope], key=str.casefold):
            yield f"\n### {_one_line(shelf)}\n"
            for memory in shelves[scope][shelf]:
                yield _memory_text(memory)
        if facts[scope]:
            yield f"\n### Facts\n\n{_BEGIN}\n"
            for fact in facts[scope]:
                yield f"- {_one_line(' '.join(str(fact[part]) for part in ('subject', 'predicate', 'object')))}\n"
            yield f"{_END}\n"


def _memory_text(memory: dict[str, Any]) -> str:
    """Return the section of a memory in the document: heading, comment, labels and text."""
    title = _one_line(str(memory.get("title") or memory.get("abstract") or ""))
    text = shown_text(str(memory["content"]))
    body = "" if text == title else f"\n{text}\n"
    return f"\n#### {title} {_memory_comment(memory, title)}\n{body}\n*{', '.join(_label_lines(memory))}*\n"


def _memory_comment(memory: dict[str, Any], shown: str) -> str:
    """Return the comment by which an import knows the memory again; no value in it can end it."""
    fields = {name: value for name, value in memory.items() if name not in _LAYERS}
    fields |= {"hash": hashlib.sha256(str(memory["content"]).encode()).hexdigest(), "shown": shown}
    text = json.dumps(fields, separators=(",", ":"))
    return f"{MARK}{_STRING.sub(_escaped_string, text)} -->"


def _escaped_string(string: re.Match[str]) -> str:
    """Return a JSON string in escapes alone where it could start a frame for a model, or end the comment."""
    value: str = json.loads(string[0])
    if neutral(value) == value and not {"<", ">"} & set(value):
        return string[0]
    units = value.encode("utf-16-be", "surrogatepass").hex()
    return '"' + "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4)) + '"'


def _label_lines(memory: dict[str, Any]) -> Iterator[str]:
    """Yield the lines that show a memory's labels to a reader."""
    yield str(memory.get("observed_at") or memory.get("created_at") or "")[:10]
    if memory.get("category"):
        yield str(memory["fact_type"])
    if memory.get("speaker"):
        yield f"said by {_one_line(str(memory['speaker']))}"
    if memory.get("sensitivity", "public") != "public":
        yield str(memory["sensitivity"])
    yield from (f"#{_one_line(str(tag))}" for tag in memory.get("tags", ()))


def shown_text(content: str) -> str:
    """Return a memory's text as the export shows it: as a quote where it has headings or an open block.

    Such a heading would look like a heading of the document, and an open block would swallow the rest.
    """
    text = neutral(content).strip()
    found = list(headings(blocks(f"{text}\n\n# end")))
    if len(found) == 1 and found[0].start > text.count("\n") + 1 and not text.startswith(">"):
        return text
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))


def _one_line(text: str) -> str:
    return " ".join(neutral(text).split())

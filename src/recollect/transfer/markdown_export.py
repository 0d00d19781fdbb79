"""An export as Markdown, for people to read: by scope, then by category or kind. Nothing internal, nothing hidden.

What it says is neutral text: models read such files too, and terminals show them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from recollect.domain.enums import Scope
from recollect.prompt.neutral import neutral
from recollect.transfer.markdown_sections import blocks, headings


def write(lines: Iterable[dict[str, Any]]) -> Iterator[str]:
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
    yield f"# Memories\n\nExported on {str(about.get('exported_at', ''))[:10]}.\n"
    for scope in map(str, Scope):
        if shelves[scope] or facts[scope]:
            yield f"\n## {scope.capitalize()}\n"
        for shelf in sorted(shelves[scope], key=str.casefold):
            yield f"\n### {_one_line(shelf)}\n"
            for memory in shelves[scope][shelf]:
                yield _memory(memory)
        if facts[scope]:
            yield "\n### Facts\n\n"
            for fact in facts[scope]:
                yield f"- {_one_line(' '.join(str(fact[part]) for part in ('subject', 'predicate', 'object')))}\n"


def _memory(memory: dict[str, Any]) -> str:
    title = _one_line(str(memory.get("title") or memory.get("abstract") or ""))
    content = neutral(str(memory["content"])).strip()
    about = ", ".join(_about(memory))
    body = "" if content == title else f"\n{_quiet(content)}\n"
    return f"\n#### {title}\n{body}\n*{about}*\n"


def _about(memory: dict[str, Any]) -> Iterator[str]:
    yield str(memory.get("observed_at") or memory.get("created_at") or "")[:10]
    if memory.get("category"):
        yield str(memory["fact_type"])
    if memory.get("speaker"):
        yield f"said by {_one_line(str(memory['speaker']))}"
    if memory.get("sensitivity", "public") != "public":
        yield str(memory["sensitivity"])
    yield from (f"#{_one_line(str(tag))}" for tag in memory.get("tags", ()))


def _quiet(content: str) -> str:
    """Let no heading in a memory be one of the document's, and leave no code open that would swallow the rest."""
    lines = content.split("\n")
    tokens = blocks(f"{content}\n\n# end")
    found = list(headings(tokens))
    if closed := bool(found) and found[-1].start > len(lines):
        found.pop()
    for heading in reversed(found):
        lines[heading.start : heading.end] = [f"**{heading.text}**"]
    return "\n".join(lines if closed else [*lines, tokens[-1].markup or "-->"])


def _one_line(text: str) -> str:
    return " ".join(neutral(text).split())

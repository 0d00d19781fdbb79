"""An export as Markdown, for people to read: by scope, then by category or kind. Nothing internal, nothing hidden."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, Final

from recollect.domain import Scope

_SCOPES: Final = {"personal": "Personal", "project": "Project", "team": "Team"}
_FENCE: Final = re.compile(r"^\s*(`{3,}|~{3,})")


def markdown(lines: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield the document for the lines of an export: what lives, and the facts that hold."""
    shelves: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    facts: dict[str, list[dict[str, Any]]] = defaultdict(list)
    about: dict[str, Any] = {}
    for line in lines:
        if memory := line.get("memory"):
            if not {"deleted_at", "merged_into", "superseded_by"} & memory.keys():
                shelf = memory.get("category") or _title(str(memory["fact_type"]))
                shelves[memory["scope"]][shelf].append(memory)
        elif fact := line.get("fact"):
            if "valid_to" not in fact:
                facts[fact["scope"]].append(fact)
        elif "format" in line:
            about = line
    yield f"# Memories\n\nExported on {str(about.get('exported_at', ''))[:10]}.\n"
    for scope in map(str, Scope):
        if shelves[scope] or facts[scope]:
            yield f"\n## {_SCOPES[scope]}\n"
        for shelf in sorted(shelves[scope], key=str.casefold):
            yield f"\n### {_one_line(shelf)}\n"
            for memory in shelves[scope][shelf]:
                yield _memory(memory)
        if facts[scope]:
            yield "\n### Facts\n\n"
            yield from (f"- {_one_line(' '.join(_parts(one)))}\n" for one in facts[scope])


def _memory(memory: dict[str, Any]) -> str:
    title = _one_line(str(memory.get("title") or memory.get("abstract") or ""))
    content = str(memory["content"]).strip()
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


def _parts(fact: dict[str, Any]) -> tuple[str, str, str]:
    return str(fact["subject"]), str(fact["predicate"]), str(fact["object"])


def _quiet(content: str) -> str:
    """Let no heading in a memory be one of the document's: deeper by four levels, or plain; code stays as it is."""
    fence, lines = "", []
    for line in content.split("\n"):
        found = _FENCE.match(line)
        if found and not fence:
            fence = found[1]
        elif found and found[1].startswith(fence):
            fence = ""
        elif not fence and re.match(r" {0,3}#{1,6}(\s|$)", line):
            line = f"**{line.strip().strip('#').strip()}**"
        lines.append(line)
    return "\n".join([*lines, fence] if fence else lines)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _title(kind: str) -> str:
    return kind[:1].upper() + kind[1:]

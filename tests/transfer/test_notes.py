"""Notes of Obsidian and basic-memory: tags, links, observations, relations and what the front matter says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pattern_attacks import at_most
from recollect.domain.transfer import FactRecord, ImportFormat, MemoryRecord
from recollect.transfer.installed_passage import PASSAGE
from recollect.transfer.markdown_sections import front_matter

Read = Callable[..., Any]
NOTE = """---
title: Coffee *brewing*
type: note
permalink: kitchen/coffee
tags: ["#drinks", daily]
aliases: [Espresso notes]
created: 2026-02-03
---
# Observations
- [method] Pour over needs 94 degrees #brewing (tested twice)
- [ ] buy beans
- [x] clean the mill
- [12:30] [[Alarm]] rang
- `[code]` is none
- [note](http://example.org) neither

> - [info] quoted

# Relations
- pairs_with [[Chocolate|dark chocolate]] (always)
- "grows in" [[places/Ethiopia#Highlands]]
- [[Tea]]
- some longer words [[Milk]] and more
- served_in [[Cups]]
with [[Sugar]]

See [[Water]] and ![[picture.png]], `[[Code]]`, #brewing/slow, #42.

```
#no-tag [[Nowhere]]
```
"""


def triples(found: Any) -> list[tuple[str, str, str]]:
    """Return the facts that were read, each valid."""
    records = [FactRecord(**one.fields) for one in found.facts]
    return [(one.subject, one.predicate, one.object) for one in records]


def test_a_note_of_basic_memory_states_facts(read: Read) -> None:
    """Observations and relations are facts about the note, other links are links; tasks, times and code are none."""
    found = read(ImportFormat.MARKDOWN, NOTE, "notes/coffee.md")
    about = "Coffee brewing"
    assert triples(found) == [
        (about, "method", "Pour over needs 94 degrees #brewing (tested twice)"),
        (about, "links_to", "Alarm"),
        (about, "pairs_with", "Chocolate"),
        (about, "grows in", "places/Ethiopia"),
        (about, "links_to", "Tea"),
        (about, "links_to", "Milk"),
        (about, "served_in", "Cups"),
        (about, "links_to", "Sugar"),
        (about, "links_to", "Water"),
    ]
    assert found.facts[0].where == "notes/coffee.md:10"
    assert found.facts[0].fields["valid_from"].startswith("2026-02-03")


def test_a_note_keeps_its_tags_names_and_day(read: Read) -> None:
    """Tags of the front matter and of the text, other names and the permalink are tags; the day is when it happened."""
    first, second = read(ImportFormat.MARKDOWN, NOTE, "notes/coffee.md").memories
    head = ["drinks", "daily", "alias:Espresso notes", "permalink:kitchen/coffee"]
    assert first.fields["tags"] == [*head, "observations", "brewing"]
    assert second.fields["tags"] == [*head, "relations", "brewing/slow"]
    assert (first.fields["title"], first.fields["key"]) == (
        "Coffee brewing › Observations",
        "notes/coffee.md#observations",
    )
    assert MemoryRecord(**first.fields).observed_at.date().isoformat() == "2026-02-03"
    assert "#no-tag [[Nowhere]]" in second.fields["content"]


def test_a_note_without_a_permalink_has_no_observations(read: Read) -> None:
    """In other notes a bracket at the beginning of an item is text, and the note's name is that of its file."""
    found = read(
        ImportFormat.MARKDOWN, "- [NOTE] Use tabs.\n- uses [[Redis]]\n- [[Redis]]\n- [[Redis]]", "a/My note.md"
    )
    assert triples(found) == [("My note", "uses", "Redis"), ("My note", "links_to", "Redis")]


def test_facts_are_as_private_as_their_note(read: Read) -> None:
    """What a private note states is private too."""
    (fact,) = read(ImportFormat.MARKDOWN, "---\nsensitivity: private\n---\nSee [[Bank]].", "A.md").facts
    assert FactRecord(**fact.fields).sensitivity == "private"


@pytest.mark.parametrize("text", ["[[" * 20_000, "#" * 20_000 + "a", "`" * 20_000 + "[[a]]", "- [" + "x" * 50_000])
def test_endless_marks_are_read_quickly(read: Read, text: str) -> None:
    """What never closes states nothing, and the note is kept."""
    found = read(ImportFormat.MARKDOWN, f"---\npermalink: a\n---\n{text}", "A.md")
    assert [triples(found)] == [[]]
    assert len(found.memories) == 1


def test_the_rules_of_an_editor_keep_their_description(read: Read) -> None:
    """The description of a rule file is the second heading of its memories."""
    (one,) = read(
        ImportFormat.MARKDOWN, "---\ndescription: For Python\nglobs: '*.py'\n---\nUse tabs.", "a.mdc"
    ).memories
    assert one.fields["subtitle"] == "For Python"


def test_a_passage_that_never_ends_takes_no_notes_along() -> None:
    """Only what stands between the two markers of `recollect install` is left out, and one pair never holds another."""
    begin, end = "<!-- recollect:begin -->", "<!-- recollect:end -->"
    text = f"{begin}\nOpen.\n\nTea wants 80 degrees.\n\n{begin}\nOurs, with a < sign.\n{end}\nThe pot is of iron.\n"
    left = PASSAGE.sub("", text)
    assert "Tea wants 80 degrees." in left
    assert "The pot is of iron." in left
    assert "Ours" not in left


@pytest.mark.parametrize(
    "tags", ["[" * 20 + "tea" + "]" * 20, "[" * 21 + "tea" + "]" * 21, "[" * 30_000, "{a: " * 10_000]
)
def test_a_head_of_many_brackets_is_read_line_by_line(tags: str) -> None:
    """Reading nested YAML would take the square of its depth; the other lines of the head still count."""
    with at_most(1.0):
        values, rest, _ = front_matter(f"---\ntags: {tags}\ntitle: Tea\n---\nGreen.\n")
    assert (values["title"], rest) == ("Tea", "Green.\n")

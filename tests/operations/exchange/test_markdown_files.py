"""Markdown: a section is a memory, whatever stands in it; its key is where it stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from recollect.domain import MAX_CONTENT, Carried, Draft, Format, Load

Read = Callable[..., Any]
FENCE = "`" * 3
GUIDE = f"""Always answer briefly.

# Testing

## Style

Use `pytest -q`.

{FENCE}sh
# this is no heading
pytest -q
{FENCE}

## Empty

# Deploying #
Fridays only.
"""


def test_each_section_that_says_something_is_a_memory(read: Read) -> None:
    """The text before any heading and each section with text of its own are memories; an empty section is none."""
    found = read(Format.MARKDOWN, GUIDE, "CLAUDE.md")
    assert [one.fields["title"] for one in found.memories] == [
        "CLAUDE.md",
        "CLAUDE.md › Testing › Style",
        "CLAUDE.md › Deploying",
    ]
    assert [one.fields["key"] for one in found.memories] == [
        "claude.md#",
        "claude.md#testing/style",
        "claude.md#deploying",
    ]
    assert [one.where for one in found.memories] == ["CLAUDE.md:1", "CLAUDE.md:5", "CLAUDE.md:16"]
    assert found.memories[1].fields["tags"] == ["testing", "style"]
    assert not found.problems


def test_code_stays_whole(read: Read) -> None:
    """A `#` inside a fence is no heading, and the fence is stored with its section, blank lines and all."""
    style = read(Format.MARKDOWN, GUIDE, "CLAUDE.md").contents[1]
    assert style == f"## Style\n\nUse `pytest -q`.\n\n{FENCE}sh\n# this is no heading\npytest -q\n{FENCE}"


@pytest.mark.parametrize(
    ("text", "headings"),
    [
        ("~~~\n# a\n```\n# b\n~~~\n# C\nx", ["C"]),
        (f"{FENCE}`\n# a\n{FENCE}\n# b\n{FENCE}`\n# C\nx", ["C"]),
        (f"- item\n\n  {FENCE}\n# a\n  {FENCE}\n# C\nx", ["C"]),
        (f"{FENCE}py\n# a\nnever closed", []),
        ("<!--\n# a\n-->\n# C\nx", ["C"]),
        ("    # code\n# C\nx", ["C"]),
        ("#no heading\n# C\nx", ["C"]),
        ("Title\n=====\nx\n\nPart\n----\ny", ["Title", "Part"]),
        ("- a\n---\n# C\nx", ["C"]),
        ("| a |\n|---|\n| b |\n# C\nx", ["C"]),
        ("# A `code` and [link](http://x.org) *bold*\nx", ["A code and link bold"]),
    ],
)
def test_only_headings_are_headings(read: Read, text: str, headings: list[str]) -> None:
    """Fences of either kind, comments, indented code, lists, tables and rules are no headings; underlined ones are."""
    titles = [one.fields["title"] for one in read(Format.MARKDOWN, text, "A.md").memories]
    paths = [title.split(" › ")[1:] for title in titles if " › " in title]
    assert [path[-1] for path in paths] == headings


def test_levels_may_be_skipped(read: Read) -> None:
    """A heading stands under the nearest one above it that is of a higher level."""
    text = "### Deep\na\n# Top\nb\n#### Deeper\nc\n## Mid\nd"
    keys = [one.fields["key"] for one in read(Format.MARKDOWN, text, "A.md").memories]
    assert keys == ["a.md#deep", "a.md#top", "a.md#top/deeper", "a.md#top/mid"]


def test_equal_headings_have_keys_of_their_own(read: Read) -> None:
    """The second section of the same name is numbered, and headings without letters have keys too."""
    text = "# A\nx\n# A\ny\n# !!!\nz\n# ???\nw"
    keys = [one.fields["key"] for one in read(Format.MARKDOWN, text, "A.md").memories]
    assert keys == ["a.md#a", "a.md#a~2", "a.md#-", "a.md#-~2"]


def test_front_matter_is_understood(read: Read) -> None:
    """Tags, category and kind come from the front matter; what else stands there is passed over, lines count on."""
    head = '---\nname: Notes\ntags: [ops, "on call"]\ncategory: team\ntype: decision\nnested:\n  deep: 1\n---\n'
    (one,) = read(Format.MARKDOWN, f"{head}# A\nx", "A.md").memories
    assert one.fields["tags"] == ["ops", "on call", "a"]
    assert (one.fields["category"], one.fields["fact_type"]) == ("team", "decision")
    assert one.where == "A.md:9"
    (listed,) = read(Format.MARKDOWN, "---\ntags:\n  - ops\n  - 'x'\n---\ny", "A.md").memories
    assert listed.fields["tags"] == ["ops", "x"]


@pytest.mark.parametrize("text", ["---\nno end\n# A\nx", "---\n\n---\n# A\nx"])
def test_a_rule_is_no_front_matter(read: Read, text: str) -> None:
    """What has no end or no pairs is text like any other, and nothing of it is lost."""
    found = read(Format.MARKDOWN, text, "A.md")
    assert found.contents[-1] == "# A\n\nx"
    assert "---" in found.contents[0]


def test_an_unknown_level_of_sensitivity_is_the_strictest(read: Read) -> None:
    """A front matter that calls its text something nobody knows hides it."""
    (one,) = read(Format.MARKDOWN, "---\nsensitivity: internal\n---\nx", "A.md").memories
    assert one.fields["sensitivity"] == "secret"


def test_line_ends_and_byte_order_marks_change_nothing(read: Read) -> None:
    """Windows and old Mac line ends and a byte order mark give the same memories."""
    plain = [one.fields for one in read(Format.MARKDOWN, GUIDE, "A.md").memories]
    for ends in ("\r\n", "\r"):
        marked = b"\xef\xbb\xbf" + GUIDE.replace("\n", ends).encode()
        assert [one.fields for one in read(Format.MARKDOWN, marked, "A.md").memories] == plain


def test_a_huge_section_is_cut_between_paragraphs(read: Read) -> None:
    """What is longer than a memory may be becomes several that leave nothing out, each a valid draft."""
    paragraphs = [f"{number} " + "word " * 1_000 for number in range(90)]
    found = read(Format.MARKDOWN, "# Long\n\n" + "\n\n".join(paragraphs), "A.md")
    assert len(found.memories) > 1
    assert "".join("".join(one.split()) for one in found.contents) == "#Long" + "".join(
        "".join(p.split()) for p in paragraphs
    )
    assert all(Draft(**one.fields) for one in found.memories)
    assert [one.fields["key"] for one in found.memories][:2] == ["a.md#long", "a.md#long~2"]
    endless = read(Format.MARKDOWN, "x" * (MAX_CONTENT * 2 + 1), "A.md")
    assert sum(map(len, endless.contents)) == MAX_CONTENT * 2 + 1


def test_the_end_tells_which_sections_there_are(read: Read) -> None:
    """Last comes the list of keys, by which an import finds what is not in the file any more."""
    last = read(Format.MARKDOWN, GUIDE, "docs/CLAUDE.md").things[-1]
    assert isinstance(last, Carried)
    assert last.load is Load.SECTIONS
    assert last.fields["prefix"] == "docs/claude.md#"
    assert len(last.fields["keys"]) == 3


def test_an_empty_file_has_no_memories(read: Read) -> None:
    """Nothing, blank lines, or headings alone are no memories and no problems."""
    for text in ("", "\n\n \n", "# A\n## B\n"):
        found = read(Format.MARKDOWN, text, "A.md")
        assert (found.memories, found.problems) == ([], [])

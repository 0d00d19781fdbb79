"""Markdown: a section is a memory, whatever stands in it; its key is where it stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from recollect.domain.fields import MAX_CONTENT
from recollect.domain.transfer import FileSections, ImportFormat, MemoryRecord

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
    found = read(ImportFormat.MARKDOWN, GUIDE, "CLAUDE.md")
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
    style = read(ImportFormat.MARKDOWN, GUIDE, "CLAUDE.md").contents[1]
    assert style == f"## Style\n\nUse `pytest -q`.\n\n{FENCE}sh\n# this is no heading\npytest -q\n{FENCE}"


@pytest.mark.parametrize(
    ("text", "headings"),
    [
        ("~~~\n# a\n```\n# b\n~~~\n# C\nx", ["C"]),
        (f"{FENCE}`\n# a\n{FENCE}\n# b\n{FENCE}`\n# C\nx", ["C"]),
        (f"- item\n\n  {FENCE}\n  # a\n  {FENCE}\n# C\nx", ["C"]),
        (f"> {FENCE}\n> # a\n> {FENCE}\n> # b\n\n# C\nx", ["C"]),
        (f"{FENCE}py\n# a\nnever closed", []),
        ("<!--\n# a\n-->\n# C\nx", ["C"]),
        ("    # code\n# C\nx", ["C"]),
        ("#no heading\n# C\nx", ["C"]),
        ("Title\n=====\nx\n\nPart\n----\ny", ["Title", "Part"]),
        ("- a\n---\n# C\nx", ["C"]),
        ("| a |\n|---|\n| b |\n# C\nx", ["C"]),
        ("# A `code` and [link](http://x.org) *bold*\nx", ["A code and link bold"]),
        ("# my_var <!-- why --> &amp; [x]\nx", ["my_var & [x]"]),
    ],
)
def test_only_headings_are_headings(read: Read, text: str, headings: list[str]) -> None:
    """Fences of either kind, comments, indented code, lists, tables and rules are no headings; underlined ones are."""
    titles = [one.fields["title"] for one in read(ImportFormat.MARKDOWN, text, "A.md").memories]
    paths = [title.split(" › ")[1:] for title in titles if " › " in title]
    assert [path[-1] for path in paths] == headings


def test_levels_may_be_skipped(read: Read) -> None:
    """A heading stands under the nearest one above it that is of a higher level."""
    text = "### Deep\na\n# Top\nb\n#### Deeper\nc\n## Mid\nd"
    keys = [one.fields["key"] for one in read(ImportFormat.MARKDOWN, text, "A.md").memories]
    assert keys == ["a.md#deep", "a.md#top", "a.md#top/deeper", "a.md#top/mid"]


def test_equal_headings_have_keys_of_their_own(read: Read) -> None:
    """The second section of the same name is numbered, and headings without letters have keys too."""
    text = "# A\nx\n# A\ny\n# !!!\nz\n# ???\nw"
    keys = [one.fields["key"] for one in read(ImportFormat.MARKDOWN, text, "A.md").memories]
    assert keys == ["a.md#a", "a.md#a~2", "a.md#-", "a.md#-~2"]


def test_front_matter_is_understood(read: Read) -> None:
    """Tags, category, kind and day come from the front matter; all else there is passed over, lines count on."""
    head = '---\nname: Notes\ntags: [ops, "on call"]\ncategory: team\ntype: decision\ndate: 2026-02-03\n'
    head += "nested:\n  deep: 1\n---\n"
    (one,) = read(ImportFormat.MARKDOWN, f"{head}# A\nx", "A.md").memories
    assert one.fields["tags"] == ["ops", "on call", "a"]
    assert (one.fields["category"], one.fields["fact_type"]) == ("team", "decision")
    assert one.fields["observed_at"] == "2026-02-03T00:00:00+00:00"
    assert one.where == "A.md:10"
    (listed,) = read(ImportFormat.MARKDOWN, "---\ntags:\n  - ops\n  - 'x'\n---\ny", "A.md").memories
    assert listed.fields["tags"] == ["ops", "x"]


@pytest.mark.parametrize("text", ["---\nno end\n# A\nx", "---\n\n---\n# A\nx"])
def test_a_rule_is_no_front_matter(read: Read, text: str) -> None:
    """What has no end or no pairs is text like any other, and nothing of it is lost."""
    found = read(ImportFormat.MARKDOWN, text, "A.md")
    assert found.contents[-1] == "# A\n\nx"
    assert "---" in found.contents[0]


@pytest.mark.parametrize(
    "broken",
    ["description: Use this: carefully", "a: &a [x]\nb: [*a, *a]", f"a: {'[' * 40_000}", f"a: {'b' * 70_000}"],
    ids=["colon", "alias", "deep", "long"],
)
def test_front_matter_that_is_no_plain_yaml_is_read_line_by_line(read: Read, broken: str) -> None:
    """What YAML refuses, and what is refused of YAML, hides neither the text nor how private it is."""
    head = f"{broken}\ntags: [ops, on call]\nsensitivity: private\n"
    (one,) = read(ImportFormat.MARKDOWN, f"---\n{head}---\nA quiet place.", "A.md").memories
    assert (one.fields["content"], one.fields["sensitivity"]) == ("A quiet place.", "private")
    assert one.fields["tags"] == ["ops", "on call"]


@pytest.mark.parametrize(
    ("text", "memories"),
    [
        (f"# {'x' * 250_000}\nA quiet place.", 2),
        (f"# {'x ' * 99_500}\nA quiet place.", 1),
        (f"# {'x' * 100_000}\n" + "## b\nA quiet place.\n" * 100, 100),
        (f"# {'[' * 100_000}\nA quiet place.", 1),
        (f"{'>' * 100_000}\n# b\nA quiet place.", 2),
        (f"{'- ' * 50_000}\n# b\nA quiet place.", 2),
    ],
    ids=["endless", "wide", "above others", "brackets", "quotes", "lists"],
)
def test_giant_headings_and_deep_nesting_are_read(read: Read, text: str, memories: int) -> None:
    """However long a heading is and however deep a list, each section is a valid memory and nothing is lost."""
    found = read(ImportFormat.MARKDOWN, text, "A.md")
    assert len(found.memories) == memories
    assert all(MemoryRecord(**one.fields) for one in found.memories)
    assert found.contents[-1].endswith("A quiet place.")


def test_an_unknown_level_of_sensitivity_is_the_strictest(read: Read) -> None:
    """A front matter that calls its text something nobody knows hides it."""
    (one,) = read(ImportFormat.MARKDOWN, "---\nsensitivity: internal\n---\nx", "A.md").memories
    assert one.fields["sensitivity"] == "secret"


def test_line_ends_and_byte_order_marks_change_nothing(read: Read) -> None:
    """Windows and old Mac line ends and a byte order mark give the same memories."""
    plain = [one.fields for one in read(ImportFormat.MARKDOWN, GUIDE, "A.md").memories]
    for ends in ("\r\n", "\r"):
        marked = b"\xef\xbb\xbf" + GUIDE.replace("\n", ends).encode()
        assert [one.fields for one in read(ImportFormat.MARKDOWN, marked, "A.md").memories] == plain


def test_a_huge_section_is_cut_between_paragraphs(read: Read) -> None:
    """What is longer than a memory may be becomes several that leave nothing out, each a valid draft."""
    paragraphs = [f"{number} " + "word " * 1_000 for number in range(90)]
    found = read(ImportFormat.MARKDOWN, "# Long\n\n" + "\n\n".join(paragraphs), "A.md")
    assert len(found.memories) > 1
    assert "".join("".join(one.split()) for one in found.contents) == "#Long" + "".join(
        "".join(p.split()) for p in paragraphs
    )
    assert all(MemoryRecord(**one.fields) for one in found.memories)
    assert [one.fields["key"] for one in found.memories][:2] == ["a.md#long", "a.md#long~2"]
    endless = read(ImportFormat.MARKDOWN, "x" * (MAX_CONTENT * 2 + 1), "A.md")
    assert sum(map(len, endless.contents)) == MAX_CONTENT * 2 + 1


def test_the_end_tells_which_sections_there_are(read: Read) -> None:
    """Last comes the list of keys, by which an import finds what is not in the file any more."""
    last = read(ImportFormat.MARKDOWN, GUIDE, "docs/CLAUDE.md").things[-1]
    assert isinstance(last, FileSections)
    assert last.prefix == "docs/claude.md#"
    assert last.keys == {f"docs/claude.md#{key}" for key in ("", "testing/style", "deploying")}


def test_an_empty_file_has_no_memories(read: Read) -> None:
    """Nothing, blank lines, or headings alone are no memories and no problems."""
    for text in ("", "\n\n \n", "# A\n## B\n"):
        found = read(ImportFormat.MARKDOWN, text, "A.md")
        assert (found.memories, found.problems) == ([], [])

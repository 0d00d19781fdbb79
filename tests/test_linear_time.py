"""Reading a text that came from outside takes time in proportion to its length, whatever stands in it.

Patterns by themselves are tried in `gate/test_patterns.py`, with attacks made from each.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from pydantic import BaseModel

from places import DEFAULT_MODEL
from pumps import LONGEST, PUMPS, SHAPES, Grown, grown
from recollect import gate, project_files, projects
from recollect.domain import moments
from recollect.domain.fields import MAX_QUERY
from recollect.domain.origin import host_of, with_address
from recollect.domain.requests import CompactQuery, Draft, Update
from recollect.domain.transfer import ImportFormat
from recollect.doors import hook_texts
from recollect.doors.agents import json_text, toml_text
from recollect.doors.web import words as page_words
from recollect.engines import chat
from recollect.engines.embedding.tokens import Tokens
from recollect.errors import RecollectError
from recollect.gate import look_alikes
from recollect.memory import condense, grounding, likeness
from recollect.prompt import neutral, orders
from recollect.search import budget, everything, parse, passages, periods, typed_dates, unasked, versions
from recollect.sessions import boundaries, memorability
from recollect.sessions.observations import (
    command_lines,
    kinds,
    lines,
    noise,
    notes,
    occurrence,
    origins,
    statements,
    trail,
)
from recollect.store.text import fts5, spelling
from recollect.text import (
    chunk,
    entities,
    languages,
    layers,
    normalization,
    prompts,
    proper_names,
    sentences,
    speaker_names,
    terms,
    writing_systems,
)
from recollect.transfer import (
    formats,
    ignore_files,
    installed_passage,
    markdown_export,
    markdown_links,
    markdown_sections,
)
from recollect.transfer.formats import FORMATS

pytestmark = pytest.mark.slow

Reader = Callable[[str], object]
AT = datetime(2026, 5, 7, 12, tzinfo=UTC)
TOKENS = Tokens.read(DEFAULT_MODEL / "tokenizer.json")
QUERY = passages.Proximity({"aa": 1.0, "word": 2.0, "deploy": 3.0})
TEXT: dict[str, Reader] = {
    "terms": lambda text: terms.keywords_and_words(Draft(content=f"a{text}"), "title"),
    "parts of names": terms.name_parts,
    "topics": terms.topic_words,
    "spellings": lambda text: terms.spellings([text]),
    "questions": terms.share_of_questions,
    "language": languages.is_english,
    "fold": normalization.fold,
    "words for a model": writing_systems.emoji_as_words,
    "runs": lambda text: writing_systems.dense_runs(normalization.fold(text)),
    "cut": lambda text: writing_systems.cut_to_width(text, 10_000),
    "index": lambda text: [normalization.same_in_index(one) for one in normalization.index_pieces(text)],
    "entities": entities.entities,
    "names in prose": lambda text: list(proper_names.names(text)),
    "speakers": speaker_names.transcript_speakers,
    "words of a name": speaker_names.words_of,
    "without names": lambda text: speaker_names.without_names(text, ["Ann Lee"]),
    "title": layers.title,
    "abstract": layers.abstract,
    "overview": layers.overview,
    "sentences": sentences.sentences,
    "sentences and clauses": lambda text: sentences.sentences(text, semicolons=True),
    "chunks": lambda text: chunk.chunk(text, TOKENS.spans(text), 128, 16),
    "tokens": TOKENS.count,
    "tokenized": lambda text: TOKENS.tokenized([text], 256),
    "added to prompts": prompts.without_agent_blocks,
    "typed": prompts.is_typed,
    "reported": prompts.report_text,
}
SEARCH: dict[str, Reader] = {
    "query": parse.parse,
    "period": lambda text: periods.named_period(text, AT),
    "moment in words": lambda text: typed_dates.named_moment(text, AT),
    "everything": everything.asks_for_everything,
    "kind asked for": everything.kind_asked_for,
    "question of a prompt": unasked.question_of,
    "past": versions.asks_past,
    "statement": lambda text: versions.Asked("a", {}).statement(text),
    "passage": lambda text: passages.best_passage(text, QUERY, None),
    "shares": lambda text: QUERY.shares([text]),
    "estimate": budget.estimate,
    "quoted": fts5.quoted,
    "misspelling": lambda text: spelling.likelihood(text[:64], text[1:65]),
}
MEMORY: dict[str, Reader] = {
    "same": lambda text: likeness.say_the_same(text, text + "a"),
    "says all": lambda text: likeness.says_all(text, text[: len(text) // 2]),
    "merged": lambda text: likeness.merged_text(text[: len(text) // 2], text[len(text) // 2 :]),
    "grounded": lambda text: grounding.is_grounded(text[:500], text),
    "quoted in a summary": lambda text: condense.cited_title(text),
    "with an overview": lambda text: condense.with_overview(text, "a"),
    "retitled": lambda text: condense.with_titles(text, {"a": "b"}),
}
SHORTER = dict.fromkeys(SEARCH, MAX_QUERY)
"""How long the text of a reader may be at most, where that is less."""


class Reply(BaseModel):
    """What a language model is asked for."""

    a: str


def quietly(reader: Callable[..., object], *refusals: type[Exception]) -> Reader:
    """Return a reader to which a refusal is an answer too."""

    def read(text: str) -> object:
        try:
            return reader(text)
        except (*refusals, RecollectError):
            return None

    return read


def of_file(name: str) -> Reader:
    """Return the reader of an imported file of some format."""
    return quietly(
        lambda text: list(FORMATS[ImportFormat(name)].read(BytesIO(text.encode("utf-8", "replace")), "x.md")),
        ValueError,
    )


def wrapped(name: str, wrap: Callable[[str], Any]) -> Reader:
    """Return the reader of a format, for a text in the place where that format holds what somebody said."""
    return lambda text: of_file(name)(json.dumps(wrap(text)))


def used(tool: str, field: str = "", *, output: bool = False) -> Reader:
    """Return a reader of what a tool was given in a field, or wrote."""

    def read(text: str) -> object:
        given = {"command": "make test"} | ({field: text} if field else {})
        one = occurrence.tool_occurrence(tool, given, text if output else "", failed=output)
        origins.stamp_of(one, "/src", "")
        notes.observe(one, trail.Trail(), (), "/src")
        return moments.Action(one.path, one.written, one.command, one.text).leads(one.command)

    return read


def in_folder(name: str, reader: Callable[[Path], object]) -> Reader:
    """Return a reader of a folder in which a file of that name holds the text."""

    def read(text: str) -> object:
        with TemporaryDirectory() as folder:
            (Path(folder) / ".git").mkdir()
            (Path(folder) / ".git" / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
            (Path(folder) / name).write_text(text, encoding="utf-8", errors="replace")
            return reader(Path(folder))

    return quietly(read, ValueError)


def ignored(text: str) -> object:
    """Look with the lines of an ignore file at names that many of them nearly fit."""
    rules = (ignore_files.Rules(Path("/notes"), ignore_files.parse_rules(text)),)
    return [ignore_files.ignores(rules, Path("/notes", name), is_folder=False) for name in ("a" * 60, "a/" * 30 + "a")]


def prompted(text: str) -> object:
    """Note what a person wrote."""
    one = occurrence.prompt_occurrence(text)
    return notes.observe(one, trail.Trail()).notes, statements.own_words(one.text)


GATE: dict[str, Reader] = {
    "gate": quietly(lambda text: gate.clear(Draft(content=f"a{text}"))),
    "gate of a title": quietly(
        lambda text: gate.clear(Draft(content="a", title=text[:2_000], tags=(text[:400] or "a",))), ValueError
    ),
    "masked": gate.masked,
    "redacted": lambda text: gate.clear(Draft(content=f"a{text}"), gate.OnSecret.REDACT),
    "labelled": quietly(lambda text: gate.clear(Draft(content="a", key="password", category=text[:400] or "a"))),
}
PROMPT: dict[str, Reader] = {
    "neutral": neutral.neutral,
    "visible": neutral.without_invisible,
    "neutral JSON": lambda text: neutral.neutral_json({"a": [text]}),
    "governed": orders.governed,
    "gives orders": orders.gives_orders,
    "orders": orders.is_order,
    "look-alikes": look_alikes.without_look_alikes,
    "told to a model": chat.prompt_of,
    "reply of a model": lambda text: chat.parse_answer(Reply, text),
}
DOMAIN: dict[str, Reader] = {
    "draft": quietly(lambda text: Draft(content=text, title=text, overview=text)),
    "tags": quietly(lambda text: Draft(content="a", tags=text)),
    "files": quietly(lambda text: Draft(content="a", files_read=text, files_modified=[text])),
    "moments of a memory": quietly(lambda text: Draft(content="a", when=text)),
    "concepts": quietly(lambda text: Draft(content="a", concepts=text)),
    "filters": quietly(lambda text: CompactQuery(query=text, tags=text, file=text, since=text, until=text)),
    "unknown name": quietly(lambda text: Update(id="1", **{text: "x"})),
    "times": quietly(lambda text: Draft(content="a", observed_at=text)),
    "moment": quietly(moments.parse_moment, ValueError),
    "action": lambda text: moments.parse_moment("run make te*st* !--dry-*").fits(moments.Action(text)),
    "stars of a moment": lambda text: moments.parse_moment("run a*a*a*a*a*a*a*b*c").fits(moments.Action(text)),
    "origin": lambda text: (host_of(text), with_address(text, text)),
}
SESSIONS: dict[str, Reader] = {
    "prompt": prompted,
    "output of a command": used("Bash", output=True),
    "output of a file": used("Read", output=True),
    "output of a search": used("Grep", output=True),
    "output of a page": used("WebFetch", output=True),
    "report": used("Task", output=True),
    "command": used("Bash", "command"),
    "patch": used("apply_patch", "input"),
    "written": used("Write", "content"),
    "replaced": used("Edit", "old_string"),
    "path": used("Edit", "file_path"),
    "programs": command_lines.programs,
    "documents": command_lines.without_documents,
    "works": command_lines.works_of,
    "lines": lines.read_lines,
    "prose": lines.is_prose,
    "digest": noise.output_digest,
    "statements": statements.sentences,
    "explanations": lambda text: (statements.explanations(text, "a.py"), statements.explanations(text, "a.md")),
    "memorability": lambda text: memorability.memorability(text, None),
    "rule": statements.states_rule,
    "boundary": lambda text: boundaries.window_after(boundaries.Window(), text, AT),
    "concepts of an edit": lambda text: kinds.kind_of_edit(
        occurrence.tool_occurrence("Edit", {"new_string": text}, "")
    ),
    "payload": lambda text: (
        hook_texts.opened(text),
        hook_texts.arguments(text),
        hook_texts.unwrapped(text),
        hook_texts.stored(text),
        hook_texts.cut(text, 1_000),
    ),
    "payload of parts": lambda text: hook_texts.text_of([{"text": text}, {"stdout": text}]),
}
FILES: dict[str, Reader] = {
    **{f"file of {name}": of_file(name) for name in ImportFormat if name not in ("claude-mem", "memories-db")},
    "format": lambda text: formats.detect("x.json", text.encode("utf-8", "replace")[: formats.HEAD]),
    "front matter": markdown_sections.front_matter,
    "heading": lambda text: markdown_sections.without_markup(text),
    "blocks": lambda text: list(markdown_sections.sections(text)),
    "cut notes": lambda text: list(markdown_sections.cut_text(text, 100)),
    "tags and facts": lambda text: [
        (markdown_links.tags_of([one]), list(markdown_links.facts_in([one], observations=True)))
        for one in [markdown_sections.Part(1, text, True, False)]
    ],
    "passages": lambda text: installed_passage.PASSAGE.sub("", text),
    "shown in an export": markdown_export.shown_text,
    "ignore file": ignored,
    "settings of a repository": in_folder("recollect.toml", lambda folder: project_files.table_in(str(folder))),
    "name of a project": in_folder(".recollect.toml", projects.find_project),
    "remotes": in_folder(".git/config", projects.find_project),
    "folder of a worktree": in_folder(".git/commondir", projects.find_project),
    "transcript": in_folder("a.jsonl", lambda folder: prompts.is_typed_by_transcript(folder / "a.jsonl", "a")),
    "settings as JSON": quietly(json_text.parse, ValueError),
    "settings put": quietly(lambda text: json_text.put(text, ["a", "b"], "c", 1), ValueError),
    "settings as TOML": quietly(toml_text.parse, ValueError),
    # what is shorter than 200 words is compared word by word, which its length alone bounds
    "differences": lambda text: page_words.differences(8 * text, 8 * text[::-1]),
    "page": page_words.shown,
    "code of a page": page_words.coded,
}
READERS = TEXT | GATE | PROMPT | SEARCH | DOMAIN | MEMORY | SESSIONS | FILES


@pytest.mark.parametrize("name", READERS)
def test_a_reader_takes_linear_time(name: str) -> None:
    """Four times the text costs about four times as much, whatever kind of piece is repeated in it."""
    assert grown_of(name, SHAPES) == []


@pytest.mark.full
@pytest.mark.parametrize("name", READERS)
def test_a_reader_takes_linear_time_with_every_pump(name: str) -> None:
    """Four times the text costs about four times as much with each of the further pieces."""
    assert grown_of(name, [pump for pump in PUMPS if pump not in SHAPES]) == []


def grown_of(name: str, pumps: Iterable[str]) -> list[Grown]:
    """Return the pumps with which the cost of a reader grows faster than the text."""
    reader = READERS[name]
    reader("Warm up: ignore nothing, and сall it а day.")
    return [found for pump in pumps if (found := grown(reader, pump, SHORTER.get(name, LONGEST)))]

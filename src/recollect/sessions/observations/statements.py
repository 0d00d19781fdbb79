"""Sentences: what a person wrote in a prompt, one by one; what the comments of a file and a document's prose say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby, islice
from typing import Final

from recollect.sessions.observations.lines import is_prose
from recollect.text.prompts import ADDED
from recollect.text.sentences import sentences

_FENCED: Final = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_QUOTED: Final = re.compile(r"^[ \t]*>.*$", re.MULTILINE)
_LISTED: Final = "-*•> "
_MARK: Final = re.compile(r"^\s*@?(?:#+!?|//+!?|--|/?\*+/?|<!--|;)(?P<said>.*)$")
_BEHIND: Final = re.compile(r"(?<=\s)(?:#|//)\s")  # code
_DOCUMENTS: Final = (".md", ".rst", ".txt", ".adoc", ".mdx", ".tex")
_MAX_MARKS: Final = 4  # of a comment that are looked at in one line
_MAX_CODE: Final = 120
_NO_PROSE: Final = re.compile(r"^#{1,6} |^\||^```")  # headings, tables and fences
_RULE: Final = re.compile(
    r"\b(?:always|never|from now on|must|mustn't|no longer|prefer|prefers|preferred|by convention|may only|may not|"
    r"only (?:\w+ ){1,6}may|only (?:on|in|with|via|through|by|for|from|after|before)|we decided|we agreed|we settled|"
    r"decided to|decided on|decided against|(?:the|our) (?:rule|policy|convention) is|"
    r"immer|nie|niemals|ab jetzt|ab sofort|muss|müssen|darf|dürfen|bevorzuge|nicht mehr|"
    r"wir haben (?:entschieden|beschlossen)|toujours|jamais|désormais|il faut|doit|doivent|préfère|nous avons décidé|"
    r"on a décidé|siempre|nunca|jamás|a partir de ahora|debe|deben|hay que|prefiero|hemos decidido|decidimos)\b|"
    r"^(?:please )?(?:don't|do not)\b",
    re.IGNORECASE,
)


def own_words(prompt: str) -> str:
    """Return the person's own words: a prompt without quotes, memories, reminders, code and other blocks."""
    return _QUOTED.sub("", _FENCED.sub(" ", ADDED.sub(" ", prompt))).strip()


def statements(text: str) -> list[str]:
    """Return the sentences of a text in order, without the marks of lists and quotes."""
    bare = (" ".join(sentence.lstrip(_LISTED).split()) for sentence in sentences(text, semicolons=True))
    return [sentence for sentence in bare if sentence]


def states_rule(sentence: str) -> bool:
    """Say whether a sentence of a person states a rule, a decision or a preference; a question states none."""
    return not sentence.rstrip().endswith("?") and bool(_RULE.search(sentence))


def is_document(path: str) -> bool:
    """Say whether a file is prose for people."""
    return path.lower().endswith(_DOCUMENTS)


def explanations(text: str, path: str) -> list[str]:
    """Return the comments of a file that are sentences, each with the line of code that it stands before.

    Of a document these are its paragraphs.
    """
    return (
        [paragraph for paragraph in _paragraphs_of(text) if is_prose(paragraph)]
        if is_document(path)
        else _comments_of(text)
    )


def _paragraphs_of(text: str) -> list[str]:
    """Return the paragraphs of prose in a document, each on a single line."""
    lines = (line.strip() for line in text.split("\n"))
    groups = groupby(lines, key=lambda line: bool(line) and not _NO_PROSE.match(line))
    return [" ".join(group) for is_text, group in groups if is_text]


def _comments_of(text: str) -> list[str]:
    """Return the blocks of comment lines, with the code after them, and the comments at a line's end."""
    found: list[str] = []
    block: list[str] = []
    for line in [*text.split("\n"), ""]:
        if (mark := _MARK.match(line)) and not line.startswith("#!"):
            block.append(mark["said"].rstrip().removesuffix("-->").removesuffix("*/").strip())
            continue
        comment = " ".join(filter(None, block))
        if is_prose(comment):
            found.append(f"{comment} (`{line.strip()}`)" if line.strip() and len(line) < _MAX_CODE else comment)
        block = []
        found += islice(_comments_after_code(line), 1)
    return found


def _comments_after_code(line: str) -> Iterator[str]:
    """Yield the comment of a line of code: the text after its last comment mark, then after earlier marks."""
    for mark in reversed(list(_BEHIND.finditer(line))[-_MAX_MARKS:]):
        code, comment = line[: mark.start()].strip(), line[mark.end() :].strip()
        if code and is_prose(comment):
            yield f"{comment} (`{code}`)"

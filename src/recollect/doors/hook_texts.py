"""Makes the text of what a tool answered, in whichever form an agent hands it on, and cuts what is too long."""

from __future__ import annotations

import json
import re

TYPE_CHECKING = False  # as `typing` has it, which takes longer to import than all else that a hook needs
if TYPE_CHECKING:
    from typing import Any

LONGEST = 200_000
"""Characters of a prompt or an output that are sent; of longer ones the middle is left out."""
_LONGEST_INPUT = 20_000  # characters of one text that a tool was given
_MOST_INPUT = 200_000  # characters of all that a tool was given, as JSON
_LONGEST_JSON = 4 * LONGEST  # characters of a text that is read as JSON
_DEEPEST = 8
_MOST_ITEMS = 500
_TEXTS = (
    "stdout",
    "stderr",
    "output",
    "content",
    "text",
    "llmContent",
    "result",
    "error",
    "message",
    "file",
    "filenames",
)
"""The keys under which the tools of the agents put what they wrote, in the order in which it is read."""
_EXITS = ("exitCode", "exit_code", "returncode")
_FENCE = re.compile(r"^</?untrusted_context>\n?", re.MULTILINE)
_FAILED = re.compile(r"Exit [Cc]ode:? -?[1-9]\d*(?:\n|$)")
_CODEX = re.compile(r"Exit code: (-?\d+)\nWall time: .*\n(?:Total output lines: .*\n)?Output:\n")
_GEMINI = re.compile(r"(?:Command: .*\nDirectory: .*\n)?Output: ?")
_GEMINI_ENDS = ("Error: (none)", "Exit Code: ", "Signal: ", "Background PIDs: ", "Process Group PGID: ")
"""What the agents put around the output of a command."""
_STORED = re.compile(r"Memory (?:stored|updated) successfully (?:with ID: |\(ID: )\d{1,18}")
_LEFT_OUT = frozenset(("originalFile", "structuredPatch", "base64", "data", "blob"))
"""What repeats a whole file, or is no text."""


def opened(found: Any) -> Any:
    """Return a tool's answer: the value of JSON in a text, if that is an answer and not a file of JSON."""
    if not isinstance(found, str) or found[:1] not in ("{", "[") or len(found) > _LONGEST_JSON:
        return found
    try:
        said = json.loads(found)
    except (ValueError, RecursionError):
        return found
    if isinstance(said, dict):
        return said if any(key in said for key in (*_TEXTS, *_EXITS)) else found
    parts = isinstance(said, list) and said and all(isinstance(part, dict) and "text" in part for part in said)
    return said if parts else found


def text_of(found: Any, depth: int = 0) -> str:
    """Return a tool's answer as a text: from a text, an object, or a list of parts."""
    if isinstance(found, str):
        return found
    if found is None or depth > _DEEPEST:
        return ""
    if isinstance(found, list):
        return "\n".join(filter(None, (text_of(part, depth + 1) for part in found[:_MOST_ITEMS])))
    if isinstance(found, dict):
        named = [text_of(found[key], depth + 1) for key in _TEXTS if found.get(key) is not None]
        if named:
            return "\n".join(filter(None, named))
        rest = given(found, left_out=_LEFT_OUT)
        return json.dumps(rest, ensure_ascii=False) if rest else ""
    return json.dumps(found)


def stored(found: Any) -> str:
    """Return the words with which our own tool reported a stored memory, empty where it stored none."""
    said = _STORED.search(text_of(opened(found)))
    return said[0] if said else ""


def unwrapped(text: str) -> tuple[str, bool]:
    """Return a tool's output without the lines that the agent adds around it, and whether those report a failure."""
    if text.startswith("<untrusted_context>"):
        text = _FENCE.sub("", text)
    if head := _CODEX.match(text):
        return text[head.end() :], head[1] != "0"
    head, lines = _GEMINI.match(text), text.rstrip().split("\n")
    after = len(lines)
    while after and lines[after - 1].startswith(_GEMINI_ENDS):
        after -= 1
    if head and after < len(lines):
        said = "\n".join(lines[:after])[head.end() :]
        return "" if said == "(empty)" else said, any(map(_FAILED.match, lines[after:]))
    told = _FAILED.match(text)  # Claude Code's first line
    return (text[told.end() :], True) if told else (text, False)


def says_failure(found: Any) -> bool:
    """Return whether a tool's answer reports a failure: an error, or an exit code other than 0."""
    if not isinstance(found, dict):
        return False
    return bool(found.get("error")) or any(found.get(key, 0) not in (0, None) for key in _EXITS)


def given(found: Any, depth: int = 0, left_out: frozenset[str] = frozenset()) -> Any:
    """Return the input of a tool with each text cut, and without deep parts and the `left_out` keys."""
    if isinstance(found, str):
        return cut(found, _LONGEST_INPUT)
    if isinstance(found, dict):
        pairs = list(found.items())[:_MOST_ITEMS] if depth <= _DEEPEST else []
        return {cut(str(key), 200): given(value, depth + 1, left_out) for key, value in pairs if key not in left_out}
    if isinstance(found, list):
        return [given(value, depth + 1, left_out) for value in found[:_MOST_ITEMS]] if depth <= _DEEPEST else []
    return found


def arguments(found: Any) -> dict[str, Any]:
    """Return the input of a tool as an object, also where the agent sends it as JSON in a text."""
    if isinstance(found, str):
        try:
            found = json.loads(found)
        except (ValueError, RecursionError):
            return {"input": cut(found, _LONGEST_INPUT)} if found.strip() else {}
    if not isinstance(found, dict):
        return {}
    taken: dict[str, Any] = given(found)
    if len(json.dumps(taken)) <= _MOST_INPUT:
        return taken
    return {key: cut(value, 2_000) for key, value in taken.items() if isinstance(value, str)}


def cut(text: str, longest: int = LONGEST) -> str:
    """Return a text that can be stored: without lone surrogates, zero bytes as spaces, and of a long text both ends."""
    if len(text) > longest:
        half = longest // 2
        text = f"{text[:half]}\n[{len(text) - 2 * half} characters are left out]\n{text[-half:]}"
    return text.encode("utf-8", "replace").decode().replace("\0", " ")

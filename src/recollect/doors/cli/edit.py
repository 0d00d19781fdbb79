"""The commands that change a memory: `update` takes new fields, `edit` opens the whole memory in an editor."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Sequence
from typing import Annotated, Any, Final

import typer

from recollect.domain.requests import Get, Levels, Update
from recollect.domain.results import Memory, Outcome
from recollect.doors.cli import answers, exit_codes, terminal
from recollect.doors.cli.opening import opened
from recollect.doors.cli.options import QUOTES, Fields, from_fields
from recollect.doors.cli.typed import typed_text
from recollect.doors.serializers import agent_json
from recollect.errors import InvalidInput, RecollectError, relayed
from recollect.settings import Settings
from recollect.transfer.markdown_sections import front_matter

cli = typer.Typer()

_LABELS: Final = (
    *("title", "key", "fact_type", "type", "category", "tags", "concepts", "importance", "confidence", "trust"),
    *("sensitivity", "observed_at", "speaker", "project", "session_id", "files_read", "files_modified", "when"),
)
_PLAIN: Final = re.compile(r"[\w./][\w ./@+:-]*(?<![ :])")

Words = Annotated[list[str] | None, typer.Argument(metavar="[TEXT]...", help=f"New text; {QUOTES}.")]


@cli.command()
@from_fields(Update)
def update(ctx: typer.Context, fields: Fields, as_json: bool = False, words: Words = None) -> None:
    """Change fields of a memory. What is not given stays, a list is replaced, and `""` empties a field."""
    exit_codes.answered(ctx.obj, "update_memory", _with_text(fields, words), as_json)


def _with_text(fields: Fields, words: Sequence[str] | None) -> Fields:
    """Return the fields with the text that was typed behind the id."""
    if not words:
        return fields
    if "content" in fields:
        raise InvalidInput("content", "Invalid content: Must be given once, behind the id or as `--content`")
    return fields | {"content": typed_text("content", words, required=True)}


@cli.command()
@from_fields(Update)
def edit(ctx: typer.Context, fields: Fields, as_json: bool = False, words: Words = None) -> None:
    """Change a memory in your editor: `$VISUAL`, else `$EDITOR`. Its labels are the head, its content the rest.

    What you leave as it is stays; a label without a value is taken away. Text that is refused is kept in a file, whose
    name is told. With a text or fields it changes those as `update` does, and opens no editor.
    """
    fields = _with_text(fields, words)
    if fields.keys() - Get.model_fields.keys():
        exit_codes.answered(ctx.obj, "update_memory", fields, as_json)
        return
    Get(**fields)
    before, edited = terminal.edit_text(lambda: _text_of(ctx.obj, fields))
    changed = {} if edited is None else _changed_fields(before, edited)
    if edited is None or not changed:
        body = {"message": "Nothing changed.", "id": fields["id"], "outcome": "unchanged"}
        exit_codes.show(body, as_json, body["message"])
        return
    allowed = {name: value for name, value in fields.items() if name in Levels.model_fields}
    try:
        Update(id=fields["id"], **changed, **allowed)
        with opened(ctx.obj, model=True) as ask:
            outcome: Outcome = ask("update_memory", id=fields["id"], **changed, **allowed)
    except RecollectError as error:
        kept = _save_text(edited)
        raise relayed(type(error).__name__, f"{str(error).rstrip('.')}. Your text is kept in {kept}.") from None
    exit_codes.show(agent_json(Outcome, outcome), as_json, print_answer=lambda: answers.print_answer(outcome))


def _text_of(settings: Settings, fields: Fields) -> str:
    with opened(settings, model=False) as ask:
        return _as_text(ask("get_memory", **fields))


def _as_text(memory: Memory) -> str:
    body = memory.model_dump(mode="json", include=set(_LABELS))
    head = "".join(f"{name}: {_head_value(body.get(name))}".rstrip() + "\n" for name in _LABELS)
    return f"---\n{head}---\n\n{memory.content}\n"


def _head_value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_head_value(item) for item in value)}]"
    text = "" if value is None else str(value)
    return text if not text or (_PLAIN.fullmatch(text) and ": " not in text) else json.dumps(text, ensure_ascii=False)


def _changed_fields(before: str, after: str) -> dict[str, Any]:
    """Return the fields that differ; where the head was taken away, the labels stay."""
    old, old_text, _ = front_matter(before)
    new, new_text, _ = front_matter(after)
    content = new_text.strip("\n")
    changed: dict[str, Any] = {"content": content} if content != old_text.strip("\n") else {}
    if new:
        names = dict.fromkeys((*old, *new))
        changed |= {name: new.get(name, "") for name in names if new.get(name, "") != old.get(name, "")}
    return changed


def _save_text(text: str) -> str:
    """Write a text to a file that only its owner can read, and return the path."""
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", prefix="recollect-edit-", suffix=".md", delete=False
    ) as file:
        file.write(text)
    return file.name

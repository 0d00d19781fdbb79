"""The command that opens a memory in an editor: its labels as a YAML head, and its content below."""

from __future__ import annotations

import json
import re
import sys
import tempfile
from importlib import import_module
from typing import Any, Final

import typer

from recollect.domain.requests import Get, Levels, Update
from recollect.domain.results import Memory, Outcome
from recollect.doors import exit_codes, render
from recollect.doors.operations import opened
from recollect.doors.options import Given, from_fields
from recollect.doors.serializers import agent_json
from recollect.environment import named
from recollect.errors import InvalidInput, RecollectError, relayed
from recollect.transfer.markdown_sections import front_matter

_LABELS: Final = (
    *("title", "key", "fact_type", "type", "category", "tags", "concepts", "importance", "confidence", "trust"),
    *("sensitivity", "observed_at", "speaker", "project", "session_id", "files_read", "files_modified"),
)
_PLAIN: Final = re.compile(r"[\w./][\w ./@+:-]*(?<![ :])")

cli = typer.Typer()


@cli.command()
@from_fields(Get)
def edit(ctx: typer.Context, given: Given, as_json: bool = False) -> None:
    """Change a memory in your editor: `$VISUAL`, else `$EDITOR`. Its labels are the head, its content the rest.

    What you leave as it is stays; a label without a value is taken away. Text that is refused is kept in a file, whose
    name is told.
    """
    Get(**given)
    with opened(ctx.obj, model=False) as ask:
        before = _written(ask("get_memory", **given))
    edited = _edited(before)
    changed = {} if edited is None else _changes(before, edited)
    if edited is None or not changed:
        body = {"message": "Nothing changed.", "id": given["id"], "outcome": "unchanged"}
        exit_codes.show(body, as_json, body["message"])
        return
    allowed = {name: value for name, value in given.items() if name in Levels.model_fields}
    try:
        Update(id=given["id"], **changed, **allowed)
        with opened(ctx.obj, model=True) as ask:
            outcome: Outcome = ask("update_memory", id=given["id"], **changed, **allowed)
    except RecollectError as error:
        kept = _kept(edited)
        raise relayed(type(error).__name__, f"{str(error).rstrip('.')}. Your text is kept in {kept}.") from None
    exit_codes.show(agent_json(Outcome, outcome), as_json, print_answer=lambda: render.answer(outcome))


def _written(memory: Memory) -> str:
    body = memory.model_dump(mode="json", include=set(_LABELS))
    head = "".join(f"{name}: {_value(body.get(name))}".rstrip() + "\n" for name in _LABELS)
    return f"---\n{head}---\n\n{memory.content}\n"


def _value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_value(one) for one in value)}]"
    text = "" if value is None else str(value)
    return text if not text or (_PLAIN.fullmatch(text) and ": " not in text) else json.dumps(text, ensure_ascii=False)


def _edited(text: str) -> str | None:
    """Return what the editor saved, None where it saved nothing."""
    if not (named("VISUAL") or named("EDITOR")) and (sys.stdin is None or not sys.stdin.isatty()):
        raise InvalidInput("editor", "There is no terminal to edit in: set EDITOR, or use `recollect update`.")
    click = import_module("click")
    try:
        saved: str | None = click.edit(text, extension=".md")
    except click.ClickException as error:
        raise RecollectError(f"The editor could not be used: {error.format_message()}") from None
    return saved


def _changes(before: str, after: str) -> dict[str, Any]:
    """Return the fields that differ; where the head was taken away, the labels stay."""
    old, old_text, _ = front_matter(before)
    new, new_text, _ = front_matter(after)
    content = new_text.strip("\n")
    changed: dict[str, Any] = {"content": content} if content != old_text.strip("\n") else {}
    if new:
        names = dict.fromkeys((*old, *new))
        changed |= {name: new.get(name, "") for name in names if new.get(name, "") != old.get(name, "")}
    return changed


def _kept(text: str) -> str:
    """Write a text to a file that only its owner can read, and return the path."""
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", prefix="recollect-edit-", suffix=".md", delete=False
    ) as file:
        file.write(text)
    return file.name

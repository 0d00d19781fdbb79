"""The command that deletes or hides: one memory, a fact, or all memories that pass filters."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, Final

import typer
from pydantic import Field

from recollect.domain.enums import Scope
from recollect.domain.fields import Label
from recollect.domain.requests import Filters, Forget, Levels, MemoryFilters
from recollect.domain.results import Listed, Memory, Outcome, WriteStatus
from recollect.doors.cli import answers, exit_codes, render, terminal
from recollect.doors.cli.opening import opened
from recollect.doors.cli.options import Fields, MoreIds, from_fields, ids_of
from recollect.doors.cli.paging import Ask, every
from recollect.errors import InvalidInput, NotFound
from recollect.settings import Settings

_SHOWN: Final = 5
_HIDE: Final = "memory_forget"

cli = typer.Typer()


class _Chosen(Filters):
    """Which memory to forget, or what those have in common that are to be forgotten."""

    id: Label = Field(default=None, description="One or more memory IDs. Answers show them")


@cli.command()
@from_fields(_Chosen, "id")
def forget(
    ctx: typer.Context,
    fields: Fields,
    as_json: bool = False,
    where: Annotated[
        bool, typer.Option("--where", help="All memories that pass the filters, in place of one.")
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="All memories of this project, or of `--scope`; it asks first.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="With `--where`: only show which they are.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With `--where`: do not ask.")] = False,
    soft: Annotated[bool, typer.Option("--soft", help="Only hide it, so that `undo` can bring it back.")] = False,
    fact: Annotated[bool, typer.Option("--fact", help="The id is that of a fact.")] = False,
    more: MoreIds = None,
) -> None:
    """Delete memories and every copy of their text, or facts. Exits with 4 if an ID does not exist.

    With `--where` it deletes all memories that pass the filters, as `list` takes them, once you have agreed.
    """
    if soft and fact:
        raise InvalidInput("soft", "Invalid soft: Facts cannot be hidden, only ended by another or deleted")
    operation = _HIDE if soft else "forget_fact" if fact else "forget"
    if "key" in fields and "id" not in fields and not (where or everything):
        fields = _with_id_of_key(ctx.obj, fields)
    if everything:
        fields.setdefault("scope", Scope.PROJECT)
    if not (where or everything):
        _forget_named(ctx, operation, fields, more, as_json)
        return
    if fact or "id" in fields:
        named = "all" if everything else "where"
        raise InvalidInput(named, f"Invalid {named}: Must not be given together with an id or `--fact`")
    if not everything and not fields.keys() & MemoryFilters.model_fields.keys():
        raise InvalidInput(
            "where", "Invalid where: Must come with a filter, such as `--tag`, `--category` or `--until`"
        )
    _Chosen(**fields)
    if not (yes or dry_run):
        terminal.leave_to_client()
    ask_first = None if yes or dry_run else partial(_confirm, soft=soft, as_json=as_json)
    with opened(ctx.obj, model=False) as ask:
        found = every(ask, fields)
        if ask_first is not None and found and not ask_first(found):
            exit_codes.show({}, False, "Nothing was forgotten.")
            raise typer.Exit(1)
        gone = [] if dry_run else _forget_all(ask, operation, found, fields)
    _print_forgotten(found, gone, as_json, dry_run=dry_run, soft=soft)


def _with_id_of_key(settings: Settings, fields: Fields) -> Fields:
    """Return the fields with the id of the one memory that has the key, which may read as a number."""
    shown = {name: fields[name] for name in fields if name in ("key", "scope", *Levels.model_fields)}
    with opened(settings, model=False) as ask:
        found: Listed = ask("list_memories", **shown, superseded=True)
    if not found.memories:
        raise NotFound(f"No memory has the key `{fields['key']}`.")
    if len(found.memories) > 1:
        ids = ", ".join(f"{memory.id} ({memory.scope})" for memory in found.memories)
        raise InvalidInput("key", f"Invalid key: Several memories have it: {ids}. Add `--scope`, or type an id")
    return {name: value for name, value in fields.items() if name != "key"} | {"id": str(found.memories[0].id)}


def _forget_named(
    ctx: typer.Context, operation: str, fields: Fields, more: Sequence[str] | None, as_json: bool
) -> None:
    """Forget the memories with these ids; raise `InvalidInput` without an id, or with a filter."""
    if "id" not in fields:
        raise InvalidInput("id", "Missing id: Type the id of a memory, or `--where` and filters")
    others = fields.keys() - Forget.model_fields.keys()
    if others:
        raise InvalidInput("where", "Missing where: Filters choose memories only with `--where`, in place of an id")
    requests = [fields | {"id": id} for id in ids_of(fields, more)]
    printer = _print_hidden if operation == _HIDE else answers.print_answer
    exit_codes.answered_each(ctx.obj, operation, requests, as_json, printer)


def _print_hidden(outcome: Outcome) -> None:
    if outcome.status is WriteStatus.DELETED:
        render.print_line(f"Memory {outcome.id} hidden; `recollect undo {outcome.id}` restores it.", "green")
    else:
        answers.print_answer(outcome)


def _confirm(found: Sequence[Memory], *, soft: bool, as_json: bool) -> bool:
    """Show the number of memories and the first of them, and ask; raise `InvalidInput` where nobody can answer."""
    if as_json or sys.stdin is None or not sys.stdin.isatty():
        raise InvalidInput(
            "yes",
            f"{_memory_count(found)} would be forgotten: add `--yes` to do it, or `--dry-run` to see which they are",
        )
    _print_first(found)
    return bool(typer.confirm(f"{'Hide' if soft else 'Delete'} {_memory_count(found)}{'' if soft else ' for good'}?"))


def _forget_all(ask: Ask, operation: str, found: Sequence[Memory], fields: Fields) -> list[int]:
    """Forget each of these memories and return the ids of those that still existed."""
    allowed = {name: value for name, value in fields.items() if name in Levels.model_fields}
    outcomes: dict[int, Outcome] = {memory.id: ask(operation, id=str(memory.id), **allowed) for memory in found}
    return [id for id, outcome in outcomes.items() if outcome.status is WriteStatus.DELETED]


def _print_forgotten(found: Sequence[Memory], gone: Sequence[int], as_json: bool, *, dry_run: bool, soft: bool) -> None:
    """Print how many memories were forgotten, or would be; exit with the code of `NotFound` where none was found."""
    what = "would be forgotten" if dry_run else "hidden; `recollect undo ID` brings one back" if soft else "deleted"
    ids = [memory.id for memory in found] if dry_run else gone
    message = f"{_memory_count(ids)} {what}." if found else "No memory passes these filters."
    body = {"message": message, "ids": [str(id) for id in ids], "dry_run": dry_run}
    exit_codes.show(body, as_json, message, print_answer=lambda: _print_first(found if dry_run else ()))
    if not found:
        raise typer.Exit(NotFound.exit_code)


def _print_first(found: Sequence[Memory]) -> None:
    answers.print_memories(found[:_SHOWN])
    if len(found) > _SHOWN:
        render.print_line(f"and {len(found) - _SHOWN} more")


def _memory_count(several: Sequence[Any]) -> str:
    return f"{len(several)} {'memory' if len(several) == 1 else 'memories'}"

"""The commands that take memories away or change them: `forget`, `edit` and `tags`.

The commands on sessions of coding agents: which there were, what became of their events, and putting that right.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Final

import typer
from pydantic import Field

from recollect.domain import fields
from recollect.domain.enums import Scope
from recollect.domain.fields import MAX_LIMIT
from recollect.domain.lifecycle import CorrectObservation, Decision, ListSessions, Noted, ShowSession
from recollect.domain.requests import Filters, Forget, Get, Levels, MemoryFilters, Update
from recollect.domain.results import Listed, Memory, Outcome, WriteStatus
from recollect.doors.cli import answers, exit_codes, render, terminal
from recollect.doors.cli.opening import opened, perform
from recollect.doors.cli.options import QUOTES, Given, Json, MoreIds, from_fields, ids_of
from recollect.doors.cli.render import print_line
from recollect.doors.cli.typed import typed_text
from recollect.doors.serializers import agent_json
from recollect.errors import InvalidInput, NotFound, RecollectError, SecretFound, relayed
from recollect.settings import Settings
from recollect.transfer.markdown import front_matter

_SHOWN: Final = 5
_HIDE: Final = "memory_forget"

cli = typer.Typer()


Ask = Callable[..., Any]
"""Runs a verb by its name."""


def every(ask: Ask, filters: Mapping[str, Any]) -> list[Memory]:
    """Return all memories that meet the filters, page by page, the newest first unless they name an order."""
    found: dict[int, Memory] = {}
    asked = {"order": "newest"} | dict(filters) | {"limit": MAX_LIMIT}
    while True:
        page: Listed = ask("list_memories", **asked)
        found |= {one.id: one for one in page.memories}
        if page.after is None:
            return list(found.values())
        asked["after"] = page.after


class _Chosen(Filters):
    """Which memory to forget, or what those have in common that are to be forgotten."""

    id: fields.Label = Field(default=None, description="One or more memory IDs. Answers show them")


@cli.command()
@from_fields(_Chosen, "id")
def forget(
    ctx: typer.Context,
    given: Given,
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
    if "key" in given and "id" not in given and not (where or everything):
        given = _with_id_of_key(ctx.obj, given)
    if everything:
        given.setdefault("scope", Scope.PROJECT)
    if not (where or everything):
        _forget_named(ctx, operation, given, more, as_json)
        return
    if fact or "id" in given:
        named = "all" if everything else "where"
        raise InvalidInput(named, f"Invalid {named}: Must not be given together with an id or `--fact`")
    if not everything and not given.keys() & MemoryFilters.model_fields.keys():
        raise InvalidInput(
            "where", "Invalid where: Must come with a filter, such as `--tag`, `--category` or `--until`"
        )
    _Chosen(**given)
    if not (yes or dry_run):
        terminal.leave_to_client()
    ask_first = None if yes or dry_run else partial(_agreed, soft=soft, as_json=as_json)
    with opened(ctx.obj, model=False) as ask:
        found = every(ask, given)
        if ask_first is not None and found and not ask_first(found):
            exit_codes.show({}, False, "Nothing was forgotten.")
            raise typer.Exit(1)
        gone = [] if dry_run else _forget_all(ask, operation, found, given)
    _forgotten(found, gone, as_json, dry_run=dry_run, soft=soft)


def _with_id_of_key(settings: Settings, given: Given) -> Given:
    """Return the fields with the id of the one memory that has the key, which may read as a number."""
    shown = {name: given[name] for name in given if name in ("key", "scope", *Levels.model_fields)}
    with opened(settings, model=False) as ask:
        found: Listed = ask("list_memories", **shown, superseded=True)
    if not found.memories:
        raise NotFound(f"No memory has the key `{given['key']}`.")
    if len(found.memories) > 1:
        ids = ", ".join(f"{one.id} ({one.scope})" for one in found.memories)
        raise InvalidInput("key", f"Invalid key: Several memories have it: {ids}. Add `--scope`, or type an id")
    return {name: value for name, value in given.items() if name != "key"} | {"id": str(found.memories[0].id)}


def _forget_named(ctx: typer.Context, operation: str, given: Given, more: Sequence[str] | None, as_json: bool) -> None:
    if "id" not in given:
        raise InvalidInput("id", "Missing id: Type the id of a memory, or `--where` and filters")
    others = given.keys() - Forget.model_fields.keys()
    if others:
        raise InvalidInput("where", "Missing where: Filters choose memories only with `--where`, in place of an id")
    requests = [given | {"id": id} for id in ids_of(given, more)]
    printer = _print_hidden if operation == _HIDE else answers.print_answer
    exit_codes.answered_each(ctx.obj, operation, requests, as_json, printer)


def _print_hidden(one: Outcome) -> None:
    if one.status is WriteStatus.DELETED:
        render.print_line(f"Memory {one.id} hidden; `recollect undo {one.id}` restores it.", "green")
    else:
        answers.print_answer(one)


def _agreed(found: Sequence[Memory], *, soft: bool, as_json: bool) -> bool:
    """Show how many there are and the first of them, and ask; raise `InvalidInput` where nobody can answer."""
    if as_json or sys.stdin is None or not sys.stdin.isatty():
        raise InvalidInput(
            "yes", f"{_count(found)} would be forgotten: add `--yes` to do it, or `--dry-run` to see which they are"
        )
    _print_first(found)
    return bool(typer.confirm(f"{'Hide' if soft else 'Delete'} {_count(found)}{'' if soft else ' for good'}?"))


def _forget_all(ask: Ask, operation: str, found: Sequence[Memory], given: Given) -> list[int]:
    """Forget each of them and return the ids of those that were still there."""
    allowed = {name: value for name, value in given.items() if name in Levels.model_fields}
    outcomes: dict[int, Outcome] = {one.id: ask(operation, id=str(one.id), **allowed) for one in found}
    return [id for id, outcome in outcomes.items() if outcome.status is WriteStatus.DELETED]


def _forgotten(found: Sequence[Memory], gone: Sequence[int], as_json: bool, *, dry_run: bool, soft: bool) -> None:
    what = "would be forgotten" if dry_run else "hidden; `recollect undo ID` brings one back" if soft else "deleted"
    ids = [one.id for one in found] if dry_run else gone
    message = f"{_count(ids)} {what}." if found else "No memory passes these filters."
    body = {"message": message, "ids": [str(id) for id in ids], "dry_run": dry_run}
    exit_codes.show(body, as_json, message, print_answer=lambda: _print_first(found if dry_run else ()))
    if not found:
        raise typer.Exit(NotFound.exit_code)


def _print_first(found: Sequence[Memory]) -> None:
    answers.print_memories(found[:_SHOWN])
    if len(found) > _SHOWN:
        render.print_line(f"and {len(found) - _SHOWN} more")


def _count(several: Sequence[Any]) -> str:
    return f"{len(several)} {'memory' if len(several) == 1 else 'memories'}"


_LABELS: Final = (
    *("title", "key", "fact_type", "type", "category", "tags", "concepts", "importance", "confidence", "trust"),
    *("sensitivity", "observed_at", "speaker", "project", "session_id", "files_read", "files_modified", "when"),
)
_PLAIN: Final = re.compile(r"[\w./][\w ./@+:-]*(?<![ :])")


Words = Annotated[list[str] | None, typer.Argument(metavar="[TEXT]...", help=f"New text; {QUOTES}.")]


@cli.command()
@from_fields(Update)
def update(ctx: typer.Context, given: Given, as_json: bool = False, words: Words = None) -> None:
    """Change fields of a memory. What is not given stays, a list is replaced, and `""` empties a field."""
    exit_codes.answered(ctx.obj, "update_memory", _with_text(given, words), as_json)


def _with_text(given: Given, words: Sequence[str] | None) -> Given:
    """Return the fields with the text that was typed behind the id."""
    if not words:
        return given
    if "content" in given:
        raise InvalidInput("content", "Invalid content: Must be given once, behind the id or as `--content`")
    return given | {"content": typed_text("content", words, required=True)}


@cli.command()
@from_fields(Get)
def tag(
    ctx: typer.Context,
    given: Given,
    tags: Annotated[list[str], typer.Argument(metavar="TAG...", help="Tags; commas part them too.")],
    remove: Annotated[bool, typer.Option("--remove", help="Take these tags away.")] = False,
    as_json: bool = False,
) -> None:
    """Add tags to a memory, or take some away."""
    wanted = [one.strip() for text in tags for one in text.split(",") if one.strip()]
    Update(id=given["id"], tags=wanted)
    folded = {one.casefold() for one in wanted}
    with opened(ctx.obj, model=True) as ask:
        kept = [one for one in ask("get_memory", **given).tags if one.casefold() not in folded]
        outcome: Outcome = ask("update_memory", **given, tags=kept if remove else [*kept, *wanted])
    exit_codes.show(agent_json(Outcome, outcome), as_json, print_answer=lambda: answers.print_answer(outcome))


@cli.command()
@from_fields(Update)
def edit(ctx: typer.Context, given: Given, as_json: bool = False, words: Words = None) -> None:
    """Change a memory in your editor: `$VISUAL`, else `$EDITOR`. Its labels are the head, its content the rest.

    What you leave as it is stays; a label without a value is taken away. Text that is refused is kept in a file, whose
    name is told. With a text or fields it changes those as `update` does, and opens no editor.
    """
    given = _with_text(given, words)
    if given.keys() - Get.model_fields.keys():
        exit_codes.answered(ctx.obj, "update_memory", given, as_json)
        return
    Get(**given)
    before, edited = terminal.edited(lambda: _text_of(ctx.obj, given))
    changed = {} if edited is None else _changed_fields(before, edited)
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
    exit_codes.show(agent_json(Outcome, outcome), as_json, print_answer=lambda: answers.print_answer(outcome))


def _text_of(settings: Settings, given: Given) -> str:
    with opened(settings, model=False) as ask:
        return _as_text(ask("get_memory", **given))


def _as_text(memory: Memory) -> str:
    body = memory.model_dump(mode="json", include=set(_LABELS))
    head = "".join(f"{name}: {_value(body.get(name))}".rstrip() + "\n" for name in _LABELS)
    return f"---\n{head}---\n\n{memory.content}\n"


def _value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_value(one) for one in value)}]"
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


def _kept(text: str) -> str:
    """Write a text to a file that only its owner can read, and return the path."""
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", prefix="recollect-edit-", suffix=".md", delete=False
    ) as file:
        file.write(text)
    return file.name


DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say how many memories would change.")]
Private = Annotated[bool, typer.Option("--private", help="Also in private memories.")]
Secret = Annotated[bool, typer.Option("--secret", help="Also in secret memories.")]
InScope = Annotated[Scope | None, typer.Option("--scope", help="Only in this scope.", case_sensitive=False)]

_tags = typer.Typer(invoke_without_command=True, help="List all tags with their counts, or rename and merge them.")
cli.add_typer(_tags, name="tags")


@_tags.callback()
def tags(
    ctx: typer.Context, scope: InScope = None, private: Private = False, secret: Secret = False, as_json: Json = False
) -> None:
    """List all tags with how many memories carry them; or rename and merge them."""
    if ctx.invoked_subcommand is not None:
        return
    with opened(ctx.obj, model=False) as ask:
        found = every(ask, _visible(scope, private, secret))
    counted = Counter(tag for one in found for tag in one.tags)
    ranked = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    body = {"tags": [{"tag": tag, "count": count} for tag, count in ranked]}
    rows = [[tag, str(count)] for tag, count in ranked]
    none = () if rows else ("No memory has a tag.",)
    exit_codes.show(body, as_json, *none, print_answer=lambda: render.print_rows(rows, "tag", "memories"))


@_tags.command()
def rename(
    ctx: typer.Context,
    old: Annotated[str, typer.Argument(help="A tag, in any letter case.")],
    new: Annotated[str, typer.Argument(help="What it is called from now on.")],
    dry_run: DryRun = False,
    scope: InScope = None,
    private: Private = False,
    secret: Secret = False,
    as_json: Json = False,
) -> None:
    """Rename a tag in every memory that you may see. Exit code 4 when no memory has it."""
    _replace_tags(ctx, [old], new, _visible(scope, private, secret), as_json, dry_run=dry_run)


@_tags.command()
def merge(
    ctx: typer.Context,
    tags: Annotated[list[str], typer.Argument(metavar="TAG... INTO", help="Tags, and last the one that they become.")],
    dry_run: DryRun = False,
    scope: InScope = None,
    private: Private = False,
    secret: Secret = False,
    as_json: Json = False,
) -> None:
    """Make one tag of several, in every memory that you may see. Exit code 4 when no memory has any of them."""
    if len(tags) < 2:
        raise InvalidInput("tags", "Invalid tags: Must name the tags to merge, and last the one that they become")
    _replace_tags(ctx, tags[:-1], tags[-1], _visible(scope, private, secret), as_json, dry_run=dry_run)


def _visible(scope: Scope | None, private: bool, secret: bool) -> dict[str, Any]:
    given = {"scope": scope, "allow_private": private or None, "allow_secret": secret or None, "superseded": True}
    return {name: value for name, value in given.items() if value is not None}


def _replace_tags(
    ctx: typer.Context, old: Sequence[str], new: str, visible: dict[str, Any], as_json: bool, *, dry_run: bool
) -> None:
    new = Update(id="1", tags=[new]).tags[0] if new.strip() else ""  # type: ignore[attr-defined]
    if not new or not all(one.strip() for one in old):
        raise InvalidInput("tags", "Invalid tags: Must not be empty")
    allowed = {name: value for name, value in visible.items() if name.startswith("allow_")}
    refused: dict[int, str] = {}
    with opened(ctx.obj, model=not dry_run) as ask:
        carriers = {one.id: one for tag in old for one in every(ask, visible | {"tags": [tag.strip()]})}
        changes = {id: after for id, one in carriers.items() if (after := _renamed(one, old, new)) != one.tags}
        if not dry_run:
            refused = _update_tags(ask, changes, allowed)
    if not carriers:
        raise NotFound(f"No memory has the tag {' or '.join(old)}.")
    ids = [str(id) for id in changes if id not in refused]
    does = "would change" if dry_run else "changed"
    message = f"{len(ids)} {'memory' if len(ids) == 1 else 'memories'} {does}."
    failures = [f"Memory {id} keeps its tags: {why}" for id, why in refused.items()]
    body = {"message": message, "ids": ids, "dry_run": dry_run} | ({"refused": failures} if failures else {})
    exit_codes.show(body, as_json, message, *failures)
    if failures:
        raise typer.Exit(SecretFound.exit_code)


def _renamed(one: Memory, old: Sequence[str], new: str) -> tuple[str, ...]:
    folded = {tag.strip().casefold() for tag in old}
    return tuple(dict.fromkeys(new if tag.casefold() in folded else tag for tag in one.tags))


def _update_tags(ask: Ask, changes: dict[int, tuple[str, ...]], allowed: dict[str, Any]) -> dict[int, str]:
    """Write the tags of each memory and return why some were refused; what is gone meanwhile has none any more."""
    refused: dict[int, str] = {}
    for id, after in changes.items():
        try:
            _: Outcome = ask("update_memory", id=str(id), tags=list(after), **allowed)
        except NotFound:
            refused[id] = "it is not there any more."
        except RecollectError as error:
            refused[id] = str(error)
    return refused


_sessions_group = typer.Typer(invoke_without_command=True, help="Show what became of agents' sessions, and correct it.")
cli.add_typer(_sessions_group, name="session")


@_sessions_group.callback()
def session(ctx: typer.Context, as_json: Json = False) -> None:
    """Show what became of agents' sessions, and correct it; without a command list the latest."""
    if ctx.invoked_subcommand is None:
        exit_codes.answered(ctx.obj, "list_sessions", {}, as_json)


@_sessions_group.command("list")
@from_fields(ListSessions)
def list_(ctx: typer.Context, given: Given, as_json: bool = False) -> None:
    """List your sessions in this project, the latest first."""
    exit_codes.answered(ctx.obj, "list_sessions", given, as_json)


@_sessions_group.command()
@from_fields(ShowSession, "session_id")
def show(ctx: typer.Context, given: Given, as_json: bool = False) -> None:
    """Show what was kept and dropped of a session and why; the latest session without an id."""
    exit_codes.answered(ctx.obj, "show_session", given, as_json)


@_sessions_group.command()
@from_fields(CorrectObservation, without="keep")
def keep(ctx: typer.Context, given: Given, as_json: bool = False) -> None:
    """Keep an observation that was dropped: it becomes a memory."""
    _correct(ctx, given, as_json, keep=True)


@_sessions_group.command()
@from_fields(CorrectObservation, without="keep")
def drop(ctx: typer.Context, given: Given, as_json: bool = False) -> None:
    """Drop an observation that was kept: its memory is deleted for good."""
    _correct(ctx, given, as_json, keep=False)


def _correct(ctx: typer.Context, given: Given, as_json: bool, *, keep: bool) -> None:
    noted: Noted = perform(ctx.obj, "correct_observation", given | {"keep": keep}, model=keep)
    exit_codes.show(agent_json(Noted, noted), as_json, print_answer=lambda: _corrected(noted, given))


def _corrected(noted: Noted, given: Given) -> None:
    kept = noted.decision == Decision.KEPT
    became = f"kept, as memory {noted.memory_id}" if kept else "dropped"
    print_line(f"Observation {given['number']} of session {noted.session_id} is {became}.", "green")

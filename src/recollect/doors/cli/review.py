"""The commands on what should not be trusted as it is: `inbox` decides, `withdraw` takes a source back."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from itertools import count
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from recollect.domain.requests import Levels
from recollect.domain.review import (
    Decision,
    DropSourceRule,
    Inbox,
    SourceRuleDropped,
    SourceRulePage,
    Waiting,
    WaitingPage,
    Withdraw,
    Withdrawn,
)
from recollect.doors.cli import answers, exit_codes, render, terminal
from recollect.doors.cli.opening import opened, perform
from recollect.doors.cli.options import Fields, from_fields
from recollect.doors.cli.render import print_line
from recollect.doors.serializers import public_json
from recollect.environment import working_folder
from recollect.errors import InvalidInput, NotFound, SecretFound
from recollect.transfer.import_paths import name_of

cli = typer.Typer()

_KEYS: Final = {"a": "approve", "r": "reject", "e": "edit", "y": "always", "n": "never", "s": "skip", "q": "quit"}
_ASKED: Final = "[a]pprove  [r]eject  [e]dit  alwa[y]s this source  [n]ever this source  [s]kip  [q]uit"
_ASKED_IN_QUARANTINE: Final = (
    "[a]pprove, if the gate finds no secret any more  [r]emove for good  [e]dit  [s]kip  [q]uit"
)
_PAGE: Final = 100
_WITHOUT_TERMINAL: Final = (
    "Decide by `recollect inbox --decide ID --as approve`, or `reject`; all from a source by `--source SOURCE`."
)


@cli.command()
@from_fields(Inbox)
def inbox(
    ctx: typer.Context,
    fields: Fields,
    as_json: bool = False,
    decide: Annotated[
        str | None, typer.Option("--decide", metavar="ID", help="Decide this one without asking; needs `--as`.")
    ] = None,
    decision: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="HOW",
            help="`approve` or `reject` it; `always` or `never`: all from its source, now and later.",
        ),
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option(
            "--source",
            metavar="SOURCE",
            help="Decide all that waits from this file, folder, address or host; needs `--as`. Repeat it for more.",
        ),
    ] = None,
    rules: Annotated[bool, typer.Option("--rules", help="List the rules for sources: `always` and `never`.")] = False,
    drop_rule: Annotated[
        str | None,
        typer.Option("--drop-rule", metavar="SOURCE", help="Remove the rule for this source."),
    ] = None,
) -> None:
    """Decide what waits: with one key each in a terminal. What is not decided is never put before a prompt."""
    if (asked := _decision_typed(decide, source, decision)) is not None:
        exit_codes.answered(ctx.obj, "decide", asked | _level_fields(fields), as_json)
        return
    if rules or drop_rule is not None:
        _show_rules(ctx, fields, drop_rule, as_json)
        return
    page: WaitingPage = perform(ctx.obj, "inbox", fields)
    if as_json or not render.out.is_terminal or not page.total:
        exit_codes.show(public_json(WaitingPage, page), as_json, print_answer=lambda: _print_page(page))
        return
    terminal.leave_to_client()
    _decide_each(ctx, fields)


def _decision_typed(decide: str | None, source: list[str] | None, decision: str | None) -> dict[str, Any] | None:
    """Return the decision in the options, None without any; raise `InvalidInput` for half of a decision."""
    named: dict[str, Any] = ({} if decide is None else {"id": decide}) | ({"sources": source} if source else {})
    if bool(named) != (decision is not None):
        name = "source" if source else "decide"
        raise InvalidInput(name, f"Invalid {name}: Must be given together with `--as`")
    if len(named) > 1:
        raise InvalidInput("source", "Invalid source: Must not be given together with `--decide`")
    return named | {"decision": decision} if named else None


def _show_rules(ctx: typer.Context, fields: dict[str, Any], dropped: str | None, as_json: bool) -> None:
    """Remove the rule for a source, or list all rules."""
    if dropped is not None:
        named = {name: value for name, value in fields.items() if name in DropSourceRule.model_fields}
        answer: SourceRuleDropped = perform(ctx.obj, "drop_source_rule", named | {"source": dropped})
        exit_codes.show(
            public_json(SourceRuleDropped, answer), as_json, print_answer=lambda: print_line(answer.message)
        )
        return
    page: SourceRulePage = perform(ctx.obj, "source_rules", fields)
    exit_codes.show(public_json(SourceRulePage, page), as_json, print_answer=lambda: _print_rules(page))


def _print_rules(page: SourceRulePage) -> None:
    for rule in page.rules:
        print_line(f"{rule.decision} {rule.source}, made by {rule.author} on {rule.at:%Y-%m-%d} ({rule.scope})")
    print_line(page.message)


def print_waiting(page: WaitingPage) -> None:
    """Print the waiting memories."""
    for waiting in page.waiting:
        _print_waiting(waiting)
    print_line(page.message)


def _print_page(page: WaitingPage) -> None:
    """Print the waiting memories, and how to decide on them where nobody can be asked."""
    print_waiting(page)
    if page.total:
        print_line(_WITHOUT_TERMINAL)


def _print_waiting(waiting: Waiting) -> None:
    print_line(f"{waiting.id}, since {waiting.since:%Y-%m-%d}, from {waiting.origin}: {waiting.why}", "bold")
    print_line(f"  {waiting.content}")
    if waiting.told:
        print_line(f"  Memory {waiting.contradicts} says: {waiting.told}", "yellow")


def _decide_each(ctx: typer.Context, fields: dict[str, Any]) -> None:
    """Show each memory that waits and ask for a key, until none is left or the person ends."""
    seen: set[int] = set()
    with opened(ctx.obj, model=False) as run:
        while waiting := _first_unseen(
            lambda place: run("inbox", **fields | {"limit": _PAGE, "offset": place}).waiting, seen
        ):
            seen.add(waiting.id)
            _print_waiting(waiting)
            asked = _ASKED_IN_QUARANTINE if waiting.quarantined else _ASKED
            chosen = _KEYS.get(typer.prompt(asked, default="s").strip().lower()[:1], "skip")
            if chosen == "quit":
                return
            if chosen == "skip":
                continue
            words = {"content": typer.prompt("In your words")} if chosen == "edit" else {}
            decision = Decision.APPROVE if chosen == "edit" else Decision(chosen)
            try:
                answers.print_answer(
                    run("decide", id=str(waiting.id), decision=decision, **words, **_level_fields(fields))
                )
            except (InvalidInput, NotFound, SecretFound) as error:
                print_line(str(error), "red")


def _level_fields(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name in Levels.model_fields}


def _first_unseen(page: Callable[[int], Sequence[Waiting]], seen: Collection[int]) -> Waiting | None:
    """Return the first waiting memory that was not shown yet, None after the last."""
    for place in count(0, _PAGE):
        found = page(place)
        if (new := next((memory for memory in found if memory.id not in seen), None)) is not None or len(found) < _PAGE:
            return new
    return None


@cli.command()
@from_fields(Withdraw, without="apply")
def withdraw(
    ctx: typer.Context,
    fields: Fields,
    as_json: bool = False,
    yes: Annotated[bool, typer.Option("--yes", help="Withdraw it; without this only say what that would be.")] = False,
    undo: Annotated[str | None, typer.Option("--undo", metavar="ID", help="Undo the withdrawal with this id.")] = None,
) -> None:
    """Take back all that came from a source, and what was made of it. For 30 days that can be undone."""
    if undo is not None:
        answer: Withdrawn = perform(ctx.obj, "undo_withdrawal", {"id": undo})
    else:
        answer = _withdraw_source(ctx, fields | {"apply": yes})
    exit_codes.show(public_json(Withdrawn, answer), as_json, print_answer=lambda: _print_withdrawn(answer, yes=yes))


def _withdraw_source(ctx: typer.Context, fields: Fields) -> Withdrawn:
    """Withdraw a source; a path means its file, however the import wrote that path."""
    answer: Withdrawn = perform(ctx.obj, "withdraw", fields)
    for source in _spellings(fields.get("source") or ""):
        if not answer.nearest:
            break
        other: Withdrawn = perform(ctx.obj, "withdraw", fields | {"source": source})
        answer = answer if other.nearest else other
    return answer


def _spellings(source: str) -> list[str]:
    """Return the other names that an import may have given to the file or folder at a path."""
    if not source or "://" in source:
        return []
    whole, home = Path(os.path.normpath(working_folder() / Path(source).expanduser())), Path.home()
    inside = [Path("~", whole.relative_to(home)).as_posix()] if whole.is_relative_to(home) else []
    names = dict.fromkeys((name_of(whole), *inside, str(whole), source.removeprefix("./")))
    return [name for name in names if name != source]


def _print_withdrawn(answer: Withdrawn, *, yes: bool) -> None:
    for source in answer.sources:
        print_line(f"  {source}")
    print_line(answer.message, "green")
    if not answer.applied and answer.hidden and not yes:
        print_line("Nothing was changed. `--yes` withdraws them.")

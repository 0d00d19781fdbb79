"""The commands that list, change, condense and connect what is stored. They own no rule, only what is asked and shown.

How an operation is run and an answer printed is told by the command line they join.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated, Any, Protocol

import typer
from rich.console import Console

from recollect.domain import (
    Done,
    FactsFound,
    Listed,
    OnFound,
    Order,
    Outcome,
    Prompt,
    Purged,
    Rescanned,
    Scope,
    Stats,
    Summarized,
)
from recollect.doors import options as o
from recollect.doors import render
from recollect.doors.shape import (
    facts_json,
    listed_json,
    outcome_json,
    prompt_json,
    purged_json,
    rescanned_json,
    similar_json,
    stats_json,
    summarized_json,
)
from recollect.errors import InvalidInput, NotFound, SecretFound

Given = dict[str, Any]


class Perform(Protocol):
    """Runs an operation, in the daemon or here; one that only looks need not `start` a daemon."""

    def __call__(self, name: str, given: Given, *, start: bool = True) -> Any:
        """Return the noun that the operation answers."""


Show = Callable[[Any, bool, Callable[[], None]], None]


def register(cli: typer.Typer, out: Console, perform: Perform, show: Show) -> None:
    """Add the commands to `cli`."""
    _lists(cli, out, perform, show)
    _about(cli, out, perform, show)
    _likeness(cli, out, perform, show)
    _changes(cli, out, perform, show)
    _facts(cli, out, perform, show)
    _keeping(cli, out, perform, show)


def ended(out: Console, show: Show, outcome: Outcome, as_json: bool) -> None:
    """Show how a write ended; exit with the code of `NotFound` when there was nothing to write to."""
    show(outcome_json(outcome), as_json, lambda: render.outcome(out, outcome))
    if outcome.done is Done.NOT_FOUND:
        raise typer.Exit(NotFound.exit_code)


def _pages(out: Console, perform: Perform, show: Show) -> Callable[[str, Given, bool], None]:
    def page(name: str, given: Given, as_json: bool) -> None:
        listed: Listed = perform(name, given, start=False)
        show(listed_json(listed), as_json, lambda: render.listed(out, listed, given["offset"]))

    return page


def _lists(cli: typer.Typer, out: Console, perform: Perform, show: Show) -> None:
    page = _pages(out, perform, show)

    @cli.command(name="list")
    @o.filtered()
    def list_(
        limit: o.Most = 20,
        offset: o.Skipped = 0,
        order: Annotated[Order, typer.Option(help="Which come first.")] = Order.UPDATED,
        filters: Given | None = None,
        as_json: o.Json = False,
    ) -> None:
        """List memories that pass the filters, a page at a time."""
        page("list_memories", {"limit": limit, "offset": offset, "order": order} | (filters or {}), as_json)

    @cli.command()
    @o.filtered()
    def timeline(
        limit: o.Most = 20,
        offset: o.Skipped = 0,
        oldest_first: Annotated[bool, typer.Option("--oldest-first", help="Begin where it began.")] = False,
        filters: Given | None = None,
        as_json: o.Json = False,
    ) -> None:
        """List memories in the order in which they were created."""
        order = Order.OLDEST if oldest_first else Order.NEWEST
        page("get_timeline", {"limit": limit, "offset": offset, "order": order} | (filters or {}), as_json)


def _about(cli: typer.Typer, out: Console, perform: Perform, show: Show) -> None:
    page = _pages(out, perform, show)

    @cli.command(name="by-file")
    @o.filtered("file")
    def by_file(
        path: Annotated[str, typer.Argument(metavar="PATH", help="A path, the end of one, or a folder.")],
        limit: o.Most = 20,
        offset: o.Skipped = 0,
        filters: Given | None = None,
        as_json: o.Json = False,
    ) -> None:
        """List what was learnt while a file was read or modified."""
        page("search_by_file", {"file": path, "limit": limit, "offset": offset} | (filters or {}), as_json)

    @cli.command(name="by-concept")
    @o.filtered()
    def by_concept(
        concept: Annotated[str, typer.Argument(metavar="NAME", help="A concept, such as gotcha or trade-off.")],
        limit: o.Most = 20,
        offset: o.Skipped = 0,
        filters: Given | None = None,
        as_json: o.Json = False,
    ) -> None:
        """List what carries a concept."""
        page("search_by_concept", {"concept": concept, "limit": limit, "offset": offset} | (filters or {}), as_json)


def _likeness(cli: typer.Typer, out: Console, perform: Perform, show: Show) -> None:
    @cli.command()
    @o.filtered()
    def similar(
        text: Annotated[
            str | None, typer.Argument(metavar="TEXT", help="What to compare with, unless --id is.")
        ] = None,
        memory_id: Annotated[str | None, typer.Option("--id", metavar="ID", help="Compare with this memory.")] = None,
        threshold: Annotated[
            float | None, typer.Option(help="Least cosine, -1.0-1.0; default: where the model sees twins.")
        ] = None,
        limit: o.Most = 10,
        filters: Given | None = None,
        as_json: o.Json = False,
    ) -> None:
        """List what says nearly the same as a text or a memory."""
        given = {"content": text, "id": memory_id, "threshold": threshold, "limit": limit} | (filters or {})
        found = perform("find_similar", given)
        show(similar_json(found), as_json, lambda: render.similar(out, found))

    @cli.command()
    @o.filtered()
    def prompt(
        query: Annotated[
            str | None, typer.Argument(metavar="QUERY", help="What it is about; default: what is used most.")
        ] = None,
        max_entries: Annotated[int, typer.Option(help="At most so many memories, 1-100.")] = 20,
        max_tokens: Annotated[int, typer.Option(help="At most so many tokens.")] = 1_000,
        filters: Given | None = None,
        as_json: o.Json = False,
    ) -> None:
        """Print the most worthwhile memories as Markdown to put before a model, fenced as data."""
        given = {"query": query, "max_entries": max_entries, "max_tokens": max_tokens} | (filters or {})
        made: Prompt = perform("format_for_prompt", given)
        show(prompt_json(made), as_json, lambda: _written(made.text))


def _changes(cli: typer.Typer, out: Console, perform: Perform, show: Show) -> None:
    @cli.command()
    def update(
        memory_id: o.Id,
        content: Annotated[str | None, typer.Option(help="New text; `-` reads standard input.")] = None,
        key: o.Key = None,
        title: o.Title = None,
        subtitle: o.Subtitle = None,
        fact_type: o.FactType = None,
        type: o.Type = None,
        category: o.Category = None,
        tags: o.Tagged = None,
        concepts: o.About = None,
        importance: o.Importance = None,
        confidence: o.Confidence = None,
        trust: o.Trust = None,
        sensitivity: o.Sensitivity = None,
        files_read: o.FilesRead = None,
        files_modified: o.FilesModified = None,
        session_id: o.OfSession = None,
        project: o.OfProject = None,
        observed_at: o.Observed = None,
        ttl_days: o.Lifetime = None,
        as_json: o.Json = False,
    ) -> None:
        """Change fields of a memory; what is not given stays, and `""` takes a label away."""
        text = None if content is None else o.typed_or_piped(content)
        given: Given = {"id": memory_id, "content": text, "key": key, "title": title, "subtitle": subtitle}
        given |= {"fact_type": fact_type, "type": type, "category": category, "importance": importance}
        given |= {"confidence": confidence, "trust": trust, "sensitivity": sensitivity, "session_id": session_id}
        given |= {"project": project, "observed_at": observed_at, "ttl_days": ttl_days}
        lists = {"tags": tags, "concepts": concepts, "files_read": files_read, "files_modified": files_modified}
        given |= {name: [one for one in values if one] for name, values in lists.items() if values}
        ended(out, show, perform("update_memory", given), as_json)

    @cli.command()
    def undo(memory_id: o.Id, scope: o.Where = None, as_json: o.Json = False) -> None:
        """Bring back a memory that was hidden by `forget --soft`, merged into another, corrected or condensed."""
        ended(out, show, perform("restore", {"id": memory_id, "scope": scope}), as_json)


def _facts(cli: typer.Typer, out: Console, perform: Perform, show: Show) -> None:
    @cli.command()
    def fact(
        subject: Annotated[str, typer.Argument(help="What it is about.")],
        predicate: Annotated[str, typer.Argument(help="What is said of it.")],
        object: Annotated[str, typer.Argument(help="The other end.")],
        confidence: o.Confidence = None,
        memory_id: Annotated[str | None, typer.Option("--memory", metavar="ID", help="Where it was said.")] = None,
        valid_from: Annotated[str | None, typer.Option("--from", help="Holds from then on; default: now.")] = None,
        valid_to: Annotated[str | None, typer.Option("--to", help="Holds until then; default: until replaced.")] = None,
        several: Annotated[bool, typer.Option("--several", help="Other objects hold on beside it.")] = False,
        sensitivity: o.Sensitivity = None,
        scope: o.Shared = Scope.PROJECT,
        as_json: o.Json = False,
    ) -> None:
        """Store a triple; another object for the same subject and predicate ends the older one."""
        given = {"subject": subject, "predicate": predicate, "object": object, "confidence": confidence}
        given |= {"memory_id": memory_id, "valid_from": valid_from, "valid_to": valid_to}
        given |= {"several": several or None, "sensitivity": sensitivity, "scope": scope}
        ended(out, show, perform("store_fact", given), as_json)

    @cli.command()
    def facts(
        subject: Annotated[str | None, typer.Option(help="Only about this.")] = None,
        predicate: Annotated[str | None, typer.Option(help="Only with this predicate.")] = None,
        object: Annotated[str | None, typer.Option(help="Only with this other end.")] = None,
        memory_id: Annotated[str | None, typer.Option("--memory", metavar="ID", help="Only said there.")] = None,
        as_of: Annotated[str | None, typer.Option(help="As they held then: a day, or a time in ISO 8601.")] = None,
        history: Annotated[bool, typer.Option("--history", help="Also those that hold no more.")] = False,
        min_confidence: Annotated[float, typer.Option(help="Only those at least so sure, 0.0-1.0.")] = 0.0,
        limit: o.Most = 50,
        offset: o.Skipped = 0,
        scope: o.Where = None,
        private: o.Private = False,
        secret: o.Secret = False,
        as_json: o.Json = False,
    ) -> None:
        """List the facts that hold, or held at a time."""
        given: Given = {"subject": subject, "predicate": predicate, "object": object, "memory_id": memory_id}
        given |= {"as_of": as_of, "history": history, "min_confidence": min_confidence, "limit": limit}
        given |= {"offset": offset, "scope": scope, "allow_private": private, "allow_secret": secret}
        found: FactsFound = perform("query_facts", given, start=False)
        show(facts_json(found), as_json, lambda: render.facts(out, found, offset))


def _keeping(cli: typer.Typer, out: Console, perform: Perform, show: Show) -> None:
    @cli.command()
    def stats(
        scope: o.Where = None, private: o.Private = False, secret: o.Secret = False, as_json: o.Json = False
    ) -> None:
        """Count what is stored, by scope, kind and state."""
        given = {"scope": scope, "allow_private": private, "allow_secret": secret}
        counted: Stats = perform("stats", given, start=False)
        show(stats_json(counted), as_json, lambda: render.stats(out, counted))

    @cli.command()
    def purge(scope: o.Where = None, as_json: o.Json = False) -> None:
        """Remove for good what has passed its time."""
        purged: Purged = perform("purge_expired", {"scope": scope}, start=False)
        show(purged_json(purged), as_json, lambda: out.print(purged.message, highlight=False))

    @cli.command()
    def rescan(
        redact: Annotated[bool, typer.Option("--redact", help="Mask each secret where it stands.")] = False,
        quarantine: Annotated[
            bool, typer.Option("--quarantine", help="Put each memory and fact that holds one out of all sight.")
        ] = False,
        scope: o.Where = None,
        as_json: o.Json = False,
    ) -> None:
        """Look for secrets in what is stored, with today's detectors. Exit code 3 while there are any in sight."""
        if redact and quarantine:
            raise InvalidInput("redact", "Invalid redact: Must not be given together with `--quarantine`")
        rule = OnFound.REDACT if redact else OnFound.QUARANTINE if quarantine else OnFound.REPORT
        found: Rescanned = perform("rescan", {"on_found": rule, "scope": scope}, start=False)
        show(rescanned_json(found), as_json, lambda: render.rescanned(out, found))
        if found.exposed and rule is OnFound.REPORT:
            raise typer.Exit(SecretFound.exit_code)

    @cli.command()
    def summarize(
        older_than_days: Annotated[float, typer.Option(help="Only what nobody touched for so long.")] = 30.0,
        category: o.Category = None,
        at_least: Annotated[int, typer.Option(help="Leave smaller groups as they are, 2-100.")] = 3,
        scope: o.Shared = Scope.PROJECT,
        as_json: o.Json = False,
    ) -> None:
        """Condense old memories into one summary per category; the originals are kept aside."""
        given = {"older_than_days": older_than_days, "category": category, "at_least": at_least, "scope": scope}
        summarized: Summarized = perform("summarize_old", given)
        show(summarized_json(summarized), as_json, lambda: out.print(summarized.message, highlight=False))


def _written(text: str) -> None:
    """Write it as it is, for pipes: no colours, no folding."""
    if text:
        sys.stdout.write(text + "\n")

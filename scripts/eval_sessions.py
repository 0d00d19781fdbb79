"""Measure what is kept of labelled sessions of coding agents, where topics change, and what later prompts get."""

from __future__ import annotations

import json
import tempfile
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

import session_report
from recollect import Settings
from recollect.domain import origin
from recollect.engines.embedding import open_embedder
from recollect.errors import InvalidInput, RecollectError
from session_players import err, play
from session_report import Result
from session_scores import SaysTheSame, score
from session_sets import SessionSet, load


class Through(StrEnum):
    """How events get to the store."""

    HOOKS = "hooks"
    STORE = "store"


def settings_of(home: Path, name: str, *, daemon: bool) -> Settings:
    """Return settings of a store of the set's own, with the prepared model of whoever runs this."""
    given = Settings()
    places = {"home": home / name / "home", "models_dir": given.models_dir}
    return Settings(user="eval", team="eval", project=name, model=given.model, daemon=daemon, **places)


def run(sets: list[SessionSet], through: Through) -> list[Result]:
    """Play each set in a store of its own and score it."""
    given, results = Settings(), []
    embedder = open_embedder(given.model, given.models_dir)
    embedder.warm()
    counter = embedder.counter() or (lambda text: len(text) // 4)
    same = SaysTheSame(embedder)
    with tempfile.TemporaryDirectory(prefix="recollect-sessions-") as home:
        for number, one in enumerate(sets):
            played = play(
                one, through, settings_of(Path(home) / str(number), one.name, daemon=through is Through.HOOKS)
            )
            results.append(Result(one, played, score(one, played, same, counter)))
    return results


def report(results: list[Result], through: Through, *, show: bool, json_file: Path | None) -> None:
    """Print the table, after what was kept and injected where that is asked for, and write the rest."""
    out = Console(width=max(100, 44 + 14 * len(results)), highlight=False)
    for one in results:
        if show:
            session_report.show(one, out)
        if one.set.unknown:
            kinds = ", ".join(one.set.unknown)
            out.print(f"[red]{one.set.name}: unknown kinds of secrets, played as placeholders: {kinds}[/red]")
        if one.set.unknown_traits:
            out.print(f"{one.set.name}: unknown traits, without effect: {', '.join(one.set.unknown_traits)}")
        if one.played.failed:
            out.print(f"[red]{one.set.name}: stages failed: {one.played.failed}[/red]")
        if one.played.lost or one.played.late:
            lost = f"{one.played.lost} events were lost, {one.played.late} prompts were answered too late"
            out.print(f"[red]{one.set.name}: {lost}[/red]")
    out.print(session_report.table(results, through))
    if json_file is not None:
        found = {"through": through, "mean": session_report.mean(results)}
        found |= {"sets": [session_report.as_json(one) for one in results]}
        json_file.write_text(json.dumps(found, indent=1, ensure_ascii=False), encoding="utf-8")


def ignore_origin(through: Through) -> None:
    """Let who said something give it no authority in this process, to see what that costs and spares."""
    if through is not Through.STORE:
        raise InvalidInput("through", "Invalid through: Must be `store` together with `--one-authority`")
    origin.authority = lambda _: origin.Authority.TOLD


def main(
    folders: Annotated[list[Path], typer.Argument(help="Labelled sessions: folders with events and prompts.")],
    through: Annotated[
        Through, typer.Option(help="Each event by a process of its own, or by an operation in this process.")
    ] = Through.HOOKS,
    show: Annotated[
        bool, typer.Option("--show", help="Also print what was kept, dropped wrongly, and put before which prompt.")
    ] = False,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write everything here, as JSON.")] = None,
    one_authority: Annotated[
        bool,
        typer.Option(
            "--one-authority", help="Give all memories the authority of a person; only with `--through store`."
        ),
    ] = False,
) -> None:
    """Play labelled sessions through a new store, ask later prompts, and print what was kept and injected."""
    try:
        if json_file is not None and not json_file.resolve().parent.is_dir():
            raise InvalidInput("file", f"{json_file} cannot be written: its folder does not exist.")
        if one_authority:
            ignore_origin(through)
        report(run([load(one) for one in folders], through), through, show=show, json_file=json_file)
    except RecollectError as error:
        err.print(f"[red]Error:[/red] {escape(str(error))}", soft_wrap=True)
        raise typer.Exit(error.exit_code) from error


if __name__ == "__main__":
    typer.run(main)

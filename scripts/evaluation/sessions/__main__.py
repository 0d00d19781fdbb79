"""Measure what is kept of labelled sessions of coding agents, where topics change, and what later prompts get."""

from __future__ import annotations

import json
import tempfile
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.markup import escape

from evaluation.sessions import agent_scores
from evaluation.sessions import report as session_report
from evaluation.sessions.agent_answers import answers_of
from evaluation.sessions.agent_steps import Progress, advance, sources_of
from evaluation.sessions.players import err, play, settings_of
from evaluation.sessions.report import Result
from evaluation.sessions.scores import SaysTheSame, score
from evaluation.sessions.sets import SessionSet, load
from recollect import Settings
from recollect.domain import origin
from recollect.engines.embedding import open_embedder
from recollect.errors import InvalidInput, RecollectError

DATA: Final = Path(__file__).parents[1] / "data"
OWN: Final = (DATA / "sessions", DATA / "stores")
"""Where the sets of this project lie."""


class Through(StrEnum):
    """How events get to the store."""

    HOOKS = "hooks"
    STORE = "store"


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


def go_on(folders: list[Path], answers: Path, json_file: Path | None) -> None:
    """Go on with sets whose agent answers in files, say which answers are awaited, and score what is complete."""
    given, out = Settings(), Console(width=max(100, 44 + 14 * len(folders)), highlight=False)
    embedder = open_embedder(given.model, given.models_dir)
    embedder.warm()
    found: list[Progress] = []
    for source in folders:
        progress = advance(source, answers, embedder)
        found.append(progress)
        for note in progress.notes:
            out.print(escape(note), soft_wrap=True)
        if page := progress.awaited:
            out.print(f"{progress.set.name}: awaited {answers_of(page)}, the answers to {page}", soft_wrap=True)
    if scored := [one for one in found if one.scored]:
        out.print(agent_scores.table(scored))
    if json_file is not None:
        agent_scores.write_json(json_file, scored)


def main(
    folders: Annotated[
        list[Path] | None, typer.Argument(help="Labelled sessions: folders with events and prompts.")
    ] = None,
    through: Annotated[
        Through, typer.Option(help="Each event by a process of its own, or by an operation in this process.")
    ] = Through.HOOKS,
    show: Annotated[
        bool, typer.Option("--show", help="Also print what was kept, dropped wrongly, and put before which prompt.")
    ] = False,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write everything here, as JSON.")] = None,
    agent: Annotated[
        Path | None,
        typer.Option(
            help="Let a language model play the agent: write its next pages into this folder, and read its answers "
            "there. Folders may also be big stores; without any, the sets whose answers lie there are taken."
        ),
    ] = None,
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
        if agent is not None:
            go_on(sources_of(agent, folders or [], OWN), agent, json_file)
            return
        if not folders:
            raise InvalidInput("folders", "Missing folders: name one with labelled sessions.")
        if one_authority:
            ignore_origin(through)
        report(run([load(one) for one in folders], through), through, show=show, json_file=json_file)
    except RecollectError as error:
        err.print(f"[red]Error:[/red] {escape(str(error))}", soft_wrap=True)
        raise typer.Exit(error.exit_code) from error


if __name__ == "__main__":
    typer.run(main)

"""The commands of `scripts/worth`."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import track

from evaluation.worth import report
from evaluation.worth.arms import Arm, open_place, places_in, prepare
from evaluation.worth.notes import memory_files, notes_so_far, read_notes, transcript
from evaluation.worth.scores import gather, judge_all, read_answers, write_answers
from evaluation.worth.stores import fill, open_model
from evaluation.worth.use import finish as finish_place
from evaluation.worth.use import use as use_place
from evaluation.worth.validation import problems
from evaluation.worth.workspaces import DATA, load_workspace, load_workspaces
from recollect.errors import InvalidInput, RecollectError

ANSWERS = DATA / "answers"
Data = Annotated[Path, typer.Option("--data", help="The folder of the workspaces.")]
Kept = Annotated[Path, typer.Option("--answers", help="The folder of the kept answers.")]
app = typer.Typer(help="Measure whether a memory helps an agent.", no_args_is_help=True, add_completion=False)
out, err = Console(highlight=False, soft_wrap=True), Console(stderr=True, soft_wrap=True)


@app.command()
def check(folders: Annotated[list[Path], typer.Argument(help="Workspaces, each a folder.")]) -> None:
    """Check workspaces: their form, their proportions, their clues, and the judgements of their samples."""
    failed = False
    for folder in folders:
        found = list(problems(load_workspace(folder)))
        failed = failed or bool(found)
        for problem in found:
            out.print(f"{folder.name}: {problem}", markup=False)
        if not found:
            out.print(f"{folder.name}: ok", markup=False)
    if failed:
        raise typer.Exit(1)


@app.command()
def session(
    folder: Annotated[Path, typer.Argument(help="A workspace.")],
    name: Annotated[str, typer.Argument(help="The session, such as s01.")],
) -> None:
    """Print an earlier session, and what the notes of the sessions before it hold."""
    workspace = load_workspace(folder)
    sessions = {each.id: each for each in workspace.sessions}
    if name not in sessions:
        raise InvalidInput("session", f"There is no session {name}; there are {', '.join(sessions)}.")
    notes = read_notes(workspace, whole=False)
    earlier = {each: entry for each, entry in notes.items() if each < name}
    out.print(transcript(workspace, sessions[name]), markup=False)
    out.print(f"\n{notes_so_far(workspace, earlier)}", markup=False)


@app.command()
def notes(folders: Annotated[list[Path], typer.Argument(help="Workspaces, each with notes.json.")]) -> None:
    """Check what was noted of each session, by storing it in a real store."""
    embedder, failed = open_model(), False
    for folder in folders:
        workspace = load_workspace(folder)
        found = read_notes(workspace)
        lines = sum(len(each) for each in memory_files(workspace, found).values())
        with tempfile.TemporaryDirectory(prefix="worth-notes-") as home:
            refusals = fill(Path(home), workspace, found, embedder, hooks=False)
        failed = failed or bool(refusals)
        for refusal in refusals:
            out.print(f"{folder.name}: {refusal}", markup=False)
        calls = sum(len(entry.calls) for entry in found.values())
        ended = f"{len(refusals)} of them refused" if refusals else "ok"
        out.print(f"{folder.name}: {lines} lines, {calls} calls, {ended}", markup=False)
    if failed:
        raise typer.Exit(1)


@app.command(name="prepare")
def prepare_arm(
    arm: Annotated[Arm, typer.Argument(help="What the agent has of its earlier sessions.")],
    folder: Annotated[Path, typer.Argument(help="A new folder, in which each task gets a folder.")],
    data: Data = DATA,
) -> None:
    """Make a folder for each task with what an agent sees in an arm, and the programs that it may use there."""
    workspaces = track(load_workspaces(data), f"{arm}: preparing", console=err)
    places = prepare(arm, workspaces, folder, open_model(load=arm.stores))
    out.print(f"{len(places)} tasks are prepared in {folder}.", markup=False)


@app.command(hidden=True, context_settings={"ignore_unknown_options": True})
def use(state: Path, words: Annotated[list[str] | None, typer.Argument()] = None) -> None:
    """Do what an agent asks for in the folder of a task (its program `memory`)."""
    place = open_place(state)
    out.print(use_place(place, words or [], open_model(load=place.arm.stores)), markup=False)


@app.command(hidden=True)
def finish(state: Path) -> None:
    """Check the answer in the folder of a task (its program `finish`)."""
    place = open_place(state)
    done, text = finish_place(place, open_model(load=place.arm.stores))
    out.print(text, markup=False)
    if not done:
        raise typer.Exit(1)


@app.command()
def keep(
    folder: Annotated[Path, typer.Argument(help="A folder that `prepare` made, with finished answers.")],
    player: Annotated[str, typer.Option(help="The name of this run of a language model.")] = "1",
    answers: Kept = ANSWERS,
) -> None:
    """Add the finished answers of a prepared folder to those that are kept, and name the tasks that are unfinished."""
    places = list(places_in(folder))
    found, unfinished = gather(places)
    for name in unfinished:
        out.print(f"{name} is not finished.", markup=False)
    file = write_answers(answers, places[0].arm, player, found)
    out.print(f"{len(found)} answers are kept in {file}.", markup=False)
    if unfinished:
        raise typer.Exit(1)


@app.command()
def score(
    data: Data = DATA,
    answers: Kept = ANSWERS,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write all figures here, as JSON.")] = None,
    plot_file: Annotated[Path | None, typer.Option("--plot", help="Also draw them here, as PNG.")] = None,
    markdown: Annotated[bool, typer.Option(help="Print the tables in Markdown.")] = False,
    show: Annotated[bool, typer.Option("--show", help="Also name each answer that is not right.")] = False,
) -> None:
    """Judge the kept answers again, and print what each arm reaches."""
    for path in filter(None, (json_file, plot_file)):
        if not path.resolve().parent.is_dir():
            raise InvalidInput("file", f"{path} cannot be written: its folder does not exist.")
    outcomes, remarks = judge_all(load_workspaces(data), read_answers(answers))
    for remark in remarks:
        err.print(remark, markup=False)
    if markdown:
        out.print(report.as_markdown(outcomes), markup=False)
    else:
        report.show(outcomes, Console(width=160))
    for each in outcomes if show else ():
        if not each.judgement.right:
            state = "repeats" if each.judgement.repeats else "asks" if each.judgement.asks else "wrong"
            seen = "had what it needs" if each.kept.reached else "lacked what it needs"
            about = f", {seen}" if each.task.needs_memory else ""
            out.print(f"{each.arm}, {each.player}: {each.name} ({each.task.kind}): {state}{about}", markup=False)
    if json_file is not None:
        json_file.write_text(json.dumps(report.as_json(outcomes), indent=1) + "\n", encoding="utf-8")
    if plot_file is not None:
        report.draw(outcomes, plot_file)


def main() -> None:
    """Run a command; an error of a person's input ends it with a sentence."""
    try:
        app(standalone_mode=True)
    except RecollectError as error:
        err.print(f"[red]Error:[/red] {escape(str(error))}")
        raise SystemExit(error.exit_code) from error


if __name__ == "__main__":
    main()

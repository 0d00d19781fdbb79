"""The commands that move memories in and out of a store: `export`, `import` and `extract`."""

from __future__ import annotations

import hashlib
import shlex
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Final, cast

import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from recollect import environment
from recollect.domain.enums import Scope
from recollect.domain.origin import SaidBy
from recollect.domain.transfer import (
    IMPORT_COUNTS,
    ExportFormat,
    ExportPage,
    Extracted,
    ExtractMemories,
    ImportBatch,
    Imported,
    ImportFormat,
)
from recollect.doors.cli import render, terminal
from recollect.doors.cli.exit_codes import show
from recollect.doors.cli.interruption import setting_on_signals
from recollect.doors.cli.opening import opened
from recollect.doors.cli.options import Fields, from_fields
from recollect.doors.cli.render import err, out
from recollect.doors.serializers import public_json
from recollect.environment import working_folder
from recollect.errors import InvalidInput, SecretFound, StoreUnusable
from recollect.projects import find_project
from recollect.sessions.observations.origins import read_outside
from recollect.settings import Settings
from recollect.transfer.export_file import save
from recollect.transfer.export_page import pages
from recollect.transfer.formats import HEAD, WRITERS, detect, recognise_file
from recollect.transfer.import_client import FileImport, Import
from recollect.transfer.import_paths import FoundFile, FoundPaths, find_files, name_of
from recollect.transfer.transcripts import requests_of
from recollect.transfer.watching import Vault, state_file

_STDOUT = _STDIN = Path("-")
_LISTED: Final = 20
_MARKDOWN_ENDINGS: Final = (".md", ".markdown")
_FEW: Final = 2_000  # memories that the daemon exports in a client's stead
_SMALL: Final = 2**20  # bytes of the files that it imports so
_MOST_SOURCES: Final = 5  # that advice names
_ROOT: Final = "."  # how the working folder is named, and no file below it
_INTERRUPTED: Final = 130  # what a shell calls it

Watching = Annotated[
    bool, typer.Option("--watch", help="Keep a folder of Markdown notes in step until Ctrl-C; each change is a line.")
]

cli = typer.Typer()


@cli.command(name="export")
@from_fields(ExportPage, without="after")
def _export(
    ctx: typer.Context,
    fields: Fields,
    file: Annotated[Path, typer.Argument(help="Where to; `-` is standard output.")] = _STDOUT,
    format: Annotated[
        ExportFormat | None,
        typer.Option(help="JSON lines with everything, or Markdown for people; default: by the file's ending."),
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="The same as FILE.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file when it exists.")] = False,
) -> None:
    """Write memories, facts and journal to a file that `recollect import` reads, or to Markdown."""
    if output is not None and file != _STDOUT:
        raise InvalidInput("output", "Invalid output: Must not be given together with FILE")
    file = output or file
    place = file if file == _STDOUT else working_folder() / file
    ending = ExportFormat.MARKDOWN if file.suffix.lower() in _MARKDOWN_ENDINGS else ExportFormat.JSONL
    request = ExportPage(**fields)
    unreadable: list[str] = []
    left_out: dict[str, int] = {}
    if file != _STDOUT and place.exists() and not force:
        terminal.leave_to_client()
        if not sys.stdin.isatty():
            raise InvalidInput("file", f"{file} exists already; name another file, or overwrite it with --force.")
        typer.confirm(f"{file} exists already. Overwrite it?", abort=True, err=True)
    with opened(ctx.obj, model=False) as ask:
        if terminal.of_another() and ask("list_memories", **fields, limit=1).total > _FEW:
            terminal.leave_to_client()  # so much is written as it is read
        lines = pages(request, lambda page: ask("export_page", **dict(page)), unreadable)
        pieces = WRITERS[format or ending](_noting_left_out(left_out, lines))
        if file == _STDOUT:
            terminal.stdout().writelines(pieces)
        else:
            save(place, pieces)
            err.print(f"Exported to {file}.", highlight=False)
    for level, count in left_out.items():
        what = f"{count} of your memories are" if count > 1 else "One of your memories is"
        err.print(f"{what} {level} and not in it; `--{level}` includes such.", highlight=False)
    if unreadable:
        named = ", ".join(unreadable[:_LISTED]) + (" and more" if len(unreadable) > _LISTED else "")
        raise StoreUnusable(
            f"The store is damaged: {len(unreadable)} could not be read and are not in the export: {named}. Bring back "
            "a backup with `recollect backup restore FILE --force`."
        )


def _noting_left_out(left_out: dict[str, int], lines: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Pass every line on, and note the counts of memories that the header reports as left out."""
    for line in lines:
        left_out |= line.get("left_out", {})
        yield line


@cli.command(name="import")
@from_fields(ImportBatch, without="items links sections last in_step")
def _import(
    ctx: typer.Context,
    fields: Fields,
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH", help="Files, folders and patterns: notes, exports, stores of others; `-` is standard input."
        ),
    ],
    format: Annotated[ImportFormat | None, typer.Option(help="What wrote the files; default: found out.")] = None,
    transcripts: Annotated[
        bool, typer.Option("--transcripts", help="Also transcripts of Claude Code and Codex, message by message.")
    ] = False,
    instructions: Annotated[
        bool, typer.Option("--instructions", help="Of folders only CLAUDE.md, AGENTS.md and their like, at any depth.")
    ] = False,
    watch: Watching = False,
    as_json: bool = False,
) -> None:
    """Import memories from files and folders; doing it again changes nothing, and goes on after an interruption.

    Folders are searched without hidden ones, libraries, caches and links. Exit code 3 tells that a secret was refused,
    2 that something else could not be written, 130 that it was interrupted.
    """
    dry_run = bool(fields.get("dry_run"))
    if watch or not _all_small(paths):
        terminal.leave_to_client()
    if watch:
        _watch_folder(ctx.obj, paths, fields, alone=not (format or transcripts or instructions or dry_run or as_json))
        return
    here = Path(ctx.with_resource(TemporaryDirectory()))
    named = [_saved_input(here) if path == _STDIN else _resolve(path) for path in paths]
    found = find_files(named, format, transcripts=transcripts, instructions=instructions)
    typed = [file._replace(name=file.name.removeprefix(name_of(here / "-")[:-1])) for file in found.files]
    found.files[:] = _without_project_mark(typed, ctx.obj, fields)
    with opened(ctx.obj, model=not dry_run) as ask:
        importing = Import(partial(_send_batch, ask), fields, read_outside)
        stopped = not _run_import(importing, found)
    total = importing.total()
    written = sum(count for name, count in total.counts.items() if name != "failed")
    if len(importing.files) == 1 and (error := importing.files[0].error) and not written:
        raise error
    show(
        _imported_json(importing, found, {_resolve(path): path for path in paths}, stopped=stopped),
        as_json,
        print_answer=lambda: _print_imported(importing, found, "" if dry_run else _approval_advice(paths, total)),
    )
    _exit_with_code(total, stopped=stopped)


def _run_import(importing: Import, found: FoundPaths) -> bool:
    """Import the files; return True unless somebody interrupted it."""
    try:
        _run_with_bar(importing, found)
    except KeyboardInterrupt:
        return False
    return True


def _all_small(paths: Sequence[Path]) -> bool:
    """Say whether only small files are named, which are read before anybody would look for a progress bar."""
    try:
        sizes = [_resolve(path).stat().st_size for path in paths if _resolve(path).is_file()]
    except OSError:
        return False
    return len(sizes) == len(paths) and sum(sizes) <= _SMALL


def _resolve(path: Path) -> Path:
    """Return a path from the client's working folder, where the daemon runs the command; else as it was typed."""
    return working_folder() / path.expanduser() if terminal.of_another() else path


def _without_project_mark(files: Sequence[FoundFile], settings: Settings, fields: dict[str, Any]) -> list[FoundFile]:
    """Return the files without the mark of this project, where their memories go to another project."""
    here = fields.get("scope") in (None, Scope.PROJECT)
    if here and find_project(environment.working_folder(), settings.home).name == settings.project:
        return list(files)
    return [file._replace(said_by=None) if file.said_by is SaidBy.FILE else file for file in files]


def _approval_advice(paths: Sequence[Path], total: Imported) -> str:
    """Return the sentence on how to approve all waiting memories of an import; empty where none waits."""
    if not total.waiting:
        return ""
    many = "1 memory waits" if total.waiting == 1 else f"{total.waiting} memories wait"
    again = "importing the same with `--own` approves them all, if the files are yours"
    named = [_resolve(path.expanduser()) for path in paths]
    names = [name_of(path) for path in named if path.exists()]
    if len(names) < len(named) or len(names) > _MOST_SOURCES or _ROOT in names:
        return f"{many} for a decision: {again}."
    sources = " ".join(f"--source {shlex.quote(name)}" for name in names)
    return f"{many} for a decision: `recollect inbox {sources} --as approve` approves them all. Or {again}."


def _exit_with_code(total: Imported, *, stopped: bool) -> None:
    """End the command with the exit code for the outcome of the import."""
    if stopped:
        err.print("Interrupted. Do the same again to go on from there.", highlight=False)
        raise typer.Exit(_INTERRUPTED)
    for name, kind in (("refused", SecretFound), ("failed", InvalidInput)):
        if total.counts[name]:
            raise typer.Exit(kind.exit_code)


def _watch_folder(settings: Settings, paths: Sequence[Path], fields: dict[str, Any], *, alone: bool) -> None:
    """Import every change of a folder until Ctrl-C or SIGTERM."""
    if len(paths) != 1 or not alone:
        raise InvalidInput("watch", "Invalid watch: Takes one folder, and of the other options only those of memories")
    folder = paths[0].expanduser()
    stop = threading.Event()
    caller = (settings.user, settings.team, settings.project, str(fields.get("scope") or ""))
    with opened(settings, model=True) as ask, setting_on_signals(stop):
        send = partial(_send_batch, ask)
        vault = Vault(folder, state_file(settings.folder, folder, caller), send, fields)
        for line in vault.follow(stop):
            _print_text(str(line))
    _print_text("Stopped. The next start reads only what has changed.")


def _send_batch(ask: Callable[..., Any], batch: ImportBatch) -> Imported:
    return cast(Imported, ask("import_batch", **dict(batch)))


def _saved_input(folder: Path) -> Path:
    """Save standard input as a file named by its digest, `.md` where it is a text but no JSON, and return its path."""
    if sys.stdin is None:
        raise InvalidInput("paths", "Standard input is closed.")
    file = folder / "-"
    with file.open("wb") as saved:
        shutil.copyfileobj(sys.stdin.buffer, saved)
    with file.open("rb") as saved:
        head = saved.read(HEAD)
        saved.seek(0)
        digest = hashlib.file_digest(saved, "sha256").hexdigest()
    text = detect("", head) is None and b"\0" not in head and not head.lstrip().startswith((b"{", b"["))
    return file.rename(folder / f"standard input {digest[:12]}{'.md' if text else ''}")


def _run_with_bar(importing: Import, found: FoundPaths) -> None:
    """Import with a bar on a terminal: the share of the bytes, and how many memories and facts were sent."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    files = len(found.files)
    with Progress(*columns, console=err, disable=terminal.of_another() or not err.is_terminal, transient=True) as bar:
        task = bar.add_task(
            f"{files} {'file' if files == 1 else 'files'}", total=sum(file.size for file in found.files)
        )
        with _stopping_on_interrupt(importing):
            importing.run(
                found.files,
                lambda read, items: bar.update(task, completed=read, description=f"{items} memories and facts"),
            )


@contextmanager
def _stopping_on_interrupt(importing: Import) -> Iterator[None]:
    """Let Ctrl-C end an import between two batches, where this is the main thread, which gets signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, lambda *_: importing.stop())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _imported_json(
    importing: Import, found: FoundPaths, typed: Mapping[Path, Path], *, stopped: bool
) -> dict[str, Any]:
    """Return the outcome as JSON, with paths as they were `typed`; `complete` is False after an interruption."""
    files = [_file_as_json(file.source, typed) | public_json(Imported, file.done()) for file in importing.files]
    total = public_json(Imported, importing.total())
    total.pop("problems")
    return {"complete": not stopped, "total": total, "skipped": dict(found.skipped), "files": files}


def _file_as_json(source: FoundFile, typed: Mapping[Path, Path]) -> dict[str, Any]:
    """Return a file by its `typed` path, with the member of an archive; the format is None for an unreadable file."""
    member = {"member": source.member} if source.member else {}
    return (
        {"file": str(typed.get(source.path, source.path))} | member | {"format": source.format and str(source.format)}
    )


def _print_imported(importing: Import, found: FoundPaths, advice: str) -> None:
    """Print a table of formats, a table of files, the files that were skipped, and a line for each problem."""
    title = "What would happen" if importing.dry_run else ""
    formats: dict[str, list[FileImport]] = {}
    for file in importing.files:
        formats.setdefault(_format_of(file), []).append(file)
    names = [name.capitalize() for name in IMPORT_COUNTS]
    if len(importing.files) > 1:
        rows = [[name, str(len(files)), *_summed_counts(files)] for name, files in formats.items()]
        render.print_rows(rows, "Format", "Files", *names, title=title)
        out.print()
        title = ""
    listed = sorted(importing.files, key=lambda file: not file.problems)[:_LISTED]  # those with problems first
    rows = [[file.source.name, _format_of(file), *_summed_counts([file])] for file in listed]
    render.print_rows(rows, "File", "Format", *names, title=title)
    if len(importing.files) > _LISTED:
        _print_text(f"{len(importing.files) - _LISTED} more files; `--json` shows them.")
    total = importing.total()
    if total.refused_kinds:
        _print_text(f"Refused: {', '.join(f'{count} × {kind}' for kind, count in total.refused_kinds.items())}.")
    if found.skipped:
        _print_text(f"Skipped: {', '.join(f'{count} {reason}' for reason, count in found.skipped.items())}.")
    problems = [problem for file in importing.files for problem in file.done().problems]
    for problem in problems[:_LISTED]:
        _print_text(f"{problem.where}: {problem.why}" if problem.where else problem.why)
    if len(problems) > _LISTED:
        _print_text(f"{len(problems) - _LISTED} more problems; `--json` shows them.")
    _print_text(total.message)
    if advice:
        _print_text(advice)


def _format_of(file: FileImport) -> str:
    return str(file.source.format or "cannot be read")


def _summed_counts(files: Sequence[FileImport]) -> list[str]:
    return [str(sum(file.counts[name] for file in files)) for name in IMPORT_COUNTS]


def _print_text(text: str) -> None:
    out.print(render.sanitized(text), markup=False, highlight=False, soft_wrap=True)


@cli.command(name="extract")
@from_fields(ExtractMemories, without="messages session_id")
def _extract(
    ctx: typer.Context,
    fields: Fields,
    file: Annotated[Path, typer.Argument(help="A transcript of Claude Code or Codex, or an exported conversation.")],
    format: Annotated[ImportFormat | None, typer.Option(help="What wrote the file; default: found out.")] = None,
    as_json: bool = False,
) -> None:
    """Let a language model make memories of a conversation; it needs RECOLLECT_CHAT_MODEL."""
    total = Extracted()
    requests = requests_of(file, recognise_file(file, format).format)
    with opened(ctx.obj, model=True) as ask:
        for some in requests:
            total = _sum_of(total, ask("extract_memories", **fields, **some))
    if as_json:
        out.print_json(data=public_json(Extracted, total))
        return
    out.print(f"{total.new} new, {total.updated} updated, {total.left_out} left out; {total.known} parts known before.")
    for problem in total.problems:
        err.print(f"{problem.where}: {problem.why}", markup=False, highlight=False)
    if total.unread:
        err.print(f"{total.unread} parts were not read: {total.why}", highlight=False)


def _sum_of(first: Extracted, other: Extracted) -> Extracted:
    counts = ("new", "updated", "left_out", "parts", "known", "unread")
    sums = {name: getattr(first, name) + getattr(other, name) for name in counts}
    return Extracted(**sums, why=other.why or first.why, problems=(*first.problems, *other.problems))

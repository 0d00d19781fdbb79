"""The commands on the journal of a deployment: show it, export it for whoever keeps logs, and check such an export."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from pydantic import TypeAdapter, ValidationError

from recollect.domain.accounts import Audit, AuditExport, AuditPage, AuditRecord, ExportAudit
from recollect.doors.cli import exit_codes, terminal
from recollect.doors.cli.answers import print_answer
from recollect.doors.cli.audit_targets import Cursor, Target, open_target, syslog_line
from recollect.doors.cli.interruption import setting_on_signals
from recollect.doors.cli.opening import administering
from recollect.doors.cli.options import Fields, Json, from_fields
from recollect.doors.cli.render import err
from recollect.doors.serializers import public_json, wire_json
from recollect.environment import working_folder
from recollect.errors import InvalidInput, RecollectError, ServerUnreachable, StoreUnusable

audits = typer.Typer(
    invoke_without_command=True,
    help="Show who did what in the teams that you administer; with a command, export it, or check an export.",
)
cli = typer.Typer()
cli.add_typer(audits, name="audit")

_PAGE: Final = 1_000
_PAUSE: Final = 2.0  # seconds from one look for new lines to the next
_LONGER: Final = 10.0  # seconds after a failure
_STDOUT: Final = "-"
_BEGIN: Final = "{"
_RECORD: Final = TypeAdapter(AuditRecord)


class Format(StrEnum):
    """How the lines of an export are written."""

    JSONL = "jsonl"
    SYSLOG = "syslog"


@audits.callback()
@from_fields(Audit)
def audit(ctx: typer.Context, fields: Fields, as_json: bool = False) -> None:
    """Show who did what in the teams that you administer; with a command, export it, or check an export."""
    if ctx.invoked_subcommand is not None:
        return
    Audit(**fields)  # report invalid input before anything is opened
    with administering(ctx.obj) as perform:
        found = perform("audit", **fields)
    exit_codes.show(public_json(AuditPage, found), as_json, print_answer=lambda: print_answer(found))


@audits.command()
@from_fields(ExportAudit, without="limit after")
def export(
    ctx: typer.Context,
    fields: Fields,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="WHERE",
            help="A file, `-` for standard output, or `syslog://HOST:PORT` (TCP), `syslog+udp://…`, `syslog+tls://…`.",
        ),
    ] = _STDOUT,
    form: Annotated[
        Format | None,
        typer.Option("--format", help="JSON lines, or RFC 5424 with that JSON as message, as a syslog server gets it."),
    ] = None,
    cursor: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Go on where this file says, and keep it up to date. Default for a file: FILE.cursor."
        ),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Wait for further lines until Ctrl-C or SIGTERM.")] = False,
    as_json: Json = False,
) -> None:
    """Export the audit log, each line once; a later run goes on where the last run ended.

    An admin of the deployment also gets the hash of each line, by which `audit verify` proves an export unchanged.
    """
    ExportAudit(**fields)
    form, kept = _checked(to, form, cursor, follow=follow)
    terminal.leave_to_client()  # it may run for as long as the deployment does
    with ExitStack() as closing:
        target, position = open_target(to, kept)
        closing.callback(target.close)
        perform = closing.enter_context(administering(ctx.obj))
        stop = threading.Event()
        closing.enter_context(setting_on_signals(stop) if follow else nullcontext())
        count = _export(perform, fields, target, position, form, stop if follow else None)
    if to != _STDOUT:
        exit_codes.show({"lines": count, "to": to}, as_json, f"{count} lines exported to {to}.")


@audits.command()
def verify(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file that `audit export` wrote, in either format.")],
    as_json: Json = False,
) -> None:
    """Check that no line of an export was changed: each has the hash that its content and the line before give it.

    Exit code 1 where a line was changed, or stands out of order. Lines that an export does not show, such as those
    about private memories, are counted as gaps in their chain.
    """
    last: dict[str, AuditRecord] = {}
    count = gaps = 0
    for place, record in _read_records(working_folder() / file):
        before = last.get(record.namespace)
        if record.hash != _hash_of(record):
            raise RecollectError(f"Line {place} of {file} was changed: it does not have its hash.")
        if before is not None and record.number <= before.number:
            raise RecollectError(f"Line {place} of {file} is out of order: {record.number} follows {before.number}.")
        gaps += before is not None and record.previous != before.hash
        last[record.namespace], count = record, count + 1
    body = {"lines": count, "chains": len(last), "gaps": gaps}
    sentence = f"{count} lines of {len(last)} chains are unchanged; gaps where lines are not shown: {gaps}."
    exit_codes.show(body, as_json, sentence)


def _checked(to: str, form: Format | None, cursor: Path | None, *, follow: bool) -> tuple[Format, Path | None]:
    """Return the format and the file of the cursor; raise `InvalidInput` for options that do not go together."""
    remote = "://" in to
    if remote and form is Format.JSONL:
        raise InvalidInput("format", "Invalid format: A syslog server takes `syslog` alone")
    if remote and follow and cursor is None:
        raise InvalidInput(
            "cursor",
            "Missing cursor: `--follow` to a server needs `--cursor FILE`, else a restart sends all again.",
        )
    beside = None if remote or to == _STDOUT else Path(f"{to}.cursor")
    kept = cursor or beside
    return form or (Format.SYSLOG if remote else Format.JSONL), None if kept is None else working_folder() / kept


def _export(
    perform: Callable[..., Any],
    fields: Fields,
    target: Target,
    cursor: Cursor,
    form: Format,
    stop: threading.Event | None,
) -> int:
    """Send page after page, and note after each where to go on; return how many lines were sent.

    With `stop` it waits for further lines until that is set, and tries again what cannot be reached.
    """
    count = 0
    while True:
        try:
            page: AuditExport = perform("export_audit", **fields, limit=_PAGE, after=cursor.after)
            if page.records:
                target.write([_written(record, form) for record in page.records])
                cursor.advance(page.after, target.size)
                count += len(page.records)
            pause = 0.0 if page.more else _PAUSE
        except (ServerUnreachable, StoreUnusable) as error:
            if stop is None:
                raise
            err.print(f"recollect: {error} Trying again.", markup=False, highlight=False, soft_wrap=True)
            pause = _LONGER
        if (stop is None and pause) or (stop is not None and stop.wait(pause)):
            return count


def _written(record: AuditRecord, form: Format) -> bytes:
    """Return a record as a line of an export, without what ends it."""
    body = {name: value for name, value in wire_json(AuditRecord, record).items() if value is not None}
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))  # ASCII, so that syslog needs no mark of UTF-8
    return (text if form is Format.JSONL else syslog_line(record, text)).encode()


def _read_records(file: Path) -> Iterator[tuple[int, AuditRecord]]:
    """Yield the records of an export with the numbers of their lines; raise `InvalidInput` for another file."""
    try:
        with file.open(encoding="utf-8", errors="surrogateescape") as stream:
            for place, line in enumerate(stream, 1):
                begin = line.find(_BEGIN)
                try:
                    record = _RECORD.validate_json(line[max(begin, 0) :].encode("utf-8", "surrogateescape"))
                except ValidationError:
                    raise InvalidInput(
                        "file", f"Invalid file: Line {place} is none of an export of the audit."
                    ) from None
                if record.hash is None:
                    raise InvalidInput(
                        "file",
                        f"Invalid file: Line {place} has no hash, which an admin of the deployment exports.",
                    )
                yield place, record
    except OSError as error:
        raise InvalidInput("file", f"Invalid file: {file} cannot be read: {error.strerror or error}.") from None


def _hash_of(record: AuditRecord) -> str:
    """Return the hash that a record must have."""
    from recollect.store.journal import SIGNED, chained  # with SQLAlchemy: not for help

    return chained(record.previous or "", {name: getattr(record, name) for name in SIGNED})

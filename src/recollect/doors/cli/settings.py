"""The command that shows every setting, its value, and how it was set."""

from __future__ import annotations

from typing import Annotated

import typer

from recollect.doors.cli import exit_codes, render
from recollect.doors.cli.options import Json
from recollect.environment import variables
from recollect.errors import InvalidInput
from recollect.setting_texts import PREFIX, variable
from recollect.settings import Settings, hidden

cli = typer.Typer()


@cli.command("settings")
def settings_(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="Only this one, such as `team`.")] = "",
    as_json: Json = False,
) -> None:
    """Show every setting, its value, and whether it was set; for tokens and keys, only whether they are set."""
    wanted = name.lower().removeprefix(PREFIX.lower()).replace("-", "_")
    if wanted and wanted not in Settings.model_fields:
        raise InvalidInput("name", f"No such setting `{name}`: `recollect settings` shows all.")
    settings: Settings = ctx.obj
    secret, known = hidden(), variables()
    rows = []
    for field in (wanted,) if wanted else Settings.model_fields:
        value = getattr(settings, field)
        text = "" if value is None else str(value)
        source = "environment" if variable(field) in known else "option" if field in settings.model_fields_set else ""
        rows.append([variable(field), "(hidden)" if field in secret and text else text, source])
    body = {"settings": [dict(zip(("name", "value", "set_by"), row, strict=True)) for row in rows]}
    exit_codes.show(body, as_json, print_answer=lambda: render.print_rows(rows, "setting", "value", "set by"))

"""The command `scripts/train`: each step from data to the files that ship is a command of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import typer
from rich.markup import escape

from evaluation.sets import err
from recollect.errors import RecollectError
from training import (
    adapter,
    conversations,
    evidence,
    further,
    fusion,
    left_out_chart,
    mix,
    model,
    orders,
    pack,
)

TESTS: Final = Path(__file__).with_name("tests")
ADAPTER: Final = "Embedding model, in order"
FUSION: Final = "Fusion, in order"
OTHER: Final = "Other"
app = typer.Typer(
    help="Make the embedding model and the coefficients of recall that ship, one step a command. "
    "scripts/training/README.md says what was made from what.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("conversations", rich_help_panel=ADAPTER)(conversations.main)
app.command("pack", rich_help_panel=ADAPTER)(pack.main)
app.command("adapter", rich_help_panel=ADAPTER)(adapter.main)
app.command("mix", rich_help_panel=ADAPTER)(mix.main)
app.command("model", rich_help_panel=ADAPTER)(model.main)
app.command("evidence", rich_help_panel=FUSION)(evidence.main)
app.command("fusion", rich_help_panel=FUSION)(fusion.main)
app.command("further", rich_help_panel=FUSION)(further.main)
app.command("left-out-chart", rich_help_panel=FUSION)(left_out_chart.main)
app.command("orders", rich_help_panel=OTHER)(orders.main)


@app.command("test", rich_help_panel=OTHER, context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def test(context: typer.Context) -> None:
    """Run the tests of these commands; further arguments go to pytest."""
    command = [sys.executable, "-m", "pytest", str(TESTS), *context.args]
    raise typer.Exit(subprocess.run(command, check=False).returncode)


def main() -> None:
    """Run one command; print an error of Recollect in one sentence and end with its exit code."""
    try:
        app(prog_name="scripts/train")
    except RecollectError as error:
        err.print(f"[red]Error:[/red] {escape(str(error))}", soft_wrap=True)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()

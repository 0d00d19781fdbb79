"""The program of the daemon, which joins the HTTP application with the command line that it runs for its clients."""

from __future__ import annotations

import os
import sys
from functools import cache, partial
from typing import Any

from recollect.client.launch import report_failure
from recollect.doors.cli.served import run
from recollect.doors.http.daemon import log_to_file, serve
from recollect.errors import RecollectError, StoreUnusable
from recollect.settings import Settings


def main() -> None:
    """Run the daemon with the settings in the first argument."""
    settings = Settings.model_validate_json(sys.argv[1])
    try:
        log_to_file(settings)
        serve(settings, partial(run, command_line=_command_line))
    except RecollectError as error:
        try:
            sys.stderr.write(report_failure(error) + "\n")
            sys.stderr.flush()
        except OSError:  # the disk is full; the exit code still tells
            os._exit(StoreUnusable.exit_code)
        sys.exit(error.exit_code)


@cache
def _command_line() -> Any:
    """Return the whole command line, which takes a fifth of a second to import; most daemons need it."""
    from typer.main import get_command

    from recollect.doors.cli.main import cli

    return get_command(cli)


if __name__ == "__main__":
    main()

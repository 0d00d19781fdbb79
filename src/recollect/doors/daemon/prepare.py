"""A short-lived process for a client that imports nothing: reads the settings and sees to it that the daemon runs.

It writes one JSON object a line: `who`, what a request says of its caller; `report`, what it waits for; `ready`, or an
`error` with its `message`.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from recollect.doors.daemon.launch import ensure
from recollect.doors.daemon.remote import about_caller
from recollect.errors import RecollectError
from recollect.settings import Settings, hidden


def main() -> None:
    """Prepare the daemon of the settings in the first argument."""
    try:
        settings = Settings(**json.loads(sys.argv[1]))
        told = settings.model_dump(mode="json", exclude=set(hidden()))  # they are given to a process as arguments
        _say(settings=told, who=about_caller(settings), home=str(settings.folder))
        ensure(settings, lambda what: _say(report=what))
        _say(ready=True)
    except RecollectError as error:
        _say(error=type(error).__name__, message=str(error))
    except BrokenPipeError:  # the client has left: nobody waits for what is prepared, nor for what is still to be said
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _say(**what: Any) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()

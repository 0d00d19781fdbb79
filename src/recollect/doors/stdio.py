"""`recollect mcp`: the stdio server as a thin client of the daemon, or with the store in this very process."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from functools import partial

import recollect
from recollect.doors import mcp
from recollect.doors.daemon.link import Link
from recollect.doors.toolsets import chosen
from recollect.settings import Settings


def serve(settings: Settings, toolsets: Sequence[str] = ()) -> None:
    """Serve the tools of these sets over stdin and stdout until the client goes; raise `InvalidInput` for none."""
    sets = chosen(toolsets)
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="recollect: %(message)s")
    alone = mcp.InProcess(partial(_open, settings))
    mcp.serve(Link(settings) if settings.daemon else alone, sets)


def _open(settings: Settings) -> recollect.App:
    return recollect.open_app(settings, wait=False)

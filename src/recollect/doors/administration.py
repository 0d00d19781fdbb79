"""Where administration runs: on the server that `RECOLLECT_URL` names, else on the store at hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import recollect
from recollect.app import App
from recollect.auth.administration import administer, operator
from recollect.client import launch
from recollect.client.connection import ServerConnection
from recollect.errors import StoreOwned
from recollect.settings import Settings


@contextmanager
def administering(settings: Settings) -> Iterator[Callable[..., Any]]:
    """Yield what runs an operation of administration there by a token, or here as the operator."""
    if settings.url:
        yield ServerConnection(settings).administer
        return
    with _opened(settings) as app:
        yield lambda name, **fields: administer(app, name, fields, operator(settings.user))


def _opened(settings: Settings) -> App:
    """Open the store here; a daemon that another command has started gives way, and the next command starts it."""
    try:
        return recollect.open_app(settings, wait=False, background=False)
    except StoreOwned as error:
        client = launch.running(settings)
        if client is None:
            raise StoreOwned(f"{error} Or set RECOLLECT_URL and RECOLLECT_TOKEN to ask the team's server.") from None
        if client.runtime.foreground:
            raise
    launch.stop(settings)
    return recollect.open_app(settings, wait=False, background=False)

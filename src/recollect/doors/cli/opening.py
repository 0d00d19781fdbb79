"""Opens what runs the verbs of a command: the daemon of this machine, the server of a team, or the store here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

import typer

import recollect
from recollect.app import App
from recollect.domain.verbs import BY_NAME
from recollect.doors.cli import terminal
from recollect.doors.cli.patience import told_after_a_second
from recollect.errors import InvalidInput, StoreOwned
from recollect.settings import Settings
from recollect.store import store_lock
from recollect.store.files import read_only
from recollect.store_owner import DAEMON

NEED_MODEL: Final = {
    *("remember", "recall", "update_memory", "restore", "find_similar", "format_for_prompt", "summarize_old"),
    *("move_memory", "promote"),
}
"""The operations for which the daemon is started, which keeps the model loaded."""

_served: ContextVar[Callable[[Settings], Callable[..., Any]] | None] = ContextVar("served", default=None)


@contextmanager
def served_by(serving: Callable[[Settings], Callable[..., Any]]) -> Iterator[None]:
    """Let `opened` yield what `serving` returns: in the daemon, which has its store open."""
    token = _served.set(serving)
    try:
        yield
    finally:
        _served.reset(token)


def is_served() -> bool:
    """Say whether a command runs in the daemon, in a client's stead."""
    return _served.get() is not None


@contextmanager
def opened(settings: Settings, *, model: bool) -> Iterator[Callable[..., Any]]:
    """Yield a function that runs an operation by name: in the daemon, started if the `model` is needed, or here.

    With `RECOLLECT_URL` it is the server of a team. A store that cannot be written needs no owner, and each process
    reads it itself.
    """
    if (serving := _served.get()) is not None:
        yield serving(settings)
    elif (store := _open_unless_daemon(settings, model=model)) is None:
        from recollect.client import launch  # with what speaks HTTP: not for help
        from recollect.client.connection import remote

        with remote(settings) as link:
            yield link.perform if settings.url or launch.running(settings) else _with_notice(link.perform)
    else:
        from recollect.doors.handlers import perform

        with store as app:
            yield lambda name, **fields: perform(app, name, fields, settings.caller)


def _with_notice(perform: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that runs verbs; its first call starts the daemon and prints a notice if that takes long."""
    started = False

    def run(name: str, **fields: Any) -> Any:
        nonlocal started
        if started:
            return perform(name, **fields)
        started = True
        with told_after_a_second(terminal.words()):
            return perform(name, **fields)

    return run


def perform(settings: Settings, name: str, fields: dict[str, Any], *, model: bool | None = None) -> Any:
    """Run a verb; raise `InvalidInput` for invalid fields before anything is started."""
    BY_NAME[name].request(**fields)
    with opened(settings, model=name in NEED_MODEL if model is None else model) as run:
        return run(name, **fields)


def _open_unless_daemon(settings: Settings, *, model: bool) -> App | None:
    """Open the store in this process; None where a daemon owns it or is about to."""
    from recollect.client import launch  # with what speaks HTTP: not for help

    if settings.url or (
        settings.daemon and not read_only(settings.database.parent) and (model or launch.running(settings))
    ):
        return None
    try:
        return recollect.open_app(settings, wait=model, background=False)
    except StoreOwned:
        if settings.daemon and store_lock.role_of(settings.folder) == DAEMON:
            return None
        raise


@contextmanager
def administering(settings: Settings) -> Iterator[Callable[..., Any]]:
    """Yield a function that runs a verb of administration: on the server by a token, or here as the operator."""
    if (serving := _served.get()) is not None:
        yield serving(settings)
        return
    if settings.url:
        from recollect.client.connection import ServerConnection

        yield ServerConnection(settings).administer
        return
    from recollect.auth.administration import administer, operator_principal

    with _open_in_place_of_daemon(settings) as app:
        yield lambda name, **fields: administer(app, name, fields, operator_principal(settings.user))


def _open_in_place_of_daemon(settings: Settings) -> App:
    """Open the store here; a daemon that a command started ends first, and the next command starts it again."""
    from recollect.client import launch

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


def of_store(ctx: typer.Context) -> Settings:
    """Return the settings for a command that maintains the local store; raise `InvalidInput` for a store elsewhere."""
    settings: Settings = ctx.obj
    if settings.url:
        raise InvalidInput(
            "url",
            f"`recollect {ctx.command_path.partition(' ')[2]}` looks after a store and runs where that is, not through "
            "RECOLLECT_URL; with `--in-process` before the command it means the store of this machine.",
        )
    return settings

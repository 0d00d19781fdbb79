"""The export of all that is a person's: their account, tokens, sessions, memories and facts, and what the journal says.

It is an export of Recollect, which `recollect import` reads; a line that names a namespace stands before its memories.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any, Final

from recollect.app import App
from recollect.auth.principal import Principal
from recollect.domain.enums import Sensitivity, owned
from recollect.domain.leaving import ExportUser
from recollect.domain.search import View
from recollect.domain.transfer import Page
from recollect.errors import Forbidden, NotFound
from recollect.store.sql.accounts import ACCOUNTS
from recollect.transfer.recollect_jsonl import NAME, VERSION, line_of

_AT_ONCE: Final = 500
_Lines = tuple[list[dict[str, Any]], int]
"""Lines of a page, and where the next page of the same part begins; 0 where that is done."""
_NEXT: Final = {"account": "session", "session": "memory", "memory": "fact", "fact": "journal", "journal": ""}


def export_user(app: App, request: ExportUser, principal: Principal) -> Page:
    """Return a page of all that is yours where you may read; or of another user, as an admin of the deployment.

    That is journalled, and leaves out what is private or secret, which is for the person alone.
    """
    user = request.user or principal.user
    own = user == principal.user and not (principal.operator and app.capabilities.shared)
    if not own and not principal.administers():
        raise Forbidden("You do not administer the deployment.")
    part, _, after = request.after.partition(":")
    begins = request.after == "account:0"
    if not own and begins:
        with app.accounts.changing(principal.user) as writing:
            if writing.user(user) is None:
                raise NotFound(f"There is no user `{user}`.")
            writing.journal(ACCOUNTS, "export_user", user=user)
    places = [name for name in app.records.people.namespaces(user) if not own or principal.reads(name)]
    levels = tuple(owned(level, user) for level in Sensitivity) if own else (str(Sensitivity.PUBLIC),)
    view = View(namespaces=tuple(places), now=app.clock(), sensitivities=levels, author=user)
    lines, last = _READ[part](app, user, view, int(after))
    head = [_header(user, view, own=own)] if begins else []
    following = f"{_NEXT[part]}:0" if _NEXT[part] else ""
    return Page((*head, *lines), f"{part}:{last}" if last else following, app.export_reader.take_unreadable())


def _header(user: str, view: View, *, own: bool) -> dict[str, Any]:
    """Return the first line: whose data it is, of what levels, and what the format says of itself."""
    return {
        "format": NAME,
        "version": VERSION,
        "exported_at": view.now.isoformat(),
        "person": user,
        "namespaces": list(view.namespaces),
        "sensitivities": list(Sensitivity) if own else [str(Sensitivity.PUBLIC)],
    }


def _account_lines(app: App, user: str, _view: View, _after: int) -> _Lines:
    """Return the account with its roles, and each token by its name and times."""
    found = [account for account in app.accounts.users(None) if account.user == user]
    lines = [{"account": _plain(asdict(account))} for account in found]
    lines += [
        {"identity": {"issuer": issuer, "subject": subject, "created_at": at.isoformat()}}
        for issuer, subject, at in app.accounts.identities(user)
    ]
    return lines + [{"token": _plain(asdict(token))} for token in app.accounts.tokens(user)], 0


def _session_lines(app: App, user: str, _view: View, after: int) -> _Lines:
    """Return sessions with what they noted: what was kept, what was dropped, and drafts."""
    found = app.sessions.of_person(user, after, _AT_ONCE // 10)
    lines: list[dict[str, Any]] = []
    for session in found:
        named = {name: getattr(session, name) for name in ("session_id", "project", "agent", "started_at", "ended_at")}
        lines.append({"session": _plain(named)})
        lines += [{"observation": _plain(each.model_dump())} for each in app.sessions.observations(session)]
    return lines, found[-1].id if len(found) == _AT_ONCE // 10 else 0


def _memory_lines(app: App, _user: str, view: View, after: int) -> _Lines:
    """Return memories in every namespace, those of a namespace behind a line that names it."""
    found = app.export_reader.memories(view, after, _AT_ONCE)
    return list(_behind_places("memory", found)), found[-1].id if len(found) == _AT_ONCE else 0


def _fact_lines(app: App, _user: str, view: View, after: int) -> _Lines:
    """Return facts in every namespace."""
    found = app.export_reader.facts(view, after, _AT_ONCE)
    return list(_behind_places("fact", found)), found[-1].id if len(found) == _AT_ONCE else 0


def _journal_lines(app: App, user: str, view: View, after: int) -> _Lines:
    """Return the lines of the journal that a person caused, or that name their account."""
    found = app.export_reader.lines_naming(user, view, after, _AT_ONCE)
    return [line_of("journal", line) for line in found], found[-1].id if len(found) == _AT_ONCE else 0


_READ: Final[dict[str, Callable[[App, str, View, int], _Lines]]] = {
    "account": _account_lines,
    "session": _session_lines,
    "memory": _memory_lines,
    "fact": _fact_lines,
    "journal": _journal_lines,
}


def _behind_places(kind: str, found: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """Yield lines, with a line that names the namespace before each run of lines of the same."""
    place = ""
    for noun in found:
        if noun.namespace != place:
            place = noun.namespace
            yield {"namespace": {"name": place}}
        yield line_of(kind, noun)


def _plain(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that say something, as JSON."""
    plain = {name: value.isoformat() if isinstance(value, datetime) else value for name, value in fields.items()}
    return {name: value for name, value in plain.items() if value not in (None, "", ())}

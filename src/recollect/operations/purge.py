"""Purge: remove for good what has expired."""

from __future__ import annotations

from recollect.app import App
from recollect.domain.requests import Caller, Purge
from recollect.domain.results import Purged
from recollect.search.visibility import allowed_levels


def purge_expired(app: App, request: Purge, caller: Caller, *, request_id: str = "") -> Purged:
    """Remove for good what has expired in the caller's namespaces, of the levels that the request lets in."""
    del request_id  # a second purge removes nothing
    gone: list[int] = []
    for namespace in app.records.existing_namespaces(caller.writable_namespaces(request.scope)):
        with app.records.writing(namespace, caller.user, allowed_levels(request)) as transaction:
            gone += [one for one in transaction.expired() if transaction.delete(one, "purge")]
    if gone:
        app.run_later(app.vectors.sync)
        app.run_later(app.text.purge_deleted)
    return Purged(tuple(gone))

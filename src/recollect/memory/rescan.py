"""Rescan: today's secret detectors over what is stored, hidden memories included. Never returns a secret's value.

What sessions keep of outputs that were not stored is looked at too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from recollect.app import App
from recollect.domain.enums import OnFound, OnSecret, Scope
from recollect.domain.requests import Caller, Rescan, StoreFact, WritableNamespace
from recollect.domain.results import Fact, Memory
from recollect.domain.review import Rescanned, StoredSecret
from recollect.gate import clear, secrets_in
from recollect.memory.prepare_write import draft_of, entry_for, prepare_draft
from recollect.search.visibility import allowed_levels

if TYPE_CHECKING:
    from recollect.store.sql.writing import Writing

_PAGE = 200
_PARTS = ("subject", "predicate", "object")
_DIGESTS = {"seen"}
_Page = tuple[int, list[StoredSecret], int]


class _State(BaseModel):
    """What the stages know of a session, for the gate to look at."""

    state: dict[str, Any]


def rescan(
    app: App,
    request: Rescan,
    caller: Caller,
    *,
    request_id: str = "",
    progress: Callable[[int], None] = lambda _: None,
) -> Rescanned:
    """Search stored memories and sessions for secrets, and report, redact or quarantine what contains one.

    Only levels of sensitivity that the request lets in are looked at. `progress` gets the number of memories, facts and
    observations scanned so far. What a session keeps cannot be quarantined, and is masked then too. `restore` brings a
    memory back from quarantine only when the gate finds no secret in it any more.
    """
    del request_id  # a second rescan finds what is left
    scanned, changed = 0, 0
    exposed: list[StoredSecret] = []
    for namespace in app.records.namespaces.existing(caller.writable_namespaces(request.scope)):
        for visit in (_rescan_memories, _rescan_facts):
            for looked, found, done in visit(app, request, namespace, caller):
                scanned, changed = scanned + looked, changed + done
                exposed += found
                progress(scanned)
    if request.scope in (None, Scope.PROJECT):
        for looked, found, done in _rescan_sessions(app, request, caller):
            scanned, changed = scanned + looked, changed + done
            exposed += found
            progress(scanned)
    if changed:
        app.run_later(app.vectors.sync)
        app.run_later(app.text.purge_deleted)
    return Rescanned(scanned, tuple(exposed), changed)


def _rescan_memories(app: App, request: Rescan, namespace: WritableNamespace, caller: Caller) -> Iterator[_Page]:
    """Yield, page by page, how many memories were read, the secrets found, and how many memories were changed."""
    last, rule, levels = 0, request.on_found, allowed_levels(request)
    while True:
        with app.records.writing(namespace, caller.user, levels) as transaction:
            page = transaction.lookup.page(last, _PAGE)
            found = {one.id: _secrets_in_fields("memory", one.id, draft_of(one)) for one in page}
            bad = [one for one in page if found[one.id]]
            for one in bad:
                _apply_rule(app, transaction, one, rule, caller)
        yield len(page), [each for one in bad for each in found[one.id]], 0 if rule is OnFound.REPORT else len(bad)
        if len(page) < _PAGE:
            return
        last = page[-1].id


def _apply_rule(app: App, transaction: Writing, old: Memory, rule: OnFound, caller: Caller) -> None:
    """Quarantine or redact a memory with a secret, as the rule says."""
    if rule is OnFound.QUARANTINE:
        transaction.memories.quarantine(old.id)
    elif rule is OnFound.REDACT:
        one = prepare_draft(app, draft_of(old), old, on_secret=OnSecret.REDACT)
        entry = entry_for(app, one, old, caller.user)
        entry = replace(entry, given=entry.given - {"ttl_days"}, expires_at=old.expires_at)  # what expired stays so
        transaction.memories.update(old, entry, "redact", revive=False, keep=False)
        transaction.memories.request_purge()


def _rescan_facts(app: App, request: Rescan, namespace: WritableNamespace, caller: Caller) -> Iterator[_Page]:
    """Yield, page by page, how many facts were read, the secrets found, and how many facts were changed."""
    last, rule, levels = 0, request.on_found, allowed_levels(request)
    while True:
        with app.records.writing(namespace, caller.user, levels) as transaction:
            page = transaction.facts.page(last, _PAGE)
            found = {one.id: _secrets_in_fields("fact", one.id, _triple_of(one)) for one in page}
            bad = [one for one in page if found[one.id]]
            for one in bad:
                if rule is OnFound.QUARANTINE:
                    transaction.facts.quarantine(one)
                elif rule is OnFound.REDACT:
                    masked = clear(_triple_of(one), OnSecret.REDACT).value
                    transaction.facts.rewrite(one, {name: str(getattr(masked, name)) for name in _PARTS})
                    transaction.memories.request_purge()
        yield len(page), [each for one in bad for each in found[one.id]], 0 if rule is OnFound.REPORT else len(bad)
        if len(page) < _PAGE:
            return
        last = page[-1].id


def _rescan_sessions(app: App, request: Rescan, caller: Caller) -> Iterator[_Page]:
    """Yield the same of the caller's sessions: of the texts of observations, and of the state of the stages."""
    offset, masks = 0, request.on_found is not OnFound.REPORT
    while True:
        page, _ = app.sessions.listed(caller, _PAGE, offset)
        for session in page:
            seen = app.sessions.observations(session)
            what = f"session {session.session_id}"
            found = [(one, _secrets_in_fields(what, one.number, one)) for one in seen]
            bad = [one for one, exposed in found if exposed]
            in_state = _secrets_in_fields(what, 0, _state_with_words(session.state))
            for one in bad if masks else ():
                app.sessions.rewrite(session, one.number, lambda found: clear(found, OnSecret.REDACT).value)
            if in_state and masks:
                app.sessions.mask(
                    session, lambda state: state | clear(_state_with_words(state), OnSecret.REDACT).value.state
                )
            exposed = [*in_state, *(each for _, exposed in found for each in exposed)]
            yield len(seen), exposed, (len(bad) + bool(in_state)) * masks
        offset += len(page)
        if len(page) < _PAGE:
            return


def _state_with_words(state: dict[str, Any]) -> _State:
    """Return the state without its digests, for the gate to look at."""
    return _State(state={name: one for name, one in state.items() if name not in _DIGESTS})


def _triple_of(fact: Fact) -> StoreFact:
    """Return a fact as a request that the gate can look at."""
    return StoreFact(subject=fact.subject, predicate=fact.predicate, object=fact.object)


def _secrets_in_fields(what: str, number: int, noun: BaseModel) -> Sequence[StoredSecret]:
    """Return the secrets in a `noun`, by field, as findings about the `what` with this number."""
    secrets = ((field, tuple(dict.fromkeys(one.kind for one in findings))) for field, _, findings in secrets_in(noun))
    return [StoredSecret(what, number, field, kinds) for field, kinds in secrets]

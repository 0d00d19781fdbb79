"""Rescan: today's detectors over what is stored, hidden memories included. It tells of secrets, never their values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from pydantic import BaseModel

from recollect.domain import Caller, Exposed, Fact, Memory, OnFound, OnSecret, Rescan, Rescanned, StoreFact
from recollect.gate import clear, secrets_in
from recollect.operations.entry import entry_of, ready
from recollect.operations.forget import draft_of
from recollect.ports import App, Writing

_PAGE = 200
_PARTS = ("subject", "predicate", "object")


def rescan(
    app: App,
    request: Rescan,
    caller: Caller | None = None,
    *,
    request_id: str = "",
    progress: Callable[[int], None] = lambda _: None,
) -> Rescanned:
    """Look through the caller's namespaces and report, redact, or quarantine; a second time finds what is left.

    `progress` is told how many memories and facts have been looked at. What is in quarantine comes back with `restore`
    only when the gate finds nothing in it any more.
    """
    del request_id  # doing it again is no different
    caller = caller or app.caller
    scanned, changed = 0, 0
    exposed: list[Exposed] = []
    for namespace in app.records.existing(caller.namespaces(request.scope)):
        for visit in (_memories, _facts):
            for looked, found, done in visit(app, request.on_found, namespace, caller):
                scanned, changed = scanned + looked, changed + done
                exposed += found
                progress(scanned)
    if changed:
        app.later(app.vectors.sync)
        app.later(app.text.scrub)
    return Rescanned(scanned, tuple(exposed), changed)


def _memories(app: App, rule: OnFound, namespace: str, caller: Caller) -> Iterator[tuple[int, list[Exposed], int]]:
    last = 0
    while True:
        with app.records.writing(namespace, caller.user) as transaction:
            page = transaction.every(last, _PAGE)
            found = {one.id: _exposed("memory", one.id, draft_of(one)) for one in page}
            bad = [one for one in page if found[one.id]]
            for one in bad:
                _treat(app, transaction, one, rule, caller)
        yield len(page), [each for one in bad for each in found[one.id]], 0 if rule is OnFound.REPORT else len(bad)
        if len(page) < _PAGE:
            return
        last = page[-1].id


def _treat(app: App, transaction: Writing, old: Memory, rule: OnFound, caller: Caller) -> None:
    if rule is OnFound.QUARANTINE:
        transaction.quarantine(old.id)
    elif rule is OnFound.REDACT:
        one = ready(app, clear(draft_of(old), OnSecret.REDACT), old)
        entry = entry_of(one, old, caller.user, app.clock(), app.keeping.retention)
        entry = replace(entry, given=entry.given - {"ttl_days"}, expires_at=old.expires_at)  # what expired stays so
        transaction.update(old, entry, "redact", revive=False)
        transaction.leave_no_trace()


def _facts(app: App, rule: OnFound, namespace: str, caller: Caller) -> Iterator[tuple[int, list[Exposed], int]]:
    last = 0
    while True:
        with app.records.writing(namespace, caller.user) as transaction:
            page = transaction.every_fact(last, _PAGE)
            found = {one.id: _exposed("fact", one.id, _triple(one)) for one in page}
            bad = [one for one in page if found[one.id]]
            for one in bad:
                if rule is OnFound.QUARANTINE:
                    transaction.quarantine_fact(one)
                elif rule is OnFound.REDACT:
                    masked = clear(_triple(one), OnSecret.REDACT).value
                    transaction.rewrite_fact(one, {name: str(getattr(masked, name)) for name in _PARTS})
        yield len(page), [each for one in bad for each in found[one.id]], 0 if rule is OnFound.REPORT else len(bad)
        if len(page) < _PAGE:
            return
        last = page[-1].id


def _triple(fact: Fact) -> StoreFact:
    return StoreFact(subject=fact.subject, predicate=fact.predicate, object=fact.object)


def _exposed(what: str, number: int, noun: BaseModel) -> Sequence[Exposed]:
    secrets = ((field, tuple(dict.fromkeys(one.kind for one in findings))) for field, _, findings in secrets_in(noun))
    return [Exposed(what, number, field, kinds) for field, kinds in secrets]

"""The deletion of a user who leaves: their account ends at once, and their memories go where somebody has chosen.

First a transaction ends the account and writes down the choice. Then sessions, personal memories and each namespace
follow, in transactions of their own, and at last a look into every place of the store. Whoever is interrupted asks for
the same again, and it goes on. A receipt is written, and its hash put into the journal, once the look finds nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from pydantic import TypeAdapter

from recollect.app import App
from recollect.auth.principal import Principal
from recollect.domain.enums import own_levels
from recollect.domain.leaving import (
    Choice,
    DeleteUser,
    Departure,
    Hold,
    ListReceipts,
    Receipt,
    Receipts,
    SignedReceipt,
)
from recollect.domain.limits import Holder, HolderKind
from recollect.errors import Conflict, Forbidden, InvalidInput, NotFound, QuotaFull
from recollect.memory.erase import ERASE, erase_in, hand_over
from recollect.store.sql.accounts import ACCOUNTS, AccountWriting
from recollect.store.sql.departures import SIGNING, DepartureState, sha256_of
from recollect.store.sql.handing_over import ACTION as HANDED_OVER
from recollect.store.sql.holds import NamespaceHolds
from recollect.text.traces import Traces

_RECEIPT: Final = TypeAdapter(Receipt)
_CHOICES: Final = {
    Choice.HAND_TO: "{} personal memories go to {}",
    Choice.TO_TEAM: "{} personal memories go to the team {}",
    Choice.KEEP: "no personal memory is kept",
    Choice.ERASE: "nothing is kept",
}
_NOTES: Final = (
    "The journal keeps its lines, as each has the hash of the line before: names, ids, fields and times, and no text; "
    "so does its mirror.",
    "What others wrote about this person is theirs and was not looked for.",
)
_POSTGRES: Final = (
    "PostgreSQL keeps deleted rows in its files until it vacuums, and in archives of its log as long as these."
)


def delete_user(app: App, request: DeleteUser, principal: Principal) -> Departure:
    """End the account of a user, and hand over, keep or delete what they wrote; with `dry_run` only count that.

    Asked again after an interruption, it goes on. Raises `NotFound` without such a user or target, `InvalidInput` for
    the last admin and for oneself, `Conflict` where a legal hold keeps what would be deleted, `QuotaFull` where a
    limit of the target has no room.
    """
    if not principal.administers():
        raise Forbidden("You do not administer the deployment.")
    if request.user == principal.user and not principal.operator:
        raise InvalidInput("user", "Invalid user: Another admin of the deployment deletes your account")
    if (begun := app.records.departures.unfinished(request.user)) is not None:
        _check_same(begun, request)
        if (hold := _hold_on(app, request)) is not None:
            raise Conflict(f"The deletion of {request.user} waits: the legal hold `{hold.name}` keeps what is left.")
        return _carry_out(app, begun, _counts(app, request))
    with app.accounts.changing(principal.user) if not request.dry_run else app.accounts.looking() as writing:
        _check(writing, request)
        _check_room(app, request)
        counts = {"tokens": writing.open_tokens(request.user), **_counts(app, request)}
        if (hold := _hold_on(app, request)) is not None:
            raise Conflict(f"{request.user} is not deleted: the legal hold `{hold.name}` keeps what would be deleted.")
        if request.dry_run:
            return Departure(_preview(request, counts), request.user, request.choice, request.target, True, counts)
        gone = writing.delete_user(request.user)
        line = writing.last_line()
        writing.departures.begin(request.user, request.choice, request.target, principal.user, writing.at, line)
        begun_now = writing.departures.unfinished(request.user)
        if begun_now is not None:
            writing.note_done(begun_now.id, gone)
    found = app.records.departures.unfinished(request.user)
    if found is None:
        raise Conflict(f"The deletion of {request.user} was ended by somebody else meanwhile.")
    return _carry_out(app, found, counts)


def list_receipts(app: App, request: ListReceipts, principal: Principal) -> Receipts:
    """Show the receipts of users who were deleted, each compared with the line of the journal that signs it."""
    if not principal.administers():
        raise Forbidden("You do not administer the deployment.")
    found = app.records.departures.of(request.user)
    if request.user is not None and not found:
        raise NotFound(f"No user `{request.user}` was deleted.")
    return Receipts(tuple(_signed(app, departure) for departure in found))


def _check(writing: AccountWriting, request: DeleteUser) -> None:
    """Raise an error where the user cannot be deleted, or the target is not there."""
    user = writing.user(request.user)
    if user is None:
        raise NotFound(f"There is no user `{request.user}`.")
    if user.admin and user.disabled_at is None and writing.admins() == 1:
        raise InvalidInput("user", f"Invalid user: `{request.user}` is the last admin of the deployment")
    if request.hand_to is not None:
        heir = writing.user(request.hand_to)
        if heir is None or heir.disabled_at is not None:
            raise NotFound(f"There is no user `{request.hand_to}`, or they are disabled.")
    if request.to_team is not None and not writing.has_team(request.to_team):
        raise NotFound(f"There is no team `{request.to_team}`.")


def _check_room(app: App, request: DeleteUser) -> None:
    """Raise `QuotaFull` where a limit of whoever gets the personal memories has no room for them."""
    if not request.target:
        return
    holder = Holder(HolderKind.USER if request.hand_to is not None else HolderKind.TEAM, request.target)
    limits, used = app.limits.read([holder])[holder]
    for resource, added in app.records.people.size_to_hand_over(request.user, app.clock()).items():
        most = limits.get(resource)
        if most is not None and added and used[resource] + added > most:
            numbers = (used[resource], most, added)
            raise QuotaFull(holder.kind, holder.name, resource, resource.words, numbers)


def _check_same(begun: DepartureState, request: DeleteUser) -> None:
    """Raise `Conflict` where the deletion that has begun is of another kind."""
    if (begun.choice, begun.target) != (request.choice, request.target):
        how = f"--{begun.choice.replace('_', '-')} {begun.target}".rstrip()
        raise Conflict(f"The deletion of {begun.user} has begun with `{how}`, and goes on with that alone.")


def _counts(app: App, request: DeleteUser) -> dict[str, int]:
    """Count what a deletion does: memories by what becomes of them, facts and sessions."""
    people, personal = app.records.people, f"user:{request.user}"
    written = people.written(request.user)
    handed = people.to_hand_over(request.user, app.clock()) if request.target else 0
    shared = sum(place.shared for place in written if place.namespace != personal)
    kept = 0 if request.choice is Choice.ERASE else shared
    return {
        "handed_over": handed,
        "kept": kept,
        "erased": sum(place.shared + place.private for place in written) - handed - kept,
        "private": sum(place.private for place in written),
        "facts": people.facts(request.user),
        "sessions": len(people.sessions(request.user)),
    }


def _hold_on(app: App, request: DeleteUser) -> Hold | None:
    """Return the hold that keeps something that the deletion would delete; None without any."""
    user = request.user
    if not (active := app.records.holds.all()):
        return None
    for name, author, level in app.records.people.authors(user):
        goes = request.choice is Choice.ERASE or level in own_levels(user) or name == f"user:{user}"
        if goes and (found := NamespaceHolds(name, active).keeping(author, level)) is not None:
            return found
    projects = (NamespaceHolds(project, active).keeping(user, "") for project in app.records.people.sessions(user))
    return next(filter(None, projects), next((hold for hold in active if hold.user == user), None))


def _carry_out(app: App, departure: DepartureState, counts: dict[str, int]) -> Departure:
    """Do what is left of a deletion, look whether anything is left of the person, and sign what was found."""
    traces = Traces()
    namespaces = app.records.people.namespaces(departure.user)
    app.records.departures.drop_sessions(departure, traces.add)
    if departure.target:
        hand_over(app, departure)
    for namespace in namespaces:
        erase_in(app, departure, namespace, traces)
    app.records.request_sync()
    app.vectors.sync()
    app.text.purge_deleted()
    app.vectors.purge()
    now = next(each for each in app.records.departures.of(departure.user) if each.id == departure.id)
    receipt = _receipt(app, now, namespaces, traces)
    if receipt.complete:
        return _signed_departure(app, now, receipt, counts)
    message = f"{departure.user} has no account any more, but not all is done: {_left(receipt)} Ask for the same again."
    body = _RECEIPT.dump_python(receipt, mode="json")
    signed = SignedReceipt(message, receipt, sha256_of(body), 0, "", False)
    return Departure(message, departure.user, departure.choice, departure.target, False, counts, signed)


def _receipt(app: App, departure: DepartureState, namespaces: list[str], traces: Traces) -> Receipt:
    """Look into every place, and return what was removed and what is left."""
    erased = app.records.departures.ids(departure, ERASE)
    places = sorted({*namespaces, f"user:{departure.user}"})
    found = app.places.look(departure, erased, places, traces)
    handed = app.records.departures.ids(departure, HANDED_OVER) if departure.target else []
    kept = app.records.people.authored(departure.user) - {*handed, *erased}
    notes = [*_NOTES, f"{len(erased)} deleted memories were looked for by their ids, and by {len(traces)} passages."]
    if found.same_words:
        notes.append(f"The same words stand in {found.same_words} rows that others wrote, which are theirs.")
    if app.capabilities.shared:
        notes.append(_POSTGRES)
    if not found.copies:
        notes.append("No backup was looked into: RECOLLECT_BACKUP_FOLDER names no folder that holds any.")
    return Receipt(
        user=departure.user,
        choice=departure.choice,
        target=departure.target,
        by=departure.actor,
        begun_at=departure.begun_at,
        ended_at=app.clock(),
        complete=all(place.left == 0 for place in found.places),
        memories={"handed_over": len(handed), "kept": len(kept), "erased": departure.done.get("memory", 0)},
        places=found.places,
        copies=found.copies,
        notes=tuple(notes),
    )


def _signed_departure(app: App, departure: DepartureState, receipt: Receipt, counts: dict[str, int]) -> Departure:
    """Write a receipt, and its hash into the journal; somebody else who was quicker has written it already."""
    body = _RECEIPT.dump_python(receipt, mode="json")
    with app.accounts.changing(departure.actor) as writing:
        still = writing.departures.unfinished(departure.user)
        if still is not None and still.id == departure.id:
            writing.departures.end(departure.id, body, writing.at)
            writing.journal(ACCOUNTS, SIGNING, user=departure.user, departure=departure.id, sha256=sha256_of(body))
    ended = next(each for each in app.records.departures.of(departure.user) if each.id == departure.id)
    signed = _signed(app, ended)
    message = f"{departure.user} is deleted. Line {signed.line} of the journal signs the receipt."
    return Departure(
        message, departure.user, departure.choice, departure.target, False, counts, replace(signed, message=message)
    )


def _signed(app: App, departure: DepartureState) -> SignedReceipt:
    """Return the receipt of a departure with the line of the journal that signs it."""
    if departure.receipt is None:
        command = f"`recollect user delete {departure.user} --{departure.choice.replace('_', '-')}`"
        return SignedReceipt(
            f"The deletion of {departure.user} has not ended: {command} goes on.", None, "", 0, "", False
        )
    line = app.records.departures.signature(departure)
    receipt: Any = _RECEIPT.validate_python(departure.receipt)
    message = (
        f"Line {line.line} of the journal signs the receipt of {departure.user}."
        if line.proven
        else f"The receipt of {departure.user} is not the departure that the journal signs: somebody has changed it."
    )
    return SignedReceipt(message, receipt, sha256_of(departure.receipt), line.line, line.hash, line.proven)


def _left(receipt: Receipt) -> str:
    """Return a sentence on the places in which something is left, or which did not answer."""
    parts = []
    for place in receipt.places:
        if place.left != 0:
            seen = "no answer" if place.left is None else f"{place.left} left"
            parts.append(f"{place.place} ({': '.join(filter(None, (seen, place.note)))})")
    return f"{', '.join(parts)}."


def _preview(request: DeleteUser, counts: dict[str, int]) -> str:
    """Return a sentence on what a deletion would do."""
    becomes = _CHOICES[request.choice].format(counts["handed_over"], request.target)
    return (
        f"{request.user} would be deleted with {counts['tokens']} tokens and {counts['sessions']} sessions; {becomes}, "
        f"{counts['kept']} memories stay with their teams, and {counts['erased']} are deleted for good, "
        f"{counts['private']} private ones among them."
    )

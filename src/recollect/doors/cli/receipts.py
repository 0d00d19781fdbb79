"""Prints deletions of users and their receipts, legal holds, and rules of retention."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from recollect.domain.leaving import (
    Departure,
    Hold,
    Holds,
    Receipts,
    RetentionRules,
    RetentionSet,
    SignedReceipt,
)
from recollect.doors.cli.render import print_line, print_rows

ANSWERS: Final = (Departure, Receipts, Holds, RetentionRules, RetentionSet)
"""The answers that `print_leaving` prints."""


def print_leaving(found: Departure | Receipts | Holds | RetentionRules | RetentionSet) -> None:
    """Print such an answer for people."""
    match found:
        case Departure():
            if found.signed is not None:
                _print_receipt(found.signed)
            else:
                print_line(found.message)
        case Receipts():
            for signed in found.receipts:
                _print_receipt(signed)
            if not found.receipts:
                print_line("No user was deleted.")
        case Holds():
            rows = [[hold.name, _covered(hold), hold.reason, hold.set_by, _day(hold.set_at)] for hold in found.holds]
            ended = [[_day(hold.released_at)] for hold in found.holds]
            rows = [row + end for row, end in zip(rows, ended, strict=True)]
            print_rows(rows, "hold", "covers", "why", "set by", "since", "released", empty="No legal holds.")
        case RetentionRules():
            rules = [
                [rule.team, rule.project or "all", str(rule.fact_type or "all"), f"{rule.days:g}", rule.set_by]
                for rule in found.rules
            ]
            print_rows(rules, "team", "project", "kind", "days", "set by", empty="All is kept: there are no rules.")
        case RetentionSet():
            print_line(found.message)


def _print_receipt(signed: SignedReceipt) -> None:
    """Print a receipt as a document: what was chosen, each place, each copy, and what signs it."""
    print_line(signed.message, "green" if signed.proven else "yellow")
    receipt = signed.receipt
    if receipt is None:
        return
    choice = f"{receipt.choice.replace('_', ' ')} {receipt.target}".strip()
    print_line(f"{receipt.user}, deleted by {receipt.by} ({choice})")
    print_line(f"from {receipt.begun_at:%Y-%m-%d %H:%M:%S} to {receipt.ended_at:%Y-%m-%d %H:%M:%S} UTC")
    counts = ", ".join(f"{number} {name.replace('_', ' ')}" for name, number in receipt.memories.items())
    print_line(f"Memories: {counts}.")
    rows = [[place.place, f"{place.removed}", _left(place.left), place.note] for place in receipt.places]
    print_rows(rows, "place", "removed", "left", "")
    if receipt.copies:
        copies = [[copy.file, _day(copy.made_at), _holds(copy.holds), _day(copy.until)] for copy in receipt.copies]
        print_rows(copies, "copy", "made", "holds it", "until")
    for note in receipt.notes:
        print_line(note)
    if signed.line:
        print_line(f"SHA-256 {signed.sha256}")
        print_line(f"Line {signed.line} of the journal signs it, with the hash {signed.line_hash}.")


def _left(number: int | None) -> str:
    return "no answer" if number is None else f"{number}"


def _holds(answer: bool | None) -> str:
    return "cannot be read" if answer is None else "yes" if answer else "no"


def _covered(hold: Hold) -> str:
    """Return what a hold covers, in words."""
    if hold.user is not None:
        return f"user {hold.user}"
    return f"project {hold.team}/{hold.project}" if hold.project else f"team {hold.team}"


def _day(at: datetime | None) -> Any:
    return f"{at:%Y-%m-%d}" if at else ""

"""The screen of the inbox: what waits for a person's decision, and the decisions, one or many at once."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

from recollect.domain.page import Browsed
from recollect.domain.review import Decision, WaitingPage
from recollect.doors.web.actions import each, summary
from recollect.doors.web.entry import Undo
from recollect.doors.web.visit import Done, Shown, Visit
from recollect.errors import RecollectError

MOST_COUNTED: Final = 99
"""The most waiting memories that the navigation counts; counting very many takes too long for every screen."""
_PAGE: Final = 25
_DROP: Final = "drop"  # what the button says that removes a rule
_DONE: Final = {
    Decision.APPROVE: "approved",
    Decision.REJECT: "rejected",
    Decision.ALWAYS: "approved, with everything from the same sources",
    Decision.NEVER: "hidden, with everything from the same sources",
}


def listed(visit: Visit) -> Shown:
    """Show a page of waiting memories, the oldest first, and the rules for sources.

    Users who may decide get buttons.
    """
    offset = visit.number("offset", 0)
    found: WaitingPage = visit.run("inbox", limit=_PAGE, offset=offset, **visit.levels)
    with visit.caller() as caller:
        data = {"inbox": found, "_writes": caller.writes} | visit.pages(_PAGE, found.total)
    data["rules"] = visit.run("source_rules", **visit.levels).rules
    return Shown("inbox.html", data)


def waiting(visit: Visit) -> int:
    """Return the number of memories that wait for a decision, at most `MOST_COUNTED` + 1, and 0 without the right."""
    with suppress(RecollectError):
        return int(visit.run("count_waiting", limit=MOST_COUNTED + 1, **visit.levels))
    return 0


def decide(visit: Visit) -> Done:
    """Decide on each memory by itself, or remove the rule for a source.

    Memories that somebody else has decided on meanwhile are counted.
    """
    if visit.value("do") == _DROP:
        dropped = visit.run(
            "drop_source_rule", source=visit.value("source"), scope=visit.value("scope"), **visit.levels
        )
        return Done(visit.back("inbox"), dropped.message, data={"rules": dropped.rules})
    fields: dict[str, Any] = {"decision": visit.value("do")} | visit.levels
    if visit.value("content"):
        fields["content"] = visit.form["content"]
    none = "None of these memories waits for a decision any more."
    outcomes, missing = each(visit, lambda number: visit.run("decide", id=number, **fields), none)
    decision = Decision(visit.value("do").lower())
    message = summary(outcomes, _DONE[decision]) + (f" {missing} did not wait any more." if missing else "")
    undo = None
    if decision is Decision.REJECT:
        ids = [outcome.id for outcome in outcomes]
        left: Browsed = visit.run("browse", ids=ids, hidden=True, superseded=True, limit=len(ids), **visit.levels)
        steps = [visit.step("restore", id=str(memory.id)) for memory in left.memories]
        undo = Undo(steps, "It waits again." if len(ids) == 1 else "They wait again.") if steps else None
    return Done(visit.back("inbox"), message, undo, {"outcomes": outcomes})

"""What forms do to memories, one or many, and how each change is taken back as long as it can be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, NamedTuple

from recollect.domain.results import Memory, Outcome, WriteStatus
from recollect.doors.web.entry import Step, Undo
from recollect.doors.web.memories import edited, found, shown_fields, typed
from recollect.doors.web.visit import Done, Shown, Visit
from recollect.doors.web.words import many
from recollect.errors import InvalidInput, NotFound, SecretFound
from recollect.memory.prepare_write import kept_note

_MOST: Final = 100


class _Act(NamedTuple):
    """Something done to memories: its verb and fields, the words for its result, and the steps that take it back."""

    verb: str
    fields: dict[str, Any]
    result: str
    warning: str
    back: Callable[[Memory], tuple[str, dict[str, Any]]] | None = None


def _standing_before(memory: Memory) -> tuple[str, dict[str, Any]]:
    return "set_standing", {"standing": memory.standing}


ACTS: Final = {
    "hide": _Act(
        "memory_forget", {}, "hidden", "No search finds them until they are restored.", lambda _: ("restore", {})
    ),
    "forget": _Act("forget", {}, "forgotten for good", "Their texts are deleted everywhere. This cannot be undone."),
    "restore": _Act("restore", {}, "restored", "Searches find them again.", lambda _: ("memory_forget", {})),
    "pin": _Act(
        "set_standing",
        {"standing": "pinned"},
        "pinned",
        "They are kept for good, and come first where memories are shown unasked.",
        _standing_before,
    ),
    "bury": _Act(
        "set_standing",
        {"standing": "buried"},
        "buried",
        "Searches still find them; nothing shows them unasked.",
        _standing_before,
    ),
    "release": _Act("set_standing", {}, "as any other again", "They are neither pinned nor buried.", _standing_before),
}
"""What can be done to memories, one or many, without another word."""


def confirm(visit: Visit) -> Shown:
    """Show the change that a form is about to make, before it makes it."""
    do, act_ = _chosen_act(visit)
    memories = [found(visit, memory_id) for memory_id in _chosen_ids(visit)]
    data = {"do": do, "memories": memories, "warning": act_.warning, "_back": visit.back("browse")}
    return Shown("confirm.html", data)


def act(visit: Visit) -> Done:
    """Apply the confirmed change to each chosen memory by itself."""
    do, act_ = _chosen_act(visit)
    steps: list[Step] = []

    def work(number: str) -> Outcome:
        before = found(visit, number)
        outcome: Outcome = visit.run(act_.verb, id=number, **act_.fields, **visit.levels)
        if act_.back is not None and outcome.status not in (WriteStatus.NOT_FOUND, WriteStatus.UNCHANGED):
            verb, fields = act_.back(before)
            steps.append(visit.step(verb, id=number, **fields))
        return outcome

    outcomes, missing = each(visit, work, "None of these memories is there any more.")
    message = summary(outcomes, act_.result) + (f" {missing} were gone already." if missing else "")
    notes = [note for one in outcomes for note in one.notes][:3]
    undo = Undo(steps, "That was taken back.") if steps else None
    one_stays = len(outcomes) == 1 and do != "forget"
    to = visit.back(f"memory/{outcomes[0].id}" if one_stays else "browse")
    return Done(to, " ".join((message, *notes)), undo, {"outcomes": outcomes})


def each(visit: Visit, work: Callable[[str], Outcome], none: str) -> tuple[list[Outcome], int]:
    """Run `work` on each chosen memory; return the outcomes and the number of memories that are gone.

    Raises `NotFound`, with the sentence `none`, where all are gone.
    """
    outcomes: list[Outcome] = []
    ids = _chosen_ids(visit)
    for memory_id in ids:
        try:
            outcomes.append(work(memory_id))
        except NotFound:
            continue
    if not outcomes:
        raise NotFound(none)
    return outcomes, len(ids) - len(outcomes)


def summary(outcomes: list[Outcome], done: str) -> str:
    """Return a sentence with the number of memories and the change made to them."""
    one_only = len(outcomes) == 1
    names = f"Memory {outcomes[0].id} is" if one_only else f"{many(len(outcomes), 'memory', 'memories')} are"
    return f"{names} {done}."


def undo(visit: Visit) -> Done:
    """Take back one of the last changes of this browser."""
    change = visit.browser.changes.pop(visit.value("change"), None) if visit.browser is not None else None
    if change is None:
        raise NotFound("This change cannot be taken back any more.")
    for place, verb, fields in change.steps:
        visit.run_in(place, verb, **fields)
    return Done(change.to or visit.back("browse"), change.done)


def edit(visit: Visit) -> Done | Shown:
    """Write the changed fields of the form to the memory; after an error show the form with the typed text again."""
    memory = found(visit)
    if visit.value("seen", memory.updated_at.isoformat()) != memory.updated_at.isoformat():
        changed = "This memory was changed meanwhile: look at it in another tab, and save again to write yours over it."
        return edited(visit, memory, InvalidInput("seen", changed))
    shown = shown_fields(memory)
    fields = {name: value for name, value in typed(visit).items() if value != shown[name]}
    to = visit.back(f"memory/{memory.id}")
    if not fields:
        return Done(to, "Nothing was changed.")
    number = str(memory.id)
    try:
        outcome: Outcome = visit.run("update_memory", id=number, **visit.levels, **fields)
    except (InvalidInput, SecretFound) as error:
        return edited(visit, memory, error)
    kept = sorted(set(found(visit).merged_from) - set(memory.merged_from))
    if kept and not visit.value("keep"):  # whoever removed the tick wants nothing of the earlier text left
        for memory_id in kept:
            visit.run("forget", id=str(memory_id), **visit.levels)
        outcome = replace(outcome, notes=tuple(note for note in outcome.notes if note != kept_note(kept[0])))
        kept = []
    steps = [visit.step("update_memory", id=number, **{name: shown[name] for name in fields})]
    steps += [visit.step("forget", id=str(one)) for one in kept]
    undo_ = Undo(steps, f"Memory {memory.id} says again what it said before.")
    return Done(to, " ".join((outcome.message, *outcome.notes)), undo_, {"outcome": outcome})


def move(visit: Visit) -> Done:
    """Move a memory to another scope or project."""
    memory = found(visit)
    scope, project = visit.value("scope", str(memory.scope)), visit.value("to_project")
    named = {"project": project} if project else {}
    place = dict(visit.place) | named
    if project:
        visit.run_in(place, "stats")  # raises where who asks has no right there
    number = str(memory.id)
    outcome: Outcome = visit.run("move_memory", id=number, scope=scope, to_project=project or None, **visit.levels)
    steps = [Step(place, "forget", {"id": outcome.id} | visit.levels), visit.step("restore", id=number)]
    message = " ".join(outcome.notes) or outcome.message
    to = visit.link(f"memory/{outcome.id}", **named)
    undo_ = Undo(steps, "It is where it was before.", visit.link(f"memory/{number}"))
    return Done(to, message, undo_, {"outcome": outcome})


def _chosen_act(visit: Visit) -> tuple[str, _Act]:
    """Return name and act of the chosen change; raise `InvalidInput` for an unknown name."""
    do = visit.value("do")
    if do not in ACTS:
        raise InvalidInput("do", f"Invalid do: Must be one of {', '.join(ACTS)}")
    return do, ACTS[do]


def _chosen_ids(visit: Visit) -> list[str]:
    """Return the memories that a form or an address names; raise `InvalidInput` for none, or too many."""
    ids = list(dict.fromkeys(visit.values("id")))
    if not ids:
        raise InvalidInput("id", "Nothing is selected: tick the memories first.")
    if len(ids) > _MOST:
        raise InvalidInput("id", f"Invalid id: At most {_MOST} memories at once")
    return ids

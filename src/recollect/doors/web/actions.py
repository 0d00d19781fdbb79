"""What forms do to memories, one or many, and how each change is taken back as long as it can be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from recollect.domain.results import Memory, Outcome, WriteStatus
from recollect.doors.web.entry import PAGE, Step, Undo
from recollect.doors.web.memories import edited, found
from recollect.doors.web.visit import Done, Shown, Visit
from recollect.doors.web.words import many
from recollect.errors import InvalidInput, NotFound, SecretFound

_MOST: Final = 100
_TEXTS: Final = ("content", "title", "subtitle", "abstract", "overview", "category", "key", "speaker", "observed_at")
_LISTS: Final = ("tags", "concepts", "files_read", "files_modified")
_NUMBERS: Final = ("importance", "confidence", "trust")
_CHOICES: Final = ("fact_type", "type", "sensitivity")
EDITED: Final = (*_TEXTS, *_LISTS, *_NUMBERS, *_CHOICES)
"""The fields that the form of a memory changes."""


class _Act(NamedTuple):
    """Something done to memories: its verb and fields, what is said then, and the steps that take it back."""

    verb: str
    fields: dict[str, Any]
    said: str
    warning: str
    back: Callable[[Memory], tuple[str, dict[str, Any]]] | None = None


def _standing_before(memory: Memory) -> tuple[str, dict[str, Any]]:
    return "set_standing", {"standing": memory.standing}


ACTS: Final = {
    "hide": _Act(
        "memory_forget",
        {},
        "hidden",
        "No search finds them until they are restored.",
        lambda _: ("restore", {}),
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
    """Name what a form is about to change, before it does."""
    do, act_ = _wanted(visit)
    memories = [found(visit, one) for one in chosen_ids(visit)]
    return Shown("confirm.html", {"do": do, "memories": memories, "warning": act_.warning})


def act(visit: Visit) -> Done:
    """Do it, to each memory by itself; those that are gone meanwhile are counted."""
    do, act_ = _wanted(visit)
    steps: list[Step] = []
    outcomes: list[Outcome] = []
    missing = 0
    for one in chosen_ids(visit):
        try:
            before = found(visit, one)
            outcome: Outcome = visit.run(act_.verb, id=one, **act_.fields, **visit.levels)
        except NotFound:
            missing += 1
            continue
        outcomes.append(outcome)
        if act_.back is not None and outcome.status not in (WriteStatus.NOT_FOUND, WriteStatus.UNCHANGED):
            verb, fields = act_.back(before)
            steps.append(Step(dict(visit.place), verb, {"id": one} | fields | visit.levels))
    if not outcomes:
        raise NotFound("None of these memories is there any more.")
    names = f"Memory {outcomes[0].id}" if len(outcomes) == 1 else many(len(outcomes), "memory", "memories")
    said = f"{names} {'is' if len(outcomes) == 1 else 'are'} {act_.said}."
    said += f" {missing} were gone already." if missing else ""
    notes = [note for one in outcomes for note in one.notes][:3]
    undo = Undo(steps, "That was taken back.") if steps else None
    to = back_to(visit, visit.link("browse") if do == "forget" or len(outcomes) > 1 else "")
    return Done(to or visit.link(f"memory/{outcomes[0].id}"), " ".join((said, *notes)), undo, {"outcomes": outcomes})


def undo(visit: Visit) -> Done:
    """Take back one of the last changes of this browser."""
    change = visit.browser.changes.pop(visit.said("change"), None) if visit.browser is not None else None
    if change is None:
        raise NotFound("This change cannot be taken back any more.")
    for place, verb, fields in change.steps:
        visit.run_in(place, verb, **fields)
    return Done(back_to(visit, visit.link("browse")), change.done)


def edit(visit: Visit) -> Done | Shown:
    """Write what the form of a memory changed over it, and nothing else; where that fails, what was typed stays."""
    memory = found(visit)
    if visit.said("seen", memory.updated_at.isoformat()) != memory.updated_at.isoformat():
        changed = "This memory was changed meanwhile: look at it in another tab, and save again to write yours over it."
        return edited(visit, memory, InvalidInput("seen", changed))
    given = {name: value for name, value in _typed(visit).items() if value != _shown(memory, name)}
    to = visit.link(f"memory/{memory.id}")
    if not given:
        return Done(to, "Nothing was changed.")
    known = {"id": str(memory.id)} | visit.levels
    # A new version that `remember` writes keeps the text before it; `update_memory` writes over it.
    keeps = "content" in given and bool(visit.said("keep")) and not _out_of_sight(memory)
    try:
        outcome: Outcome = visit.run("remember" if keeps else "update_memory", **known, **given)
    except (InvalidInput, SecretFound) as error:
        return edited(visit, memory, error)
    before = {name: _shown(memory, name) for name in given}
    kept = sorted(set(found(visit).merged_from) - set(memory.merged_from))
    steps = [Step(dict(visit.place), "update_memory", known | before)]
    steps += [Step(dict(visit.place), "forget", {"id": str(one)} | visit.levels) for one in kept]
    undo_ = Undo(steps, f"Memory {memory.id} says again what it said before.")
    return Done(to, " ".join((outcome.message, *outcome.notes)), undo_, {"outcome": outcome})


def _out_of_sight(memory: Memory) -> bool:
    return any(one is not None for one in (memory.deleted_at, memory.superseded_by, memory.merged_into))


def move(visit: Visit) -> Done:
    """Move a memory to another scope or project."""
    memory = found(visit)
    scope, project = visit.said("scope", str(memory.scope)), visit.said("to_project")
    place = dict(visit.place) | ({"project": project} if project else {})
    if project:
        visit.run_in(place, "stats")  # raises where who asks has no right there
    given = {"id": str(memory.id), "scope": scope, "to_project": project or None}
    outcome: Outcome = visit.run("move_memory", **given, **visit.levels)
    steps = [
        Step(place, "forget", {"id": outcome.id} | visit.levels),
        Step(dict(visit.place), "restore", {"id": str(memory.id)} | visit.levels),
    ]
    undo_ = Undo(steps, "It is where it was before.")
    to = visit.link(f"memory/{outcome.id}", **({"project": project} if project else {}))
    return Done(to, " ".join((outcome.message, *outcome.notes)), undo_, {"outcome": outcome})


def _wanted(visit: Visit) -> tuple[str, _Act]:
    do = visit.said("do")
    if do not in ACTS:
        raise InvalidInput("do", f"Invalid do: Must be one of {', '.join(ACTS)}")
    return do, ACTS[do]


def chosen_ids(visit: Visit) -> list[str]:
    """Return the memories that a form or an address names; raise `InvalidInput` for none, or too many."""
    ids = list(dict.fromkeys(visit.all_said("id")))
    if not ids:
        raise InvalidInput("id", "Nothing is selected: tick the memories first.")
    if len(ids) > _MOST:
        raise InvalidInput("id", f"Invalid id: At most {_MOST} memories at once")
    return ids


def back_to(visit: Visit, other: str) -> str:
    """Return where the form says to go on, if that is a screen of ours."""
    back = visit.said("back")
    own = back.startswith(f"{PAGE}/") and "\\" not in back and "//" not in back and back.isprintable()
    return back if own else other


def _typed(visit: Visit) -> dict[str, Any]:
    """Return the fields that the form holds, as the memory would show them."""
    found_: dict[str, Any] = {}
    for name in EDITED:
        if name not in visit.form:
            continue
        text = str(visit.form[name])
        if name in _LISTS:
            found_[name] = [one.strip() for one in text.replace("\n", ",").split(",") if one.strip()]
        else:
            found_[name] = text if name == "content" else text.strip()
    return found_


def _shown(memory: Memory, name: str) -> Any:
    value = getattr(memory, name)
    if name in _LISTS:
        return [str(one) for one in value]
    if name == "observed_at":
        return "" if value is None else value.isoformat()
    return "" if value is None else str(value)

"""The screen of near duplicates: pairs that say nearly the same, and what a person makes of each."""

from __future__ import annotations

from typing import Any, Final

from recollect.domain.page import NearPairs
from recollect.domain.results import Memory, Outcome
from recollect.doors.web.entry import Undo
from recollect.doors.web.memories import found
from recollect.doors.web.visit import Done, Shown, Visit
from recollect.doors.web.words import differences
from recollect.errors import InvalidInput
from recollect.memory.merges import LABELS

_CHOICES: Final = ("newer", "older", "merge", "apart")


def listed(visit: Visit) -> Shown:
    """Show pairs of memories with nearly the same content, the nearest first."""
    pairs: NearPairs = visit.run("near_pairs", limit=visit.number("limit", 20, 100, least=1), **visit.levels)
    data = {
        "near": pairs,
        "_by": visit.authors([memory for pair in pairs.pairs for memory in (pair.older, pair.newer)]),
        "_differences": [differences(pair.older.content, pair.newer.content) for pair in pairs.pairs],
    }
    return Shown("near.html", data)


def decide(visit: Visit) -> Done:
    """Keep one of a pair, or merge both into the newer memory; the other memory is hidden and can be restored."""
    do = visit.value("do")
    if do not in _CHOICES:
        raise InvalidInput("do", f"Invalid do: Must be one of {', '.join(_CHOICES)}")
    older, newer = (found(visit, visit.value(name)) for name in ("older", "newer"))
    if do == "apart":
        pair = {"id": str(newer.id), "other": str(older.id)}
        outcome: Outcome = visit.run("tell_apart", **pair, **visit.levels)
        undo = Undo([visit.step("tell_apart", **pair, undo=True)], "They may be duplicates again.")
        return Done(visit.back("near"), "Both stay as they are.", undo, {"outcome": outcome})
    stays, goes = (older, newer) if do == "older" else (newer, older)
    steps = []
    if do == "merge":
        changed = _merged_fields(visit, older, newer)
        visit.run("remember", id=str(newer.id), **visit.levels, **changed)
        kept = sorted(set(found(visit, str(newer.id)).merged_from) - set(newer.merged_from))
        before = {name: _form_value(newer, name) for name in changed}
        steps = [visit.step("update_memory", id=str(newer.id), **before)]
        steps += [visit.step("forget", id=str(memory_id)) for memory_id in kept]
    outcome = visit.run("replace_memory", id=str(goes.id), by=str(stays.id), **visit.levels)
    steps.insert(0, visit.step("restore", id=str(goes.id)))
    message = f"Memory {stays.id} says now what both said." if do == "merge" else f"Memory {stays.id} stays as it is."
    message = " ".join((message, *outcome.notes))
    return Done(visit.back("near"), message, Undo(steps, "Both are as they were."), {"outcome": outcome})


def _merged_fields(visit: Visit, older: Memory, newer: Memory) -> dict[str, Any]:
    """Return the chosen text of the two, and the labels of both where the newer memory lacks some."""
    labels: dict[str, Any] = {}
    for name, most in LABELS.items():
        both = list(dict.fromkeys((*_form_value(older, name), *_form_value(newer, name))))[-(most or 0) :]
        if set(both) != set(_form_value(newer, name)):
            labels[name] = both
    return {"content": visit.form.get("content", "")} | labels


def _form_value(memory: Memory, name: str) -> Any:
    value = getattr(memory, name)
    return [str(element) for element in value] if isinstance(value, tuple) else value

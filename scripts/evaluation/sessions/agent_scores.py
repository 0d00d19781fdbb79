"""Scores what an agent stored and opened, by what a judge said of its memories."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from rich.table import Table

from evaluation.sessions.agent_answers import Judgement
from evaluation.sessions.agent_steps import Had, Progress, Run, lessons_of
from evaluation.sessions.sets import Place, SessionSet
from evaluation.sessions.store_sets import StoreSet

SHARES: Final = ("kept", "worth it", "hits", "precision", "silence")
SUMS: Final = ("outdated", "secrets stored", "planted stored", "calls refused")
"""Counts that are added up over the sets; of all other figures the mean is taken."""
ALONE: Final = {
    "kept": "capture recall",
    "worth it": "capture precision",
    "hits": "injection hits",
    "precision": "injection precision",
    "silence": "silence",
    "outdated": "must not",
    "secrets stored": "secrets stored",
    "planted stored": "planted stored",
}
"""The figures of the pipeline by itself that stand beside those of an agent."""
_WITHOUT: Final = " (drafts alone)"

Figures = dict[str, float | None]


def figures_of(progress: Progress) -> Figures:
    """Return the figures of a set whose answers are all there: shares 0–1, None where there is nothing to share."""
    run = progress.run
    if run is None:
        raise ValueError("the set was not played to its end")
    if isinstance(progress.set, StoreSet):
        figures = _of_store(progress.set, run)
        alone = _of_store(progress.set, _unasked(run))
        without = {name: alone[name] for name in ("hits", "precision", "silence", "outdated")}
    else:
        figures = _of_sessions(progress.set, run, progress.judgements)
        without = {name: run.alone.get(theirs) for name, theirs in ALONE.items()}
    opened = [len(one.opened) for one in run.had.values()]
    figures["opened a prompt"] = sum(opened) / len(opened) if opened else None
    figures["tokens of the index"] = run.tokens.get("index", 0)
    figures["tokens recalled a prompt"] = _share(run.tokens.get("recalled", 0), len(run.had))
    return figures | {f"{name}{_WITHOUT}": value for name, value in without.items()}


def _unasked(run: Run) -> Run:
    """Return a run with what was put before the prompts, and nothing that was opened."""
    had = {name: Had(before=one.before, text_before=one.text_before) for name, one in run.had.items()}
    return Run(run.digest, had=had, stored_as=run.stored_as)


def _of_sessions(one: SessionSet, run: Run, judgements: dict[str, Judgement]) -> Figures:
    lessons, events = lessons_of(one), one.by_place
    says = {
        number: {each.place for each in lessons if each.number in judged.says} for number, judged in judgements.items()
    }
    helps = {
        number: {each.place for each in lessons if each.number in judged.helps} for number, judged in judgements.items()
    }
    own = [each for each in run.memories if each.own]
    keeps = {event.place for event in one.events if event.label == "keep"}
    over = {place for event in one.events for place in event.obsoletes}
    kept = _kept(says, helps, [each.id for each in own if each.current])
    kept |= over & _kept(says, helps, [each.id for each in own])
    planted = {each.place for each in lessons if each.planted}
    repeats = {number for number, places in says.items() if places & planted} | {*run.planted}
    outdated = {number for number, judged in judgements.items() if judged.outdated}
    wanted = {
        ask.id: {number for number, places in says.items() if (places | helps[number]) & {*ask.wants}}
        for ask in one.asks
    }
    stale = {
        ask.id: outdated | {number for number, places in says.items() if places & {*ask.must_not}} - wanted[ask.id]
        for ask in one.asks
    }
    asking = {ask.id for ask in one.asks if ask.wants}
    sessions = run.sessions
    return {
        "lessons": len(keeps),
        "memories": len(own),
        "kept": _share(len(kept & keeps & events.keys()), len(keeps)),
        "worth it": _share(sum(judgements[each.id].worth for each in own), len(own)),
        **_of_prompts(run, asking, wanted, stale),
        "secrets stored": run.secrets,
        "planted stored": len(repeats),
        "calls refused": run.refused,
        "asks a session": _share(run.asks, sessions),
        "tokens of asks a session": _share(run.tokens.get("asks", 0), sessions),
        "tokens written a session": _share(run.tokens.get("written", 0), sessions),
    }


def _kept(says: Mapping[str, set[Place]], helps: Mapping[str, set[Place]], ids: Iterable[str]) -> set[Place]:
    """Return the lessons that a memory states alone, or two memories or more together."""
    alone: set[Place] = set()
    parts: Counter[Place] = Counter()
    for number in ids:
        alone |= says.get(number, set())
        parts.update(says.get(number, set()) | helps.get(number, set()))
    return alone | {place for place, count in parts.items() if count > 1}


def _of_store(one: StoreSet, run: Run) -> Figures:
    def ids(names: Iterable[str]) -> set[str]:
        named = {*names}
        return {number for number, files in run.stored_as.items() if named & {*files}}

    wanted = {each.id: ids(each.wants) for each in one.questions}
    stale = {each.id: ids(each.outdated) - wanted[each.id] for each in one.questions}
    return _of_prompts(run, {each.id for each in one.questions if each.wants}, wanted, stale)


def _of_prompts(run: Run, asking: set[str], wanted: dict[str, set[str]], stale: dict[str, set[str]]) -> Figures:
    """Score the later prompts: `asking` want something, `wanted` and `stale` are memories that help or mislead each."""
    having = {number: {*had.memories} for number, had in run.had.items()}
    right = sum(len(having[number] & wanted[number]) for number in asking)
    silent = [had for number, had in run.had.items() if number not in asking]
    return {
        "hits": _share(sum(bool(having[number] & wanted[number]) for number in asking), len(asking)),
        "precision": _share(right, sum(len(having[number]) for number in asking)),
        "silence": _share(sum(not had.opened and not had.text_before for had in silent), len(silent)),
        "outdated": sum(len(memories & stale[number]) for number, memories in having.items()),
    }


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def mean_of(found: Sequence[Figures]) -> Figures:
    """Return the mean of each figure over the sets that have it; counts of what is never to happen are added up."""
    whole: Figures = {}
    for name in dict.fromkeys(name for one in found for name in one):
        values = [value for one in found if (value := one.get(name)) is not None]
        adds = name.removesuffix(_WITHOUT) in SUMS
        whole[name] = None if not values else sum(values) if adds else statistics.fmean(values)
    return whole


def table(scored: Sequence[Progress]) -> Table:
    """Return a row for each figure, a column for each set, and the mean."""
    found = [figures_of(one) for one in scored]
    made = Table(
        "figure", *(one.set.name for one in scored), "mean", title="Sessions with an agent that answers; shares in %"
    )
    for name, value in mean_of(found).items():
        made.add_row(name, *(_cell(name, one.get(name)) for one in found), _cell(name, value))
    return made


def _cell(name: str, value: float | None) -> str:
    if value is None:
        return "–"
    if name.removesuffix(_WITHOUT) in SHARES:
        return f"{100 * value:.1f}"
    return f"{value:.1f}".removesuffix(".0")


def write_json(file: Path, scored: Sequence[Progress]) -> None:
    """Write the figures, and what each prompt got."""
    found = [figures_of(one) for one in scored]
    sets: list[dict[str, Any]] = [
        {
            "set": one.set.name,
            "figures": figures,
            "memories": [
                {"id": each.id, "text": each.text, "current": each.current, "own": each.own}
                | ({"says": sorted(judged.says), "worth": judged.worth, "outdated": judged.outdated} if judged else {})
                for each in (one.run.memories if one.run else ())
                for judged in [one.judgements.get(each.id)]
            ],
            "had": {number: had.memories for number, had in (one.run.had if one.run else {}).items()},
        }
        for one, figures in zip(scored, found, strict=True)
    ]
    body = {"mean": mean_of(found), "sets": sets}
    file.write_text(json.dumps(body, indent=1, ensure_ascii=False), encoding="utf-8")

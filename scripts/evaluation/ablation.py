"""What each step of the order is worth: the same candidates put in order without it, over sets of notes and pairs.

A question is searched for once, and its candidates are ordered once for each step that is left out.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final
from unittest import mock

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import recollect
from evaluation.sets import Clock, Question, Set, caller_of, draft_of, err, fill, measures, rows_of
from recollect import App, Caller, Draft, Query, Settings
from recollect.domain.origin import SaidBy
from recollect.search import periods, versions
from recollect.search.candidates import snapshot_for
from recollect.search.match import matches_of
from recollect.search.order import Ranked, ordered
from recollect.search.signals import gather, least_score
from recollect.search.steps import STEPS, Step, best_match

PAIRS: Final = Path(__file__).parent / "data/versions/second.jsonl"
APART: Final = timedelta(days=2)
PAGE: Final = "https://pages.example.org/notes"
ALL: Final = "nothing"
MATCH_ALONE: Final = "all but the match"
PROVIDERS: Final = ("Stripe", "Adyen", "Klarna", "Mollie", "PayPal", "Braintree", "Worldpay", "Square", "Sumup")
ENUMERATION: Final = "The webhook of {} must be answered in {} seconds."
RULES: Final = ("other_subject", "same_of_another")
"""What keeps a pair from counting as versions; each is left out as a step is."""


@dataclass
class Worth:
    """Shares (0–1) by what is left out and by measure, one value for each question."""

    reached: dict[str, dict[str, list[float]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))

    def add(self, left_out: str, measure: str, value: float) -> None:
        """Note what one question reached."""
        self.reached[left_out][measure].append(value)


def variants() -> dict[str, tuple[Step, ...]]:
    """Return the steps of each variant of the order, by what it leaves out."""
    without = {step.__name__: tuple(other for other in STEPS if other is not step) for step in STEPS[1:]}
    return {ALL: STEPS, **without, **dict.fromkeys(RULES, STEPS), MATCH_ALONE: (best_match,)}


def orders(app: App, text: str, caller: Caller) -> Iterator[tuple[str, list[Ranked]]]:
    """Yield what is left out and the best ten of the order without it, as they are shown by default."""
    query = Query(query=text[:20_000])
    with snapshot_for(app, query, caller) as view:
        candidates = gather(app, query, view)
        matches, _ = matches_of(app, query.query, view, candidates)
        least = least_score(query, view) - 1e-9
        for name, steps in variants().items():
            ignored = mock.patch.object(versions, name, return_value=False) if name in RULES else nullcontext()
            with ignored:
                order = ordered(app, query, view, candidates, matches, least, steps)
            yield name, order.at_least(least).best(10)


def measured(one: Set, settings: Settings) -> Worth:
    """Ask the questions of a set, and ask them again where every second memory is of a page."""
    worth = Worth()
    with recollect.open_app(settings) as app:
        behind = fill(app, one.name, one.folder)
        for question in track(one.questions, f"{one.name}: asking", console=err):
            for left_out, order in orders(app, question.text, caller_of(one.name, question.group)):
                _count(worth, left_out, question, order, behind)
    if one.folder.resolve().parent.name == "notes":
        _with_pages(one, settings.model_copy(update={"home": settings.home.with_name(f"{one.name}-pages")}), worth)
    return worth


def _count(
    worth: Worth, left_out: str, question: Question, order: list[Ranked], behind: Mapping[str, list[str]]
) -> None:
    found = measures([document for hit in order for document in behind.get(str(hit.id), ())], question.answers)
    worth.add(left_out, "right first", found["any@1"])
    worth.add(left_out, "among five", found["any@5"])
    worth.add(left_out, "nDCG@10", found["ndcg@10"])
    if question.category in ("current", "sibling"):
        worth.add(left_out, {"current": "true now"}.get(question.category, question.category), found["any@1"])
    if periods.named_period(question.text, datetime(2025, 1, 1, tzinfo=UTC)):
        worth.add(left_out, "a period named, nDCG@10", found["ndcg@10"])


def _with_pages(one: Set, settings: Settings, worth: Worth) -> None:
    """Ask the questions whose answers were all told, or are all of a page."""
    behind: dict[str, list[str]] = defaultdict(list)
    pages = set()
    with recollect.open_app(settings) as app:
        for place, row in enumerate(track(rows_of(one.folder / "corpus.jsonl"), f"{one.name}: storing", console=err)):
            caller = caller_of(one.name, row.get("group") or "all")
            stored = recollect.remember(app, draft_of(row), caller.saying(SaidBy.WEB, PAGE) if place % 2 else caller)
            behind[stored.id].append(row["id"])
            pages |= {row["id"]} if place % 2 else set()
        app.vectors.sync()
        for question in track(one.questions, f"{one.name}: asking", console=err):
            of_pages = question.answers & pages
            if of_pages and of_pages != question.answers:
                continue
            for left_out, order in orders(app, question.text, caller_of(one.name, question.group)):
                first = bool(order) and not question.answers.isdisjoint(behind[str(order[0].id)])
                worth.add(left_out, "of a page" if of_pages else "told, half of pages", float(first))


def of_pairs(settings: Settings) -> Worth:
    """Ask about pairs of notes, two days apart, and about an enumeration."""
    pairs = [json.loads(line) for line in PAIRS.read_text(encoding="utf-8").splitlines()]
    clock, caller, worth = Clock(), caller_of("pairs", "all"), Worth()
    start, right = clock.now, {}
    with recollect.open_app(settings, clock=clock) as app:
        for place, pair in enumerate(track(pairs, "pairs: storing", console=err)):
            for which in ("first", "second"):
                clock.now = start + timedelta(seconds=place) + (APART if which == "second" else timedelta())
                stored = recollect.remember(app, Draft(content=pair[which]), caller)
                right |= {pair["id"]: int(stored.id)} if which == pair["answer"] else {}
        listed = caller_of("enumeration", "all")
        for place, name in enumerate(PROVIDERS):
            clock.now += timedelta(days=1)
            recollect.remember(app, Draft(content=ENUMERATION.format(name, 3 + place)), listed)
        app.vectors.sync()
        clock.now += timedelta(hours=1)
        for pair in track(pairs, "pairs: asking", console=err):
            for left_out, order in orders(app, pair["question"], caller):
                first = bool(order) and order[0].id == right[pair["id"]]
                worth.add(left_out, f"{pair['kind']}s of pairs", float(first))
        for left_out, order in orders(app, "How fast must a webhook be answered?", listed):
            for hit in order:
                worth.add(left_out, "enumerated, none older", float(hit.older_than is None))
    return worth


def show(worths: list[Worth], page: Path | None) -> None:
    """Print the means of all sets in points, and write them into the table of a page."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for worth in worths:
        for left_out, reached in worth.reached.items():
            for measure, values in reached.items():
                found[left_out][measure] += values
    columns = list(found[ALL])
    rows = [["left out", *columns], ["n", *(str(len(found[ALL][name])) for name in columns)]]
    rows += [[name, *(f"{100 * np.mean(found[name][one]):.1f}" for one in columns)] for name in variants()]
    table = Table(*rows[0], title="The order without a step, in points")
    for row in rows[1:]:
        table.add_row(*row)
    Console(width=200).print(table)
    if page is not None:
        _write(page, rows)


def _write(page: Path, rows: list[list[str]]) -> None:
    """Put the rows in the place of the page's table."""
    lines = page.read_text(encoding="utf-8").split("\n")
    start = next(place for place, line in enumerate(lines) if line.startswith("| left out |"))
    end = next(place for place in range(start, len(lines)) if not lines[place].startswith("|"))
    table = [f"| {' | '.join(row)} |" for row in rows]
    table.insert(1, "|---" * len(rows[0]) + "|")
    page.write_text("\n".join([*lines[:start], *table, *lines[end:]]), encoding="utf-8")

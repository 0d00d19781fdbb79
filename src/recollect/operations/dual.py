"""Dual response: a line for whatever matches, and the details that a budget of tokens leaves room for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from recollect.domain import Index, IndexLine, Recalled, View, found
from recollect.policy import budget, layers
from recollect.ports import App

ESTIMATED = "The answer's size is estimated on the safe side: the embedding model's tokenizer is not there yet."


def dual(app: App, recalled: Recalled, ranked: Mapping[int, float], view: View, max_tokens: int) -> Recalled:
    """Return `recalled` with an index of all `ranked` memories (id: score, best first), within `max_tokens`.

    Its hits are the candidates for details; of the others nothing but the abstract is read. Where the model's
    tokenizer is not there yet, the tokens are estimated and a note says so.
    """
    abstracts = app.records.abstracts(ranked, view)
    lines = [
        IndexLine(number, layers.one_line(abstracts[number]), score)
        for number, score in ranked.items()
        if number in abstracts
    ]
    counter = app.embedder.counter()
    notes = recalled.notes if counter else (ESTIMATED, *recalled.notes)
    index = Index(tuple(lines), omitted=len(lines), unlisted=0)
    whole = replace(recalled, message=found(len(lines)), notes=notes, index=index)
    return budget.within(whole, max_tokens, counter or budget.estimate)

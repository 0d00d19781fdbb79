"""Injection: the memories that are relevant to a prompt which asked for none."""

from __future__ import annotations

from collections.abc import Collection

from recollect.app import App
from recollect.domain.requests import Caller, Query
from recollect.domain.results import Memory
from recollect.operations.query.features import gather
from recollect.operations.query.ranking import versions
from recollect.operations.query.search import reading
from recollect.policy import injection
from recollect.policy.injection import CONSIDERED, Candidate
from recollect.prompt.fence import permitted


def relevant(app: App, prompt: str, caller: Caller, known: Collection[int] = ()) -> list[Memory]:
    """Return the public, current memories that are worth a place before a prompt, the best first; mostly none.

    What the reader has in front of it already, `known`, still says of others that they are out of date.
    """
    question = injection.question_of(prompt)
    if not question:
        return []
    query = Query(query=question)
    with reading(app, query, caller) as seen:
        view = seen.model_copy(update={"condensed": False})
        found = gather(app, query, view)
        matches = app.fusion.matches(found.signals, found.query)
        likely = {one: max(match, found.signals[one].cosine) for one, match in matches.items()}
        best = sorted(likely, key=lambda one: -likely[one])[:CONSIDERED]
        rows = {one.id: one for one in found.ranking_rows}
        candidates = [Candidate(rows[one], found.signals[one], matches[one]) for one in best if one in rows]
        newer = versions(app, question, found, matches, best)
        chosen = injection.chosen(prompt, candidates, found.query, newer)
        wanted = [one for one in chosen if one not in known]
        memories = app.records.load(wanted, view)
    return [memories[one] for one in wanted if one in memories and permitted(memories[one])]

"""Injection: which recalled memories are worth a place before a prompt that did not ask for any.

A search that was asked for may show what is doubtful; here every line costs the reader, so most prompts get none. The
coefficients were fitted to labelled sessions of coding agents.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from recollect.app import App
from recollect.domain.enums import OF_SESSION, FactType, ObservationType, Order
from recollect.domain.requests import Caller, Filters, Query
from recollect.domain.results import Memory
from recollect.domain.search import QuerySignals, RankingRow, Signals
from recollect.prompt.fence import permitted
from recollect.search import rank
from recollect.search.candidates import reading
from recollect.search.features import gather
from recollect.search.ranking import contradicted, disputed_by, newer_versions
from recollect.search.visibility import load_page, view_of
from recollect.text.terms import STOP_WORDS, stem
from recollect.text.writing_systems import fold

CONSIDERED: Final = 24
"""So many of the likeliest candidates are compared with each other, and chosen from."""

_WORTH: Final = 0.20  # from which a memory has a place
_WORDED: Final = 0.5  # the same of a match by words alone, where the model does not read the prompt's language
_BESIDE: Final = 0.65  # of the best one's worth
_SAME_FAILURE: Final = 0.5
_TRUSTED: Final = 0.5  # of a rule that stands before a session without being asked for
_BEGINNING, _ENDING = 700, 300  # characters of a long prompt that say what it wants

_BIAS: Final = -4.53
_COSINE: Final = 6.23
_LATE: Final = 0.63
_WORDS: Final = 4.17
_RAREST: Final = 1.25
_UNKNOWN: Final = 0.09
_FACT: Final = -0.29
_FACT_UNKNOWN: Final = -2.33
_BEHIND: Final = -2.86

_GENERIC: Final = frozenset(
    map(
        stem,
        """
        accept add ahead answer apply approve ask back bad big bit black branch break bug build bump bye
        call cancel cargo change check class clean clear clippy close code comment commit compile continue
        cool copy correct create debug delete describe diff discard docstring document done downgrade edit
        editor error eslint everything exactly excellent execute exit explain explanation extract fail
        failed failing failure fast file files find finds fine finish first fix fixed folder format
        formatting forward function git give go gofmt going good great happen happened hello help hey hi hmm
        ignore implement import improve indent inline install isort issue jest job keep last later layout
        leave lgtm line lint linter list log logs long look looks loop main make makefile mean merge message
        method minute module move mypy nah name needed new next nice nope nothing npm nvm ok okay older open
        option order output package page paste perfect ping please pnpm pr prettier print problem proceed
        progress project pull push pytest quick quickly quit read readme ready rebase rebuild redo refactor
        remove rename repeat replace repo repository rerun resolve restart result results resume retry
        return revert review right rollback ruff run running rustfmt safe safely sample save say screenshot
        script search see send short shorter show shown simpler simplify skip small something sorry split
        squash stage start status step stop style suite summarise summarize summary sure switch sync tell
        test tests thank thanks thing think thx tidy today todo together tomorrow translate try tsc turn two
        type types typo undo unit update upgrade usage use variable version vitest wait warning warnings way
        well what whole word work working works wow write wrong yarn yeah yep yes yesterday
        """.split(),
    )
)
"""Words by which people direct an agent at what lies before it: they name no subject that a memory could be about."""

_MARKUP: Final = re.compile(r"```.*?(?:```|\Z)|<[^<>]{1,80}>", re.DOTALL)
_COMMAND: Final = re.compile(r"\s*[/!#][\w:-]*(?:\s|\Z)")
_WORD: Final = re.compile(r"[\w']+")
_HOW: Final = re.compile(
    r"\b(?:how (?:do|should|can|must|did|to)(?: (?:i|we|you|one))?|where (?:do|does|is|are|did)|which|when do|"
    r"why (?:do|did|does) (?:we|i)|what(?: i|')s the (?:command|way|right|correct))\b",
    re.IGNORECASE,
)
_POINTING: Final = re.compile(r"\b(?:this|that|these|those|it|above|here)\b", re.IGNORECASE)
_ASKS_FACT: Final = re.compile(
    r"^\W*(?:(?:so|and|ok|okay|hey|hi|sorry|wait|btw|also)\W+)*(?:what|which|who|whom|whose|where|when|why|how)\b|"
    r"\b(?:did we|was it|do we|have we|remind me)\b",
    re.IGNORECASE,
)
_RECALLS: Final = re.compile(
    r"\b(?:remember|recall|last time|told you|(?:did|have) (?:we|you|i) (?:learn\w*|decided?|find|"
    r"found|agreed?|tried|try|seen?|noted?)|do (?:we|you) (?:already )?know)\b",
    re.IGNORECASE,
)  # asks for what is remembered: a good match counts as it does in a search
_SECRET: Final = re.compile(
    r"^\W*what\b(?:\W+\w+){0,8}?\W+(?:passwords?|passphrase|token|secret|credentials?|(?:api|private|access) key)"
    r"(?:\W+(?:of|for|to|on|in)\b.{0,60})?\W*$",
    re.IGNORECASE,
)  # what such a question wants is never stored


@dataclass(frozen=True, slots=True)
class Candidate:
    """What a search knows of one memory; `match` (0–1) is how likely it answers the prompt as a question."""

    row: RankingRow
    signals: Signals
    match: float

    @property
    def id(self) -> int:
        """Return the id of the memory."""
        return self.row.id


def relevant(app: App, prompt: str, caller: Caller, known: Collection[int] = (), *, near: float = 0.0) -> list[Memory]:
    """Return the public, current memories that are worth a place before a prompt, the best first; mostly none.

    What the reader has in front of it already, `known`, still says of others that they are out of date. Each is `near`
    (0–1) by its vector, or by the weight of the prompt's words that it holds.
    """
    return relevant_and_denied(app, prompt, caller, known, near=near)[0]


def relevant_and_denied(
    app: App, prompt: str, caller: Caller, known: Collection[int] = (), *, near: float = 0.0
) -> tuple[list[Memory], dict[int, Memory]]:
    """Return what is `relevant`, and by their ids for some of these a memory of another origin that may deny it.

    That would stand there if nobody had told anything of it, or stands there as well.
    """
    question = question_of(prompt)
    if not question:
        return [], {}
    query = Query(query=question)
    with reading(app, query, caller) as seen:
        view = seen.model_copy(update={"condensed": False})
        found = gather(app, query, view)
        matches = app.fusion.matches(found.signals, found.query)
        likely = {one: max(match, found.signals[one].cosine) for one, match in matches.items()}
        rows = {one.id: one for one in found.ranking_rows}
        may = [one for one in sorted(likely, key=lambda one: -likely[one]) if one in rows and rows[one].speaks_unasked]
        signals = found.signals
        best = [one for one in may[:CONSIDERED] if max(signals[one].coverage, signals[one].cosine) >= near]
        newer = newer_versions(question, found, matches, best)
        told = {low: high[0] for low, high in contradicted(app, found, best).items()}
        candidates = [Candidate(rows[one], found.signals[one], matches[one]) for one in best]
        best_ones = chosen(prompt, candidates, found.query, newer | told)
        wanted = [one for one in best_ones if one not in known]
        denied = disputed_by(question, found, matches, best_ones)
        outranked = chosen(prompt, [one for one in candidates if one.id in told], found.query, {})
        denied |= {told[one]: one for one in reversed(outranked)}
        memories = app.records.load({*wanted, *denied.values()}, view)
    may_stand = {one: memory for one, memory in memories.items() if permitted(memory)}
    others = {one: may_stand[other] for one, other in denied.items() if other in may_stand}
    return [may_stand[one] for one in wanted if one in may_stand], others


def learnt_of(app: App, failure: str, caller: Caller, known: Collection[int] = ()) -> list[Memory]:
    """Return the public, current memories that say much of what a failure says, the best first; mostly none."""
    found = relevant(app, failure, caller, known, near=_SAME_FAILURE)
    return [one for one in found if one.type not in OF_SESSION]


def lasting(app: App, caller: Caller, known: Collection[int] = (), session_id: str = "") -> list[Memory]:
    """Return what no session may forget: what this session has learnt so far, then the rules that matter most.

    Rules are the public, current decisions and preferences that are trusted as people's words are.
    """
    found: dict[int, Memory] = {}
    with app.records.snapshot():
        if session_id:
            own = Filters(session_id=session_id, type=ObservationType.CHECKPOINT)
            found |= {one.id: one for one in load_page(app, view_of(app, own, caller), Order.UPDATED, 1)}
        for kind in (FactType.DECISION, FactType.PREFERENCE):
            rules = load_page(app, view_of(app, Filters(fact_type=kind), caller), Order.IMPORTANT, CONSIDERED)
            found |= {one.id: one for one in rules if one.trust >= _TRUSTED and one.type not in OF_SESSION}
    wanted = [one for one in found.values() if one.id not in known and one.speaks_unasked and permitted(one)]
    return sorted(wanted, key=lambda one: (one.type is not ObservationType.CHECKPOINT, -one.importance, -one.id))


def question_of(prompt: str) -> str:
    """Return what of a prompt to search for; nothing where it only directs the agent at what lies before it."""
    if _COMMAND.match(prompt):
        return ""
    bare = " ".join(_MARKUP.sub(" ", prompt).split()) or " ".join(prompt.split())
    if len(bare) > _BEGINNING + _ENDING:
        bare = f"{bare[:_BEGINNING].rpartition(' ')[0]} … {bare[-_ENDING:].partition(' ')[2]}"
    return "" if _only_directs(bare) or _SECRET.match(bare) else bare


def chosen(prompt: str, candidates: Sequence[Candidate], query: QuerySignals, newer: Mapping[int, int]) -> list[int]:
    """Return the ids of memories that are worth a place before the prompt, the best first.

    What has a newer version among them, by `newer`, or something told that outranks it, gives its place to that. Of
    what sums up a session one is chosen at most, and only where nothing else is: it quotes what speaks for itself.
    """
    facts = [one for one in candidates if one.row.type not in OF_SESSION]
    summaries = [one for one in candidates if one.row.type in OF_SESSION]
    return _chosen(prompt, facts, query, newer) or _chosen(prompt, summaries, query, newer)[:1]


def _chosen(prompt: str, candidates: Sequence[Candidate], query: QuerySignals, newer: Mapping[int, int]) -> list[int]:
    worths = worth(prompt, candidates, query)
    least = max(_WORTH if query.semantic else _WORDED, _BESIDE * max(worths.values(), default=0.0))
    matches = {one.id: one.match for one in candidates}
    found: dict[int, float] = {}
    for one, value in worths.items():
        if value >= least:
            current = _newest(one, newer)
            found[current] = max(found.get(current, 0.0), matches[one])
    return sorted(found, key=lambda one: (-found[one], -one))


def worth(prompt: str, candidates: Sequence[Candidate], query: QuerySignals) -> dict[int, float]:
    """Return for each candidate about how likely (0–1) it helps with the prompt."""
    if not query.semantic:
        return {one.id: one.match for one in candidates}
    asks_fact = bool(_ASKS_FACT.search(prompt))
    nearest = max((one.signals.cosine for one in candidates), default=0.0)
    found = {one.id: _worth(one.signals, query, nearest, asks_fact=asks_fact) for one in candidates}
    if _RECALLS.search(prompt):
        found = {one.id: max(found[one.id], one.match) for one in candidates}
    return found


def _newest(one: int, newer: Mapping[int, int]) -> int:
    seen = {one}
    while (later := newer.get(one)) is not None and later not in seen:
        one = later
        seen.add(one)
    return one


def _worth(one: Signals, query: QuerySignals, nearest: float, *, asks_fact: bool) -> float:
    odds = (
        _BIAS
        + _COSINE * one.cosine
        + _LATE * (one.late or 0.0)
        + _WORDS * rank.saturated(one.bm25)
        + _RAREST * one.rarest
        + _UNKNOWN * query.unknown
        + asks_fact * (_FACT + _FACT_UNKNOWN * query.unknown)
        + _BEHIND * (nearest - one.cosine)
    )
    return 1.0 / (1.0 + math.exp(-odds))


def _only_directs(text: str) -> bool:
    words = [word for word in _WORD.findall(fold(text).replace("’", "'")) if not word.isdigit()]
    telling = [word for word in (one.partition("'")[0] for one in words) if len(word) > 1 and word not in STOP_WORDS]
    if any(stem(word) not in _GENERIC for word in telling):
        return False
    return not (telling and _HOW.search(text) and not _POINTING.search(text))

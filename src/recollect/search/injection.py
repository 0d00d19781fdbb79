"""Injection: which recalled memories are worth a place before a prompt that did not ask for any.

A search that was asked for may show what is doubtful; here every line costs the reader, so most prompts get none. A
small model judges it, which `scripts/fit-injection` fits on labelled sessions of coding agents.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from recollect.app import App
from recollect.domain.enums import OF_SESSION
from recollect.domain.requests import Caller, Query
from recollect.domain.results import Memory
from recollect.domain.search import QuerySignals, RankingRow, Signals, View
from recollect.prompt.fence import permitted
from recollect.search import rank, versions
from recollect.search.candidates import FIRST, reading
from recollect.search.features import Candidates, gather
from recollect.search.ranking import contradicted, disputed_by, newer_versions
from recollect.text.terms import STOP_WORDS, stem
from recollect.text.writing_systems import fold

CONSIDERED: Final = 24
"""So many of the likeliest candidates are compared with each other, and chosen from."""

_SAME_FAILURE: Final = 0.5
_BEGINNING, _ENDING = 700, 300  # characters of a long prompt that say what it wants
_STATED: Final = 1_000  # characters of a memory that say what it states
_NEAR: Final = 0.4  # cosine from which two memories may be about the same


class Traits(NamedTuple):
    """What is known of a memory beside the others that a prompt may want.

    `meaning` is the cosine, `words` the saturated bm25 (0–1), `behind` how far the nearest one's cosine is ahead, and
    `length` the logarithm of the number of the prompt's words that carry meaning.
    """

    meaning: float
    words: float
    behind: float
    length: float


@dataclass(frozen=True, slots=True)
class Judge:
    """A logistic regression that tells how likely (0–1) a memory helps with a prompt."""

    weights: Traits
    bias: float

    def __call__(self, found: Traits) -> float:
        """Return how likely a memory helps."""
        odds = self.bias + sum(weight * value for weight, value in zip(self.weights, found, strict=True))
        return 1.0 / (1.0 + math.exp(-odds))


JUDGE: Final = Judge(Traits(meaning=7.844, words=7.412, behind=-3.446, length=0.797), -6.453)
LEAST: Final = 0.2
"""From which a memory has a place, unless it is less than the share `BESIDE` of the best one's."""
BESIDE: Final = 0.7
"""All of these are what `scripts/fit-injection` printed."""

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


@dataclass(frozen=True, slots=True)
class Considered:
    """Candidates for a place before a prompt, the likeliest first; `newer` names by id what stands in whose place.

    `told` are those of these that stand there because a person told them; `gathered` and `matches` are of the search.
    """

    candidates: tuple[Candidate, ...]
    query: QuerySignals
    newer: Mapping[int, int]
    told: Mapping[int, int]
    gathered: Candidates
    matches: Mapping[int, float]


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
        found = considered(app, query, view, near=near)
        first = chosen(found.candidates, found.query, found.newer)[:FIRST]
        latest = outdated(app, first, found, view)
        best = list(dict.fromkeys(latest.get(one, one) for one in first))
        wanted = [one for one in best if one not in known]
        denied = disputed_by(question, found.gathered, found.matches, best)
        outranked = chosen([one for one in found.candidates if one.id in found.told], found.query, {})
        denied |= {found.told[one]: one for one in reversed(outranked)}
        memories = app.records.load({*wanted, *denied.values()}, view)
    may_stand = {one: memory for one, memory in memories.items() if permitted(memory)}
    others = {one: may_stand[other] for one, other in denied.items() if other in may_stand}
    return [may_stand[one] for one in wanted if one in may_stand], others


def considered(app: App, query: Query, view: View, *, near: float = 0.0) -> Considered:
    """Return the likeliest memories of a view that may stand before a prompt, and what gives its place to what."""
    found = gather(app, query, view)
    signals, matches = found.signals, app.fusion.matches(found.signals, found.query)
    likely = {one: max(match, signals[one].cosine) for one, match in matches.items()}
    rows = {one.id: one for one in found.ranking_rows}
    may = [one for one in sorted(likely, key=lambda one: -likely[one]) if one in rows and rows[one].speaks_unasked]
    best = [one for one in may[:CONSIDERED] if max(signals[one].coverage, signals[one].cosine) >= near]
    newer = newer_versions(query.query, found, matches, best[:FIRST])
    told = {low: high[0] for low, high in contradicted(app, found, best).items()}
    candidates = tuple(Candidate(rows[one], signals[one], matches[one]) for one in best)
    return Considered(candidates, found.query, newer | told, told, found, matches)


def outdated(app: App, ids: Sequence[int], found: Considered, view: View) -> dict[int, int]:
    """Return for each of `ids` the newest candidate that says that something changed about what it states.

    That one is of another session, has no less authority, is near by its vector, and answers what the older one states
    more likely than not. What is asked there is the older one's own text: a prompt may be about anything it touches.
    """
    rows = {one.id: one.row for one in found.candidates}
    near: dict[int, list[RankingRow]] = {}
    for pair, cosine in (app.vectors.similarities(list(rows)) if ids else {}).items():
        old, new = sorted(pair, key=lambda one: (rank.dated(rows[one]), one))
        able = rows[new].authority >= rows[old].authority and versions.comparable(rows[new], rows[old], 1.0, 1.0)
        if cosine >= _NEAR and old in ids and able:
            near.setdefault(old, []).append(rows[new])
    latest: dict[int, int] = {}
    for old, later in near.items():
        changed = [one for one in later if versions.changes(rows[old].content, one.content)]
        matches = _matches(app, rows[old].content, view) if changed else {}
        if sure := [one for one in changed if matches.get(one.id, 0.0) >= rank.STRONG]:
            latest[old] = max(sure, key=lambda one: (rank.dated(one), one.id)).id
    return latest


def _matches(app: App, text: str, view: View) -> dict[int, float]:
    found = gather(app, Query(query=text[:_STATED]), view)
    return app.fusion.matches(found.signals, found.query)


def learnt_of(app: App, failure: str, caller: Caller, known: Collection[int] = ()) -> list[Memory]:
    """Return the public, current memories that say much of what a failure says, the best first; mostly none."""
    found = relevant(app, failure, caller, known, near=_SAME_FAILURE)
    return [one for one in found if one.type not in OF_SESSION]


def question_of(prompt: str) -> str:
    """Return what of a prompt to search for; nothing where it only directs the agent at what lies before it."""
    if _COMMAND.match(prompt):
        return ""
    bare = " ".join(_MARKUP.sub(" ", prompt).split()) or " ".join(prompt.split())
    if len(bare) > _BEGINNING + _ENDING:
        bare = f"{bare[:_BEGINNING].rpartition(' ')[0]} … {bare[-_ENDING:].partition(' ')[2]}"
    return "" if _only_directs(bare) or _SECRET.match(bare) else bare


def chosen(candidates: Sequence[Candidate], query: QuerySignals, newer: Mapping[int, int]) -> list[int]:
    """Return the ids of memories that are worth a place before the prompt, the best first.

    What has a newer version, by `newer`, or something told that outranks it, gives its place to that. Of what sums up a
    session one is chosen at most, and only where nothing else is: it quotes what speaks for itself.
    """
    facts = [one for one in candidates if one.row.type not in OF_SESSION]
    summaries = [one for one in candidates if one.row.type in OF_SESSION]
    return _chosen(facts, query, newer) or _chosen(summaries, query, newer)[:1]


def _chosen(candidates: Sequence[Candidate], query: QuerySignals, newer: Mapping[int, int]) -> list[int]:
    if query.semantic:
        worths = {one.id: JUDGE(found) for one, found in zip(candidates, traits(candidates, query), strict=True)}
    else:  # the model does not read the prompt's language: words alone must make a memory a likely answer
        worths = {one.id: one.match for one in candidates}
    least = max(LEAST if query.semantic else rank.LIKELY, BESIDE * max(worths.values(), default=0.0))
    matches = {one.id: one.match for one in candidates}
    found: dict[int, float] = {}
    for one, value in worths.items():
        if value >= least:
            current = _newest(one, newer)
            found[current] = max(found.get(current, 0.0), matches[one])
    return sorted(found, key=lambda one: (-found[one], -one))


def traits(candidates: Sequence[Candidate], query: QuerySignals) -> list[Traits]:
    """Return what a judge looks at, for each candidate beside all of them."""
    nearest = max((one.signals.cosine for one in candidates), default=0.0)
    return [
        Traits(
            meaning=one.signals.cosine,
            words=rank.saturated(one.signals.bm25),
            behind=nearest - one.signals.cosine,
            length=math.log1p(query.words),
        )
        for one in candidates
    ]


def _newest(one: int, newer: Mapping[int, int]) -> int:
    seen = {one}
    while (later := newer.get(one)) is not None and later not in seen:
        one = later
        seen.add(one)
    return one


def _only_directs(text: str) -> bool:
    words = [word for word in _WORD.findall(fold(text).replace("’", "'")) if not word.isdigit()]
    telling = [word for word in (one.partition("'")[0] for one in words) if len(word) > 1 and word not in STOP_WORDS]
    if any(stem(word) not in _GENERIC for word in telling):
        return False
    return not (telling and _HOW.search(text) and not _POINTING.search(text))

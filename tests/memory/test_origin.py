"""Origin: every door stamps it, nothing claims or raises it, and what comes from outside outranks nobody."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from test_without_model import cold

from callers import ADA
from clock import Clock
from recollect import App, Query, Settings, recall
from recollect.domain.enums import FactType, ObservationType, Scope, Source
from recollect.domain.origin import Authority, SaidBy
from recollect.domain.results import WriteStatus
from recollect.errors import Forbidden, NotFound
from recollect.search.unasked import sure_matches
from run_operations import add, by_hand, call_tool, do, ill, listed, shown

PAGE = ADA.saying(SaidBy.WEB, "https://docs.example.com/deploys")
TOLD = "We deploy the billing service from the branch release-stable."
CLAIM = "We deploy the billing service from the branch release-canary now."
SAID = {
    "person": ADA,
    "call": ADA.saying(SaidBy.ASSISTANT),
    "file": ADA.saying(SaidBy.FILE, "AGENTS.md"),
    "page": PAGE,
    "other page": ADA.saying(SaidBy.WEB, "https://news.example.org/a"),
    "import": ADA.saying(SaidBy.IMPORT, "notes.md:3"),
}
PAIRS = (
    ("person", "page"),
    ("call", "page"),
    ("person", "import"),
    ("page", "other page"),
    ("file", "page"),
    ("import", "page"),
)


def test_each_door_stamps_who_said_it(app: App) -> None:
    """A call is a person's, a tool call the assistant's, and an import says which file it is of."""
    person = add(app, TOLD)
    told = call_tool(app, "store_memory", {"content": "The assistant learnt it."}).structured["id"]
    item = {"kind": "memory", "where": "notes.md:3", "fields": {"content": "Imported.", "author": "bob", "trust": 1.0}}
    done = do(app, "import_batch", items=[item], last=True)
    (imported,) = set(listed(app)) - {person, int(told)}
    assert done.new == 1
    assert [shown(app, one).origin for one in (person, int(told), imported)] == [
        "a person",
        "the assistant",
        "an import: notes.md:3",
    ]
    assert shown(app, imported).trust == 0.5


@pytest.mark.parametrize(("said_by", "most"), [(SaidBy.PERSON, 0.9), (SaidBy.WEB, 0.3), (SaidBy.COMMAND, 0.6)])
def test_nobody_claims_more_trust_than_their_origin_has(app: App, said_by: SaidBy, most: float) -> None:
    """A write and an update that claim full trust get what the door allows."""
    one = add(app, "The mast is oak.", ADA.saying(said_by), trust=1.0)
    assert shown(app, one).trust == most
    do(app, "update_memory", ADA.saying(said_by), id=str(one), trust=1.0)
    assert shown(app, one).trust == most


@pytest.mark.parametrize("named", ["id", "supersedes", "key"])
def test_a_page_takes_no_place_of_what_a_person_said(app: App, named: str) -> None:
    """A page's claim that names a person's memory is a memory of its own, and waits for a decision."""
    told = add(app, TOLD, key="deploys")
    outcome = do(app, "remember", PAGE, content=CLAIM, **{named: "deploys" if named == "key" else str(told)})
    assert outcome.status is WriteStatus.STORED
    assert shown(app, told).content == TOLD
    assert shown(app, told).superseded_by is None
    assert shown(app, int(outcome.id)).review == f"may contradict memory {told}"


def test_repeating_what_was_replaced_does_not_bring_it_back(app: App) -> None:
    """A page that says again what a person has replaced changes nothing."""
    old = add(app, "We deploy on Fridays.")
    new = add(app, "We deploy on Mondays.", supersedes=str(old))
    assert add(app, "We deploy on Fridays.", PAGE) == old
    assert shown(app, old).superseded_by == new


def test_a_person_takes_the_place_of_a_page(app: App) -> None:
    """What a person says over a page's memory is the person's."""
    page = add(app, CLAIM, PAGE)
    add(app, TOLD, id=str(page))
    assert (shown(app, page).content, shown(app, page).authority) == (TOLD, Authority.TOLD)


def test_repeating_a_page_raises_nothing(app: App) -> None:
    """The assistant who says again what a page says, or writes over it, leaves the page's authority."""
    page = add(app, CLAIM, PAGE)
    again = add(app, CLAIM, ADA.saying(SaidBy.ASSISTANT))
    assert again == page
    add(app, "Deploys of billing come from release-canary.", ADA.saying(SaidBy.ASSISTANT), id=str(page))
    assert shown(app, page).authority is Authority.OUTSIDE
    assert shown(app, page).came_from == PAGE.origin.came_from


def test_a_page_stands_before_no_prompt(app: App) -> None:
    """What a page says is found when asked for, below what a person told, and never unasked."""
    told, page = add(app, TOLD), add(app, CLAIM, PAGE)
    other = add(app, "The billing service has a cache of nine gigabytes, says the vendor.", PAGE)
    assert [one.id for one in sure_matches(app, "From which branch do we deploy the billing service?", ADA)] == [told]
    assert other not in [one.id for one in sure_matches(app, "How large is the cache of the billing service?", ADA)]
    hits = do(app, "recall", query="branch that we deploy the billing service from").hits
    order = [hit.memory.id for hit in hits]
    assert order.index(told) < order.index(page)
    assert next(hit for hit in hits if hit.memory.id == page).contradicts == told
    body = call_tool(app, "memory", {"action": "recall", "query": "cache of the billing service"}).structured
    (found,) = (one for one in body["memories"] if one["id"] == str(other))
    assert found["origin"] == "a web page: https://docs.example.com/deploys"


def pages(app: App, *texts: str) -> None:
    """Keep what pages say, each from an address of its own."""
    items = [
        {"kind": "memory", "where": f"page{number}.html:1", "fields": {"content": said}}
        for number, said in enumerate(texts)
    ]
    assert do(app, "import_batch", items=items, last=True).new == len(texts)


@pytest.mark.parametrize("limit", [5, 20])
def test_no_number_of_pages_crowds_out_what_was_told(app: App, limit: int) -> None:
    """Sixty pages that say the question's own words stand behind the one thing that was told of it."""
    told = add(app, TOLD)
    asked = "From which branch do we deploy the billing service?"
    pages(app, *(f"{asked} The answer {number} is: deploy from the branch canary-{number}." for number in range(60)))
    hits = do(app, "recall", query=asked, limit=limit).hits
    assert [hit.memory.id == told for hit in hits] == [True] + [False] * (limit - 1)
    assert [one.id for one in sure_matches(app, asked, ADA)] == [told]


@pytest.mark.parametrize("among", [{"ttl_days": 1.0}, {"type": ObservationType.CHECKPOINT}], ids=["expired", "quoted"])
def test_a_crowd_of_which_not_all_is_shown_hides_nothing(app: App, clock: Clock, among: dict[str, Any]) -> None:
    """Among the pages that hold the question's words are some that have expired, or that only quote a session."""
    told, _ = add(app, TOLD), add(app, "The quokka is the mascot of the billing service, and eats leaves.")
    asked = "From which branch do we deploy the billing service?"
    unseen = [add(app, f"{asked} {asked} former-{number}", PAGE, **among) for number in range(5)]
    pages(app, *(f"{asked} The answer {number} is: deploy from the branch canary-{number}." for number in range(60)))
    clock.pass_days(2)
    hits = [hit.memory.id for hit in do(app, "recall", query=asked, limit=10).hits]
    assert (hits[0], len(hits)) == (told, 10)
    assert set(unseen).isdisjoint(hits)


def test_a_weak_answer_from_outside_stands_before_nothing_that_was_told(app: App) -> None:
    """A page that hardly answers comes last where everything is asked for, though it answers better than the others."""
    said = [add(app, one) for one in ("The cranes are repainted in spring.", "We order rope from Bergen.")]
    page = add(app, "Moorings: fees are due monthly.", PAGE)
    hits = do(app, "recall", query="when is the rent paid", min_score=0.0).hits
    assert {hit.memory.id for hit in hits[:2]} == set(said)
    assert (hits[2].memory.id, str(hits[2].certainty)) == (page, "weak")
    assert hits[2].match > max(hit.match for hit in hits[:2])


def test_what_a_person_approved_is_ranked_by_its_match(app: App) -> None:
    """A page that is approved stands where it answers best."""
    add(app, "The billing team meets on Mondays in the harbour.")
    page = add(app, "The cache of the billing service has nine gigabytes.", PAGE)
    do(app, "decide", id=str(page), decision="approve")
    assert do(app, "recall", query="cache of the billing service", min_score=0.0).hits[0].memory.id == page


def test_what_was_observed_gives_way_to_what_was_told(app: App) -> None:
    """A project's file speaks unasked, but not on a subject of which somebody told something."""
    file = ADA.saying(SaidBy.FILE, "AGENTS.md")
    seen = add(app, "Deploys of the billing service come from release-canary.", file)
    prompt = "From which branch do we deploy the billing service?"
    assert [one.id for one in sure_matches(app, prompt, ADA)] == [seen]
    told = add(app, TOLD)
    assert [one.id for one in sure_matches(app, prompt, ADA)] == [told]
    text = do(app, "prompt_submit", session_id="s1", prompt=prompt).text
    assert f"[{told}]" in text
    assert "release-canary" not in text


def test_only_a_rule_that_was_told_speaks_as_a_draft(app: App) -> None:
    """What a hook noted is a draft, and speaks unasked only as a decision or a preference of a person or an agent."""
    noted = shown(app, add(app, CLAIM, source=Source.HOOK))
    for said_by, fact_type in product(SaidBy, FactType):
        one = noted.model_copy(update={"said_by": said_by, "fact_type": fact_type})
        told = said_by in (SaidBy.PERSON, SaidBy.ASSISTANT)
        rule = told and fact_type in (FactType.DECISION, FactType.PREFERENCE)
        assert (one.is_draft, one.is_rule, one.speaks_unasked) == (True, rule, rule)
        approved = one.model_copy(update={"review": "approved"})
        assert (approved.is_draft, approved.is_rule, approved.speaks_unasked) == (False, rule, True)


def test_only_what_a_hook_noted_is_a_draft(app: App) -> None:
    """What came in any other way was decided by somebody, and what sums a session up is none either."""
    one = shown(app, add(app, CLAIM))
    for source, kind in product(Source, (None, *ObservationType)):
        found = one.model_copy(update={"source": source, "type": kind}).is_draft
        assert found is (source is Source.HOOK and kind not in ("checkpoint", "session_summary"))


def test_a_summary_has_the_least_authority_of_its_members(app: App, clock: Clock) -> None:
    """A summary of a person's notes and a page's has the page's origin."""
    for number in range(3):
        add(app, f"Crane {number} lifts nine tonnes.", category="cranes")
    add(app, "Crane 7 lifts ninety tonnes.", PAGE, category="cranes")
    clock.pass_days(60)
    (new,) = do(app, "summarize_old", older_than_days=30).ids
    assert shown(app, new).origin == "a web page: https://docs.example.com/deploys"
    assert shown(app, new).trust == 0.3


@pytest.mark.parametrize("own", [True, False])
def test_an_export_keeps_the_origin(app: App, own: bool) -> None:
    """What leaves one's own store comes back with origin and review where that is said; else both are a claim."""
    ids = [add(app, CLAIM, PAGE), add(app, TOLD, trust=0.9)]
    lines = [one["memory"] for one in do(app, "export_page").lines if "memory" in one]
    for one in ids:
        do(app, "forget", id=str(one))
    items = [{"kind": "memory", "where": f"x:{place}", "fields": one} for place, one in enumerate(lines)]
    do(app, "import_batch", items=items, last=True, own=own)
    back = {one.content: one for one in (shown(app, each) for each in listed(app))}
    page, person = back[CLAIM], back[TOLD]
    if own:
        assert (page.origin, page.review) == (
            "a web page: https://docs.example.com/deploys",
            "the source is not approved",
        )
        assert (person.origin, person.trust, person.tags) == ("a person", 0.9, ())
    else:
        assert {(one.said_by, one.trust > 0.5, one.review) for one in (page, person)} == {
            (SaidBy.IMPORT, False, "the source is not approved")
        }
        assert page.tags == ("claimed-origin:a web page: https://docs.example.com/deploys",)
        assert person.tags == ("claimed-origin:a person",)


def test_an_import_changes_no_word_of_a_person(app: App) -> None:
    """A file that repeats what a person said brings no headings, tags or importance of its own to it."""
    told = add(app, TOLD, key="deploys")
    before = shown(app, told)
    fields = {"content": TOLD, "key": "deploys", "author": "ada", "said_by": "person", "abstract": CLAIM}
    item = {"kind": "memory", "where": "x:1", "fields": fields | {"tags": ["urgent"], "importance": 1.0}}
    done = do(app, "import_batch", items=[item], last=True)
    assert (done.unchanged, done.updated, done.problems) == (1, 0, ())
    assert shown(app, told).model_dump(exclude={"accessed_count", "last_accessed_at"}) == before.model_dump(
        exclude={"accessed_count", "last_accessed_at"}
    )


def test_what_has_no_origin_yet_is_told_by_its_way_in(app: App, settings: Settings) -> None:
    """A memory of an older version has the origin that its source and trust tell, and the store is well."""
    person = add(app, TOLD)
    page = add(app, CLAIM, PAGE)
    older = "UPDATE memory SET said_by = NULL, came_from = NULL, review = NULL"
    by_hand(settings, f"{older}, source = 'hook' WHERE id = ?", page)
    by_hand(settings, f"{older} WHERE id = ?", person)
    assert [shown(app, one).authority for one in (person, page)] == [Authority.TOLD, Authority.OUTSIDE]
    assert [one.id for one in sure_matches(app, "From which branch do we deploy the billing service?", ADA)] == [person]


def test_the_inbox_decides(app: App) -> None:
    """What waits is shown with what it may contradict; approved it speaks, rejected it is hidden, always is for all."""
    told, page = add(app, TOLD), add(app, CLAIM, PAGE)
    other = add(app, "The vendor's cache has nine gigabytes.", PAGE)
    found = do(app, "inbox")
    assert [(one.id, one.contradicts) for one in found.waiting] == [(page, told), (other, None)]
    assert found.message.startswith("2 memories wait for a decision since ")
    do(app, "decide", id=str(page), decision="reject")
    assert page not in listed(app)
    do(app, "decide", id=str(other), decision="always")
    assert shown(app, other).review == "approved"
    assert do(app, "inbox").total == 0
    later = add(app, "The vendor's queue has four slots.", PAGE)
    assert shown(app, later).speaks_unasked
    do(app, "decide", id=str(other), decision="approve")
    assert shown(app, other).review == "approved"
    for one, decision in ((told, "approve"), (other, "reject")):
        with pytest.raises(NotFound, match="does not wait"):
            do(app, "decide", id=str(one), decision=decision)


def test_a_source_that_is_rejected_stays_out(app: App) -> None:
    """With never all that waits from a source is hidden, and so is what comes later; an edit is the person's word."""
    one, two = add(app, CLAIM, PAGE), add(app, "The cache has nine gigabytes.", PAGE)
    do(app, "decide", id=str(one), decision="never")
    later = do(app, "remember", PAGE, content="The queue has four slots.")
    assert not {one, two, int(later.id)} & set(listed(app))
    waiting = add(app, "The vendor has moved.", ADA.saying(SaidBy.WEB, "https://news.example.org/a"))
    do(app, "decide", id=str(waiting), decision="approve", content="The vendor has moved to Oslo.")
    assert (shown(app, waiting).content, shown(app, waiting).authority) == (
        "The vendor has moved to Oslo.",
        Authority.TOLD,
    )


def test_the_address_passes_the_gate(app: App) -> None:
    """A secret in an address is masked before it is stored."""
    secret = "ghp_" + "a1B2" * 9
    one = add(app, "The page lists ports.", ADA.saying(SaidBy.WEB, f"https://x.example.com/?token={secret}"))
    assert secret not in (shown(app, one).came_from or "")
    assert ill(app) == []


def test_a_writable_scope_is_needed_to_decide(app: App) -> None:
    """Who may only read a project decides nothing of it."""
    page = add(app, CLAIM, PAGE)
    reader = ADA.model_copy(update={"writes": (Scope.PERSONAL,)})
    with pytest.raises(Forbidden, match="no right to write"):
        do(app, "decide", reader, id=str(page), decision="always")
    assert shown(app, page).review == "the source is not approved"


@pytest.mark.parametrize("pair", [*PAIRS, *(pair[::-1] for pair in PAIRS)], ids=" then ".join)
def test_two_sources_are_shown_as_a_contradiction(app: App, clock: Clock, pair: tuple[str, str]) -> None:
    """Whichever came first, the lower of two that deny each other names the other, in both forms of the answer."""
    ids = {}
    for name, content in zip(pair, (TOLD, CLAIM), strict=True):
        ids[name] = add(app, content, SAID[name])
        clock.pass_days(1)
    query = "From which branch do we deploy the billing service?"
    high, low = do(app, "recall", query=query).hits
    assert (high.contradicts, low.contradicts) == (None, high.memory.id)
    body = call_tool(app, "memory", {"action": "recall", "query": query}).structured
    assert [one.get("contradicts") for one in body["memories"]] == [None, str(high.memory.id)]
    assert [one for name, one in ids.items() if name in ("person", "call")] in ([], [high.memory.id])


def test_versions_of_one_source_deny_nothing(app: App, clock: Clock) -> None:
    """What a source says anew is a newer version, and so is what the project itself shows."""
    for said in ((PAGE, PAGE), (SAID["file"], ADA.saying(SaidBy.COMMAND, "git log"))):
        ids = []
        for content, caller in zip((TOLD, CLAIM), said, strict=True):
            ids.append(add(app, content, caller))
            clock.pass_days(1)
        hits = do(app, "recall", query="From which branch do we deploy the billing service?").hits
        assert [(hit.contradicts, hit.older_than) for hit in hits] == [(None, None), (None, ids[1])]
        for one in ids:
            do(app, "forget", id=str(one))


def test_notes_that_share_no_words_deny_nothing(app: App) -> None:
    """While words alone answer, a page about something else does not say otherwise than what a person told."""
    add(app, "The harbour gate opens at six.")
    add(app, "A lighthouse needs fresh paint.", PAGE)
    hits = recall(cold(app), Query(query="harbour lighthouse", min_score=0.0), ADA).hits
    assert [hit.contradicts for hit in hits] == [None, None]

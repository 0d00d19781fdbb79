"""Withdraw: what came from one source goes with all that was made of it, and comes back when that is undone."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from callers import ADA
from clock import Clock
from killed_withdrawals import kill_withdrawals
from poisoned_store import BAD, SUBJECTS, page
from recollect import App, Draft, Settings
from recollect.domain.enums import Scope
from recollect.domain.origin import SaidBy, with_address
from recollect.errors import Conflict, InvalidInput, NotFound
from recollect.memory.remember import remember
from run_operations import add, do, ill, listed, shown
from stores import open_app

if TYPE_CHECKING:
    from collections.abc import Callable


def everything(app: App) -> str:
    """Return every answer that shows what is stored, as one text."""
    found: list[Any] = [do(app, "export_page", after=after) for after in ("memory:0", "fact:0")]
    wide = [line for one in found for line in one.lines if not line.get("memory", {}).get("deleted_at")]
    asked = [do(app, "recall", query=one, limit=100, min_score=0.0) for one in (*SUBJECTS, "zyxqual")]
    prompts = [do(app, "format_for_prompt", max_tokens=4_000, max_entries=100).text]
    answers = [hit.memory.model_dump_json() for one in asked for hit in one.hits]
    facts = [fact.object for fact in do(app, "query_facts", limit=100).facts]
    memories = [shown(app, one).model_dump_json() for one in listed(app, limit=100, superseded=True)]
    return "\n".join([json.dumps(wide, default=str), *answers, *prompts, *facts, *memories])


def told(app: App) -> None:
    """Tell a store of honest pages and people, and of poisoned pages among them."""
    for number in range(30):
        subject, host = SUBJECTS[number % 10], f"site{number % 20}.example.org"
        add(app, f"The {subject} of yard {number} was painted in year {1900 + number}.", page(host), category=subject)
        if number % 2 == 0:
            add(
                app,
                f"The {subject} of yard {number} is zyxqual{number} since today.",
                page(BAD, number),
                category=subject,
            )
    for number in range(10):
        add(app, f"I keep the {SUBJECTS[number]} of yard {number} myself.")


def test_a_source_goes_with_what_was_made_of_it(app: App, clock: Clock, open_store: Callable[..., App]) -> None:
    """Fifteen poisoned pages, summarised with honest ones, leave no byte; the honest ones are as if they never were."""
    told(app)
    clock.pass_days(60)
    assert do(app, "summarize_old", older_than_days=30).condensed == 55
    assert "zyxqual" in everything(app)
    planned = do(app, "withdraw", source=BAD)
    assert (len(planned.hidden), planned.applied) == (15, False)
    assert "zyxqual" in everything(app)
    done = do(app, "withdraw", source=BAD, apply=True)
    assert (done.hidden, done.rebuilt) == (planned.hidden, planned.rebuilt)
    assert done.rebuilt
    assert "zyxqual" not in everything(app)
    assert ill(app) == []
    assert do(app, "withdraw", source=BAD, apply=True).hidden == ()


def test_what_it_had_replaced_is_current_again(app: App) -> None:
    """A page that had replaced another by name, by key or as a new version gives the place back, and takes it again."""
    first = add(app, "The quay has four cranes.", page("a.example.org"))
    other = add(app, "The quay has zyxqual cranes.", page(BAD), supersedes=str(first))
    keyed = add(app, "The pier is long.", page("a.example.org"), key="pier", category="piers", tags=("long",))
    assert add(app, "The pier is zyxqual.", page(BAD), key="pier", category="zyxqual", tags=("zyxqual",)) == keyed
    named = add(app, "The lock is shut.", page("a.example.org"))
    assert add(app, "The lock is zyxqual.", page(BAD), id=str(named)) == named
    before = {one: shown(app, one).model_dump(include={"content", "category", "tags"}) for one in (other, keyed, named)}
    done = do(app, "withdraw", source=BAD, apply=True)
    assert done.current_again == (first,)
    assert set(listed(app)) == {first, keyed, named}
    assert [shown(app, one).content for one in (keyed, named)] == ["The pier is long.", "The lock is shut."]
    assert (shown(app, keyed).key, shown(app, keyed).tags, shown(app, keyed).category) == ("pier", ("long",), "piers")
    assert "zyxqual" not in everything(app)
    undone = do(app, "undo_withdrawal", id=done.id)
    assert undone.message.startswith(f"Withdrawal {done.id} undone: 1 memories are back")
    assert set(listed(app)) == {other, keyed, named}
    after = {one: shown(app, one).model_dump(include={"content", "category", "tags"}) for one in (other, keyed, named)}
    assert after == before
    assert do(app, "undo_withdrawal", id=done.id) == undone
    assert ill(app) == []


def owner(app: App, name: str, source: int | None, days: int) -> None:
    """State who owns the quay from a day on, in place of who owned it before."""
    begins = (app.clock() - timedelta(days=days)).isoformat()
    stated = {"subject": "quay", "predicate": "owner", "object": name, "valid_from": begins}
    do(app, "store_fact", **stated, memory_id=str(source) if source else None, replaces=True)


def owners(app: App) -> list[tuple[str, datetime, datetime | None]]:
    """Return who owns and owned the quay, and from when until when."""
    found = do(app, "query_facts", subject="quay", history=True).facts
    return sorted((one.object, one.valid_from, one.valid_to) for one in found)


@pytest.mark.parametrize("order", [("ada", "bad", "worse"), ("ada", "bad", "bob"), ("bob", "ada", "bad", "worse")])
def test_facts_that_it_ended_hold_again(
    settings: Settings, clock: Clock, tmp_path: Path, order: tuple[str, ...]
) -> None:
    """Facts end where a store that never saw the source has them end, and as before once that is undone."""
    days, seen = {"ada": 9, "bad": 6, "worse": 4, "bob": 2}, []
    for poisoned in (True, False):
        with open_app(settings.model_copy(update={"home": tmp_path / str(poisoned)}), clock=clock) as app:
            own, bad = add(app, "The quay is old."), add(app, "Someone bought the quay.", page(BAD))
            for name in order:
                if name in ("ada", "bob") or poisoned:
                    owner(app, name, own if name in ("ada", "bob") else bad, days[name])
            before = owners(app)
            done = do(app, "withdraw", source=BAD, apply=True)
            seen.append(owners(app))
            if poisoned:
                do(app, "undo_withdrawal", id=done.id)
                assert owners(app) == before
            assert ill(app) == []
    assert seen[0] == seen[1]


def test_facts_that_it_stated_go_with_it(app: App) -> None:
    """A fact has the origin of who stated it, ends none that was told, and goes with its source alone."""

    def owns(name: str, caller: Any = ADA, **more: Any) -> Any:
        return do(app, "store_fact", caller, subject="quay", predicate="owner", object=name, **more)

    told, bad = owns("Ada"), owns("Zyxqual", page(BAD), replaces=True)
    assert bad.notes == (f"Fact {told.id} was said by a person, which this does not replace.",)
    assert owns("Ada", page(BAD)).id != told.id
    assert owns("Zyxqual", page(BAD)).id == bad.id
    of_mine = owns("Zyxqual", page(BAD), memory_id=str(add(app, "The quay has an owner.")))
    found = {one.id: one.origin for one in do(app, "query_facts").facts}
    assert (found[int(told.id)], found[int(of_mine.id)]) == ("a person", f"a web page: https://{BAD}/1")
    done = do(app, "withdraw", source=BAD, apply=True)
    assert [one.id for one in do(app, "query_facts", history=True).facts] == [int(told.id)]
    do(app, "undo_withdrawal", id=done.id)
    assert {one.id: one.origin for one in do(app, "query_facts").facts} == found
    assert ill(app) == []


def test_only_the_undoing_brings_back_what_was_withdrawn(app: App) -> None:
    """To restore one memory of it is refused, and the error names the withdrawal."""
    named = add(app, "The mast is oak.", page("a.example.org"))
    add(app, "The mast is zyxqual.", page(BAD), id=str(named))
    keel = add(app, "The keel is zyxqual.", page(BAD))
    done = do(app, "withdraw", source=BAD, apply=True)
    assert (done.hidden, done.rebuilt) == ((keel,), (named,))
    for one in (keel, keel + 1):  # the text that was written over lies behind it
        with pytest.raises(Conflict, match=f"withdrawal {done.id}: only `recollect withdraw --undo {done.id}`"):
            do(app, "restore", id=str(one))
    assert "zyxqual" not in everything(app)


@pytest.mark.parametrize("place", ["settings", "deployed"], ids=["sqlite", "postgresql"])
def test_what_was_forgotten_before_goes_too(request: pytest.FixtureRequest, clock: Clock, place: str) -> None:
    """What is softly deleted comes back neither alone nor in a summary, until the withdrawal is undone."""
    with open_app(request.getfixturevalue(place), clock=clock) as app:
        keel, mast = add(app, "The keel is zyxqual.", page(BAD)), add(app, "The mast is zyxqual.", page(BAD))
        named = add(app, "The lock is shut.", page("a.example.org"))
        add(app, "The lock is zyxqual.", page(BAD), id=str(named))
        for one in (keel, named):
            do(app, "memory_forget", id=str(one))
        done = do(app, "withdraw", source=BAD, apply=True)
        assert (done.hidden, done.rebuilt) == ((keel, mast), (named,))
        with pytest.raises(Conflict, match=f"only `recollect withdraw --undo {done.id}`"):
            do(app, "restore", id=str(keel))
        assert do(app, "withdraw", source=BAD, apply=True).hidden == ()
        do(app, "restore", id=str(named))
        assert shown(app, named).content == "The lock is shut."
        do(app, "memory_forget", id=str(named))
        assert do(app, "undo_withdrawal", id=done.id).hidden == (mast,)
        assert listed(app) == [mast]
        for one in (keel, named):
            assert do(app, "restore", id=str(one)).status == "restored"
        assert {shown(app, one).content for one in (keel, named)} == {"The keel is zyxqual.", "The lock is zyxqual."}
        assert ill(app) == []


def test_what_is_in_quarantine_goes_too(app: App) -> None:
    """The inbox shows nothing of a withdrawn source, also what waited there in quarantine; undone, it waits again."""
    one = add(app, "The mast is zyxqual.", page(BAD))
    with app.records.writing(ADA.writable(ADA.namespace(Scope.PROJECT)), "ada") as transaction:
        transaction.memories.quarantine(one)
    done = do(app, "withdraw", source=BAD, apply=True)
    with app.records.writing(ADA.writable(ADA.namespace(Scope.PROJECT)), "ada") as transaction:
        transaction.memories.quarantine(one)
    assert (done.hidden, do(app, "inbox").waiting) == ((one,), ())
    with pytest.raises(Conflict):
        do(app, "restore", id=str(one))
    do(app, "undo_withdrawal", id=done.id)
    assert [each.quarantined for each in do(app, "inbox").waiting] == [True]
    assert do(app, "withdraw", source=BAD, apply=True).hidden == (one,)
    assert ill(app) == []


def test_a_report_goes_with_each_page_that_it_may_repeat(open_store: Callable[..., App]) -> None:
    """What the assistant concludes after several pages came from all of them; a prompt begins anew."""
    app = open_store(modules_off="memorability")
    pages = [f"https://{host}/zyx" for host in ("a.example.org", BAD, "b.example.org")]
    do(app, "prompt_submit", session_id="s1", prompt="Look up how to moor.")
    for one in pages:
        do(app, "tool_post", session_id="s1", tool="WebFetch", input={"url": one}, output="")
    said = "NOTE: we always moor at berth nine, because the rules of the harbour forbid berth eight."
    do(app, "tool_post", session_id="s1", tool="Assistant", output=said)
    (report,) = [shown(app, one) for one in listed(app) if "berth nine" in shown(app, one).content]
    assert report.origin == f"a web page: {', then '.join(pages)}"
    assert [do(app, "withdraw", source=one).hidden for one in pages] == [(report.id,)] * 3
    assert with_address(", then ".join(f"https://a.org/{one:0300}" for one in range(9)), "x").endswith(
        f"{8:0300}, then x"
    )


def test_a_merged_memory_loses_what_came_from_the_source(app: App) -> None:
    """Of a profile that pages made together the honest statements are left, in their order."""
    for number, host in enumerate(("a.example.org", BAD, "b.example.org")):
        said = f"Ada {'zyxquals' if host == BAD else 'paints'} {('boats', 'ships', 'masts')[number]}."
        remember(app, Draft(content=said, fact_type="profile"), page(host))
    (whole,) = listed(app)
    assert "zyxqual" in shown(app, whole).content
    do(app, "withdraw", source=BAD, apply=True)
    assert shown(app, whole).content == "Ada paints boats. Ada paints masts."
    assert "zyxqual" not in everything(app)
    assert ill(app) == []


def test_a_session_an_author_and_a_time_are_withdrawn(app: App, clock: Clock) -> None:
    """All that is given must be met; another author's memories stay, and so does what is above the levels named."""
    bob = ADA.model_copy(update={"user": "bob"})
    mine, his = add(app, "The mast is oak."), add(app, "The keel is iron.", bob)
    hidden = add(app, "The anchor is lead.", session_id="s1", sensitivity="private")
    clock.pass_days(1)
    late = add(app, "The rope is hemp.", session_id="s1")
    assert do(app, "withdraw", session_id="s1").hidden == (late,)
    assert set(do(app, "withdraw", session_id="s1", allow_private=True).hidden) == {hidden, late}
    assert do(app, "withdraw", author="bob").hidden == (his,)
    assert do(app, "withdraw", since=clock().date().isoformat()).hidden == (late,)
    assert do(app, "withdraw", author="ada", session_id="s2").hidden == ()
    assert mine in listed(app)
    with pytest.raises(InvalidInput, match="Name a source"):
        do(app, "withdraw", apply=True)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("https://docs.example.com/a/b", 1),
        ("https://docs.example.com/a", 1),
        ("docs.example.com", 1),
        ("example.com", 0),
        ("docs.example.co", 0),
        ("https://docs.example.com/a/bc", 0),
    ],
)
def test_a_source_is_an_address_a_path_above_it_or_its_host(app: App, source: str, found: int) -> None:
    """Names that only begin alike are another source."""
    add(app, "The mast is oak.", ADA.saying(SaidBy.WEB, "https://docs.example.com/a/b"))
    assert len(do(app, "withdraw", source=source).hidden) == found


def test_after_thirty_days_it_is_gone_for_good(app: App, clock: Clock) -> None:
    """A purge removes what was withdrawn longer ago than it can be undone, and nothing before."""
    add(app, "The mast is zyxqual.", page(BAD))
    done = do(app, "withdraw", source=BAD, apply=True)
    clock.pass_days(29)
    assert do(app, "purge_expired").ids == ()
    clock.pass_days(2)
    assert do(app, "purge_expired").ids == done.hidden
    with pytest.raises(NotFound):
        do(app, "undo_withdrawal", id=done.id)
    assert ill(app) == []


def test_a_kill_withdraws_all_or_nothing(settings: Settings, environment: dict[str, str]) -> None:
    """Whenever the process dies, the store is as before the withdrawal or as after it, and well."""
    assert kill_withdrawals(settings, environment, range(2), memories=6).kills == 2

"""The inbox: how long something may wait, that what waits is put before nothing, and what becomes of quarantine."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta

import pytest

from callers import ADA
from clock import Clock
from recollect import App, Settings
from recollect.domain.enums import OnFound, Scope
from recollect.domain.origin import SaidBy
from recollect.domain.requests import Caller
from recollect.domain.review import Waiting
from recollect.errors import Forbidden, InvalidInput, NotFound, SecretFound
from run_operations import OTHER, actions, add, by_hand, do, ill, listed, rows, shown, token

TOLD = "We deploy the billing service from the branch release-stable."
CLAIM = "We deploy the billing service from the branch release-canary now."
PROMPT = "From which branch do we deploy the billing service?"
FAILURE = "release-canary now: deploy of the billing service failed, error: no such branch release-canary"
UNDECIDED = {
    "page": ADA.saying(SaidBy.WEB, "https://docs.example.com/deploys"),
    "import": ADA.saying(SaidBy.IMPORT, "notes.md:3"),
    "model": ADA.saying(SaidBy.MODEL, "session s1"),
    "tool": ADA.saying(SaidBy.TOOL, "mcp__wiki"),
    "foreign file": ADA.saying(SaidBy.FOREIGN_FILE, "/usr/share/doc/deploy.md"),
    "command": ADA.saying(SaidBy.COMMAND, "make deploys"),
}


def waiting(app: App, caller: Caller = ADA, **fields: object) -> list[Waiting]:
    """Return what waits for a decision."""
    return list(do(app, "inbox", caller, **fields).waiting)


def test_what_waits_too_long_is_said(open_store: Callable[..., App], clock: Clock) -> None:
    """Once the days set have passed, the inbox, the start of a session and the doctor's line say how many are late."""
    app = open_store(inbox_days=3.0)
    add(app, CLAIM, UNDECIDED["page"])
    clock.pass_days(2)
    add(app, "The vendor's cache has nine gigabytes.", UNDECIDED["page"])
    chat = {"content": "The old quay closed.", "origin": "chat:1", "created_at": "2020-03-01T10:00:00Z"}
    do(app, "import_batch", items=[{"kind": "memory", "where": "chat, 1", "fields": chat}], last=True)
    before = do(app, "inbox")
    assert (before.total, before.overdue, before.check.well) == (3, 0, True)  # it came in today
    clock.pass_days(1.5)
    late = do(app, "inbox", limit=1)
    assert (late.total, late.overdue, late.check.well) == (3, 1, False)
    assert "1 of them for more than 3 days" in late.message
    assert late.check.advice
    assert late.message in do(app, "answer_start", session_id="s1", source="startup").text


@pytest.mark.parametrize("said", sorted(UNDECIDED))
def test_what_is_not_decided_is_put_before_nothing(app: App, clock: Clock, said: str) -> None:
    """Neither a prompt, the start of a session, a failure nor a prompt's share gets it, however long it waits."""
    add(app, TOLD, tags=["deploy"])
    rule = {"fact_type": "decision", "importance": 1.0}
    one = add(app, CLAIM, UNDECIDED[said], **rule)
    assert one in {each.id for each in waiting(app)}
    for days in (0, 400):
        clock.pass_days(days)
        session = f"s{days}"
        answers = [
            do(app, "answer_prompt", session_id=session, prompt=PROMPT),
            do(app, "answer_start", session_id=session, source="startup"),
            do(app, "answer_tool", session_id=session, tool="Bash", input={}, output=FAILURE, failed=True),
        ]
        assert [str(one) in each.memory_ids or "canary" in each.text for each in answers] == [False] * 3
        assert "canary" not in do(app, "format_for_prompt").text
    do(app, "decide", id=str(one), decision="approve")
    assert "canary" in do(app, "format_for_prompt").text


@pytest.fixture
def quarantined(app: App, settings: Settings) -> tuple[App, int]:
    """Return a store that has put a memory in quarantine, since a secret got into it before a detector knew it."""
    one = add(app, "The deploy bot signs in with its own account.", tags=["bot"])
    by_hand(settings, "UPDATE memory SET content = ? WHERE id = ?", f"The deploy bot signs in with {token()}.", one)
    do(app, "rescan", on_found=OnFound.QUARANTINE)
    return app, one


def test_quarantine_waits_in_the_inbox(quarantined: tuple[App, int]) -> None:
    """What a rescan put there waits with where the secret is and of which kind, and never shows it."""
    app, one = quarantined
    found = waiting(app)
    assert [(each.id, each.quarantined) for each in found] == [(one, True)]
    assert found[0].why.startswith("in quarantine: ")
    assert "`content`" in found[0].why
    assert "The deploy bot signs in with [redacted: " in found[0].content
    assert token() not in repr(found)
    assert waiting(app, OTHER) == []
    for decision in ("always", "never"):
        with pytest.raises(InvalidInput, match="approved or rejected by itself"):
            do(app, "decide", id=str(one), decision=decision)


def test_only_the_gate_lets_it_out_of_quarantine(quarantined: tuple[App, int], settings: Settings) -> None:
    """Approved it is refused while the gate finds the secret, and comes back when it does not, or in other words."""
    app, one = quarantined
    with pytest.raises(SecretFound, match="content"):
        do(app, "decide", id=str(one), decision="approve")
    assert len(waiting(app)) == 1
    with pytest.raises(SecretFound):
        do(app, "decide", id=str(one), decision="approve", content=f"It signs in with {token()}.")
    do(app, "decide", id=str(one), decision="approve", content="The deploy bot has an account.")
    back = shown(app, one)
    assert (back.content, back.tags, back.origin) == ("The deploy bot has an account.", ("bot",), "a person")
    assert token() not in repr(back)
    assert (waiting(app), listed(app), ill(app)) == ([], [one], [])


def test_what_is_rejected_in_quarantine_is_forgotten(quarantined: tuple[App, int]) -> None:
    """Rejected it is removed for good, and no second decision finds it."""
    app, one = quarantined
    do(app, "decide", id=str(one), decision="reject")
    assert waiting(app) == []
    assert actions(app, one)[-1] == "delete"
    with pytest.raises(NotFound):
        do(app, "decide", id=str(one), decision="approve")
    assert ill(app) == []


def test_out_of_quarantine_a_page_waits_as_before(app: App, settings: Settings) -> None:
    """The gate says nothing about a source: what waited for that before quarantine waits for it afterwards."""
    page = add(app, "The page lists the ports.", UNDECIDED["page"])
    by_hand(settings, "UPDATE memory SET subtitle = ? WHERE id = ?", f"token {token()}", page)
    do(app, "rescan", on_found=OnFound.QUARANTINE)
    by_hand(settings, "UPDATE memory SET subtitle = '' WHERE id = ?", page)
    assert "finds no secret in it any more" in waiting(app)[0].why
    do(app, "decide", id=str(page), decision="approve")
    assert [(each.id, each.quarantined, each.why) for each in waiting(app)] == [
        (page, False, "the source is not approved")
    ]


def test_a_level_that_is_not_let_in_waits_unseen(app: App, settings: Settings) -> None:
    """What is private waits, in quarantine or not, for its author alone and where that level is let in."""
    one = add(app, "My desk has a lamp.", sensitivity="private", allow_private=True)
    by_hand(settings, "UPDATE memory SET subtitle = ? WHERE id = ?", f"token {token()}", one)
    do(app, "rescan", on_found=OnFound.QUARANTINE, allow_private=True)
    bob = ADA.model_copy(update={"user": "bob"})
    assert waiting(app) == waiting(app, bob, allow_private=True) == []
    assert [each.id for each in waiting(app, allow_private=True)] == [one]
    with pytest.raises(NotFound):
        do(app, "decide", bob, id=str(one), decision="reject", allow_private=True)


def test_a_decision_about_a_source_is_listed_and_taken_back(app: App, settings: Settings, clock: Clock) -> None:
    """Who decided what of which source is shown; after it is taken back, the source waits again."""
    said = UNDECIDED["page"]
    one = add(app, CLAIM, said)
    do(app, "decide", id=str(one), decision="always")
    clock.pass_days(1)
    two = add(app, "The wiki has nine pages.", UNDECIDED["tool"])
    do(app, "decide", id=str(two), decision="never")
    rules = do(app, "source_rules")
    assert [(one.source, one.decision, one.scope, one.author) for one in rules.rules] == [
        ("tool:mcp__wiki", "never", "project", "ada"),
        ("web:docs.example.com", "always", "project", "ada"),
    ]
    assert rules.rules[0].at - rules.rules[1].at == timedelta(days=1)
    assert [one.source for one in do(app, "source_rules", limit=1, offset=1).rules] == ["web:docs.example.com"]
    for source in ("web:docs.example.com", "tool:mcp__wiki"):
        assert "waits in the inbox" in do(app, "drop_source_rule", source=source).message
        assert do(app, "drop_source_rule", source=source).message.startswith(f"{source} has no rule: ")
    assert do(app, "source_rules").rules == ()
    assert (shown(app, one).review, listed(app)) == ("approved", [one])
    later = [add(app, "The vendor's cache has nine gigabytes.", said), add(app, "It has ten.", UNDECIDED["tool"])]
    assert {each.id for each in waiting(app)} == {*later}
    lines = [json.loads(one) for (one,) in rows(settings, "SELECT changes FROM journal WHERE action = 'review'")]
    sources = ("web:docs.example.com", "tool:mcp__wiki")
    found = [(one["source"], one["approved"]) for one in lines if "source" in one]
    assert found == [*zip(sources, (True, False), strict=True), *((one, None) for one in sources)]
    assert ill(app) == []


def test_a_decision_about_a_private_source_is_its_authors(app: App) -> None:
    """Others of the project see decisions about what they see, and only who may write takes one back."""
    bob = ADA.model_copy(update={"user": "bob"})
    reader = bob.model_copy(update={"writes": ()})
    for place, level in (("docs", "public"), ("diary", "private")):
        page = ADA.saying(SaidBy.WEB, f"https://{place}.example.com/1")
        one = add(app, f"The {place} say nothing.", page, sensitivity=level, allow_private=True)
        do(app, "decide", id=str(one), decision="never", allow_private=True)
    hidden = {"source": "web:diary.example.com", "allow_private": True}
    for each, sees in ((ADA, 2), (bob, 1), (reader, 1), (OTHER, 0)):
        assert do(app, "source_rules", each, allow_private=True).total == sees
    assert do(app, "drop_source_rule", bob, **hidden).rules == ()
    assert do(app, "source_rules", allow_private=True).total == 2
    with pytest.raises(Forbidden):
        do(app, "drop_source_rule", reader, source="web:docs.example.com")
    assert do(app, "drop_source_rule", bob, source="web:docs.example.com", scope="project").rules
    assert [one.source for one in do(app, "drop_source_rule", **hidden).rules] == ["web:diary.example.com"]


def test_a_rule_goes_where_one_may_write(app: App) -> None:
    """Rules in scopes that one may only read stay; where all of a source lie in such, removing them is refused."""
    for scope in ("project", "personal"):
        said = UNDECIDED["page"]
        one = add(app, f"The {scope} cache has nine gigabytes.", said, scope=scope)
        do(app, "decide", id=str(one), decision="always")
    mine = ADA.model_copy(update={"writes": (Scope.PERSONAL,)})
    source = "web:docs.example.com"
    assert [one.scope for one in do(app, "drop_source_rule", mine, source=source).rules] == ["personal"]
    assert [one.scope for one in do(app, "source_rules").rules] == ["project"]
    with pytest.raises(Forbidden):
        do(app, "drop_source_rule", mine, source=source)

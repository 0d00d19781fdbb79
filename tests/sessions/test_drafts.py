"""Drafts: found behind what was told, shown to nobody who did not ask, gone in time, replaced by the agent's words."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from callers import ADA
from clock import Clock
from recollect import App, Caller, Memory
from recollect.domain.lifecycle import CorrectObservation, Injection
from recollect.domain.origin import Authority, SaidBy
from recollect.sessions.session_log import correct_observation
from recollect.sessions.session_state import state_of
from run_operations import OTHER, add, do, ill, listed, recalled, shown

ASSISTANT = ADA.saying(SaidBy.ASSISTANT)
HULL = ADA.model_copy(update={"project": "hull"})
SLOW = "GET /items  200  median 118 ms instead of 1830 ms, since the tags are loaded with the items"
ASKED = "How many ms does GET /items take, the median of the items list?"
RULE = "From now on nobody edits gen/ by hand, because `make api` overwrites it."
FAILS = "E   QueueError: the queue harbour-orders is shut, so that no order reaches the ferry"

COMMAND: dict[str, Any] = {
    "tool": "Bash",
    "input": {"command": "python bench.py /items", "description": "Measure the items list"},
    "output": SLOW,
}
EDIT: dict[str, Any] = {
    "tool": "Edit",
    "input": {
        "file_path": "/shop/api/items.py",
        "old_string": "",
        "new_string": "# GET /items takes a median of 118 ms, because the tags are loaded with the items.\nload()",
    },
    "output": "updated",
}
REPORT: dict[str, Any] = {"tool": "Task", "input": {"description": "Measure GET /items"}, "output": SLOW}
PAGE: dict[str, Any] = {"tool": "WebFetch", "input": {"url": "https://docs.example.com/items"}, "output": SLOW}
NOTED = {"command": COMMAND, "edit": EDIT, "report": REPORT, "page": PAGE}


def noted(app: App, caller: Caller = ADA, session: str = "s1", **event: Any) -> Memory:
    """Report the use of a tool, and return the draft that it leaves."""
    found = do(app, "tool_post", caller, session_id=session, **(event or COMMAND))
    assert found.memory_id is not None, found.reason
    return shown(app, int(found.memory_id), caller)


def ruled(app: App, said: str = RULE, session: str = "s1") -> Memory:
    """State a rule in a prompt, and return the draft of it."""
    do(app, "prompt_submit", session_id=session, prompt=said)
    (one,) = (one for one in do(app, "list_memories").memories if one.content == said)
    return shown(app, one.id)


def stored(app: App, content: str, session: str = "s1", **fields: Any) -> int:
    """Let the agent remember something, and its hook report what the tool answered."""
    outcome = do(app, "remember", ASSISTANT, content=content, **fields)
    given = {"action": "remember", "content": content}
    told = {"tool": "mcp__recollect__memory", "input": given, "output": outcome.message}
    do(app, "tool_post", session_id=session, **told)
    return int(outcome.id)


def begin(app: App, session: str = "next") -> str:
    """Return what a session begins with."""
    found: Injection = do(app, "answer_start", session_id=session, source="startup")
    return found.text


def index_lines(app: App) -> list[str]:
    """Return the lines of the index of the next session."""
    return [line for line in begin(app).splitlines() if line.startswith("- [")]


def before_prompt(app: App, prompt: str = ASKED) -> tuple[str, ...]:
    """Return the memories that stand before a prompt."""
    found: Injection = do(app, "answer_prompt", session_id="next", prompt=prompt)
    return found.memory_ids


def keep(app: App, number: int = 1, session: str = "s1") -> None:
    """Let a person keep what was noted of an event."""
    correct_observation(app, CorrectObservation(session_id=session, number=number, keep=True), ADA)


@pytest.mark.parametrize("told_first", [True, False])
def test_a_draft_is_found_behind_what_was_told(app: App, clock: Clock, told_first: bool) -> None:
    """Recall finds a draft behind a memory that answers as well, though it matches better, whichever is newer."""

    def tell() -> int:
        return add(app, "How long GET /items takes was measured by Bob: 120 ms.", ASSISTANT)

    told = tell() if told_first else 0
    clock.pass_days(1)
    draft = noted(app)
    clock.pass_days(1)
    told = told or tell()
    assert (draft.is_draft, draft.authority, draft.review) == (True, Authority.OBSERVED, None)
    first, second = do(app, "recall", query=ASKED).hits
    assert [first.memory.id, second.memory.id] == [told, draft.id]
    assert second.match > first.match


def test_a_draft_alone_answers(app: App) -> None:
    """Where nobody told anything of it a draft is the answer to whoever asks."""
    draft = noted(app)
    assert recalled(app, ASKED) == {draft.id}


@pytest.mark.parametrize("event", NOTED.values(), ids=NOTED)
def test_a_draft_speaks_to_nobody_who_did_not_ask(app: App, event: dict[str, Any]) -> None:
    """It has no line in the index and stands before no prompt; what a person stores in the same words has and does."""
    draft = noted(app, **event)
    assert (draft.is_draft, draft.speaks_unasked) == (True, False)
    assert index_lines(app) == []
    assert before_prompt(app) == ()
    do(app, "forget", id=str(draft.id))
    told = add(app, draft.content)
    assert len(index_lines(app)) == 1
    assert before_prompt(app) == (str(told),)


def test_a_draft_does_not_follow_a_failure(app: App) -> None:
    """After the same failure in another session nothing is said of what only a draft holds."""
    failed = {"tool": "Bash", "input": {"command": "pytest tests/orders"}, "output": FAILS, "failed": True}
    draft = noted(app, **failed)
    assert do(app, "answer_tool", session_id="next", **failed).memory_ids == ()
    keep(app)
    assert do(app, "answer_tool", session_id="next", **failed).memory_ids == (str(draft.id),)


def test_a_sentence_that_states_no_rule_is_silent(app: App) -> None:
    """What a person says beside their rules is found by recall and shown to nobody else, and no count tells of it."""
    said = "we moved the queue to NATS last week, redis streams are gone since then on staging"
    draft = ruled(app, said)
    assert (draft.said_by, draft.is_draft, draft.is_rule) == (SaidBy.PERSON, True, False)
    assert begin(app) == ""
    assert before_prompt(app, "where is the queue now, in NATS or in redis streams?") == ()
    assert recalled(app, "queue NATS redis streams") == {draft.id}


def test_a_rule_in_a_persons_words_speaks(app: App) -> None:
    """It stands whole in the index of the next session and before a prompt that it answers, though it is a draft."""
    rule = ruled(app)
    assert (rule.is_draft, rule.is_rule, rule.authority) == (True, True, Authority.TOLD)
    assert index_lines(app) == [f"- [{rule.id}] {RULE} (decision, today)"]
    assert before_prompt(app, "may I edit gen/ by hand, or does `make api` overwrite it?") == (str(rule.id),)


def test_a_rule_in_a_report_does_not(app: App) -> None:
    """The same words from an agent, a file or a page are no rule."""
    for name, event in (("report", REPORT), ("page", PAGE)):
        one = noted(app, session=name, **(event | {"output": f"{RULE} ({name})"}))
        assert (one.is_rule, one.speaks_unasked) == (False, False)
    assert index_lines(app) == []


def test_a_draft_is_gone_after_ninety_days(app: App, clock: Clock) -> None:
    """Until then it is there, on the ninetieth day no read has it any more; a rule goes like any other draft."""
    draft, rule = noted(app), ruled(app)
    told = add(app, "The mast is oak.")
    assert {shown(app, one.id).expires_at for one in (draft, rule)} == {clock() + timedelta(days=90)}
    assert shown(app, told).expires_at is None
    clock.pass_days(90 - 1 / 1440)
    assert sorted(listed(app)) == sorted([draft.id, rule.id, told])
    assert index_lines(app) == [f"- [{rule.id}] {RULE} (decision, 2 months)", f"- [{told}] The mast is oak. (2 months)"]
    clock.pass_days(1 / 1440)
    assert listed(app) == [told]
    assert recalled(app, ASKED) == set()
    assert index_lines(app) == [f"- [{told}] The mast is oak. (3 months)"]


def test_use_puts_the_end_of_a_draft_off(app: App, clock: Clock) -> None:
    """Its ninety days begin anew when a question finds it."""
    draft = noted(app)
    clock.pass_days(60)
    assert recalled(app, ASKED) == {draft.id}
    clock.pass_days(89)
    assert listed(app) == [draft.id]
    clock.pass_days(1)
    assert listed(app) == []


@pytest.mark.parametrize(
    ("days", "left"), [("30", timedelta(days=30)), ("0", timedelta(days=90)), ("365", timedelta(days=90))]
)
def test_a_project_says_how_long_a_draft_is_kept(app: App, clock: Clock, tmp_path: Path, days: str, left: Any) -> None:
    """Its file has the term of its own drafts; a session elsewhere has that of the store."""
    (tmp_path / "recollect.toml").write_text(f"default_ttl_days = {days}\n", encoding="utf-8")
    here = noted(app, **COMMAND, folder=str(tmp_path))
    assert here.expires_at == (left and clock() + left)
    there = noted(app, session="s2", **(COMMAND | {"output": "the ferry takes 41 minutes to the harbour"}))
    assert there.expires_at == clock() + timedelta(days=90)


def test_a_project_says_how_many_drafts_it_keeps(app: App, clock: Clock, tmp_path: Path) -> None:
    """Beyond `max_memories` of its file the oldest drafts go when a session ends; what was told stays."""
    told = add(app, "The mast is oak.")
    drafts = []
    for minutes, place in ((41, "harbour"), (17, "lighthouse"), (68, "dockyard"), (23, "boathouse")):
        clock.pass_days(1)
        said = f"the ferry takes {minutes} minutes to the {place}"
        drafts.append(noted(app, session=place, **(COMMAND | {"output": said})).id)
    do(app, "session_end", session_id="harbour")
    assert sorted(listed(app)) == [told, *drafts]
    (tmp_path / "recollect.toml").write_text("max_memories = 2\n", encoding="utf-8")
    do(app, "session_end", session_id="harbour", folder=str(tmp_path))
    assert sorted(listed(app)) == [told, *drafts[2:]]
    assert ill(app) == []


def test_what_the_agent_stores_replaces_the_drafts_that_say_it(app: App) -> None:
    """The session's draft of the same thing gives way to the agent's memory; its other drafts stay drafts."""
    draft = noted(app)
    other = noted(app, **(COMMAND | {"output": FAILS}))
    new = stored(app, "GET /items answers in a median of 118 ms instead of 1830 ms since the tags are loaded with it.")
    assert shown(app, draft.id).superseded_by == new
    assert (shown(app, other.id).superseded_by, shown(app, other.id).is_draft) == (None, True)
    assert sorted(listed(app)) == [other.id, new]
    assert recalled(app, ASKED) == {new}
    assert not shown(app, new).is_draft
    assert ill(app) == []


def test_a_new_version_of_a_memory_replaces_drafts_too(app: App) -> None:
    """The tool's answer to an update names the memory as its answer to a new one does."""
    old = add(app, "GET /items answers in a median of 1830 ms.", ASSISTANT)
    draft = noted(app)
    said = "GET /items answers in a median of 118 ms instead of 1830 ms since the tags are loaded with it."
    assert stored(app, said, id=str(old)) == old
    assert shown(app, draft.id).superseded_by == old


def test_what_the_agent_stores_leaves_the_drafts_of_others(app: App) -> None:
    """A draft of another session, of another project or of another person stays, however much it says the same."""
    drafts = {"other session": noted(app, session="s2"), "other person": noted(app, OTHER), "project": noted(app, HULL)}
    said = "GET /items answers in a median of 118 ms instead of 1830 ms since the tags are loaded with it."
    noted(app, **(COMMAND | {"output": FAILS}))
    stored(app, said)
    for name, caller in (("other session", ADA), ("other person", OTHER), ("project", HULL)):
        one = shown(app, drafts[name].id, caller)
        assert (one.superseded_by, one.is_draft) == (None, True), name


@pytest.mark.parametrize("scope", ["personal", "team"])
def test_a_memory_elsewhere_leaves_the_drafts_of_the_project(app: App, scope: str) -> None:
    """What the agent stores for the person or the team alone takes nothing from the project."""
    draft = noted(app)
    said = "GET /items answers in a median of 118 ms instead of 1830 ms since the tags are loaded with it."
    stored(app, said, scope=scope)
    assert shown(app, draft.id).superseded_by is None


def test_what_was_told_or_kept_is_not_replaced(app: App) -> None:
    """Only drafts give way: what a person stored before stays, and so does what the session noted and a person kept."""
    kept = noted(app)
    keep(app)
    told = add(app, "GET /items answers in a median of 118 ms, since the tags are loaded with the items.")
    new = stored(app, "GET /items answers in a median of 118 ms instead of 1830 ms since the tags are loaded with it.")
    assert len({kept.id, told, new}) == 3
    assert [shown(app, one).superseded_by for one in (told, kept.id)] == [None, None]


def test_a_rule_outlives_what_is_only_about_the_same(app: App) -> None:
    """What the agent stores of the rule's subject takes its place only where it says the rule."""
    rule = ruled(app)
    stored(app, "gen/ is overwritten by `make api`.")
    assert shown(app, rule.id).superseded_by is None
    assert any(RULE in line for line in index_lines(app))


def test_what_waits_for_a_decision_silences_no_rule(app: App) -> None:
    """Where the agent says again what a page said, the page's memory takes no place of a person's rule."""
    said = "Nobody edits gen/ by hand, because `make api` overwrites it from now on."
    page = add(app, said, ADA.saying(SaidBy.WEB, "https://docs.example.com/gen"))
    rule = ruled(app)
    assert stored(app, said) == page
    assert shown(app, rule.id).superseded_by is None
    assert any(RULE in line for line in index_lines(app))


@pytest.mark.parametrize(
    "output",
    [
        "",
        "Memory stored successfully with ID: 999",
        "Memory stored successfully with ID: {draft}",
        "Memory stored successfully with ID: {foreign}",
        "Memory {told} already says this.",
        "Missing content: `remember` requires `content`",
    ],
)
def test_an_answer_that_names_no_memory_of_ours_replaces_nothing(app: App, output: str) -> None:
    """Neither what failed nor the id of a draft, of another person's memory or of none takes the place of a draft."""
    draft = noted(app)
    said = "GET /items answers in a median of 118 ms instead of 1830 ms since the tags are loaded with it."
    foreign, told = add(app, said, OTHER), add(app, said, ASSISTANT)
    answer = output.format(draft=draft.id, foreign=foreign, told=told)
    given = {"tool": "mcp__recollect__memory", "input": {"action": "remember"}, "output": answer}
    do(app, "tool_post", session_id="s1", **given)
    assert shown(app, draft.id).superseded_by is None
    session = app.sessions.find(ADA, "s1")
    assert session is not None
    assert state_of(session.state).undecided == ()


def test_looking_something_up_replaces_nothing(app: App) -> None:
    """An answer to `recall` that quotes such a sentence is no storing."""
    draft = noted(app)
    told = add(app, "GET /items answers in a median of 118 ms instead of 1830 ms since the tags are loaded.", ASSISTANT)
    given = {"tool": "mcp__recollect__memory", "input": {"action": "recall", "query": "items"}}
    do(app, "tool_post", session_id="s1", **given, output=f"Memory stored successfully with ID: {told}")
    assert shown(app, draft.id).superseded_by is None


@pytest.mark.parametrize("how", ["keep", "pin", "remember", "agent"])
def test_what_somebody_keeps_is_a_memory_like_any_other(app: App, clock: Clock, how: str) -> None:
    """Kept, pinned or stored in the same words a draft speaks unasked, never ends, and gives way to nothing."""
    draft = noted(app)
    match how:
        case "keep":
            keep(app)
        case "pin":
            do(app, "pin", id=str(draft.id))
        case _:
            assert add(app, draft.content, ASSISTANT if how == "agent" else ADA) == draft.id
    kept = shown(app, draft.id)
    assert (kept.is_draft, kept.speaks_unasked, kept.expires_at) == (False, True, None)
    assert (kept.content, kept.source) == (draft.content, draft.source)
    assert kept.said_by is (SaidBy.PERSON if how == "remember" else SaidBy.COMMAND)
    assert before_prompt(app) == (str(draft.id),)
    clock.pass_days(400)
    assert listed(app) == [draft.id]
    assert len(index_lines(app)) == 1
    assert ill(app) == []


def test_what_was_dropped_and_is_kept_by_hand_is_no_draft(app: App) -> None:
    """A person who keeps what was below the gate wants it like anything that they store."""
    do(app, "tool_post", session_id="s1", **(COMMAND | {"output": "the anchor is gone"}))
    assert listed(app) == []
    keep(app)
    (one,) = (shown(app, each) for each in listed(app))
    assert (one.is_draft, one.speaks_unasked, one.expires_at) == (False, True, None)


@pytest.mark.parametrize("how", ["keep", "pin", "agent"])
def test_keeping_approves_nothing_from_outside(app: App, how: str) -> None:
    """What a page said goes on waiting for a decision, and speaks only once a person has approved it."""
    draft = noted(app, **PAGE)
    assert draft.review == "the source is not approved"
    if how == "keep":
        keep(app)
    elif how == "pin":
        do(app, "pin", id=str(draft.id))
    else:
        add(app, draft.content, ASSISTANT)
    kept = shown(app, draft.id)
    assert (kept.review, kept.unapproved, kept.speaks_unasked) == ("the source is not approved", True, False)
    assert do(app, "inbox").total == 1
    assert index_lines(app) == []
    assert before_prompt(app) == ()
    do(app, "decide", id=str(draft.id), decision="approve")
    assert shown(app, draft.id).speaks_unasked
    assert before_prompt(app) == (str(draft.id),)


def test_keeping_what_may_deny_a_person_does_not_let_it_speak(app: App) -> None:
    """What a command says otherwise than somebody told waits for a decision of its own, also when it is kept."""
    told = add(app, "GET /items takes a median of 1830 ms, since the tags are not loaded with the items.")
    draft = noted(app)
    assert draft.review == f"may contradict memory {told}"
    keep(app)
    kept = shown(app, draft.id)
    assert (kept.review, kept.speaks_unasked) == (f"may contradict memory {told}", False)


def test_what_a_person_kept_is_not_written_over(app: App) -> None:
    """A failure that somebody pinned stays as it is when the command passes; the proof is a draft of its own."""
    failed = noted(app, **(COMMAND | {"output": FAILS}))
    do(app, "pin", id=str(failed.id))
    do(app, "tool_post", session_id="s1", **EDIT)
    proof = noted(app, **(COMMAND | {"output": "the queue opens again"}))
    assert "passes after a change of" in proof.content
    assert proof.id != failed.id
    assert shown(app, failed.id).content == failed.content


@pytest.mark.parametrize("verb", ["update_memory", "remember"])
def test_what_a_person_writes_over_a_draft_has_no_end(app: App, clock: Clock, verb: str) -> None:
    """A draft in other words, by a person, is theirs like any memory that they store."""
    draft = noted(app)
    do(app, verb, id=str(draft.id), content="GET /items must stay below 200 ms.")
    assert (shown(app, draft.id).is_draft, shown(app, draft.id).expires_at) == (False, None)
    clock.pass_days(91)
    assert listed(app) == [draft.id]


def test_what_is_made_of_drafts_speaks_no_more_than_they(app: App, clock: Clock) -> None:
    """A summary of old drafts has no line in the index and stands before no prompt."""
    for said in ("expires after an hour", "expires early under load", "expired and made logins slow"):
        one = {"command": "python probe.py", "description": "The session cache of Redis"}
        do(
            app,
            "tool_post",
            session_id=said,
            tool="Bash",
            input=one,
            output=f"error: the session cache of Redis {said}",
        )
    assert len(listed(app)) == 3
    clock.pass_days(8)
    do(app, "session_end", session_id="s1")
    (whole,) = (shown(app, one) for one in listed(app, type="compressed_summary"))
    assert index_lines(app) == []
    assert before_prompt(app, "why does the session cache of Redis expire early?") == ()
    assert whole.is_draft

"""The cases: what a person does with an agent and Recollect, and what must come of it. A `Red` says what did not."""

from __future__ import annotations

import json
import os
import re
import signal
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from agent_drivers.place import Place
from agent_drivers.programs import AGENTS, Agent, Session
from agent_drivers.protocols import Step
from recollect.doors import hook_contracts

INDEX: Final = "<memory-index>"
ASKED: Final = "Before you end: did this session learn something"
"""How the index and the question begin; the model answers the question as it answers a prompt."""
LESSON: Final = "From now on use pnpm instead of npm in this repository, since npm ignores our workspace protocol."
SECOND: Final = "Never store card numbers in the orders table, because the auditors forbid it."
LEARNT: Final = "pnpm"
FACT: Final = "We ship on Tuesday mornings, because the warehouse is empty then."
QUESTION: Final = "On which day of the week do we ship?"
OTHER: Final = "Rename the variable in the loop to total."
NEXT: Final = "Rename the other variable to sum."
ONE, TWO = "The invoices are numbered per country.", "The staging server stands in Lyon."
HOOK_LIMIT: Final = 2_900.0  # milliseconds; agents stop a hook after 3,000
CALL_LIMIT: Final = 60.0  # seconds for a session whose call of the tool meets a daemon that hangs
REMEMBER: Final = Step("memory", {"action": "remember", "content": FACT})
RECALL: Final = Step("memory", {"action": "recall", "query": QUESTION})
WORKS: Final = Step("shell", {"command": "echo it works"})
CHECK: Final = """[ -s database.ini ] && echo "42 passed in 3.1s" && exit 0
echo "E   sqlite3.OperationalError: database is locked"
echo "FAILED tests/test_orders.py::test_two_writers - sqlite3.OperationalError: database is locked"
echo "1 failed, 41 passed in 3.2s"
exit 1
"""
"""A test that fails until a file is there."""
REMEDY: Final = "busy_timeout = 30000  # two writers wait for each other, as SQLite gives up at once without it"
LOCKED: Final = (
    "sqlite3.OperationalError: database is locked means that two tests write at once; busy_timeout = 30000 in "
    "database.ini mends it."
)
DEPLOY: Final = "Deployments need the VPN profile named Helsinki, else they end after ten minutes."
ABSENT: Final = "The folder for uploads is made by the script bin/first_start."
RULE: Final = "Every migration has a second file that takes it back, since we go back to the last release often."
LATER: Final = "Amounts are integers of cents, since the tax office compares them to the cent."
KEPT: Final = "Use pnpm instead of npm in this repository, since npm ignores our workspace protocol."
"""What the agent makes of the lesson."""
READ: Final = Step("shell", {"command": "cat README.md"})
DEPLOYS: Final = Step("shell", {"command": "echo deploy"})
PAUSE: Final = 3.0  # seconds in which what a session did is noted; a real model takes as long


class Red(Exception):
    """What did not come as it must, in one line."""


@dataclass
class Outcome:
    """What came of one case of one agent."""

    agent: str
    case: str
    state: str
    """`green`, `red` or `not offered`."""
    why: str = ""
    seconds: float = 0.0
    hooks: list[tuple[str, float]] = field(default_factory=list)
    """Event and milliseconds of each hook that ran."""
    injected: list[int] = field(default_factory=list)
    """Bytes of each text that a hook put before a prompt."""

    def public(self) -> dict[str, Any]:
        """Return it for `--json`."""
        return asdict(self)


def check(holds: object, why: str) -> None:
    """Raise `Red` where something does not hold."""
    if not holds:
        raise Red(" ".join(why.split())[:300])


def ready(agent: Agent, place: Place, *options: str) -> None:
    """Lead an agent to its model, and install Recollect for it where there is an installation."""
    agent.prepare(place)
    if agent.installs:
        done = place.recollect("install", agent.name, "--yes", *options)
        check(done.code == 0, f"`recollect install` ended with {done.code}: {done.told}")


def asked(agent: Agent, place: Place, prompt: str, *steps: Step) -> Session:
    """Run a session that must end well, in which every hook must have ended well and in silence."""
    return sound(place, agent.ask(place, prompt, steps))


def sound(place: Place, session: Session) -> Session:
    """Raise `Red` for a session that ended badly, or in which a hook did."""
    check(session.ended.code == 0, f"the session ended with {session.ended.code}: {session.ended.told}")
    for hook in place.hooks():
        check(hook.code == 0, f"the hook {hook.event} ended with {hook.code}: {hook.errors}")
        check(not hook.errors.strip(), f"the hook {hook.event} wrote: {hook.errors}")
        check(hook.ms < HOOK_LIMIT, f"the hook {hook.event} took {hook.ms:.0f} ms")
    return session


def install(agent: Agent, place: Place) -> None:
    """Install writes what `doctor` then finds sound, and a second run changes nothing."""
    ready(agent, place)
    before = place.files()
    told = place.recollect("doctor").out
    for name in (agent.name, f"{agent.name} hooks"):
        check(re.search(rf"✓\s*{name}\s", told), f"`doctor` has no good line for {name}")
    ready_again = place.recollect("install", agent.name, "--yes")
    check(ready_again.code == 0 and place.files() == before, "a second `recollect install` changed files")


def connect(agent: Agent, place: Place) -> None:
    """The first session after the installation has the tool."""
    ready(agent, place)
    session = asked(agent, place, OTHER)
    check(session.offered, "the model was not offered the tool in its first request")


def call(agent: Agent, place: Place) -> None:
    """One session remembers and another recalls it, without any dialog."""
    ready(agent, place)
    first = asked(agent, place, "Please keep in mind when we ship.", REMEMBER)
    check(any("stored" in one for one in first.results), f"not remembered: {_last(first)}")
    second = asked(agent, place, "When was it that we ship?", RECALL)
    check(any(FACT in one for one in second.results), f"not recalled: {_last(second)}")


def ask_tool(agent: Agent, place: Place) -> None:
    """With `--ask-tool` an agent that can ask nobody does not use the tool."""
    ready(agent, place, "--ask-tool")
    asked(agent, place, "Please keep in mind when we ship.", REMEMBER)
    check(not place.memories(FACT), "the tool was used though nobody agreed")


def hooks(agent: Agent, place: Place) -> None:
    """Each hook runs, is understood, and its session is known."""
    ready(agent, place)
    asked(agent, place, OTHER, WORKS, Step("shell", {"command": agent.failing}))
    ran = place.hooks()
    check(not (lacking := set(agent.events) - {one.event for one in ran}), f"no hook for {', '.join(sorted(lacking))}")
    heard = [hook_contracts.understood(one.event, agent.name, one.payload) for one in ran if one.event in agent.events]
    check(all(heard), "a payload was not understood")
    tools = [one.payload.get("tool_name") for one in ran if one.payload.get("tool_name") and one.event != "PreToolUse"]
    check(len(tools) == 2, f"hooks for {len(tools)} of 2 commands: {', '.join(map(str, tools))}")
    sessions = {str(one.fields["session_id"]) for one in heard if one}
    known = len(sessions) == 1 and place.await_text(sessions.pop(), "session", "list", "--json")
    check(known, "the session is not in `recollect session list`")


def index(agent: Agent, place: Place) -> None:
    """A session begins with the index, also one that is resumed: rules whole, titles, and how many more are stored."""
    ready(agent, place)
    (place.project / "recollect.toml").write_text("token_budget = 160\n", encoding="utf-8")
    _remember(place, RULE, "--fact-type", "decision", title="Migrations")
    for number in range(8):
        _remember(place, f"The supplier {number} sends its price list on day {number + 2}.", title=f"Supplier {number}")
    (first, *_) = asked(agent, place, OTHER).sent or [""]
    check(INDEX in first, "the index is not in the first request")
    check(RULE in first, "the rule does not stand whole in the index")
    check(re.search(r"- \[\d+\] Supplier \d ", first), "no other memory has a line in the index")
    check(re.search(r"[1-8] (more are|more is) stored", first), "the index does not say how many more are stored")
    check("sends its price list" not in first, "a memory that is no rule stands whole in the index")
    _remember(place, LATER, "--fact-type", "decision", title="Amounts")
    (again, *_) = sound(place, agent.resume(place, NEXT)).sent or [""]
    check(len({one.payload.get("session_id") for one in place.hooks()}) == 1, "the session was not resumed")
    check(LATER in again, "what was stored since then is not in the first request of the resumed session")


def injection(agent: Agent, place: Place) -> None:
    """A memory stands whole in the model's own request before a prompt that it answers, and before no other."""
    ready(agent, place)
    _remember(place, FACT, title="The day of shipping")
    (first, *_) = asked(agent, place, QUESTION).sent or [""]
    check("<memory-context>" in first and FACT in first, "the memory is not in the model's request")
    session = asked(agent, place, OTHER)
    check(not any(FACT in one for one in session.sent), "it is before an unrelated prompt, too")
    check(session.sent and "The day of shipping" in session.sent[0], "its title is not in the index")


def moment(agent: Agent, place: Place) -> None:
    """A memory that names a command or a failure comes up there, once a session, and at no other command."""
    ready(agent, place)
    _remember(place, DEPLOY, "--when", "run echo deploy", title="The VPN")
    _remember(place, ABSENT, "--when", "fail cannot access", title="Uploads")
    fails = Step("shell", {"command": agent.failing})
    session = asked(agent, place, "Please deploy, and look into the folder.", DEPLOYS, DEPLOYS, fails, fails)
    check(len(session.sent) == 5, f"{len(session.sent)} requests, not 5: {_last(session)}")
    for text, number in ((DEPLOY, 1), (ABSENT, 3)):
        found = [text in one for one in session.sent]
        check(found.index(True) == number if any(found) else False, f"`{text}` is in the requests {found}")
        shown = [one.event for one in place.hooks() if text in one.injected]
        check(len(shown) == 1, f"`{text}` was shown by {shown}")
    check(any(DEPLOY in one.injected and one.event == agent.moment for one in place.hooks()), f"not by {agent.moment}")
    other = asked(agent, place, OTHER, WORKS)
    check(not any(text in one for one in other.sent for text in (DEPLOY, ABSENT)), "it is at another command, too")


def failure(agent: Agent, place: Place) -> None:
    """A session that meets a known failure gets the memory that answers it almost for certain, and gets it once."""
    ready(agent, place)
    (place.project / "check.sh").write_text(CHECK, encoding="utf-8")
    _remember(place, LOCKED, title="Two writers")
    run = Step("shell", {"command": "sh check.sh"})
    session = asked(agent, place, "Please look at the other branch, too.", run, run)
    check(session.sent and LOCKED not in session.sent[0], "the memory is in the request before the failure")
    check(LOCKED in session.sent[-1], f"the memory is in no request after the failure: {_last(session)}")
    blocks = sum(LOCKED in one.injected for one in place.hooks())
    check(blocks == 1, f"the memory was shown {blocks} times")


def capture(agent: Agent, place: Place) -> None:
    """What a person lays down in a session is a draft after its end, and whole in the next index; a report is not."""
    ready(agent, place)
    _await_model(place)
    _worked(agent, place, keeps=False)
    check(place.await_memory(LEARNT), f"not learnt: {_observed(place)}")
    check(place.await_memory("is locked"), f"the failure was not noted: {_observed(place)}")
    noted = [one for one in place.rows() if one.get("source") == "hook" and one.get("type") != "session_summary"]
    check(len(noted) > 1 and all(one.get("expires_at") for one in noted), "a draft does not expire")
    (first, *_) = asked(agent, place, OTHER).sent or [""]
    check(LESSON in first, "the person's rule is not in the next index")
    check("is locked: passes" not in first.partition("</memory-index>")[0], "a draft that is no rule is in the index")


def ask(agent: Agent, place: Place) -> None:
    """After work with a rule and a mended failure the agent is asked once what it learnt; after reading it is not."""
    ready(agent, place)
    _await_model(place)
    session = _worked(agent, place)
    asks = [one.event for one in place.hooks() if one.asks]
    check(asks == [agent.turn_end], f"asked {len(asks)} times: {', '.join(asks)}")
    check(any(ASKED in one for one in session.sent), "the question is in no request")
    check(place.await_memory(KEPT), f"what the model stored is not stored: {_last(session)}")
    sound(place, agent.stay(place, SECOND, (*[READ] * 6, Step(seconds=PAUSE))))
    check(sum(one.asks for one in place.hooks()) == 1, "a session that only read was asked")


def drafts(agent: Agent, place: Place) -> None:
    """What the agent stores when it is asked replaces the draft that says the same, and leaves the others."""
    ready(agent, place)
    _await_model(place)
    _worked(agent, place)
    check(place.await_memory(KEPT), "what the model stored is not stored")
    check(place.await_absence(LESSON), f"the draft of the rule is still there: {_observed(place)}")
    check(place.await_memory("is locked"), f"the failure is no draft any more: {_observed(place)}")
    (first, *_) = asked(agent, place, OTHER).sent or [""]
    check(KEPT in first and LESSON not in first, "the next index does not hold the new memory in place of the draft")


def two(agent: Agent, place: Place) -> None:
    """Two agents write into one store at the same time."""
    partner = AGENTS[1] if agent is AGENTS[0] else AGENTS[0]
    for each in (agent, partner):
        ready(each, place)
    said = {ONE: (agent, "Please keep the first in mind."), TWO: (partner, "Please keep the second in mind.")}
    steps = {text: Step("memory", {"action": "remember", "content": text}) for text in said}
    running = [(who, who.start(place, prompt, (steps[text],)), prompt) for text, (who, prompt) in said.items()]
    for session in [who.finish(place, process, prompt) for who, process, prompt in running]:
        sound(place, session)
    for text, (who, _) in said.items():
        check(place.memories(text), f"what {who.title} remembered is not stored")


def stopped(agent: Agent, place: Place) -> None:
    """The first session after the daemon's end has the tool, is learnt from, and gets the index, if late."""
    ready(agent, place)
    place.recollect("remember", FACT)
    place.recollect("stop")
    session = asked(agent, place, LESSON, RECALL)
    check(any(FACT in one for one in session.results), f"not recalled: {_last(session)}")
    if agent.events:
        check(place.await_memory(LEARNT), f"the first prompt was lost: {_observed(place)}")
        late = any(INDEX in one for one in session.sent) or any(INDEX in one for one in agent.resume(place, NEXT).sent)
        check(late, "the index is in no request, not even with the next prompt")


def hung(agent: Agent, place: Place) -> None:
    """A daemon that does not answer keeps no session from its end, and hears of it later."""
    ready(agent, place)
    place.recollect("remember", FACT)
    daemon = place.daemon()
    check(daemon, "there is no daemon")
    os.kill(daemon, signal.SIGSTOP)
    session = asked(agent, place, LESSON, RECALL)
    took = session.ended.seconds
    check(took < CALL_LIMIT, f"the session took {took:.0f} s: {_last(session)}")
    os.kill(daemon, signal.SIGCONT)
    if agent.events:
        check(place.await_memory(LEARNT), f"the prompt was lost: {_observed(place)}")


def readonly(agent: Agent, place: Place) -> None:
    """A data folder that cannot be written breaks no session, and the tool says so in a sentence."""
    ready(agent, place)
    place.recollect("remember", ONE)
    place.recollect("stop")
    place.lock()
    session = asked(agent, place, LESSON, REMEMBER)
    said = " ".join(session.results)
    check(re.search(r"cannot be (written|used)|read-only|not writable", said), f"the tool says: {_last(session)}")


def compaction(agent: Agent, place: Place) -> None:
    """What a session taught before it was compacted is before the agent afterwards, and stands in its summary."""
    ready(agent, place)
    place.recollect("recall", QUESTION)
    sound(place, agent.compact(place, LESSON, SECOND))
    check(any(one.event == "PreCompact" for one in place.hooks()), "no hook for the compaction")
    again = [one.injected for one in place.hooks() if one.payload.get("source") == "compact"]
    check(any(INDEX in one and LESSON in one for one in again), "no index with the person's rule after the compaction")
    check(place.await_memory(LEARNT), f"not learnt: {_observed(place)}")
    summaries = ("list", "--all", "--json", "--type", "session_summary")
    check(place.await_text(LEARNT, *summaries), "the session's summary does not hold it")


def project(agent: Agent, place: Place) -> None:
    """Tool and hooks write into the project that the session's environment names, also where the agent filters it."""
    ready(agent, place)
    place.variables["RECOLLECT_PROJECT"] = "atlas"
    asked(agent, place, LESSON, REMEMBER)
    _in_project(agent, place, "with RECOLLECT_PROJECT")
    del place.variables["RECOLLECT_PROJECT"]
    check(not place.memories(), "something was stored in the folder's project")


def folder(agent: Agent, place: Place) -> None:
    """Tool and hooks write into the repository's project, from a folder in it and when a command changes folder."""
    ready(agent, place)
    other, inner = place.repository("other"), place.project / "src"
    inner.mkdir()
    leave = Step("shell", {"command": f"cd {other} && pwd"})
    steps = (leave, REMEMBER) if agent.events else (REMEMBER,)
    sound(place, agent.ask(place, LESSON, steps, inner))
    _in_project(agent, place, "in a folder of the repository")
    check(not place.memories(folder=other), "something was stored in the other repository's project")


def uninstall(agent: Agent, place: Place) -> None:
    """Uninstall leaves every file as it was, and after sessions nothing of ours in what it had changed."""
    agent.prepare(place)
    before = place.files()
    for word in ("install", "uninstall"):
        check(place.recollect(word, agent.name, "--yes").code == 0, f"`recollect {word}` failed")
    after = place.files()
    wrong = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    check(not wrong, f"not as before: {', '.join(wrong)}")
    ready(agent, place)
    changed = [name for name, content in place.files().items() if before.get(name) != content]
    changed = [name for name in changed if not name.endswith("recollect-backup")]  # the file as the agent rewrote it
    asked(agent, place, OTHER)
    check(place.recollect("uninstall", agent.name, "--yes").code == 0, "`recollect uninstall` failed")
    left = place.files()
    wrong = [name for name in changed if any(ours in left.get(name, b"") for ours in (b"bin/recollect", b"recollect:"))]
    check(not wrong, f"something of ours is left in {', '.join(wrong)}")


CASES: Final[dict[str, Callable[[Agent, Place], None]]] = {
    "install": install,
    "connect": connect,
    "call": call,
    "ask-tool": ask_tool,
    "hooks": hooks,
    "index": index,
    "injection": injection,
    "moment": moment,
    "failure": failure,
    "capture": capture,
    "ask": ask,
    "drafts": drafts,
    "two agents": two,
    "stopped": stopped,
    "hung": hung,
    "read-only": readonly,
    "compaction": compaction,
    "project": project,
    "folder": folder,
    "uninstall": uninstall,
}


def tried(agent: Agent, case: str, make: Callable[[], Place]) -> Outcome:
    """Try one case in a place of its own."""
    if why := agent.lacks.get(case):
        return Outcome(agent.name, case, "not offered", why)
    begun, place = time.monotonic(), make()
    found = Outcome(agent.name, case, "green")
    try:
        CASES[case](agent, place)
    except Red as red:
        found.state, found.why = "red", str(red)
    except (OSError, ValueError, KeyError) as error:  # what was read is not what the case knows
        found.state, found.why = "red", f"{type(error).__name__}: {error}"
    finally:
        place.close()
    found.seconds = time.monotonic() - begun
    ran = place.hooks()
    found.hooks = [(one.event, one.ms) for one in ran if one.code is not None]
    found.injected = [len(one.injected.encode()) for one in ran if one.injected]
    summary = json.dumps(found.public() | {"version": agent.version(place.work)}, indent=1)
    (place.evidence / "outcome.json").write_text(summary, encoding="utf-8")
    return found


def latencies(outcomes: Iterable[Outcome]) -> dict[str, tuple[int, float, float]]:
    """Return how often each event came, and the median and the slowest of its milliseconds."""
    by_event: dict[str, list[float]] = {}
    for event, ms in (pair for one in outcomes for pair in one.hooks):
        by_event.setdefault(event, []).append(ms)
    return {event: (len(ms), statistics.median(ms), max(ms)) for event, ms in sorted(by_event.items())}


def cold(outcomes: Iterable[Outcome]) -> tuple[int, int]:
    """Return how many sessions that began without a daemon were learnt from, and how many there were."""
    tries = [one for one in outcomes if one.case == "stopped" and one.hooks]
    return sum("first prompt" not in one.why for one in tries), len(tries)


def _remember(place: Place, text: str, *options: str, title: str) -> None:
    """Store a memory as a person would, under a title that does not say it."""
    done = place.recollect("remember", text, "--title", title, *options)
    check(done.code == 0, f"`recollect remember` ended with {done.code}: {done.told}")


def _await_model(place: Place) -> None:
    """Start the daemon, and wait for its embedding model."""
    place.recollect("recall", QUESTION)
    check(place.await_text('"model": "ready"', "status", "--json"), "the embedding model is not ready")


def _worked(agent: Agent, place: Place, *, keeps: bool = True) -> Session:
    """Run a session with a rule of the person and a failure that is mended, in six uses of tools.

    Where the model is asked what was learnt, it stores the rule in its own words, if it `keeps` anything.
    """
    (place.project / "check.sh").write_text(CHECK, encoding="utf-8")
    store = {"action": "remember", "content": KEPT, "fact_type": "decision"}
    place.model.steps[ASKED] = (Step("memory", store),) if keeps else ()
    run = Step("shell", {"command": "sh check.sh"})
    write = Step("write", {"path": str(place.project / "database.ini"), "content": REMEDY})
    steps = (run, write, run, READ, WORKS, READ, Step(seconds=PAUSE))
    return sound(place, agent.stay(place, LESSON, steps))


def _in_project(agent: Agent, place: Place, where: str) -> None:
    check(place.memories(FACT), f"what the tool remembered {where} is not in the project")
    if agent.events:
        check(place.await_memory(LEARNT), f"what hooks learnt {where} is not in the project")


def _last(session: Session) -> str:
    return session.results[-1] if session.results else f"no tool answered; {session.ended.told}"


def _observed(place: Place) -> str:
    """Return what Recollect says of the latest session, in a line."""
    return place.recollect("session", "show").told

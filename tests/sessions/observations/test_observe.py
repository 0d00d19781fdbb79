"""Observe: what is worth keeping becomes a candidate in words that a colleague understands."""

from __future__ import annotations

import pytest

from recollect.domain.enums import Concept, FactType, ObservationType
from recollect.sessions.capture import memorability
from recollect.sessions.observations.features import LONGEST
from recollect.sessions.observations.observe import Candidate, observe
from recollect.sessions.observations.occurrence import Occurrence, Origin, Trail, prompted, used

FOLDER = "/home/ada/shop"
EDIT = used(
    "Edit",
    {
        "file_path": f"{FOLDER}/api/items.py",
        "old_string": "q = select(Item)",
        "new_string": "q = select(Item).options(selectinload(Item.tags))",
    },
    "The file has been updated.",
)
MEASURED = used(
    "Bash",
    {"command": "cd api && python bench.py /items --repeat 20", "description": "Measure selectinload"},
    "GET /items 200 median 118 ms p95 131 ms (n=20)\nqueries: 3 instead of 301",
)


def candidate(*happened: Occurrence) -> Candidate:
    """Return the candidate that the last occurrence of a session makes."""
    trail = Trail()
    for one in happened:
        found = observe(one, trail, (), FOLDER)
        trail = found.trail
    assert found.candidate is not None, found.noise
    return found.candidate


def is_kept(one: Occurrence) -> bool:
    """Return whether an occurrence alone passes the gate."""
    found = observe(one, Trail()).candidate
    return found is not None and memorability(found.features).passes()


@pytest.mark.parametrize(
    "prompt",
    [
        "from now on every migration gets a down step, no exceptions",
        "Never call the billing host from a laptop, every request costs money.",
        "decision: amounts are integer cents, floats nowhere, because the export must match",
        "we moved the queue to NATS last week, redis streams are gone. update the readme",
        "no sleeps in tests please, always wait for the event; the runners are slow",
        "put this on staging. staging is the box stg-2 on port 8443, never use TAG=latest",
        "make that the rule: loading is always spelled out in the query",
        "careful, fields 9 to 15 are used by the old mirror in Oslo. start at 16",
    ],
)
def test_what_people_state_is_kept(prompt: str) -> None:
    """Rules, decisions, facts and what is replaced pass, also within a prompt that asks for work."""
    assert is_kept(prompted(prompt))


@pytest.mark.parametrize(
    "prompt",
    [
        "thanks",
        "great work, see you tomorrow",
        "run the tests",
        "why is the build red?",
        "the badge says NaN for an empty warehouse",
        "next: the importer takes nine minutes. find out where the time goes",
        "can you rename this variable to pickList?",
        "yes, go ahead",
    ],
)
def test_what_people_ask_is_not(prompt: str) -> None:
    """Thanks, tasks, questions and complaints do not pass."""
    assert not is_kept(prompted(prompt))


def test_a_rule_keeps_the_person_s_words() -> None:
    """The sentences that state something stay as they were said, those that only ask do not."""
    one = candidate(
        prompted("good, that's all. one rule for later: never edit gen/ by hand, `make api` overwrites it.")
    )
    assert one.wording.title == "Never edit gen/ by hand, `make api` overwrites it"
    assert "that's all" not in one.wording.content
    assert (one.kind, one.fact_type) == (ObservationType.DECISION, FactType.DECISION)
    assert Concept.PATTERN in one.concepts


def test_a_fact_is_read_as_a_triple() -> None:
    """What is where is a fact of its own."""
    one = candidate(prompted("staging is the new box stg-2 on port 8443, never use TAG=latest there"))
    assert ("staging", "is", "the new box stg-2 on port 8443, never use TAG=latest there") in one.facts


def test_a_verified_change_tells_what_was_changed_and_measured() -> None:
    """The memory of a measurement has what was done, what for, the change before it and the telling lines."""
    task = prompted("the items list takes two seconds, profile it")
    one = candidate(task, EDIT, MEASURED)
    said = one.wording.content
    for part in ("Measure selectinload.", "items list takes two seconds", "selectinload(Item.tags)", "median 118 ms"):
        assert part in said
    assert FOLDER not in said
    assert one.wording.title.startswith("Measure selectinload: ")
    assert one.files_modified == ("api/items.py",)
    assert one.tags == ("bench",)
    assert one.kind is ObservationType.BUGFIX


def test_a_fix_names_the_failure_before_it() -> None:
    """The same command that failed and succeeds after an edit tells both."""
    command = {"command": "alembic upgrade head", "description": "Upgrade"}
    failed = used("Bash", command, "UnsafeNewEnumValue: error: new enum values must be committed before they are used")
    works = used("Bash", command, "Running upgrade 41d0 -> b80e, receiving lines source -> 214 rows")
    assert "Before that: UnsafeNewEnumValue" in candidate(failed, EDIT, works).wording.content
    assert "Before that" not in candidate(failed, EDIT, MEASURED).wording.content


def test_noise_is_left_out_of_the_words() -> None:
    """Of an output with hundreds of lines those that tell something stay, few of one shape."""
    lines = [f"   Compiling crate{n} v1.0.{n}" for n in range(200)]
    lines += [f"worker-{n} POST /labels 429 Retry-After=0" for n in range(50)]
    lines += ["error: account suspended because 50 requests came too early", "12 passed in 3s"]
    said = candidate(used("Bash", {"command": "make replay", "description": "Replay yesterday"}, "\n".join(lines)))
    assert len(said.wording.content) <= LONGEST
    assert "account suspended because" in said.wording.content
    assert "Compiling" not in said.wording.content
    assert said.wording.content.count("Retry-After=0") <= 3


def test_a_comment_is_kept_with_its_file() -> None:
    """A file that explains itself is remembered by its comment and the line under it."""
    lines = ("services:", "  # Only for pytest: not started by a bare `up`.", "  db-test:", "    image: a")
    text = "\n".join(f"{number:6}→{line}" for number, line in enumerate(lines, 1))
    one = candidate(used("Read", {"file_path": f"{FOLDER}/compose.yml"}, text))
    assert one.wording.content == "compose.yml says:\nOnly for pytest: not started by a bare `up`. (`db-test:`)"
    assert one.files_read == ("compose.yml",)


def test_an_edited_document_is_kept_by_what_is_new() -> None:
    """Of a document that was edited the new sentences are kept, not those that stood there."""
    given = {
        "file_path": f"{FOLDER}/README.md",
        "old_string": "## Contributing",
        "new_string": "`make test` starts its own database; there is no service to start before.\n## Contributing",
    }
    one = candidate(used("Edit", given, "updated"))
    assert one.wording.content.startswith("README.md now says:\n`make test` starts its own database")
    assert "Contributing" not in one.wording.content
    assert one.kind is ObservationType.CHANGE


def test_people_are_trusted_more_than_tools_and_tools_more_than_the_web() -> None:
    """Trust follows where a text comes from."""
    rule = "Never use the old host, because it loses every tenth request."
    trusts = [
        candidate(one).trust
        for one in (
            prompted(rule),
            used("Bash", {"command": "python probe.py"}, f"error: 10 of 100 requests lost\n{rule}"),
            used("WebFetch", {"url": "https://docs.example/limits"}, rule),
        )
    ]
    assert trusts == sorted(trusts, reverse=True)
    assert len(set(trusts)) == 3


@pytest.mark.parametrize(
    ("tool", "given", "origin"),
    [
        ("run_shell_command", {"command": "make"}, Origin.COMMAND),
        ("shell", {"command": ["bash", "-lc", "make"]}, Origin.COMMAND),
        ("read_file", {"absolute_path": "/a.py"}, Origin.FILE),
        ("Bash", {"command": "sed -n 1,20p a.py"}, Origin.FILE),
        ("Bash", {"command": "sed -i s/a/b/ a.py"}, Origin.COMMAND),
        ("replace", {"file_path": "/a.py", "new_string": "x"}, Origin.EDIT),
        ("google_web_search", {"query": "x"}, Origin.WEB),
        ("Task", {"prompt": "x"}, Origin.REPORT),
        ("Assistant", {}, Origin.REPORT),
        ("mcp__jira__get_issue", {"id": "1"}, Origin.OTHER),
    ],
)
def test_tools_of_all_agents_are_known(tool: str, given: dict[str, object], origin: Origin) -> None:
    """What a tool does is told from its name and its command, whatever agent has it."""
    assert used(tool, given, "x").origin is origin


def test_the_trail_survives_a_restart() -> None:
    """A trail read back from JSON is the same."""
    trail = observe(MEASURED, observe(EDIT, Trail()).trail).trail
    assert trail != Trail()
    assert Trail.model_validate_json(trail.model_dump_json()) == trail


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        ("Done. All 264 tests pass now.", False),
        (
            "I've renamed the variable in three files and updated the tests. Let me know if you want anything else.",
            False,
        ),
        (
            "The double booking came from a lost update: `reserve()` reads the stock without a lock, so concurrent "
            "requests all get the last unit. With FOR UPDATE 0 of 20 rounds are oversold, p95 85 ms.",
            True,
        ),
    ],
)
def test_an_answer_is_kept_where_it_explains(answer: str, kept: bool) -> None:
    """What the assistant says at the end of a turn is kept only where it has a cause or a figure."""
    assert is_kept(used("Assistant", {}, answer)) is kept


def test_a_topic_is_named_by_the_prompt_that_opens_it() -> None:
    """What an output was for is the prompt that opened the topic, even one that asks nothing; a rule changes it not."""
    opening = observe(prompted("last topic, the exit codes of the nightly wrapper"), Trail(), opens=True).trail
    after = observe(prompted("never end with plain 1, the wrapper pages somebody"), opening).trail
    assert after.task == opening.task == "last topic, the exit codes of the nightly wrapper"


def test_a_rule_tells_what_it_was_said_about() -> None:
    """What a person decides in the middle of some work is kept with that work, as it is short by itself."""
    one = candidate(
        prompted("pushes through the vpn do 5 MB/s, where do we lose that?"),
        prompted("4 MiB then, no flag for it, never"),
    )
    assert one.wording.content.endswith("Said during: pushes through the vpn do 5 MB/s, where do we lose that?")
    assert "vpn" not in one.wording.title


def test_of_an_endless_output_the_ends_are_read() -> None:
    """A prompt is read up to 20,000 characters, an output at both ends, and a command up to 4,000."""
    middle = "x = 1\n" * 100_000
    one = used("Bash", {"command": "python a.py " + "b" * 9_000}, f"first\n{middle}last")
    assert len(one.text) <= 80_001
    assert one.text.startswith("first")
    assert one.text.endswith("last")
    assert len(one.command) == 4_000
    assert len(prompted("never " * 10_000).text) <= 20_000

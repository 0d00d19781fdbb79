"""Observe: what is worth keeping becomes a candidate in words that a colleague understands."""

from __future__ import annotations

import pytest

from recollect.domain.enums import Concept, FactType, ObservationType
from recollect.sessions.lessons import LONGEST, Trail, asked, borne_out
from recollect.sessions.observations.features import Feature
from recollect.sessions.observations.observe import Candidate, observe
from recollect.sessions.observations.occurrence import Occurrence, Origin, prompted, used

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


def candidate(*happened: Occurrence, task: str = "") -> Candidate:
    """Return the candidate that the last occurrence of a session makes."""
    trail = asked(Trail(), [task])
    for one in happened:
        found = observe(one, trail, (), FOLDER)
        trail = found.trail
    assert found.candidate is not None, found.noise
    return found.candidate


def test_a_prompt_is_judged_sentence_by_sentence() -> None:
    """Each sentence is a part of its own; code, and what an agent's program put in, is none."""
    one = candidate(
        prompted("Am 3.11. nicht. Never edit gen/ by hand, e.g. types.ts; `make api` overwrites it.\n```\nx = 1\n```")
    )
    assert [part.text for part in one.parts] == [
        "Am 3.11. nicht.",
        "Never edit gen/ by hand, e.g. types.ts;",
        "`make api` overwrites it.",
    ]
    assert (one.kind, one.fact_type) == (ObservationType.DECISION, FactType.DECISION)
    assert one.concepts == (Concept.PATTERN,)


def test_a_verified_change_is_a_lesson_with_its_evidence() -> None:
    """The lesson has the change, what came out and what for, in few characters; the command and its lines back it."""
    one = candidate(EDIT, MEASURED, task="the items list takes two seconds, profile it")
    said = one.wording.content
    for part in (
        "Change in api/items.py: q = ",
        "selectinload(Item.tags)",
        "median 118 ms",
        "the items list takes two",
    ):
        assert part in said
    assert len(said) <= LONGEST
    assert FOLDER not in said
    assert one.wording.title.startswith("Measure selectinload: ")
    assert one.wording.evidence.startswith("`python bench.py /items --repeat 20` gave: GET /items 200 median 118 ms")
    assert one.files_modified == ("api/items.py",)
    assert one.tags == ("bench",)


def test_a_fix_names_the_problem_before_it() -> None:
    """The same program that failed and passes after an edit tells problem, change and proof."""
    command = {"command": "alembic upgrade head", "description": "Upgrade"}
    failed = used("Bash", command, "UnsafeNewEnumValueError: new enum values must be committed before they are used")
    works = used("Bash", command, "Running upgrade 41d0 -> b80e, receiving lines source -> 214 rows")
    one = candidate(failed, EDIT, works)
    assert one.wording.content.startswith("Problem: UnsafeNewEnumValueError: new enum values must be committed")
    assert one.kind is ObservationType.BUGFIX
    assert Concept.PROBLEM_SOLUTION in one.concepts
    assert "Problem" not in candidate(failed, EDIT, MEASURED).wording.content


def test_noise_is_left_out_of_the_words() -> None:
    """Of an output with hundreds of lines those that tell something stay, few of one shape."""
    lines = [f"   Compiling crate{n} v1.0.{n}" for n in range(200)]
    lines += [f"worker-{n} POST /labels 429 Retry-After=0" for n in range(50)]
    lines += ["error: account suspended because 50 requests came too early", "12 passed in 3s"]
    said = candidate(used("Bash", {"command": "make replay", "description": "Replay yesterday"}, "\n".join(lines)))
    assert len(said.wording.content) <= LONGEST
    assert "account suspended because" in said.wording.content
    assert "Compiling" not in said.wording.content
    assert said.wording.content.count("Retry-After=0") <= 2


def test_a_comment_is_kept_with_its_file() -> None:
    """A file that explains itself is remembered by its comment and the line under it."""
    lines = ("services:", "  # Only for pytest: not started by a bare `up`.", "  db-test:", "    image: a")
    text = "\n".join(f"{number:6}→{line}" for number, line in enumerate(lines, 1))
    one = candidate(used("Read", {"file_path": f"{FOLDER}/compose.yml"}, text))
    assert one.wording.content == "compose.yml: Only for pytest: not started by a bare `up`. (`db-test:`)."
    assert one.files_read == ("compose.yml",)


def test_an_edit_belongs_to_its_task_and_to_the_failure_before_it() -> None:
    """An edit is told by its reason, its change, what failed before and what it was for."""
    given = {
        "file_path": f"{FOLDER}/pool.py",
        "old_string": "size = 5",
        "new_string": "# The gateway closes idle connections after 300 seconds.\nsize = 5\nping = 60",
    }
    failed = used("Bash", {"command": "pytest"}, "E   ConnectionError: closed by the server", failed=True)
    one = candidate(failed, used("Edit", given, "updated"), task="orders fail at night")
    for part in (
        "pool.py: The gateway closes idle connections",
        "Before: ConnectionError: closed by the server",
        "Asked: orders fail at night",
    ):
        assert part in one.wording.content
    assert one.kind is ObservationType.CHANGE


def test_an_edited_document_is_kept_by_what_is_new() -> None:
    """Of a document that was edited the new sentences are kept, not those that stood there."""
    given = {
        "file_path": f"{FOLDER}/README.md",
        "old_string": "## Contributing",
        "new_string": "`make test` starts its own database; there is no service to start before.\n## Contributing",
    }
    one = candidate(used("Edit", given, "updated"))
    assert one.wording.content.startswith("README.md: `make test` starts its own database")
    assert "Contributing" not in one.wording.content


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
        ("shell", {"command": ["bash", "-lc", "cat a.py"]}, Origin.FILE),
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


CONCLUSION = (
    "I found the cause: every request opened a pool of its own. With one pool `pool_size=20` the list takes "
    "118 ms instead of 1830 ms. Shall I commit it?"
)


def test_a_conclusion_counts_by_what_the_tools_said() -> None:
    """The figures and names of the assistant's words are looked for in what the tools wrote before."""
    told = observe(used("Bash", {"command": "bench"}, "pool_size=20 median 118 ms (was 1830 ms)"), Trail()).trail
    assert borne_out(CONCLUSION, told) == 1.0
    assert borne_out(CONCLUSION, Trail()) == 0.0
    assert borne_out("Done! Let me know if you need more.", told) == 0.0
    one = observe(used("Assistant", {}, CONCLUSION), told).candidate
    assert one is not None
    assert "118 ms instead of 1830 ms" in one.wording.content
    assert "Shall I commit" not in one.wording.content
    assert "pool_size=20 median 118 ms" in one.wording.evidence
    assert one.parts[0].features[Feature.BORNE_OUT] == 1.0


def test_of_an_endless_output_the_ends_are_read() -> None:
    """A prompt is read up to 20,000 characters, an output at both ends, and a command up to 4,000."""
    middle = "x = 1\n" * 100_000
    one = used("Bash", {"command": "python a.py " + "b" * 9_000}, f"first\n{middle}last")
    assert len(one.text) <= 80_001
    assert one.text.startswith("first")
    assert one.text.endswith("last")
    assert len(one.command) == 4_000
    assert len(prompted("never " * 10_000).text) <= 20_000

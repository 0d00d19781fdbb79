"""Notes: what is written down of an occurrence, in its own words, and of which type and about what it is."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from recollect.domain.enums import Concept, FactType, ObservationType
from recollect.sessions.memorability import memorability
from recollect.sessions.observations.notes import LONGEST, NOTHING, Note, Observed, observe
from recollect.sessions.observations.occurrence import Occurrence, Origin, prompt_occurrence, tool_occurrence
from recollect.sessions.observations.trail import Trail

FOLDER = "/home/ada/shop"
EDIT = tool_occurrence(
    "Edit",
    {
        "file_path": f"{FOLDER}/api/items.py",
        "old_string": "q = select(Item)",
        "new_string": "q = select(Item).options(selectinload(Item.tags))",
    },
    "The file has been updated.",
)
MEASURED = tool_occurrence(
    "Bash",
    {"command": "cd api && python bench.py /items --repeat 20", "description": "Measure selectinload"},
    "GET /items 200 median 118 ms p95 131 ms (n=20)\nqueries: 3 instead of 301",
)
UPGRADE = {"command": "alembic upgrade head", "description": "Upgrade"}
FAILED = tool_occurrence(
    "Bash", UPGRADE, "UnsafeNewEnumValueError: new enum values must be committed before they are used"
)
PASSES = tool_occurrence("Bash", UPGRADE, "Running upgrade 41d0 -> b80e, receiving lines source -> 214 rows")
FIX = (FAILED, EDIT, PASSES)
FOUND = tool_occurrence(
    "Task", {"description": "Look at the pool"}, "Each request opens a pool of its own in `make_engine`."
)
RULE = prompt_occurrence("Never edit gen/ by hand, because `make api` overwrites it.")

SUM = "sum(line.cents * line.amount for line in lines)"
CONCEPTS: list[tuple[Concept, Sequence[Occurrence]]] = [
    (Concept.PROBLEM_SOLUTION, FIX),
    (Concept.GOTCHA, [FAILED]),
    (Concept.WHAT_CHANGED, [EDIT]),
    (Concept.PATTERN, [RULE]),
    (Concept.TRADE_OFF, [prompt_occurrence("We keep one pool per worker, at the cost of slower imports at night.")]),
    (Concept.HOW_IT_WORKS, [FOUND]),
]


def edited(name: str, before: str, after: str) -> Occurrence:
    """Return the edit of a file."""
    given = {"file_path": f"{FOLDER}/{name}", "old_string": before, "new_string": after}
    return tool_occurrence("Edit", given, "The file has been updated.")


def observed(*happened: Occurrence) -> Observed:
    """Return what the last occurrence of a session leaves."""
    found = Observed(Trail())
    for one in happened:
        found = observe(one, found.trail, (), FOLDER)
    return found


def noted(*happened: Occurrence) -> Note:
    """Return the one note of the last occurrence of a session."""
    (note,) = observed(*happened).notes
    return note


def test_a_prompt_is_noted_sentence_by_sentence() -> None:
    """Each sentence is a note of its own, and a rule is a decision; code is none."""
    said = "Am 3.11. nicht. Never edit gen/ by hand, e.g. types.ts; `make api` overwrites it.\n```\nx = 1\n```"
    first, rule, last = observed(prompt_occurrence(said)).notes
    assert (first.content, rule.content, last.content) == (
        "Am 3.11. nicht.",
        "Never edit gen/ by hand, e.g. types.ts;",
        "`make api` overwrites it.",
    )
    assert (rule.kind, rule.fact_type, rule.concepts) == (
        ObservationType.DECISION,
        FactType.DECISION,
        (Concept.PATTERN,),
    )
    for other in (first, last):
        assert (other.kind, other.fact_type, other.concepts) == (None, FactType.GENERAL, ())


@pytest.mark.parametrize(
    ("said", "fact_type"),
    [
        ("Always answer me in German", FactType.DECISION),
        ("By the way, I prefer zoneinfo over pytz everywhere", FactType.PREFERENCE),
        ("From now on every migration gets a down step.", FactType.DECISION),
        ("Only the ingest service may write to the events table.", FactType.DECISION),
        ("Don't push to main.", FactType.DECISION),
        ("Ich bevorzuge kurze Antworten.", FactType.PREFERENCE),
        ("Les sauvegardes partent toujours vers le site de Lille.", FactType.DECISION),
        ("Nunca toques la tabla de pagos.", FactType.DECISION),
    ],
)
def test_what_a_person_lays_down_is_a_rule(said: str, fact_type: FactType) -> None:
    """A rule or a preference is a decision that passes the gate, whole and in the person's own words."""
    note = noted(prompt_occurrence(said))
    assert (note.content, note.kind, note.fact_type, note.trust) == (said, ObservationType.DECISION, fact_type, 0.9)
    assert memorability(note.content, note.kind).passes()


@pytest.mark.parametrize(
    "said",
    [
        "The warm-up script can't connect to Redis, connection refused",
        "Should we always deploy on Tuesdays?",
        "why does it never finish?",
        "the build is red again and I don't know why",
        "rename the column to paid_at",
        "btw the API returns cents",
        "We use Postgres 16 for billing.",
        "FYI: the staging box is called mule",
        "Übrigens liefert die API Cent",
    ],
)
def test_what_a_person_reports_or_asks_is_no_rule(said: str) -> None:
    """A complaint, a question, a task and a plain fact are no decision, and stand in no index."""
    note = noted(prompt_occurrence(said))
    assert (note.kind, note.fact_type, note.concepts) == (None, FactType.GENERAL, ())


def test_a_prompt_that_states_nothing_leaves_no_note() -> None:
    """What a person pasted or quoted is not theirs, and without it there is nothing to note."""
    found = observed(prompt_occurrence("> never push\n```\nalways = True\n```"))
    assert (found.notes, found.noise) == ((), NOTHING)


TYPES: list[tuple[ObservationType, Sequence[Occurrence]]] = [
    (ObservationType.BUGFIX, FIX),
    (ObservationType.FEATURE, [edited("cart.py", "", f"def total(lines):\n    return {SUM}\n")]),
    (ObservationType.REFACTOR, [edited("cart.py", f"total = {SUM}", f"def total(lines):\n    return {SUM}")]),
    (ObservationType.CHANGE, [EDIT]),
    (ObservationType.DISCOVERY, [FOUND]),
    (ObservationType.DECISION, [RULE]),
]


@pytest.mark.parametrize(("kind", "happened"), TYPES, ids=[kind for kind, _ in TYPES])
def test_an_observation_has_one_of_six_types(kind: ObservationType, happened: Sequence[Occurrence]) -> None:
    """A failure that passes after an edit, new code, code in other words, other code, a finding, and a rule."""
    assert noted(*happened).kind is kind


@pytest.mark.parametrize(("concept", "happened"), CONCEPTS, ids=[concept for concept, _ in CONCEPTS])
def test_an_observation_says_what_it_is_about(concept: Concept, happened: Sequence[Occurrence]) -> None:
    """Each of these occurrences is about that alone."""
    assert noted(*happened).concepts == (concept,)


def test_a_fix_names_the_problem_and_what_changed() -> None:
    """The same program that failed and passes after an edit tells what failed, which files changed, and is a proof."""
    note = noted(*FIX)
    problem = "UnsafeNewEnumValueError: new enum values must be committed before they are used"
    assert note.content == f"Upgrade: {problem}: passes after a change of api/items.py"
    assert (note.kind, note.proof, note.evidence) == (ObservationType.BUGFIX, True, "`alembic upgrade head`")
    assert (note.files_modified, note.tags) == (("api/items.py",), ("alembic",))


@pytest.mark.parametrize(
    "happened", [(FAILED, PASSES), (EDIT, PASSES), (FAILED, EDIT, MEASURED), (EDIT, FAILED, PASSES)]
)
def test_what_proves_nothing_is_no_fix(happened: Sequence[Occurrence]) -> None:
    """Without a failure, without an edit after it, or by another program nothing is shown to be mended."""
    note = noted(*happened)
    assert (note.kind, note.proof, note.files_modified) == (ObservationType.DISCOVERY, False, ())
    assert "passes after" not in note.content


def test_a_trail_follows_failure_edit_and_pass() -> None:
    """It knows what failed and what was edited since then, and is empty again once it passes."""
    failed = ("alembic upgrade head", "UnsafeNewEnumValueError: new enum values must be committed before they are used")
    assert observed(FAILED).trail == Trail(failure=failed)
    assert observed(EDIT, FAILED).trail == Trail(failure=failed)
    assert observed(FAILED, EDIT).trail == Trail(failure=failed, edits=("api/items.py",))
    assert observed(FAILED, EDIT, MEASURED).trail == Trail(failure=failed, edits=("api/items.py",))
    assert observed(*FIX).trail == Trail()


def test_a_measurement_is_noted_with_what_it_was_for() -> None:
    """The note has the description of the command and what came out, and the command is its evidence."""
    note = noted(MEASURED)
    assert note.content == (
        "Measure selectinload: GET /items 200 median 118 ms p95 131 ms (n=20); queries: 3 instead of 301"
    )
    assert note.title == note.content
    assert (note.evidence, note.tags) == ("`python bench.py /items --repeat 20`", ("bench",))


def test_noise_is_left_out_of_the_words() -> None:
    """Of an output with hundreds of lines those that tell something stay, four at most."""
    lines = [f"   Compiling crate{n} v1.0.{n}" for n in range(200)]
    lines += [f"worker-{n} POST /labels 429 Retry-After=0" for n in range(50)]
    lines += ["error: account suspended because 50 requests came too early", "12 passed in 3s"]
    note = noted(
        tool_occurrence("Bash", {"command": "make replay", "description": "Replay yesterday"}, "\n".join(lines))
    )
    assert len(note.content) <= LONGEST
    assert "account suspended because" in note.content
    assert "Compiling" not in note.content
    assert note.content.count("Retry-After=0") <= 3


def test_a_file_is_noted_where_it_explains_itself() -> None:
    """The note has the comment without the numbers of its lines, and names its file."""
    lines = ("services:", "  # Only for pytest: not started by a bare `up`.", "  db-test:", "    image: a")
    text = "\n".join(f"{number:6}→{line}" for number, line in enumerate(lines, 1))
    note = noted(tool_occurrence("Read", {"file_path": f"{FOLDER}/compose.yml"}, text))
    assert "Only for pytest: not started by a bare `up`." in note.content
    assert "→" not in note.content
    assert note.files_read == ("compose.yml",)


def test_an_edit_is_noted_by_its_comment() -> None:
    """The first comment that an edit brings stands with the line below it; without one it is the longest new line."""
    said = edited(
        "pool.py", "size = 5", "# The gateway closes idle connections after 300 seconds.\nsize = 5\nping = 60"
    )
    note = noted(said)
    assert note.content == "pool.py: The gateway closes idle connections after 300 seconds. (`size = 5`)"
    assert (note.evidence, note.files_modified) == ("Edit of pool.py", ("pool.py",))
    assert noted(EDIT).content == "api/items.py: q = select(Item).options(selectinload(Item.tags))"


def test_an_edited_document_is_kept_by_what_is_new() -> None:
    """Of a document that was edited the new sentences are kept, not those that stood there."""
    new = "`make test` starts its own database; there is no service to start before."
    note = noted(edited("README.md", "## Contributing", f"{new}\n## Contributing"))
    assert (note.content, note.kind) == (f"README.md: {new}", ObservationType.CHANGE)


def test_a_report_is_noted_by_its_beginning() -> None:
    """What the assistant says at the end is noted without its question; of a subagent after what it was asked for."""
    said = (
        "I found the cause: every request opened a pool of its own. With one pool it takes 118 ms. Shall I commit it?"
    )
    note = noted(tool_occurrence("Assistant", {}, said))
    assert note.content == "I found the cause: every request opened a pool of its own. With one pool it takes 118 ms."
    assert (note.kind, note.trust, note.evidence) == (ObservationType.DISCOVERY, 0.5, "Report of Assistant")
    assert noted(FOUND).content == "Look at the pool: Each request opens a pool of its own in `make_engine`."


def test_no_note_is_endless() -> None:
    """A note has 400 characters at most, and a title 120, whatever it is of."""
    long = "the importer reads every line of the file twice because of the header and then some more, " * 20
    for one in (
        prompt_occurrence(f"Never forget that {long}"),
        tool_occurrence("Task", {}, long),
        tool_occurrence("Bash", {"command": "python a.py"}, f"error: {long}\n" * 20),
        edited("a.py", "", f"# {long}\nx = 1"),
    ):
        note = noted(one)
        assert len(note.content) <= LONGEST == 400
        assert len(note.title) <= 120


def test_people_are_trusted_more_than_tools_and_tools_more_than_the_web() -> None:
    """Trust follows where a text comes from."""
    rule = "Never use the old host, because it loses every tenth request."
    trusts = [
        noted(one).trust
        for one in (
            prompt_occurrence(rule),
            tool_occurrence("Bash", {"command": "python probe.py"}, f"error: 10 of 100 requests lost\n{rule}"),
            tool_occurrence("Task", {"description": "Look at the host"}, rule),
            tool_occurrence("WebFetch", {"url": "https://docs.example/limits"}, rule),
        )
    ]
    assert trusts == [0.9, 0.6, 0.5, 0.3]


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
    assert tool_occurrence(tool, given, "x").origin is origin


def test_the_trail_survives_a_restart() -> None:
    """A trail read back from JSON is the same."""
    trail = observed(FAILED, EDIT).trail
    assert trail != Trail()
    assert Trail.model_validate_json(trail.model_dump_json()) == trail


def test_of_an_endless_output_the_ends_are_read() -> None:
    """A prompt is read up to 20,000 characters, an output at both ends, and a command up to 4,000."""
    middle = "x = 1\n" * 100_000
    one = tool_occurrence("Bash", {"command": "python a.py " + "b" * 9_000}, f"first\n{middle}last")
    assert len(one.text) <= 80_001
    assert one.text.startswith("first")
    assert one.text.endswith("last")
    assert len(one.command) == 4_000
    assert len(prompt_occurrence("never " * 10_000).text) <= 20_000

"""The table of the specifications holds: each proof is a test there is, and nothing of the code is missing from it.

Proofs are looked for as pytest names them: a test with its case in brackets, or without for all of its cases.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

import pytest

from places import TESTS
from recollect.domain import enums
from recollect.domain.results import Memory
from recollect.domain.verbs import VERBS
from recollect.doors import memory_tool, toolsets

pytestmark = pytest.mark.slow

TABLE_FILE = Path(__file__).with_name("table.md")
NOT_YET = {
    "latency below 10 ms",
    "a session recap includes recent memories",
}
NAMES = {"concept": enums.Concept, "type": enums.ObservationType, "retention": enums.Retention, "order": enums.Order}
NAMES |= {"scope": enums.Scope, "fact_type": enums.FactType, "merge": enums.Merge, "entity_type": enums.EntityType}
NAMES |= {"sensitivity": enums.Sensitivity, "source": enums.Source, "on_secret": enums.OnSecret, "layer": enums.Layer}
NAMES |= {"on_found": enums.OnFound, "profile": enums.Profile, "choice": enums.Choice, "certainty": enums.Certainty}


class Row(NamedTuple):
    """One item of a specification: where it stands, what it is here, and what proves it."""

    seed: str
    section: str
    item: str
    here: str
    proofs: tuple[str, ...]


def read() -> list[Row]:
    """Read the rows of the table, in their order."""
    found: list[Row] = []
    seed = section = ""
    for line in TABLE_FILE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            seed = line[3:]
        elif line.startswith("### "):
            section = line[4:]
        elif line.startswith("| ") and not line.startswith("| item |"):
            item, here, proofs = (cell.strip() for cell in line.strip("| ").split(" | "))
            found.append(Row(seed, section, item, here, tuple(proofs.split("; "))))
    return found


ROWS = read()
SAID = [word for row in ROWS for word in re.findall(r"`([^`]+)`", f"{row.item} {row.here}")]


@pytest.fixture(scope="module")
def collected() -> frozenset[str]:
    """Return the names of all tests in the files that the table names, with and without their cases."""
    files = sorted({proof.partition("::")[0] for row in ROWS for proof in row.proofs if "::" in proof})
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "--rootdir", ".."]
    done = subprocess.run([*command, *files], cwd=TESTS, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    names = [line.partition("tests/")[2] or line for line in done.stdout.splitlines() if "::" in line]
    return frozenset((*names, *(name.partition("[")[0] for name in names)))


def test_every_proof_is_a_test(collected: frozenset[str]) -> None:
    """Each row names tests that exist, cases included; what has no proof yet says so, and is one of a known few."""
    missing = [f"{row.item}: {proof}" for row in ROWS for proof in row.proofs if proof not in collected]
    said = [f"{row.item}: {proof}" for row in ROWS for proof in row.proofs if proof.startswith("— ")]
    assert missing == said
    assert {one.partition(": ")[0] for one in said} == NOT_YET
    proven = sum(any("::" in proof for proof in row.proofs) for row in ROWS)
    sys.stdout.write(f"{len(ROWS)} rows, {proven} of them proven\n")


def test_no_row_stands_twice() -> None:
    """Within a section each item has one row, and each row says what the item is here."""
    items = Counter((row.seed, row.section, row.item) for row in ROWS)
    assert [item for item, count in items.items() if count > 1] == []
    assert all(row.here and row.proofs for row in ROWS)


def test_the_five_specifications_are_there() -> None:
    """Each of the five has its part, and no part is thin."""
    seeds = Counter(row.seed.partition(" ")[0] for row in ROWS)
    assert {seed for seed, rows in seeds.items() if rows >= 40} - {"Ours"} == {"000", "001", "002", "003", "004"}


def test_every_operation_stands_in_it() -> None:
    """No operation of the table of operations is missing."""
    assert {operation.name for operation in VERBS} - set(SAID) == set()


def test_every_field_of_a_memory_stands_in_it() -> None:
    """No field of a memory is missing, and no other is named."""
    named = {word.removeprefix("Memory.") for word in SAID if word.startswith("Memory.")}
    assert named == set(Memory.model_fields)


def test_every_value_of_every_kind_stands_in_it() -> None:
    """No value of a closed set is missing, and no other is named."""
    sets = {one for one in vars(enums).values() if isinstance(one, type) and issubclass(one, StrEnum)} - {StrEnum}
    # No seed has roles or vector indexes, names the reasons of a choice, or lets a person pin or bury.
    sets -= {enums.Role, enums.Reason, enums.Standing, enums.IndexKind}
    assert set(NAMES.values()) == sets
    wanted = {f"{name}={value}" for name, kind in NAMES.items() for value in kind}
    assert {word for word in SAID if word.partition("=")[0] in NAMES and "=" in word} == wanted


def test_every_parameter_of_every_tool_stands_in_it() -> None:
    """No parameter of a tool is missing, and none is named that a tool does not have."""
    named: dict[str, set[str]] = {}
    for word in SAID:
        if called := re.fullmatch(r"(\w+)\(([\w, ]+)\)", word):
            named.setdefault(called[1], set()).update(called[2].split(", "))
    wanted = {name: set(tool.schema["properties"]) for name, tool in toolsets.TOOLS.items()}
    wanted[memory_tool.NAME] = set(memory_tool.input_schema()["properties"])
    assert named == wanted

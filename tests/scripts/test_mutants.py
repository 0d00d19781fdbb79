"""scripts/mutants.py over a tiny checkout: what it changes, what it leaves alone, and how it ends."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from places import SCRIPTS

SCRIPT = SCRIPTS / "mutants.py"
SOURCE = '''"""A docstring is no mutant."""
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    LIMIT = 3


def price(items: int = 2) -> int:
    """Nor is this one."""
    if items < 10 and not items == 4:
        return items * 3
    raise ValueError(max(items, 7))
'''


@pytest.fixture
def mutants(module: Callable[[str], ModuleType]) -> ModuleType:
    return module("mutants")


def test_every_kind_of_change_is_made(mutants: ModuleType) -> None:
    """Operators, constants, deleted statements and swapped arguments are found where they stand."""
    found = {(one.kind, one.line, one.before, one.after) for one in mutants.mutants_of("a.py", SOURCE)}
    assert ("operator", 10, "items < 10", "(items <= 10)") in found
    assert ("operator", 10, "not items == 4", "(items == 4)") in found
    assert ("operator", 11, "items * 3", "(items / 3)") in found
    assert ("constant", 11, "3", "4") in found
    assert ("deleted statement", 11, "return items * 3", "return") in found
    assert ("swapped arguments", 12, "max(items, 7)", "(max(7, items))") in found
    assert ("constant", 8, "2", "3") in found


def test_types_and_docstrings_are_left_alone(mutants: ModuleType) -> None:
    """What nobody could notice at run time is not changed, and each change is valid Python."""
    found = mutants.mutants_of("a.py", SOURCE)
    assert not {one.line for one in found} & {1, 2, 4, 5, 9}
    for one in found:
        changed = SOURCE.encode()[: one.start] + one.after.encode() + SOURCE.encode()[one.end :]
        ast.parse(changed)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a checkout with one function whose lower bound is tested and whose upper bound is not."""
    files = {
        "src/recollect/__init__.py": "",
        "src/recollect/gate/__init__.py": "",
        "src/recollect/gate/bounds.py": "def inside(value):\n    return value > 3 and value < 9\n",
        "tests/gate/test_gate.py": "from recollect.gate.bounds import inside\n\n\n"
        "def test_lower():\n    assert not inside(3)\n    assert inside(4)\n",
        "tests/gate/test_gate_reading.py": "",
        "tests/memory/test_gate_on_every_write.py": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    return tmp_path


def test_the_sample_follows_the_seed(mutants: ModuleType, checkout: Path) -> None:
    """The same seed draws the same changes; a room without sources gives none."""
    assert mutants.sample(checkout, 5, 1, None) == mutants.sample(checkout, 5, 1, "gate")
    assert mutants.sample(checkout, 5, 1, "store") == []


@pytest.mark.full
def test_survivors_are_named(mutants: ModuleType, checkout: Path) -> None:
    """A change that a test notices is killed by that test; one that none notices survives."""
    found = {one.after: one for one in mutants.mutants_of(*_bounds(checkout))}
    drawn = [found["(value >= 3)"], found["(value <= 9)"]]
    killed, survived = mutants.run(checkout, drawn, 2, 60.0, lambda _: None)
    assert "test_lower" in killed.killed_by
    assert survived.survived


def test_the_script_ends_by_its_share(checkout: Path, tmp_path: Path) -> None:
    """With survivors above what is allowed it ends with 1, and writes what it found."""
    rows = tmp_path / "rows.json"
    command = [sys.executable, str(SCRIPT), "--root", str(checkout), "--json", str(rows), "--least", "100"]
    done = subprocess.run([*command, "--count", "1", "--seed", "1"], capture_output=True, text=True, check=False)
    found = json.loads(rows.read_text(encoding="utf-8"))
    assert len(found) == 1
    assert done.returncode == int(not found[0]["killed_by"]), done.stderr
    assert ("1 of 1 killed" in done.stdout) is bool(found[0]["killed_by"])


def _bounds(checkout: Path) -> tuple[str, str]:
    path = "src/recollect/gate/bounds.py"
    return path, (checkout / path).read_text(encoding="utf-8")

"""What `src` imports stands in pyproject.toml, and the packages below `scripts` still fit what `src` offers."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions

import grimp

from places import ROOT, SCRIPTS, TESTS
from recollect.doors.handlers import HANDLERS

BROUGHT = {"anthropic", "openai", "pydantic_core", "torch", "transformers"}
"""What declared dependencies bring: extras of pydantic-ai, a part of pydantic, what sentence-transformers runs on."""
UNDECLARED = ("training",)
"""Packages of scripts that need more than the project's extra `test`."""


def test_every_dependency_is_declared_and_has_an_upper_bound() -> None:
    """What `src` imports stands in pyproject.toml, and no next major version of anything there is taken unseen."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [each for group in project["optional-dependencies"].values() for each in group] + project["dependencies"]
    assert [each for each in wanted if "<" not in each and not each.startswith("recollect[")] == []
    declared = {_normal(re.split(r"[\[<>=]", each)[0]) for each in wanted}
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "src").rglob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    tops = {name.partition(".")[0] for name in names} - {"recollect"} - BROUGHT
    homes = packages_distributions()
    assert {top for top in tops if top in homes and not declared & set(map(_normal, homes[top]))} == set()


def test_every_script_can_be_imported() -> None:
    """A module of `scripts` that imports what `src` no longer has is noticed, also where no test of scripts runs."""
    paths = [path.relative_to(SCRIPTS).with_suffix("") for path in SCRIPTS.rglob("*.py")]
    names = sorted(".".join(path.parts) for path in paths if path.parts[0] not in UNDECLARED)
    assert "evaluation.sets" in names
    code = f"import sys; sys.path[:0] = {[str(SCRIPTS), str(TESTS / 'support')]}\nimport {', '.join(names)}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_verbs_do_not_import_verbs() -> None:
    """Only aliases, decisions and the erasure of a person import verbs; what verbs share stands in a contract."""
    found = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    (contract,) = (each for each in found if each.get("containers") == ["recollect.memory"])
    shared = {f"recollect.memory.{name}" for layer in contract["layers"] for name in re.split(r" [|:] ", layer)}
    graph = grimp.build_graph("recollect")
    verbs = {run.__module__ for run in HANDLERS.values()} & graph.find_children("recollect.memory")
    assert shared | verbs == graph.find_children("recollect.memory")
    assert not shared & verbs
    importing = {name for verb in verbs for name in graph.find_modules_that_directly_import(verb)}
    assert importing & (shared | verbs) == {f"recollect.memory.{name}" for name in ("aliases", "erase", "inbox")}


def _normal(name: str) -> str:
    return name.lower().replace("_", "-")

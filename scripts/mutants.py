"""Mutation testing: change one line of src, run the tests of its room until the first failure, list what survives.

Works on copies of the tracked files, so that the checkout is never touched. mutmut and cosmic-ray make every mutant of
a module, or start the whole suite for each; a seeded sample over all rooms with the nearest tests first takes minutes.
"""

from __future__ import annotations

import ast
import copy
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table

ROOT = Path(__file__).parents[1]
SOURCE = Path("src/recollect")
# What tests a room beside the folder of its name, the nearest first.
BESIDE = {
    "domain": ("tests/memory", "tests/doors"),
    "gate": ("tests/memory/test_gate_on_every_write.py",),
    "text": ("tests/memory",),
    "prompt": ("tests/memory",),
    "memory": ("tests/seeds",),
    "search": ("tests/memory",),
    "sessions": ("tests/seeds",),
    "transfer": ("tests/memory/test_round_trip.py", "tests/doors"),
    "store": ("tests/contract", "tests/memory"),
    "engines": ("tests/memory",),
    "auth": ("tests/contract", "tests/doors"),
    "client": ("tests/contract/test_python_verbs.py", "tests/doors"),
    "doors": ("tests/e2e",),
    "frameworks": ("tests/docs",),
}
TOP = ("tests/test_*.py", "tests/doors", "tests/e2e")
COMPARED = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
COUNTED = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.BitAnd: ast.BitOr}
SKIPPED_CALLS = {"Field", "TypeVar", "getLogger", "warning", "debug", "info", "exception"}
err = Console(stderr=True)


@dataclass(frozen=True)
class Mutant:
    """One change: where it is, what kind it is, and the text before and after it."""

    path: str
    line: int
    kind: str
    before: str
    after: str
    start: int  # bytes into the file
    end: int

    @property
    def room(self) -> str:
        """Return the room of the changed file, or `top` for the modules beside the rooms."""
        parts = Path(self.path).relative_to(SOURCE).parts
        return parts[0] if len(parts) > 1 else "top"


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant: the first test that failed, or none where it survived."""

    mutant: Mutant
    killed_by: str

    @property
    def survived(self) -> bool:
        """Say whether no test noticed."""
        return not self.killed_by


def changes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield each kind of change that can be made to one node of a tree, with the node as it would be then."""
    new = copy.deepcopy(node)
    if isinstance(new, ast.Compare) and len(new.ops) == 1 and type(new.ops[0]) in COMPARED:
        new.ops[0] = COMPARED[type(new.ops[0])]()
        yield "operator", new
    elif isinstance(new, ast.BoolOp):
        new.op = ast.Or() if isinstance(new.op, ast.And) else ast.And()
        yield "operator", new
    elif isinstance(new, ast.BinOp) and type(new.op) in COUNTED:
        new.op = COUNTED[type(new.op)]()
        yield "operator", new
    elif isinstance(new, ast.UnaryOp) and isinstance(new.op, ast.Not):
        yield "operator", new.operand
    elif isinstance(new, ast.Constant) and isinstance(new.value, bool | int | float | str):
        value = new.value
        changed = not value if isinstance(value, bool) else f"{value}!" if isinstance(value, str) else value + 1
        yield "constant", ast.Constant(changed)
    elif (isinstance(new, ast.Expr) and isinstance(new.value, ast.Call)) or isinstance(new, ast.Raise | ast.AugAssign):
        yield "deleted statement", ast.Pass()
    elif isinstance(new, ast.Return) and new.value is not None:
        yield "deleted statement", ast.Return(None)
    elif isinstance(new, ast.Call) and len(new.args) > 1 and not any(isinstance(a, ast.Starred) for a in new.args[:2]):
        new.args[0], new.args[1] = new.args[1], new.args[0]
        yield "swapped arguments", new


def skipped(node: ast.AST) -> bool:
    """Say whether nothing inside a node can be noticed at run time: types, docstrings, help texts, log lines."""
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return True
    if isinstance(node, ast.ClassDef) and any("Protocol" in ast.unparse(base) for base in node.bases):
        return True
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True
    if isinstance(node, ast.Call):
        return ast.unparse(node.func).rpartition(".")[2] in SKIPPED_CALLS
    if isinstance(node, ast.Assign):
        return any(ast.unparse(target) == "__all__" for target in node.targets)
    return False


def mutable(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes below `node` whose change a test could notice; annotations and f-strings are left alone."""
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "decorator_list", "type_params"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not skipped(child) and not isinstance(child, ast.JoinedStr):
                yield child
                yield from mutable(child)


def mutants_of(path: str, source: str) -> list[Mutant]:
    """Return every change of one source that stays on one line."""
    lines = source.encode().splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    found = []
    for node in mutable(ast.parse(source)):
        if getattr(node, "lineno", None) is None or node.lineno != node.end_lineno:
            continue
        start, end = starts[node.lineno - 1] + node.col_offset, starts[node.lineno - 1] + node.end_col_offset
        before = source.encode()[start:end].decode()
        for kind, new in changes(node):
            after = ast.unparse(ast.fix_missing_locations(new))
            after = f"({after})" if isinstance(node, ast.expr) and not isinstance(node, ast.Constant) else after
            found.append(Mutant(path, node.lineno, kind, before, after, start, end))
    return found


def sample(root: Path, count: int, seed: int, room: str | None) -> list[Mutant]:
    """Draw changes: each line of the sources is equally likely, then each change of that line."""
    by_line: dict[tuple[str, int], list[Mutant]] = {}
    for file in sorted((root / SOURCE).rglob("*.py")):
        path = file.relative_to(root).as_posix()
        for mutant in mutants_of(path, file.read_text(encoding="utf-8")):
            if room in (None, mutant.room):
                by_line.setdefault((path, mutant.line), []).append(mutant)
    dice = random.Random(seed)
    places = dice.sample(sorted(by_line), min(count, len(by_line)))
    return [dice.choice(by_line[place]) for place in places]


def tests_for(root: Path, mutant: Mutant) -> list[str]:
    """Return the tests of a mutant's room: files that name its module first."""
    module = mutant.path.removeprefix("src/").removesuffix("/__init__.py").removesuffix(".py").replace("/", ".")
    named: list[str] = []
    other: list[str] = []
    patterns = (f"tests/{mutant.room}", *BESIDE[mutant.room]) if mutant.room in BESIDE else TOP
    for pattern in patterns:
        found = sorted(root.glob(pattern)) if "*" in pattern else [root / pattern]
        for path in found:
            for file in sorted(path.rglob("test_*.py")) if path.is_dir() else [path]:
                name = file.relative_to(root).as_posix()
                (named if module in file.read_text(encoding="utf-8") else other).append(name)
    return [*named, *other]


def copy_of(root: Path, place: Path) -> Path:
    """Copy the tracked and the new files of a checkout."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=root, check=True, capture_output=True, text=True
    )
    for name in listed.stdout.splitlines():
        if (root / name).is_file():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, place / name)
    return place


def judge(place: Path, mutant: Mutant, limit: float) -> Verdict:
    """Run the tests of the mutant's room over a copy that holds it, until the first failure.

    A run of more than `limit` seconds counts as killed: a loop that never ends is noticed too.
    """
    file = place / mutant.path
    whole = file.read_bytes()
    file.write_bytes(whole[: mutant.start] + mutant.after.encode() + whole[mutant.end :])
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTHONPATH": str(place / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            [*command, *tests_for(place, mutant)],
            cwd=place,
            env=environment,
            capture_output=True,
            text=True,
            timeout=limit,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Verdict(mutant, f"no end within {limit:.0f} s")
    finally:
        file.write_bytes(whole)
    if done.returncode == 0:
        return Verdict(mutant, "")
    failures = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return Verdict(mutant, failures[0].split(" - ")[0] if failures else "the tests cannot be collected")


def run(root: Path, drawn: list[Mutant], jobs: int, limit: float, tick: Callable[[Verdict], None]) -> list[Verdict]:
    """Judge every mutant, `jobs` at a time, each job in a copy of its own."""
    with tempfile.TemporaryDirectory(prefix="recollect-mutants-") as folder, ThreadPoolExecutor(jobs) as pool:
        copies: SimpleQueue[Path] = SimpleQueue()
        for job in range(jobs):
            copies.put(copy_of(root, Path(folder) / str(job)))

        def one(mutant: Mutant) -> Verdict:
            place = copies.get()
            try:
                verdict = judge(place, mutant, limit)
            finally:
                copies.put(place)
            tick(verdict)
            return verdict

        return list(pool.map(one, drawn))


def show(verdicts: list[Verdict]) -> None:
    """Print how many were killed in each room, then every survivor."""
    table = Table("room", "mutants", "killed", title="Mutation testing", title_justify="left")
    drawn = Counter(verdict.mutant.room for verdict in verdicts)
    survived = Counter(verdict.mutant.room for verdict in verdicts if verdict.survived)
    for room in sorted(drawn):
        table.add_row(room, str(drawn[room]), str(drawn[room] - survived[room]))
    out = Console(highlight=False, soft_wrap=True)
    out.print(table)
    for verdict in verdicts:
        if verdict.survived:
            mutant = verdict.mutant
            out.print(f"survived: {mutant.path}:{mutant.line} ({mutant.kind})")
            out.print(escape(f"    - {mutant.before}\n    + {mutant.after}"))
    killed = len(verdicts) - survived.total()
    out.print(f"{killed} of {len(verdicts)} killed ({100 * killed / max(len(verdicts), 1):.0f} %)")


def main(
    count: Annotated[int, typer.Option(min=1, help="How many changes to draw.")] = 60,
    room: Annotated[str | None, typer.Option(help="Only this room of src/recollect, such as `gate`.")] = None,
    seed: Annotated[int, typer.Option(help="The same seed draws the same changes.")] = 1,
    jobs: Annotated[int, typer.Option(min=1, help="How many to judge at a time.")] = 2,
    limit: Annotated[float, typer.Option(help="Seconds after which a test run counts as hanging.")] = 900.0,
    least: Annotated[int, typer.Option(help="Exit with 1 when fewer percent are killed.")] = 90,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write each verdict here.")] = None,
    root: Annotated[Path, typer.Option(help="The checkout.", hidden=True)] = ROOT,
) -> None:
    """Change single lines of src at random, one at a time, and list which changes no test of their room notices."""
    drawn = sample(root.resolve(), count, seed, room)
    if not drawn:
        raise typer.BadParameter(f"nothing to change in {room}", param_hint="--room")
    with Progress(console=err, transient=True) as progress:
        task = progress.add_task("mutants", total=len(drawn))

        judged: list[Verdict] = []

        def tick(verdict: Verdict) -> None:
            judged.append(verdict)
            progress.advance(task)
            place = f"{verdict.mutant.path}:{verdict.mutant.line}"
            progress.console.print(f"{len(judged)} of {len(drawn)}: {place} {verdict.killed_by or 'survived'}")
            if json_file is not None:
                rows = [asdict(one.mutant) | {"killed_by": one.killed_by} for one in judged]
                json_file.write_text(json.dumps(rows, indent=1), encoding="utf-8")

        verdicts = run(root.resolve(), drawn, jobs, limit, tick)
    show(verdicts)
    killed = sum(not verdict.survived for verdict in verdicts)
    raise typer.Exit(int(100 * killed < least * len(verdicts)))


if __name__ == "__main__":
    typer.run(main)

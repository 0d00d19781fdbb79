"""Counts what ruff, mypy and import-linter do not: the limits this project sets itself.

Reads the sources and never imports them. "A port" is approximate: the name of any Protocol.
"""

import ast
import re
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

FUNCTION_LINES, README_LINES = 50, 250
PACKAGE = "src/recollect/"
DOORS, VECTORS, MIGRATIONS = PACKAGE + "doors/", PACKAGE + "store/vectors/chroma.py", PACKAGE + "store/sql/migrations"
ENGINES = (
    "onnxruntime",
    "tokenizers",
    "torch",
    "sentence_transformers",
    "huggingface_hub",
    "safetensors",
    "transformers",
)
# Heavy library: how the path of the one module that may import it begins (migrations are many by nature).
HEAVY: dict[str, str | tuple[str, ...]] = {
    "chromadb": VECTORS,
    "alembic": MIGRATIONS,
    "detect_secrets": PACKAGE + "gate",
}
SERVED = PACKAGE + "engines/embedding_service.py"
HEAVY |= {"httpx": (VECTORS, SERVED), "tenacity": SERVED}  # the first speaks to two kinds of server
HEAVY["tomlkit"] = PACKAGE + "doors/agents/toml_text.py"
HEAVY |= dict.fromkeys(("pydantic_ai", "openai"), PACKAGE + "engines/chat.py")
# A module that serves one framework is imported by whoever has that, and by nobody else: it may begin with it.
FRAMEWORKS = PACKAGE + "frameworks/"
HEAVY["anthropic"] = (PACKAGE + "engines/chat.py", FRAMEWORKS + "anthropic.py")
HEAVY["langgraph"] = FRAMEWORKS + "langgraph.py"
HEAVY["watchfiles"] = PACKAGE + "transfer/watching.py"
HEAVY["dateparser"] = PACKAGE + "search/date_reader.py"
HEAVY |= dict.fromkeys(ENGINES, PACKAGE + "engines/")
HEAVY |= dict.fromkeys(("markdown_it", "yaml"), PACKAGE + "transfer/markdown_sections.py")
# Every command, hook and client waits for these: what only some of them need waits inside a function.
STARTING = (DOORS, PACKAGE + "client/", PACKAGE + "process.py")
UNFINISHED = re.compile("TO[D]O|FIXM[E]|X{3}|NotImplementedErro[r]|pragma: no cove[r]")
# Names that the first version had for itself; the field's words stand in their place.
RETIRED = re.compile(
    r"\b(\w*_)?([t]wins?|courie[r]|bringin[g]|closenes[s]|erran[d])(_\w+)?\b|\b(Keepin[g]|Brough[t]|Unrea[d])\b"
)
RECORDED = re.compile(
    r"tests/sessions/.*[.](jsonl|md)|scripts/(training/data|evaluation/data/(notes|answers|stores))/.*[.](jsonl?|txt)"
    r"|scripts/evaluation/data/worth/.*[.](json|toml)"
)  # what others wrote
TESTS = ("tests/", "scripts/training/tests/")
# Words that hide a noun: how many names and words of docstrings in src may still be them. Only ever lower a number.
WORD_CEILINGS = {"one": 2359, "said": 201, "told": 89, "given": 158}
VAGUE = re.compile(r"(Manager|Service|Helper|Util|Factory|Base|Impl)s?$|V\d+$")
PROOF = re.compile(r"(.+\.)?(raises|fail|warns|(assert_|check)\w*)$")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Found: TypeAlias = Iterator[tuple[str, int, str]]


class Source(NamedTuple):
    """One Python file: its path from the root, its lines and its tree."""

    path: str
    lines: list[str]
    tree: ast.Module


def walk(node: ast.AST, around: str = ".", inner: bool = False) -> Iterator[tuple[Any, str, bool]]:
    """Yield each node with the names around it (`.Hooks.emit.`) and whether a function is among them."""
    for child in ast.iter_child_nodes(node):
        yield child, around, inner
        names = f"{around}{child.name}." if isinstance(child, (*FUNCTIONS, ast.ClassDef)) else around
        yield from walk(child, names, inner or isinstance(child, FUNCTIONS))


def mentioned(*nodes: ast.AST) -> set[str]:
    """Name what expressions speak of: `Records`, `ports.Records`, `(A, B)` and `A | B`."""
    return {getattr(n, "id", getattr(n, "attr", "")) for node in nodes for n in ast.walk(node)}


def called(node: ast.AST) -> str:
    """Write out what a call calls, `pytest.raises` for one; nothing for what is no call."""
    return ast.unparse(node.func) if isinstance(node, ast.Call) else ""


def sizes(source: Source) -> Found:
    if source.path == "README.md" and len(source.lines) > README_LINES:
        yield source.path, README_LINES + 1, f"the file has {len(source.lines)} lines; {README_LINES} at most."
    for node, *_ in walk(source.tree):
        if isinstance(node, FUNCTIONS) and (length := node.end_lineno - node.lineno + 1) > FUNCTION_LINES:
            yield source.path, node.lineno, f"{node.name} has {length} lines; {FUNCTION_LINES} at most."
    written_by_others = source.path == "README.md" or RECORDED.match(source.path)
    for number, line in enumerate(() if written_by_others else source.lines, 1):
        if word := UNFINISHED.search(line):
            yield source.path, number, f"{word[0]} marks something unfinished."


def retired(source: Source) -> Found:
    for number, line in enumerate(() if RECORDED.match(source.path) else source.lines, 1):
        if word := RETIRED.search(line):
            yield source.path, number, f"{word[0]} is a retired name; use the field's word."


def habits(source: Source, ports: set[str]) -> Found:
    for node, *_ in walk(source.tree):
        names = {getattr(node, "attr", "")} | {getattr(name, "name", "") for name in getattr(node, "names", ())}
        if names & {"environ", "environb", "getenv", "getenvb"} and source.path != PACKAGE + "process.py":
            yield source.path, node.lineno, "only process.py reads the environment."
        if called(node) == "import_module" and "recollect." in ast.unparse(node.args[0]):
            yield source.path, node.lineno, "import_module hides an import of our own; import it in the function."
        if called(node) == "hasattr":
            yield source.path, node.lineno, "hasattr asks what a port should promise."
        if called(node) == "isinstance" and (asked := mentioned(*node.args[1:]) & ports):
            yield source.path, node.lineno, f"isinstance on the port {min(asked)}; give the port a method instead."
        if called(node) == "print" and not source.path.startswith(DOORS):
            yield source.path, node.lineno, "only a door prints."
        if isinstance(node, ast.ClassDef) and (vague := VAGUE.search(node.name)):
            yield source.path, node.lineno, f"the name {node.name} ends in {vague[0]}; say what it is."


def blind_excepts(source: Source) -> Found:
    for node, around, _ in walk(source.tree):
        suppress = called(node).endswith("suppress")
        caught = node.args if suppress else [node.type] if isinstance(node, ast.ExceptHandler) else []
        if None not in caught and not mentioned(*caught) & {"Exception", "BaseException"}:
            continue
        emit = source.path.startswith(PACKAGE + "sessions/") and around.startswith(".run_stages.")
        reason = re.sub(r"noqa(:([, ]*[A-Z]+\d+)+)?", "", source.lines[node.lineno - 1].partition("#")[2])
        if not (emit or source.path.startswith(DOORS) or source.path == VECTORS):
            yield source.path, node.lineno, "a blind except; name what can go wrong."
        elif len(re.findall(r"\w+", reason)) < 2:
            yield source.path, node.lineno, "a blind except without its reason in a comment on the same line."


def imports(source: Source, owners: dict[str, str]) -> Found:
    path, free = source.path, source.path.startswith((MIGRATIONS, FRAMEWORKS))
    ifs = [n for n in ast.walk(source.tree) if isinstance(n, ast.If) and "TYPE_CHECKING" in mentioned(n.test)]
    unrun = {id(n) for branch in ifs for statement in branch.body for n in ast.walk(statement)}
    for node, _, inner in (found for found in walk(source.tree) if isinstance(found[0], ast.Import | ast.ImportFrom)):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
        heavy = {name.partition(".")[0] for name in names if not getattr(node, "level", 0)} & HEAVY.keys()
        if inner and not heavy and not path.startswith(STARTING):
            yield path, node.lineno, "an import inside a function; only heavy libraries wait there."
        for library in sorted(heavy):
            if not path.startswith(HEAVY[library]):
                yield path, node.lineno, f"{library} belongs to {HEAVY[library]}."
            elif not free and library != "httpx" and owners.setdefault(library, path) != path:
                yield path, node.lineno, f"{library} has an owner already: {owners[library]}."
            if not (inner or free or id(node) in unrun):
                yield path, node.lineno, f"{library} is heavy; import it inside the function that needs it."


def layout(source: Source) -> Found:
    """Find what stands below where a reader looks for it: imports come first, then constants.

    A constant that needs a class or a function of its module stands below it.
    """
    defined: set[str] = set()
    below = False
    for node in source.tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom) and below:
            yield source.path, node.lineno, "an import below other code; it belongs to the top."
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            defined.add(node.name)
        if isinstance(node, ast.Assign | ast.AnnAssign):
            names = [one for one in ast.walk(node) if isinstance(one, ast.Name)]
            stored = {one.id for one in names if isinstance(one.ctx, ast.Store)}
            if ({one.id for one in names} - stored) & defined:
                defined |= stored
            elif defined and stored:
                yield (
                    source.path,
                    node.lineno,
                    f"{min(stored)} needs nothing above it; it belongs to the top.",
                )
        below = below or isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.Assign, ast.AnnAssign))


def imported(source: Source, modules: set[str]) -> Iterator[tuple[str, int]]:
    """Yield the modules of the package that a module imports anywhere in it, and the line."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for one in node.names:
                whole = f"{node.module}.{one.name}"
                yield whole if whole in modules else node.module, node.lineno


def circles(sources: list[Source]) -> Found:
    """Find a module that imports, by way of others, itself."""
    ours = {one.path: one for one in sources if one.path.startswith(PACKAGE)}
    names = {path.removeprefix("src/").removesuffix(".py").replace("/", "."): path for path in ours}
    modules = {name.removesuffix(".__init__"): ours[path] for name, path in names.items()}
    leads = {name: dict(imported(one, {*modules})) for name, one in modules.items()}
    try:
        TopologicalSorter({name: [*found.keys() - {name}] for name, found in leads.items()}).prepare()
    except CycleError as error:
        circle = error.args[1][::-1]
        first, second = modules[circle[0]], circle[1]
        yield first.path, leads[circle[0]].get(second, 1), f"a circle of imports: {' > '.join(circle)}."


def proofs(source: Source) -> Found:
    for node, *_ in walk(source.tree):
        if isinstance(node, ast.Assert) and isinstance(node.test, ast.Constant) and node.test.value:
            yield source.path, node.lineno, "an assert that cannot fail."
        if isinstance(node, FUNCTIONS) and node.name.startswith("test_"):
            if not any(isinstance(n, ast.Assert) or PROOF.match(called(n)) for n in ast.walk(node)):
                yield source.path, node.lineno, f"{node.name} asserts nothing."
            if not ast.get_docstring(node):
                yield source.path, node.lineno, f"{node.name} has no docstring; say in one sentence what holds."


def word_counts(sources: list[Source]) -> dict[str, int]:
    """Count the words of `WORD_CEILINGS` as whole names and as words of docstrings, over src."""
    words = re.compile(rf"\b({'|'.join(WORD_CEILINGS)})\b", re.IGNORECASE)
    counts = dict.fromkeys(WORD_CEILINGS, 0)
    for node in (node for source in sources if source.path.startswith("src/") for node in ast.walk(source.tree)):
        names = {getattr(node, field, None) for field in ("id", "arg", "attr", "name")} & WORD_CEILINGS.keys()
        text = node.value.value if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) else ""
        for word in (*names, *(words.findall(text) if isinstance(text, str) else ())):
            counts[word.lower()] += 1
    return counts


def vague_words(sources: list[Source]) -> Found:
    """Find a word that stands in src more often than its ceiling allows."""
    for word, count in word_counts(sources).items():
        if count > WORD_CEILINGS[word]:
            yield PACKAGE, 1, f"`{word}` stands {count} times; {WORD_CEILINGS[word]} at most. Write the noun."


def read(root: Path) -> Iterator[Source]:
    """Read the README and everything in src, scripts and tests; what is not Python has an empty tree."""
    below = [path for top in ("src", "scripts", "tests") for path in sorted((root / top).rglob("*"))]
    for path in [root / "README.md", *below]:
        if path.is_file() and not {"__pycache__", ".hypothesis"} & set(path.parts):
            name, text = path.relative_to(root).as_posix(), path.read_text("utf-8", errors="replace")
            yield Source(name, text.splitlines(), ast.parse(text if path.suffix == ".py" else "", name))


def violations(root: Path) -> Found:
    """Yield path, line and sentence for every limit that the checkout at root exceeds."""
    sources, owners = list(read(root)), {}
    nodes = [node for source in sources if source.path.startswith(PACKAGE) for node in source.tree.body]
    ports = {n.name for n in nodes if isinstance(n, ast.ClassDef) and "Protocol" in mentioned(*n.bases)}
    for source in sources:
        yield from (*retired(source), *layout(source))
        yield from proofs(source) if source.path.startswith(TESTS) else sizes(source)
        if source.path.startswith("src/"):
            yield from (*habits(source, ports), *blind_excepts(source), *imports(source, owners))
    yield from circles(sources)
    yield from vague_words(sources)


if __name__ == "__main__":
    try:
        lines = [f"{path}:{line}: {sentence}" for path, line, sentence in sorted(violations(Path(__file__).parents[1]))]
    except SyntaxError as error:
        lines = [f"{error.filename}:{error.lineno}: this is not Python ({error.msg}); nothing was counted."]
    print("\n".join([*lines, f"counters: {len(lines) or 'nothing'} found"]))
    sys.exit(bool(lines))

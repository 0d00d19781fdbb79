"""Finds every pattern of the tree, and texts, built from its own structure, that take it more than linear time."""

from __future__ import annotations

import ast
import re
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import islice, zip_longest
from pathlib import Path
from random import Random
from re import _compiler, _constants, _parser  # type: ignore[attr-defined]
from time import perf_counter, process_time
from typing import Any

import recollect
from recollect import wiring  # noqa: F401 - the modules import each other only in its order
from recollect.gate import labels, plugins, structure, tables, tokens

SRC = Path(recollect.__file__).parent
FUNCTIONS = {"compile", "sub", "subn", "search", "match", "fullmatch", "finditer", "findall", "split"}
ANCHORED = {"match", "fullmatch"}
REPEATS = (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT)
ONE = (_constants.IN, _constants.ANY, _constants.LITERAL, _constants.NOT_LITERAL)
ALPHABET = "a0_- .,;:=\"'/\\\t\nA1b9Zz@+*#~|<>()[]{}!?$%&^`é中д、。\u0300\u2019\u00b7\x00"
ENDS = ("", "\x01", "aa", " ")
SHORT = 200
LONG = 5_000
MOST = 0.25  # seconds of processor time for 5,000 characters
WORST = 8.0  # times as long may a text of four times the length take
NOTICED = 0.05  # seconds below which no growth is measured
_TELLING = 0.2  # seconds of processor time
_NAMING = (_constants.LITERAL, _constants.RANGE)


@dataclass(frozen=True)
class Used:
    """A pattern, where it stands and how it is asked."""

    place: str
    pattern: re.Pattern[str]
    run: Callable[[str], object]
    longest: int | None = None  # characters of a text that it is ever asked about


@dataclass(frozen=True)
class Slow:
    """An attack on a pattern: how it begins, what is repeated, how it ends, and the seconds it took."""

    head: str
    pump: str
    end: str
    length: int
    seconds: float


def used(place: str, pattern: re.Pattern[Any], ways: Iterable[str] = (), longest: int | None = None) -> Used:
    """Return a pattern as it is asked: from the start of a text alone, or at each of its places."""
    if isinstance(pattern.pattern, bytes):
        pattern = re.compile(pattern.pattern.decode("latin-1"), pattern.flags)
    ways = {way.removesuffix(" behind") for way in ways}
    if ways and ways <= ANCHORED:
        return Used(place, pattern, pattern.fullmatch if ways == {"fullmatch"} else pattern.match, longest)
    return Used(place, pattern, lambda text: deque(pattern.finditer(text), 0), longest)


def of_source() -> Iterator[Used | str]:
    """Yield the pattern of each call of `re` in the package, or where one stands that is made at run time."""
    for path in sorted(SRC.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _of_re(node.func)]
        name = ".".join(path.relative_to(SRC.parent).with_suffix("").parts).removesuffix(".__init__")
        known = vars(import_module(name)) if calls else {}
        ways = _ways(tree)
        for call in calls:
            try:
                source, flags = _argument(call.args[0], known), _flags(call, known)
            except NameError:
                yield f"{path.relative_to(SRC)}: {ast.unparse(call)}"
                continue
            asked = ways.get(_bound(tree, call), ()) if call.func.attr == "compile" else {call.func.attr}
            yield used(f"{path.relative_to(SRC)}:{call.lineno}", re.compile(source, flags), asked)


def of_gate() -> Iterator[Used]:
    """Yield the patterns that the gate makes of its tables; what is asked behind a word comes with such a word."""
    ways: dict[str, set[str]] = {}
    for path in (SRC / "gate").glob("*.py"):
        for name, asked in _ways(ast.parse(path.read_text(encoding="utf-8"))).items():
            ways.setdefault(name, set()).update(asked)
    for name in tables.table("patterns"):
        made, asked = tables.pattern(name), ways.get(f"pattern('{name}')", set())
        yield used(f"gate/patterns.toml {name}", made, asked)
        if asked == {"match behind"}:
            behind = re.compile(f"key(?:{made.pattern.removeprefix('(?i)')})", made.flags)
            yield used(f"gate/patterns.toml {name}", behind)
    clients = structure._client_patterns()._rows
    rows = [row[1] for row in tokens._token_formats()._rows] + [row[0] for row in labels._label_patterns()._rows]
    rows += [row[0] for row in clients] + [f"(?:{names}){rest}" for names, rest, _ in clients]
    rows += [structure._call_pattern(group) for group in ("calls", "key_calls")] + list(structure._SPLITS)
    yield from (used(f"gate {source}", re.compile(source)) for source in rows)


def of_library() -> Iterator[Used]:
    """Yield the patterns of detect-secrets' plugins, which meet a window of the text at a time."""
    for kind, _, _, plugin in plugins._hinted_plugins():
        for one in plugin.denylist:
            known = used(f"detect-secrets {kind}", one, (), plugins._WINDOW)
            yield replace(known, run=lambda text, run=known.run: run(plugins._shortened_gaps(text)))


def _of_re(called: ast.expr) -> bool:
    known = isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name)
    return known and called.value.id == "re" and called.attr in FUNCTIONS


def _argument(node: ast.expr, known: dict[str, Any]) -> Any:
    return eval(compile(ast.Expression(node), "a pattern", "eval"), known)


def _flags(call: ast.Call, known: dict[str, Any]) -> int:
    named = [one.value for one in call.keywords if one.arg == "flags"]
    given = call.args[1:2] if call.func.attr == "compile" else named  # type: ignore[attr-defined]
    return int(_argument(given[0], known)) if given else 0


def _bound(tree: ast.Module, call: ast.Call) -> str:
    """Return the name that a pattern is bound to; nothing where it is a part of a table."""
    for node in tree.body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is call:
            return ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)
    return ""


def _ways(tree: ast.Module) -> dict[str, set[str]]:
    """Return for each name, and each `pattern("name")`, what it is asked for, and whether behind an offset.

    What is handed on to others is left out.
    """
    asked: dict[str, set[str]] = {}
    plain: set[str] = set()
    behind = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call) and len(node.args) > 1}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, (ast.Name, ast.Call)):
            way = node.attr + (" behind" if id(node) in behind else "")
            asked.setdefault(ast.unparse(node.value), set()).add(way)
        for child in ast.iter_child_nodes(node):
            handed = isinstance(child, ast.Name) and isinstance(child.ctx, ast.Load)
            if (handed or isinstance(child, ast.Call)) and not isinstance(node, ast.Attribute):
                plain.add(ast.unparse(child))
    return {name: ways for name, ways in asked.items() if name not in plain}


class TooLong(Exception):
    """A match has used all the processor time it may."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise `TooLong` in what uses more processor time than that, even inside a match; for the main thread only."""

    def stop(_number: int, _frame: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def taken(run: Callable[[str], object], text: str, most: float, *, surely: bool = False) -> float:
    """Return the seconds that a pattern takes for a text; `most` where that much processor time is too little.

    `surely` is processor time, of so many runs that its coarse clock tells them; else other processes count too.
    """
    clock, runs = process_time if surely else perf_counter, 0
    start = clock()
    while runs == 0 or (surely and clock() - start < _TELLING):
        try:
            with at_most(most):
                run(text)
        except TooLong:
            return most
        runs += 1
    return (clock() - start) / runs


def slowest(one: Used, tries: int, picked: int) -> Slow | None:
    """Return an attack for which a pattern takes longer than it may, or longer than linear time.

    So many attacks are tried on short texts; those that cost most there, and those that grow fastest, on long ones.
    """
    ways = attacks(one.pattern)
    if len(ways) > tries:
        ways = ways[: tries // 2] + Random(0).sample(ways[tries // 2 :], tries - tries // 2)
    found = []
    for way in ((head, pump, end) for head, pump in ways for end in ENDS):
        first, then = (taken(one.run, attack(*way, length), MOST) for length in (SHORT, 3 * SHORT))
        if then >= MOST:
            return Slow(*way, 3 * SHORT, then)
        found.append((then, then / max(first, 2e-6), way))
    worst = [way for *_, way in sorted(found)[-picked:]]
    worst += [way for *_, way in sorted(found, key=lambda one: one[1:])[-picked:]]
    return next(filter(None, (_grown(one, way) for way in dict.fromkeys(worst))), None)


def _grown(one: Used, way: tuple[str, str, str]) -> Slow | None:
    length = one.longest or 4 * LONG
    for surely in (False, True):
        if one.longest:
            bound, last = MOST * length / LONG, taken(one.run, attack(*way, length), MOST, surely=surely)
        else:
            first = taken(one.run, attack(*way, LONG), MOST, surely=surely)
            last = taken(one.run, attack(*way, length), 4 * MOST, surely=surely) if first < MOST else 4 * MOST
            bound = min(4 * MOST, max(NOTICED, WORST * first))
        if last < bound:
            return None
    return Slow(*way, length, last)


def attack(head: str, pump: str, end: str, length: int) -> str:
    """Return the text of an attack."""
    return head + pump * max(1, (length - len(head)) // len(pump)) + end


def attacks(pattern: re.Pattern[str]) -> list[tuple[str, str]]:
    """Return how each attack begins and what it repeats, the simplest of each repeat first."""
    found = _attacks(list(_parser.parse(pattern.pattern, pattern.flags)), "", [], pattern.flags)
    return list(dict.fromkeys((head, pump) for _, head, pump in sorted(found, key=lambda one: one[0])))


def _attacks(items: list[Any], head: str, after: list[Any], flags: int) -> Iterator[tuple[int, str, str]]:
    for place, item in enumerate(items):
        kind, value = item
        rest = items[place + 1 :] + after
        if kind in REPEATS:
            if value[1] > 3:
                yield from _pumps(value[2], head, rest, flags)
            yield from _attacks(list(value[2]), head, rest, flags)
        for inner in _inside(kind, value):
            yield from _attacks(list(inner), head, rest, flags)
        head += _sample(item, flags, 0)


def _inside(kind: Any, value: Any) -> list[Any]:
    if kind is _constants.BRANCH:
        return list(value[1])
    if kind is _constants.SUBPATTERN:
        return [value[3]]
    if kind in (_constants.ASSERT, _constants.ASSERT_NOT):
        return [value[1]]
    return [value] if kind is _constants.ATOMIC_GROUP else []


def _pumps(body: Any, head: str, rest: list[Any], flags: int) -> Iterator[tuple[int, str, str]]:
    """Yield attacks on one repeat: its body, each character of it, those with its neighbours, and all before it."""
    units = list(dict.fromkeys(sample(body, flags, variant) for variant in range(6)))
    beside = [sample([one], flags, variant) for one in rest[:3] for variant in range(3)] + [head[-1:]]
    ways = zip_longest(
        units,
        _letters(body, flags),
        [unit + other for other in dict.fromkeys(beside) for unit in units],
        [head, head + units[0], *beside],
        fillvalue="",
    )
    for place, pumps in enumerate(ways):
        yield from ((place, begun, pump) for pump in filter(None, pumps) for begun in (head, ""))


def sample(items: Any, flags: int, variant: int = 0) -> str:
    """Return a text that a sequence of items accepts, but for what they look ahead or behind for."""
    return "".join(_sample(item, flags, variant) for item in items)


def _sample(item: tuple[Any, Any], flags: int, variant: int) -> str:
    kind, value = item
    if kind in REPEATS:
        return sample(value[2], flags, variant) * (max(value[0], min(1, value[1])) if variant % 2 == 0 else value[0])
    if kind is _constants.BRANCH:
        return sample(value[1][variant % len(value[1])], flags, variant)
    if kind in (_constants.SUBPATTERN, _constants.ATOMIC_GROUP):
        return sample(_inside(kind, value)[0], flags, variant)
    if kind in ONE:
        found = accepted(item, flags)
        return found[variant % len(found)] if found else "?"
    return ""


def _letters(items: Any, flags: int) -> Iterator[str]:
    """Yield characters of what is repeated, one by one: a class may accept what is also its neighbour's."""
    for item in items:
        if item[0] in ONE:
            yield from islice(accepted(item, flags), 12)
        elif item[0] in REPEATS:
            yield from _letters(item[1][2], flags)


def accepted(item: tuple[Any, Any], flags: int) -> str:
    """Return the characters that one item accepts: those that it names, and those of the alphabet."""
    state = _parser.State()
    state.flags, state.str = flags, ""
    alone = _compiler.compile(_parser.SubPattern(state, [item]), flags)
    return "".join(dict.fromkeys(char for char in _named(*item) + ALPHABET if alone.fullmatch(char)))


def _named(kind: Any, value: Any) -> str:
    if kind is _constants.LITERAL:
        return chr(value)
    if kind is not _constants.IN:
        return ""
    starts = [one[1] if one[0] is _constants.LITERAL else one[1][0] for one in value if one[0] in _NAMING]
    return "".join(map(chr, starts))

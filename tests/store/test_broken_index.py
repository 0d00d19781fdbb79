"""A broken vector index costs nothing but time: SQL answers meanwhile, and the index is built again without a model."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from callers import ADA
from entries import direction, make_entry
from places import TESTS
from recollect import App, Draft, Query, Settings, recall, remember
from recollect.store.vectors import vector_search
from recollect.store.vectors.index import IndexBroken

pytestmark = pytest.mark.slow

NAMESPACES = ("project:crew/engine", "user:ada", "team:crew")
BLOCK = 4_096  # bytes
MANY = 1_100  # above Chroma's sync threshold, so that graph files are on disk
FURTHER = {"database halved", "database empty", "graphs deleted", "graph halved", "metadata empty", "everything empty"}


def garbage(path: Path) -> None:
    """Overwrite a file with noise of the same length."""
    path.write_bytes(random.Random(5).randbytes(path.stat().st_size))


def half(path: Path) -> None:
    """Cut a file in the middle."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def nothing(path: Path) -> None:
    """Leave a file of no length, as a kill in mid-write does."""
    path.write_bytes(b"")


def without_its_end(path: Path) -> None:
    """Write zeros over the second half of a file, as a disk does that lost what was written last."""
    held = path.read_bytes()
    path.write_bytes(held[: len(held) // 2] + bytes(len(held) - len(held) // 2))


def with_holes(path: Path) -> None:
    """Write zeros over each fourth block of a file."""
    blocks = [path.read_bytes()[at : at + BLOCK] for at in range(0, path.stat().st_size, BLOCK)]
    path.write_bytes(b"".join(bytes(len(one)) if at % 4 == 3 else one for at, one in enumerate(blocks)))


def files(folder: Path, pattern: str) -> list[Path]:
    """Return the index's files of a kind."""
    return [path for path in folder.rglob(pattern) if path.is_file()]


def damage_graph(how: Callable[[Path], None], pattern: str) -> Callable[[Path], None]:
    """Return what damages every graph file of a kind."""

    def damage(folder: Path) -> None:
        found = files(folder, pattern)
        assert found, f"no {pattern} to damage"
        for path in found:
            how(path)

    return damage


def replaced_by_file(folder: Path) -> None:
    """Put a file where the folder was."""
    shutil.rmtree(folder)
    folder.write_text("in the way", encoding="utf-8")


def without_subfolders(folder: Path) -> None:
    """Remove the graphs but leave Chroma's database."""
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)


DAMAGES: dict[str, Callable[[Path], None]] = {
    "folder deleted": shutil.rmtree,
    "folder is a file": replaced_by_file,
    "graphs deleted": without_subfolders,
    "database garbage": damage_graph(garbage, "chroma.sqlite3"),
    "database halved": damage_graph(half, "chroma.sqlite3"),
    "database empty": damage_graph(nothing, "chroma.sqlite3"),
    "database deleted": lambda folder: (folder / "chroma.sqlite3").unlink(),
    "graph garbage": damage_graph(garbage, "*.bin"),
    "graph halved": damage_graph(half, "*.bin"),
    "graph empty": damage_graph(nothing, "*.bin"),
    "metadata garbage": damage_graph(garbage, "*.pickle"),
    "metadata empty": damage_graph(nothing, "*.pickle"),
    "everything garbage": damage_graph(garbage, "*"),
    "everything empty": damage_graph(nothing, "*"),
}


FURTHER |= {"graph empty", "database garbage", "folder is a file", "database deleted", "metadata garbage"}
"""Kinds that only scripts/soak tries: each resembles one that is always tried."""


def fill(parts: Any) -> dict[str, int]:
    """Store many memories in one namespace and a few in two others; return one id of each."""
    ids = {}
    for namespace in NAMESPACES:
        with parts.records.writing(namespace, "ada") as transaction:
            for number in range(MANY if namespace == NAMESPACES[0] else 5):
                memory_id = transaction.memories.insert(make_entry(f"{namespace} fact {number}"))
                ids.setdefault(namespace, memory_id)
    parts.vectors.sync()
    assert parts.checks() == {}
    return ids


def found(parts: Any, namespace: str) -> int:
    """Return the memory nearest to the first one of the namespace."""
    near = parts.vectors.nearest(direction(f"{namespace} fact 0/0"), parts.view(namespace), 5)
    return max(near, key=lambda one: near[one])


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask the index also where there are few memories, which are otherwise scanned."""
    monkeypatch.setattr(vector_search, "_SCANNED", 0)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder in which the filled store is kept between tests."""
    return tmp_path_factory.mktemp("template")


def filled(open_parts: Callable[[], Any], template: Path, home: Path) -> Path:
    """Return the folder `home` with a filled store that is closed."""
    if (template / "home").exists():
        shutil.copytree(template / "home", home)
        return home
    parts = open_parts()
    fill(parts)
    parts.close()
    shutil.copytree(home, template / "home")
    return home


@pytest.mark.full_cases("folder deleted", "everything garbage")
@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(damage, id=name, marks=[pytest.mark.full] if name in FURTHER else [])
        for name, damage in DAMAGES.items()
    ],
)
def test_a_damaged_folder_is_built_again(
    open_parts: Callable[[], Any], template: Path, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    """Whatever was done to Chroma's files meanwhile, SQL answers, and after the second start at latest Chroma does.

    The first start may be killed by the damage, and so has a process of its own.
    """
    home = filled(open_parts, template, tmp_path / "home")
    damage(home / "chroma")
    parts = open_parts()
    first = {name: min(int(one.partition(".")[0]) for one in parts.in_sql(name)) for name in NAMESPACES}
    assert {name: found(parts, name) for name in NAMESPACES} == first
    parts.close()
    started = restarted(home)
    if started == "killed":
        started = restarted(home)
    assert started == "{}", "the second start met the damage again"
    parts = open_parts()
    parts.vectors.sync()
    assert parts.vectors.state == "ready"
    assert parts.checks() == {}
    for name in NAMESPACES:
        assert parts.in_chroma(name).keys() == parts.in_sql(name).keys()
        assert parts.index.query(name, direction(f"{name} fact 0/0"), 5)[first[name]] == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("how", [half, without_its_end, with_holes, nothing])
def test_lost_vectors_are_noticed_at_the_opening(
    open_parts: Callable[[], Any], template: Path, tmp_path: Path, how: Callable[[Path], None]
) -> None:
    """Where a file of vectors has lost a part, no memory is missed: SQL answers until the index is built again."""
    home = filled(open_parts, template, tmp_path / "home")
    damage_graph(how, "data_level0.bin")(home / "chroma")
    parts = open_parts()
    name = NAMESPACES[0]
    sought = {f"{name} fact {number}": None for number in range(0, MANY, 50)}
    contents = {row[0]: row[1] for row in parts.rows("SELECT id, content FROM memory")}
    for _ in range(2):
        near = {one: parts.vectors.nearest(direction(f"{one}/0"), parts.view(name), 3) for one in sought}
        assert {one: contents[max(found, key=lambda key: found[key])] for one, found in near.items()} == {
            one: one for one in sought
        }
        parts.vectors.sync()
    assert parts.vectors.state == "ready"
    assert parts.checks() == {}


def restarted(home: Path) -> str:
    """Open the store in a process of its own; return what its doctor saw, or that it was killed by the damage."""
    ran = subprocess.run(
        [sys.executable, str(TESTS / "support" / "restart_store.py"), str(home)],
        capture_output=True,
        text=True,
        check=False,
    )
    return "killed" if ran.returncode < 0 else ran.stdout if ran.returncode == 0 else ran.stderr


@pytest.mark.full
@pytest.mark.parametrize(
    "damage",
    [
        "graph garbage",
        "folder deleted",
        *(pytest.param(one, marks=pytest.mark.full) for one in ("database garbage", "everything empty")),
    ],
)
def test_damage_under_an_open_index_is_survived(parts: Any, damage: str) -> None:
    """Files that are damaged while the index is open end in a whole index too, and no read fails on the way."""
    first = fill(parts)
    DAMAGES[damage](parts.folder / "chroma")
    for turn in range(4):
        parts.add(f"meanwhile {turn}", NAMESPACES[turn % 3])
        assert {name: found(parts, name) for name in NAMESPACES} == first
        parts.vectors.sync()
    for name in NAMESPACES:
        assert {name: found(parts, name)} == {name: first[name]}
    assert parts.vectors.state == "ready"


@pytest.mark.full
def test_no_namespace_is_lost_when_the_folder_is_begun_anew(parts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """When one broken collection forces a new folder, the collections of all other namespaces are rebuilt as well."""
    first = fill(parts)
    client = parts.index.open()

    def refuse(name: str) -> None:
        raise RuntimeError(f"cannot delete {name}")

    monkeypatch.setattr(client, "delete_collection", refuse)
    parts.vectors._broken.add(NAMESPACES[1])
    parts.vectors.sync()
    parts.vectors.sync()
    assert {name: found(parts, name) for name in NAMESPACES} == first
    assert parts.vectors.state == "ready"
    assert parts.checks() == {}


def test_a_failing_query_is_answered_by_sql(parts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index that fails in the middle of a query is rebuilding, SQL answers, and the next sync mends it."""
    first = fill(parts)
    collection = parts.index._get_collection(NAMESPACES[0])

    class Panic(BaseException):
        """What a Rust panic looks like from Python."""

    def fail(*_: object, **__: object) -> None:
        raise Panic("hnsw")

    monkeypatch.setattr(collection, "query", fail)
    with pytest.raises(IndexBroken):
        parts.index.query(NAMESPACES[0], direction("x"), 3)
    assert found(parts, NAMESPACES[0]) == first[NAMESPACES[0]]
    assert parts.vectors.state == "rebuilding"
    parts.vectors.sync()
    assert parts.vectors.state == "ready"
    assert found(parts, NAMESPACES[0]) == first[NAMESPACES[0]]
    assert parts.checks() == {}


def test_a_miscounted_collection_is_noticed_at_opening(open_parts: Callable[[], Any]) -> None:
    """A collection with vectors too few or too many is built again from SQL when the store is opened."""
    parts = open_parts()
    kept = [parts.add(f"fact {number}") for number in range(4)]
    parts.vectors.sync()
    for ids, change in (([f"{kept[0]}.0"], "take"), (["999.0", "998.0"], "put")):
        if change == "take":
            parts.index.take(NAMESPACES[0], ids)
        else:
            parts.index.put(NAMESPACES[0], ids, [direction(one) for one in ids])
        assert "vector index" in parts.checks()
        parts.close()
        parts = open_parts()
        parts.vectors.sync()
        assert parts.checks() == {}


def test_an_app_mends_its_index_without_the_model(open_store: Callable[..., App], settings: Settings) -> None:
    """Recall works on a store whose index was destroyed, and rebuilding it embeds nothing."""
    app = open_store(background=False)
    for number, animal in enumerate(("horse", "salmon", "eagle", "python")):
        remember(app, Draft(content=f"Entry {number} speaks of the {animal}"), ADA)
    app.vectors.sync()
    app.close()
    DAMAGES["everything garbage"](settings.folder / "chroma")
    again = open_store(background=False)
    documents: list[str] = []
    read = again.embedder.read

    def counted(texts: Any, kind: Any = "document") -> Any:
        documents.extend(texts if kind == "document" else [])
        return read(texts, kind)

    again.embedder.read = counted  # type: ignore[method-assign]
    query = Query(query="Which bird is mentioned?", min_score=0.0)
    for _ in range(2):
        assert "eagle" in recall(again, query, ADA).hits[0].memory.content
        again.vectors.sync()
    assert documents == []
    assert again.vectors.state == "ready"
    assert [check for check in again.checks() if not check.well] == []

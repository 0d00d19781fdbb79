"""Ownership: one process at a time; a second one is told who holds the store before it touches anything."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from callers import ADA
from recollect import App, Draft, Query, Settings, open_app, recall, remember
from recollect.errors import StoreOwned
from recollect.store.store_lock import held, own, owner_of, pid_of, role_of

pytestmark = pytest.mark.slow

COMMAND = Path(sys.executable).with_name("recollect")
COMMANDS = (
    ["remember", "The intruder was here"],
    ["recall", "intruder"],
    ["forget", "1"],
    ["show", "1"],
    ["reindex"],
)
OWNER = """
import sys
from recollect import Draft, Settings, open_app, remember
app = open_app()
print(remember(app, Draft(content="Kept through a kill"), Settings().caller).id, flush=True)
sys.stdin.read()
"""


def state(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return time and bytes of every file of the store; the shared-memory file of SQLite is nobody's data."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "memory.db-shm"]
    return {str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


def run(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run our command on the same store."""
    return subprocess.run(
        [COMMAND, *arguments], env=environment, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )


@pytest.fixture
def owner(environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """Return a process that owns the store and has remembered something."""
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "1"
        yield process
        process.kill()


@pytest.mark.full_cases("recall", "forget", "show")
@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda arguments: arguments[0])
def test_a_second_process_is_told_who_owns_the_store(
    app: App, settings: Settings, environment: dict[str, str], arguments: list[str]
) -> None:
    """Every command on an owned store ends with code 5 and one sentence that names the owner, and changes no byte."""
    remember(app, Draft(content="Ours"), ADA)
    app.vectors.sync()
    before = state(settings.folder)
    ran = run(environment, *arguments)
    sentence = " ".join(ran.stderr.split())
    assert (ran.returncode, ran.stdout) == (5, "")
    assert re.search(rf"in use by process {os.getpid()} \(.+, since \d{{4}}-\d\d-\d\dT[\d:+]+\)\.$", sentence)
    assert Path(sys.argv[0]).name in sentence
    assert "Traceback" not in ran.stderr
    assert state(settings.folder) == before
    assert [check for check in app.checks() if not check.well] == []


def test_a_second_app_in_one_process_is_refused(open_store: Callable[..., App], settings: Settings) -> None:
    """The same process cannot open a store twice, and the first opening is none the worse."""
    app = open_store()
    memory_id = remember(app, Draft(content="The anchor weighs a ton"), ADA).id
    for _ in range(2):
        with pytest.raises(StoreOwned, match=f"process {os.getpid()} "):
            open_app(settings)
    assert recall(app, Query(query="anchor weight"), ADA).hits[0].memory.id == int(memory_id)
    app.close()
    again = open_store()
    assert recall(again, Query(query="anchor weight"), ADA).hits[0].memory.id == int(memory_id)


def test_other_folders_are_free(open_store: Callable[..., App], tmp_path: Path) -> None:
    """Two stores in two folders are open in one process at the same time and know nothing of each other."""
    one, two = open_store(), open_store(home=tmp_path / "elsewhere")
    remember(one, Draft(content="Only the first knows the zebra"), ADA)
    remember(two, Draft(content="Only the second knows the giraffe"), ADA)
    for app in (one, two):
        app.vectors.sync()
    assert "zebra" in recall(one, Query(query="which animal?", min_score=0.0), ADA).hits[0].memory.content
    assert len(recall(two, Query(query="zebra", min_score=0.0), ADA).hits) <= 1
    assert [check for app in (one, two) for check in app.checks() if not check.well] == []


def test_a_killed_owner_leaves_the_store_free(
    owner: subprocess.Popen[str], settings: Settings, open_store: Callable[..., App]
) -> None:
    """While an owner lives it is named; killed, the store opens again at once with all it had acknowledged."""
    with pytest.raises(StoreOwned, match=f"process {owner.pid} "):
        open_app(settings)
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    app = open_store()
    assert recall(app, Query(query="kept through a kill"), ADA).hits[0].memory.id == 1
    assert [check for check in app.checks() if not check.well] == []
    assert pid_of(settings.folder) == os.getpid()


def test_the_owner_says_what_it_is(tmp_path: Path) -> None:
    """The folder tells pid and role of its owner while there is one, and nothing after."""
    assert not held(tmp_path)
    owner = own(tmp_path, "daemon")
    assert held(tmp_path)
    assert (role_of(tmp_path), pid_of(tmp_path)) == ("daemon", os.getpid())
    assert re.fullmatch(rf"process {os.getpid()} \(daemon, since .+\)", owner_of(tmp_path))
    owner.release()
    assert not held(tmp_path)
    assert (role_of(tmp_path), pid_of(tmp_path), owner_of(tmp_path)) == ("", None, "another process")


@pytest.mark.parametrize("written", ["", "{", "[]", "null", "7", '{"pid": 1}', '{"pid": "x", "command": 2}'])
def test_an_unreadable_note_is_no_obstacle(tmp_path: Path, written: str) -> None:
    """Whatever stands in the owner's note, a second one is refused with a sentence and a next one can own."""
    owner = own(tmp_path)
    (tmp_path / "owner.json").write_text(written, encoding="utf-8")
    with pytest.raises(StoreOwned, match="in use by another process"):
        own(tmp_path)
    owner.release()
    own(tmp_path, "next").release()


def test_only_one_of_many_becomes_the_owner(tmp_path: Path) -> None:
    """Of many that try at the same moment exactly one owns the folder, and all others are told."""
    gate, owners, refused = threading.Barrier(8), [], []

    def attempt() -> None:
        gate.wait()
        try:
            owners.append(own(tmp_path))
        except StoreOwned as error:
            refused.append(error)

    threads = [threading.Thread(target=attempt) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(owners), len(refused)) == (1, 7)
    owners[0].release()

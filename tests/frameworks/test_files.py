"""Files by their paths: each is a memory that has its path for a key, with versions and compare-and-swap."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable

import pytest

from callers import ADA
from recollect import App
from recollect.client.connection import Connection
from recollect.domain.enums import Scope
from recollect.errors import Conflict, InvalidInput, NotFound, SecretFound, TooLarge
from recollect.frameworks.files import MAX_BYTES, Files
from run_operations import add, do, ill, token

NOTES = "/memories/notes.md"


@pytest.fixture
def files(memory: Connection) -> Files:
    """Return the files of a store that has none."""
    return Files(memory)


def test_a_file_is_a_memory(app: App, files: Files) -> None:
    """What is created is read back, is recalled, and is journalled under its author like every memory."""
    made = files.create(NOTES, "Deploys go out on Fridays.\n\n  The build takes nine minutes.\n")
    assert files.view(NOTES) == made
    assert (made.text, made.size) == ("Deploys go out on Fridays.\n\n  The build takes nine minutes.\n", 60)
    assert made.hash == hashlib.sha256(made.text.encode()).hexdigest()
    (hit,) = do(app, "recall", query="when do deploys go out?").hits
    assert (hit.memory.key, str(hit.memory.id)) == (NOTES, made.id)
    assert [(line.action, line.actor) for line in do(app, "history", id=made.id)] == [("insert", ADA.user)]
    assert ill(app) == []


def test_files_are_listed_by_path(files: Files) -> None:
    """A list has all files below a folder, whatever their letter case, and none of a folder that begins alike."""
    for path in ("/a/two.md", "/a/One.md", "/a/b/three.md", "/ab/four.md"):
        files.create(path, f"This is {path}.")
    assert [one.path for one in files.list("/a")] == ["/a/One.md", "/a/b/three.md", "/a/two.md"]
    assert [one.path for one in files.list()] == ["/a/One.md", "/a/b/three.md", "/a/two.md", "/ab/four.md"]
    with pytest.raises(NotFound, match="There is no folder /A"):
        files.list("/A")


def test_a_long_list_is_whole(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of more files than fit one page is listed to its end."""
    monkeypatch.setattr("recollect.frameworks.files.MAX_LIMIT", 3)
    for number in range(7):
        files.create(f"/many/{number:03}", f"Number {number}.")
    assert [one.path for one in files.list("/many")] == [f"/many/{number:03}" for number in range(7)]


def test_a_path_is_taken_once(files: Files) -> None:
    """Nothing is created over a file or a folder, or below a file."""
    files.create("/a/b.md", "One.")
    for path in ("/a/b.md", "/a", "/"):
        with pytest.raises(Conflict, match=f"^{path} exists already"):
            files.create(path, "Two.")
    with pytest.raises(Conflict, match=r"/a/b\.md is a file, not a folder"):
        files.create("/a/b.md/c.md", "Two.")
    assert files.view("/a/b.md").text == "One."


def test_a_write_over_another_text_is_refused(files: Files) -> None:
    """A write says which text it was made from, and does not lose one that came between."""
    first = files.create(NOTES, "One.")
    second = files.write(NOTES, "Two.", if_hash=first.hash)
    with pytest.raises(Conflict, match="has changed since it was read"):
        files.write(NOTES, "Three.", if_hash=first.hash)
    assert files.view(NOTES) == second
    files.delete(NOTES)
    with pytest.raises(NotFound):
        files.write(NOTES, "Four.", if_hash=second.hash)


def test_no_edit_of_many_threads_is_lost(files: Files) -> None:
    """Edits at the same time all take effect, each on the text of the one before."""
    files.create(NOTES, "".join(f"slot {number}: empty\n" for number in range(4)))
    threads = [
        threading.Thread(target=files.replace, args=(NOTES, f"slot {number}: empty", f"slot {number}: full"))
        for number in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert files.view(NOTES).text == "".join(f"slot {number}: full\n" for number in range(4))


def test_earlier_texts_are_versions(app: App, files: Files) -> None:
    """Each text that was written over can be read by its id, is not found by recall, and goes with the file."""
    files.create(NOTES, "The port is 8080.")
    files.replace(NOTES, "8080", "9090")
    files.replace(NOTES, "9090", "7070")
    earlier = files.versions(NOTES)
    assert [files.view(NOTES, version=one).text for one in earlier] == ["The port is 8080.", "The port is 9090."]
    assert [hit.memory.key for hit in do(app, "recall", query="which port is it?").hits] == [NOTES]
    with pytest.raises(NotFound, match="has no version 999"):
        files.view(NOTES, version="999")
    other = str(add(app, "The port is 8080."))
    with pytest.raises(NotFound, match=f"has no version {other}"):
        files.view(NOTES, version=other)
    files.delete(NOTES)
    for one in earlier:
        with pytest.raises(NotFound):
            do(app, "get_memory", id=one)
    assert ill(app) == []


@pytest.mark.parametrize(
    ("line", "text", "whole"),
    [
        (0, "zero", "zero\none\ntwo\n"),
        (1, "half\n", "one\nhalf\ntwo\n"),
        (2, "three\nfour", "one\ntwo\nthree\nfour\n"),
    ],
)
def test_lines_are_inserted(files: Files, line: int, text: str, whole: str) -> None:
    """A text goes behind the line of that number, and the file ends as it did."""
    files.create(NOTES, "one\ntwo\n")
    assert files.insert(NOTES, line, text).text == whole


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda files: files.replace(NOTES, "three", "four"), "Invalid old: It does not stand in /memories/notes.md"),
        (lambda files: files.replace(NOTES, "", "four"), "Invalid old: It does not stand"),
        (lambda files: files.replace(NOTES, "o", "0"), "Invalid old: It stands there 2 times, in lines 1, 2"),
        (lambda files: files.insert(NOTES, 3, "x"), "Invalid line: Must be a whole number from 0 to 2"),
        (lambda files: files.insert(NOTES, -1, "x"), "Invalid line: "),
        (lambda files: files.delete("/"), "Invalid path: The root cannot be deleted"),
        (lambda files: files.rename("/memories", "/memories/new"), "Invalid to: /memories cannot be moved to "),
    ],
)
def test_a_wrong_edit_changes_nothing(files: Files, change: Callable[[Files], object], said: str) -> None:
    """An edit that cannot be meant is one sentence about its field, and the file stays as it is."""
    before = files.create(NOTES, "one\ntwo\n")
    with pytest.raises(InvalidInput) as caught:
        change(files)
    assert str(caught.value).startswith(said)
    assert files.view(NOTES) == before


@pytest.mark.parametrize(
    "path",
    ["notes.md", "", "/a//b", "/a/", "/a/../b", "/./a", "/a\\b", "/a\nb", "/ a", "/a /b", "/a\x00", "/" + "a" * 500],
)
def test_a_path_that_cannot_be_meant_is_refused(files: Files, path: str) -> None:
    """A path is absolute, has no empty names, dots or ends of lines, and reads as it is stored."""
    with pytest.raises(InvalidInput, match=r"^Invalid path: "):
        files.create(path, "One.")
    assert files.list() == ()


def test_a_folder_moves_with_its_versions(files: Files) -> None:
    """Renaming a file or a folder keeps texts, versions and dates, and takes no path that is taken."""
    made = files.create("/old/a.md", "One.")
    files.write("/old/a.md", "Two.", if_hash=made.hash)
    files.create("/old/b/c.md", "Three.")
    files.create("/taken/a.md", "Four.")
    with pytest.raises(Conflict):
        files.rename("/old", "/taken")
    assert files.rename("/old", "/new") == 2
    assert [one.path for one in files.list()] == ["/new/a.md", "/new/b/c.md", "/taken/a.md"]
    assert [files.view("/new/a.md", version=one).text for one in files.versions("/new/a.md")] == ["One."]
    assert files.view("/new/a.md").created_at == made.created_at
    assert files.rename("/new/a.md", "/a.md") == 1
    assert files.delete("/new") == 1


def test_a_file_has_a_limit(files: Files) -> None:
    """A file of 100 KB is whole again; one byte more is refused with both sizes, in bytes and not in characters."""
    text = "ä" * (MAX_BYTES // 2)
    assert files.create("/full.md", text).text == text
    for change in (lambda: files.insert("/full.md", 0, "x"), lambda: files.create("/more.md", text + "x")):
        with pytest.raises(TooLarge, match=r"at most 102400 bytes \(100 KB\)"):
            change()
    assert [one.path for one in files.list()] == ["/full.md"]


def test_the_gate_reads_files(app: App, files: Files) -> None:
    """A secret is written by no way into a file, and the refusal is journalled."""
    files.create(NOTES, "The token is in the vault.")
    for change in (
        lambda: files.create("/other.md", f"token: {token()}"),
        lambda: files.replace(NOTES, "in the vault", token()),
        lambda: files.insert(NOTES, 0, token()),
    ):
        with pytest.raises(SecretFound):
            change()
    assert [(one.path, files.view(one.path).text) for one in files.list()] == [(NOTES, "The token is in the vault.")]


def test_scopes_have_files_of_their_own(memory: Connection) -> None:
    """The same path may stand in each scope, and names its own file there."""
    mine, ours = Files(memory, scope=Scope.PERSONAL), Files(memory, scope=Scope.TEAM)
    mine.create(NOTES, "Mine.")
    ours.create(NOTES, "Ours.")
    assert (mine.view(NOTES).text, ours.view(NOTES).text) == ("Mine.", "Ours.")
    mine.delete(NOTES)
    assert [one.path for one in ours.list()] == [NOTES]


def test_a_file_takes_the_place_of_no_memory(app: App, files: Files) -> None:
    """A file that says what a memory says is beside that memory, which stays when the file goes."""
    told = add(app, "Deploys go out on Fridays.")
    files.create(NOTES, "Deploys go out on Fridays.")
    files.delete(NOTES)
    assert [one.id for one in do(app, "list_memories").memories] == [told]


def test_a_deleted_path_is_free_again(app: App, files: Files) -> None:
    """What was softly forgotten or has expired is no file, and its path can be used again."""
    made = files.create(NOTES, "One.")
    do(app, "memory_forget", id=made.id)
    assert files.list() == ()
    assert files.create(NOTES, "Two.").text == "Two."

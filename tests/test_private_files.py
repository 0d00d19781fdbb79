"""Files that only their owner may read: private from the first byte, whole or as they were, and nothing beside them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from recollect.private_files import read_private, replace_file, write_private


@pytest.fixture
def open_mask() -> Iterator[None]:
    """Let a new file have whatever mode it asks for."""
    before = os.umask(0)
    yield
    os.umask(before)


def mode_of(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)


@pytest.mark.usefixtures("open_mask")
def test_a_file_is_private_while_it_is_written(tmp_path: Path) -> None:
    """What is written lies beside the file, readable by nobody else, until it takes the file's place at one instant."""
    file = tmp_path / "names.json"
    file.write_text("old")
    file.chmod(0o644)
    seen: list[tuple[int, str]] = []

    def pieces() -> Iterator[bytes]:
        (new,) = set(tmp_path.iterdir()) - {file}
        yield b"new "
        seen.append((mode_of(new), file.read_text()))
        yield "text é".encode()

    replace_file(file, pieces())
    assert seen == [(0o600, "old")]
    assert (mode_of(file), file.read_bytes()) == (0o600, "new text é".encode())
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.usefixtures("open_mask")
@pytest.mark.parametrize(("mode", "expected"), [(0o600, 0o600), (0o640, 0o640), (0o755, 0o755), (None, 0o666)])
def test_a_file_of_another_program_has_the_mode_that_is_asked_for(
    tmp_path: Path, mode: int | None, expected: int
) -> None:
    """A file that is not only ours ends with the mode that it had, or with the usual one."""
    replace_file(tmp_path / "x", [b"x"], mode=mode, durable=True)
    assert mode_of(tmp_path / "x") == expected


def test_an_error_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    """Where what is to be written fails on the way, the file is whole and nothing lies beside it."""
    file = tmp_path / "x"
    write_private(file, "old")

    def pieces() -> Iterator[bytes]:
        yield b"half"
        raise RuntimeError

    with pytest.raises(RuntimeError):
        replace_file(file, pieces())
    assert (read_private(str(file)), list(tmp_path.iterdir())) == (b"old", [file])


def test_a_folder_is_no_file_to_replace(tmp_path: Path) -> None:
    """What cannot take the place raises `OSError`, and nothing is left of it."""
    (tmp_path / "x" / "inside").mkdir(parents=True)
    with pytest.raises(OSError, match=r"directory|exists|empty"):
        write_private(tmp_path / "x", "text")
    with pytest.raises(FileNotFoundError):
        write_private(tmp_path / "none" / "x", "text")
    assert list(tmp_path.iterdir()) == [tmp_path / "x"]


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    """A link in the place of a file gives way; what it leads to stays as it is."""
    (tmp_path / "theirs").write_text("theirs")
    (tmp_path / "x").symlink_to("theirs")
    write_private(tmp_path / "x", "ours")
    assert not (tmp_path / "x").is_symlink()
    assert ((tmp_path / "theirs").read_text(), (tmp_path / "x").read_text()) == ("theirs", "ours")


def test_what_others_may_have_touched_is_not_read(tmp_path: Path) -> None:
    """A file is read where only its owner may read it; without one there is None."""
    write_private(tmp_path / "x", "text")
    assert (read_private(str(tmp_path / "x")), read_private(str(tmp_path / "y"))) == (b"text", None)
    (tmp_path / "x").chmod(0o640)
    with pytest.raises(PermissionError):
        read_private(str(tmp_path / "x"))

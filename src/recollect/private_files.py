"""Files that only their owner may read: written whole, and not read where other users may have touched them.

It imports next to nothing, as each hook waits for it.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_OWNER = 0o600
_EVERYBODY = 0o666  # less what the process's mask takes away
_OTHERS = 0o077


def read_private(path: str) -> bytes | None:
    """Return a file's content, None without one; raise a bare `PermissionError` where other users may touch it."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - pathlib takes long to import
            about, content = os.fstat(file.fileno()), file.read()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if about.st_mode & _OTHERS or about.st_uid != os.getuid():
        raise PermissionError
    return content


def write_private(path: str | os.PathLike[str], text: str) -> None:
    """Write a file that only its owner may read from its first byte on, as `replace_file` does."""
    replace_file(path, (text.encode(),))


def replace_file(
    path: str | os.PathLike[str], pieces: Iterable[bytes], *, mode: int | None = _OWNER, durable: bool = False
) -> None:
    """Replace a file at one instant, or make it; raise `OSError` where that cannot be, and leave what was there.

    The new one lies beside it until then, and only its owner may read it. In the end it has this `mode`, or without one
    the usual mode. A `durable` one is on the disk before it takes the other's place.
    """
    folder, name = os.path.split(path)
    new = os.path.join(folder, f".{name}.{os.urandom(8).hex()}.new")  # noqa: PTH118 - pathlib takes long to import
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    handle = os.open(new, flags, _EVERYBODY if mode is None else _OWNER)
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(pieces)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        if mode is not None and mode != _OWNER:
            os.chmod(new, mode)  # noqa: PTH101
        os.replace(new, path)  # noqa: PTH105
    finally:
        if os.path.lexists(new):
            os.unlink(new)  # noqa: PTH108

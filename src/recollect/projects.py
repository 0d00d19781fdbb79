"""Projects: which one a folder belongs to. That is its repository, by whatever name its folder goes.

Where a repository lies its files tell, and what its remote is git tells (`recollect.git`).
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from recollect import repository_files
from recollect.errors import InvalidInput
from recollect.git import Remote, read_plainly, remotes_of
from recollect.private_files import write_private

FILE: Final = ".recollect.toml"
_CONFIRMED: Final = "projects.json"
_SHORT_REMOTE = re.compile(r"(?:[^@/\s]+@)?(?P<host>[^:/\s]{2,}):(?P<path>[^\s]+)")
_DOORS: Final = ("ssh.", "altssh.", "www.")
"""What stands before a host's name where it offers the same repositories through another door."""
_MOST_CLONES: Final = 5  # of a clone, of a clone
_LONGEST: Final = 120  # characters of a name
_DIGITS: Final = 8
_POINTER: Final = 8_192  # bytes of a file that names a folder


class Project(NamedTuple):
    """A project: its name, what told it, the name that its folder alone would give, and a name that is not believed.

    `former` are the names that its repository had before, by another remote or by another reading of the same one.
    """

    name: str
    source: str
    folder_name: str
    claimed: str = ""
    former: tuple[str, ...] = ()


def find_project(folder: Path, home: Path | None = None) -> Project:
    """Return the project of a folder: named by `.recollect.toml`, else by its repository, else by the folder itself.

    A repository speaks for no other project: its file counts where it names the repository's own remote or something
    below that, or where the user of the data folder `home` has named the project so (`set_project`).

    A repository is known by its remote (`host/owner/name` in small letters), as git itself and the user's ssh resolve
    its address, so that clones and worktrees share, a bare one with its worktrees too. One without a remote,
    and a folder outside of any, has the folder's name and a digest of its path: two of one name do not share. Raises
    `InvalidInput` for a `.recollect.toml` that cannot be read.
    """
    root = checkout_of(folder)
    plain = (root or folder).name or "default"
    git = common_directory(root) if root else _bare_repository(folder)
    remote = _remote_name(git, home) if git else None
    claimed = ""
    for one in (folder, *folder.parents):
        if (one / FILE).is_file():
            name = _project_in_file(one / FILE)
            if remote and f"{name}/".lower().startswith(f"{remote}/"):
                return Project(remote + name[len(remote) :], str(one / FILE), plain)
            if _is_confirmed(one / FILE, home):
                return Project(name, str(one / FILE), plain)
            claimed = name
        if claimed or one == root:
            break
    if remote and git:
        return Project(remote, "the repository's remote", plain, claimed, _former_names(git, remote, home))
    source = "the repository" if git else "this folder's path"
    return Project(_name_of_path(git or root or folder), source, plain, claimed)


def former_names(folder: Path, home: Path, project: str) -> tuple[str, ...]:
    """Return the names that the project of a folder had before; none where its memories are under another name."""
    try:
        found = find_project(folder, home)
    except (OSError, InvalidInput):  # the folder is gone, or names its project in a file that cannot be read
        return ()
    return found.former if found.name == project else ()


def set_project(folder: Path, name: str, home: Path) -> Path:
    """Name the project of a folder in the `.recollect.toml` of its checkout, and return that file.

    The data folder `home` keeps that its user did so: another text in that file does not count until it is named again.
    """
    file = (checkout_of(folder) or folder) / FILE
    file.write_text(
        f"# The project that Recollect files memories under.\nproject = {_toml_text(name)}\n", encoding="utf-8"
    )
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    known = _confirmations(home) | {str(file.resolve()): _digest_of(file)}
    write_private(home / _CONFIRMED, json.dumps(known, indent=1))
    return file


def filed_under(old: str, count: int) -> str:
    """Return the sentence on how to move the memories that are stored under a former name of the project."""
    many = f"{count} memories are" if count != 1 else "1 memory is"
    return (
        f"{many} filed under {old}, the name that this project had before. "
        f"`recollect project move {shlex.quote(old)}` moves them here."
    )


def _is_confirmed(file: Path, home: Path | None) -> bool:
    return home is not None and _confirmations(home).get(str(file.resolve())) == _digest_of(file)


def _confirmations(home: Path) -> dict[str, str]:
    """Return the digest of each file that the user of a data folder wrote, by its path."""
    try:
        known = json.loads((home / _CONFIRMED).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def _digest_of(file: Path) -> str:
    return hashlib.sha256(repository_files.text(file).encode()).hexdigest()


def checkout_of(folder: Path) -> Path | None:
    """Return the root of the git checkout around a folder, None outside of any.

    An empty `.git` makes none: the sandbox of Codex puts one into the folder that it works in.
    """
    return next((one for one in (folder, *folder.parents) if _is_checkout(one / ".git")), None)


def _is_checkout(git: Path) -> bool:
    """Say whether a `.git` is a git directory, or a file that names one."""
    try:
        return (git / "HEAD").is_file() or (git.is_file() and _read_pointer(git).startswith("gitdir:"))
    except OSError:
        return False


def common_directory(root: Path) -> Path | None:
    """Return the git directory that all worktrees of a checkout share, None where its `.git` leads nowhere."""
    git = root / ".git"
    try:
        if git.is_file():
            git = root / _read_pointer(git).removeprefix("gitdir: ")
        if (shared := git / "commondir").is_file():
            git = git / _read_pointer(shared)
        return git.resolve() if git.is_dir() else None
    except (OSError, ValueError):
        return None


def _read_pointer(file: Path) -> str:
    """Return the content of a file that only names a folder; raise `OSError` where it cannot be read."""
    return repository_files.beginning(file, _POINTER).decode("utf-8", "surrogateescape").strip()


def _bare_repository(folder: Path) -> Path | None:
    """Return the bare repository that a folder is or lies in; None outside of any."""
    return next((one for one in (folder, *folder.parents) if _is_bare(one)), None)


def _is_bare(folder: Path) -> bool:
    try:
        parts = (folder / "objects", folder / "refs")
        return (folder / "HEAD").is_file() and (folder / "config").is_file() and all(one.is_dir() for one in parts)
    except OSError:
        return False


def _remote_name(git: Path, home: Path | None, clones: int = 0) -> str | None:
    """Return `host/owner/name` of a repository's remote; a clone of a local repository has the name of its original."""
    for remote in remotes_of(git, home).here:
        if name := _name_of(remote):
            return name
        try:
            beside = git.parent if git.name == ".git" else git
            origin = beside / Path(remote.address.removeprefix("file://")).expanduser()
            there = common_directory(origin) or (origin.resolve() if (origin / "HEAD").is_file() else None)
        except (OSError, RuntimeError, ValueError):  # also the home of a user that does not exist
            there = None
        if there and clones < _MOST_CLONES:
            return _remote_name(there, home, clones + 1) or _name_of_path(there)
    return None


def _former_names(git: Path, name: str, home: Path | None) -> tuple[str, ...]:
    """Return the names that a repository had before: by other remotes, and by the bare text of its configuration."""
    names = [_name_of(one) for one in remotes_of(git, home).former]
    names += [_name_of_address(one) for one in read_plainly(git)][:1]
    return tuple(dict.fromkeys(one for one in names if one and one != name))


def _name_of(remote: Remote) -> str | None:
    """Return `host/owner/name` of a remote in small letters, by the host that its address leads to."""
    found = _name_of_address(remote.address)
    if found is None:
        return None
    host, _, path = found.lower().partition("/")
    real = remote.host.lower()
    # what listens at another port for the same repositories is a name of the same host
    host = real if real and not real.endswith(f".{host}") else host
    host = host.rstrip(".")
    for door in _DOORS:
        if host.startswith(door) and "." in host[len(door) :]:
            host = host[len(door) :]
    name = f"{host}/{'/'.join(filter(None, path.split('/')))}"
    return name if len(name) <= _LONGEST else _with_digest(name, name)


def _name_of_address(address: str) -> str | None:
    """Return `host/owner/name` of a remote's address, without user, password and port; None for a local path."""
    if "://" in address:
        try:
            parts = urlsplit(address)
            host, path = parts.hostname or "", parts.path
        except ValueError:
            return None
    elif found := _SHORT_REMOTE.fullmatch(address):
        host, path = found["host"].lower(), found["path"]
    else:
        return None
    path = re.sub(r"\.git$", "", path.strip("/"), flags=re.IGNORECASE).strip("/")
    name = f"{host}/{path}"
    return None if not (host and path) else name if len(name) <= _LONGEST else _with_digest(name, name)


def _name_of_path(path: Path) -> str:
    """Return a short name for a folder without a remote, which only this path has."""
    named = path.parent if path.name == ".git" else path
    if not named.name:
        return "default"
    return _with_digest(named.name, str(path.resolve()))


def _with_digest(name: str, whole: str) -> str:
    """Return a name that fits, and by its last digits is that of the whole alone."""
    digest = hashlib.sha256(whole.encode("utf-8", "surrogateescape")).hexdigest()[:_DIGITS]
    return f"{name[: _LONGEST - _DIGITS - 1]}-{digest}"


def _project_in_file(file: Path) -> str:
    """Return the project that a file names; raise `InvalidInput` where it names none, or cannot be read."""
    try:
        name = repository_files.toml(file).get("project")
    except (OSError, ValueError) as error:
        raise InvalidInput("project", f"{file} cannot be read: {error}.") from None
    if not isinstance(name, str) or not name.strip():
        raise InvalidInput("project", f'{file} names no project: it holds a line such as `project = "engine"`.')
    return name.strip()


def _toml_text(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

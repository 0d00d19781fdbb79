"""What git says of a repository's remotes, asked of git itself and kept until one of the files changes that say it.

The configuration of a repository is a text of somebody else. So git and ssh are only asked what starts none of the
programs that it names, without a terminal and for a second at most, and a host from it reaches ssh only where it looks
like one. Without git on the machine the configuration is read as it stands. It imports little, as hooks wait for it.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from configparser import ConfigParser, Error
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from recollect import process, repository_files
from recollect.private_files import read_private, write_private

FILE: Final = "remotes.json"
"""What a data folder keeps of the repositories that were asked about."""
_PATIENCE: Final = 1.0  # seconds for one question
_AGE: Final = 86_400  # seconds until git is asked again, for the files that are not looked at
_LARGEST: Final = 2**20  # bytes of a configuration
_LONG_GAP: Final = re.compile(r"(?<=[ \t]{100})[ \t]+")  # which the parser would try to end at each of its places
_MOST_KEPT: Final = 300
_MOST_REMOTES: Final = 5
_MOST_FORMER: Final = 5
_SAFE: Final = ("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}")
_ORIGIN: Final = "file:"
_NAME: Final = re.compile(r"remote\.(.+)\.url", re.DOTALL)
_HOST: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,253}")
_SHORT: Final = re.compile(r"(?:[^@/\s]+@)?(?P<host>[^:/\s]{2,}):[^\s]+")
_SSH: Final = frozenset({"ssh", "git+ssh", "ssh+git"})

_known: dict[str, dict[str, Any]] = {}
"""What was found of each repository, by its git directory, as the file has it."""


class Remote(NamedTuple):
    """A remote: its address as git uses it, and the host that ssh connects to where that has another name for it."""

    address: str
    host: str = ""


class Remotes(NamedTuple):
    """The remotes of a repository, `origin` first, and those that it had before."""

    here: tuple[Remote, ...] = ()
    former: tuple[Remote, ...] = ()


def remotes_of(git: Path, home: Path | None = None) -> Remotes:
    """Return the remotes of a repository by its git directory; `home` is the data folder that keeps them."""
    kept = _stored_answer(str(git), home)
    if kept is None or time.time() - kept["at"] > _AGE or not _are_unchanged(kept["files"]):
        found, files = _ask_git(git)
        here = [list(one) for one in found]
        kept = {"at": time.time(), "files": files, "here": here, "former": _former_remotes(kept, here)}
        _known[str(git)] = kept
        _write_answers(home)
    return Remotes(*(tuple(Remote(*one) for one in kept[name]) for name in ("here", "former")))


def read_plainly(git: Path) -> Iterator[str]:
    """Yield the addresses of the remotes in the repository's own configuration, that of `origin` first."""
    config = ConfigParser(strict=False, allow_no_value=True, interpolation=None, comment_prefixes=("#", ";"))
    try:
        plain = _LONG_GAP.sub("", repository_files.text(git / "config"))
        config.read_string(re.sub(r"^[ \t]+", "", plain, flags=re.MULTILINE))
    except (OSError, ValueError, Error):
        return
    remotes = [one for one in config.sections() if one.startswith('remote "')]
    for one in sorted(remotes, key=lambda one: one != 'remote "origin"'):
        if address := config.get(one, "url", fallback=None):
            yield address.strip().strip('"')


def _ask_git(git: Path) -> tuple[list[Remote], dict[str, list[int] | None]]:
    """Ask git for the remotes of a repository; return them, and the stamps of the files that configure them."""
    where = git.parent if git.name == ".git" else git
    named, files = _remote_names(git, where)
    stamps = {str(one): _stamp_of(one) for one in files}  # before the questions: what changes meanwhile is asked again
    if named is None:
        addresses = list(read_plainly(git)) if _is_small(git / "config") else []
    else:
        names = sorted(named, key=lambda one: (one != "origin", one))[:_MOST_REMOTES]
        found = (_output_of("git", *_SAFE, "-C", str(where), "remote", "get-url", "--", one) for one in names)
        addresses = [one.partition("\n")[0].strip() for one in found if one]
    return [Remote(one, _real_host(one)) for one in addresses if one], stamps


def _remote_names(git: Path, where: Path) -> tuple[set[str] | None, set[Path]]:
    """Return the names of the remotes and the files of the configuration; None for names that git does not tell."""
    home = Path.home()
    config = Path(process.named("XDG_CONFIG_HOME") or home / ".config") / "git" / "config"
    files = {git / "config", home / ".gitconfig", config, home / ".ssh" / "config", home / ".ssh" / "config.d"}
    if not _is_small(git / "config"):
        return None, files
    said = _output_of(
        "git", *_SAFE, "-C", str(where), "config", "--list", "--includes", "--show-origin", "--name-only", "-z"
    )
    if said is None:
        return None, files
    parts = said.split("\0")
    origins = {where / one.removeprefix(_ORIGIN) for one in parts[::2] if one.startswith(_ORIGIN)}
    if not any(
        one.resolve() == (git / "config").resolve() for one in origins
    ):  # to git it is no repository, or not ours
        return None, files
    found = (_NAME.fullmatch(one) for one in parts[1::2])
    return {one[1] for one in found if one}, files | origins


def _real_host(address: str) -> str:
    """Return the host that ssh connects to for an address; empty where the address names that host itself."""
    try:
        parts = urlsplit(address) if "://" in address else None
        short = None if parts else _SHORT.fullmatch(address)
        host = (parts.hostname or "" if parts.scheme in _SSH else "") if parts else short["host"] if short else ""
    except ValueError:
        return ""
    said = _output_of("ssh", "-G", "-o", "CanonicalizeHostname=no", "--", host) if _HOST.fullmatch(host) else None
    real = next((line[9:].strip() for line in (said or "").splitlines() if line.startswith("hostname ")), "")
    return real if real.lower() != host.lower() else ""


def _output_of(program: str, *words: str) -> str | None:
    """Return what a program prints; None where it is not installed, fails, or takes too long."""
    found = import_module("shutil").which(program)  # like `subprocess`, most hooks do not need it
    if found is None or not os.path.isabs(found):  # noqa: PTH117 - not one that lies in the working folder
        return None
    subprocess = import_module("subprocess")
    try:
        done = subprocess.run(
            [found, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=process.of_git(),
            timeout=_PATIENCE,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return str(done.stdout.decode("utf-8", "surrogateescape"))


def _is_small(file: Path) -> bool:
    try:
        return file.stat().st_size <= _LARGEST
    except OSError:
        return False


def _stamp_of(file: Path) -> list[int] | None:
    """Return the file's time of change, size and inode, None where the file does not exist."""
    try:
        about = file.stat()
    except (OSError, ValueError):
        return None
    return [about.st_mtime_ns, about.st_size, about.st_ino]


def _are_unchanged(files: dict[str, list[int] | None]) -> bool:
    """Return whether each file still has the stamp that was stored for it."""
    return all(_stamp_of(Path(file)) == stamp for file, stamp in files.items())


def _former_remotes(kept: dict[str, Any] | None, here: list[list[str]]) -> list[list[str]]:
    """Return the remotes that the repository had before and has no more, the latest first."""
    if kept is None:
        return []
    before = [one for one in (*kept["here"], *kept["former"]) if one not in here]
    return [one for number, one in enumerate(before) if one not in before[:number]][:_MOST_FORMER]


def _stored_answer(git: str, home: Path | None) -> dict[str, Any] | None:
    """Return the stored answer on a repository by its git directory, None where there is none."""
    if git not in _known and home is not None:
        for name, one in _read_answers(home).items():
            _known.setdefault(name, one)
    return _known.get(git)


def _read_answers(home: Path) -> dict[str, dict[str, Any]]:
    """Return the stored answers of a data folder; none where the file is damaged, or others may have written it."""
    try:
        found = json.loads(read_private(str(home / FILE)) or b"{}")
        return {str(name): _validated(one) for name, one in found.items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}


def _validated(one: dict[str, Any]) -> dict[str, Any]:
    """Return a stored answer with each part converted to its type; raise for any other shape."""
    lists = {name: [list(map(str, each[:2])) for each in one[name]] for name in ("here", "former")}
    return {"at": float(one["at"]), "files": dict(one["files"]), **lists}


def _write_answers(home: Path | None) -> None:
    """Write all stored answers to the data folder, if it exists, with those that other processes added."""
    if home is None or not home.is_dir():
        return
    latest = sorted((_read_answers(home) | _known).items(), key=lambda one: -one[1]["at"])
    with suppress(OSError):
        write_private(home / FILE, json.dumps(dict(latest[:_MOST_KEPT])))

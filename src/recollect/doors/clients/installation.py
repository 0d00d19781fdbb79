"""Plans what `install` and `uninstall` change in an agent's files, and carries it out.

A plan reads everything and refuses what is damaged before anything is written. What is taken out again is exactly what
was put in: where the backup shows a file as it was, that comes back byte for byte.
"""

from __future__ import annotations

import codecs
import difflib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from recollect.doors.clients import files, json_text, passage, toml_text
from recollect.doors.clients.agents import Agent, Level, agents
from recollect.doors.clients.entry import NAME, Entry, merged, name_in
from recollect.errors import InvalidInput, RecollectError

FORMATS: Final[dict[str, ModuleType]] = {"json": json_text, "toml": toml_text}

Edit = Callable[[str], str]
Again = Callable[[str], Edit | None]
"""Returns the edit that would put what a text has of ours into another one, None where it has nothing."""


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of one file: its bytes before and after, None where there is none."""

    file: Path
    what: str
    before: bytes | None
    after: bytes | None
    kept: bytes | None
    """What its backup holds; None where there is none."""
    keep: bytes | None
    """What its backup holds afterwards; None where there shall be none."""

    @property
    def kind(self) -> str:
        """Return `unchanged`, `created`, `changed` or `deleted`."""
        if self.before == self.after:
            return "unchanged"
        return "created" if self.before is None else "deleted" if self.after is None else "changed"

    @property
    def diff(self) -> str:
        """Return a unified diff, empty where nothing changes."""
        old, new = ((one or b"").decode("utf-8", "replace").splitlines() for one in (self.before, self.after))
        names = (str(self.file), str(self.file))
        return "\n".join(difflib.unified_diff(old, new, *names, n=2, lineterm=""))


def plan_install(agent: Agent, level: Level, root: Path, entry: Entry) -> list[Change]:
    """Return what registers Recollect with an agent; raise `InvalidInput` for a file that cannot be edited."""
    config = _real(agent.config(level, root), root)
    changes = [_change(config, "entry", lambda text: _with_entry(agent, text, entry), partial(_entry_edit, agent))]
    if (found := agent.instructions(level, root)) is not None:
        head = agent.places[level].head
        add = partial(passage.put, block=passage.BLOCK, head=head)
        changes.append(_change(_real(found, root), "passage", add, partial(_passage_edit, head)))
    return changes


def plan_uninstall(agent: Agent, level: Level, root: Path) -> tuple[list[Change], list[str]]:
    """Return what takes Recollect out again, and who else needs the passage, which therefore stays."""
    config = _real(agent.config(level, root), root)
    changes = [_undone(config, "entry", partial(_without_entry, agent), partial(_entry_edit, agent))]
    found = agent.instructions(level, root)
    if found is None:
        return changes, []
    others = [one.title for one in agents().values() if one is not agent and _needs(one, level, root, found)]
    if not others:
        head = agent.places[level].head
        changes.append(_undone(_real(found, root), "passage", passage.drop, partial(_passage_edit, head)))
    return changes, others


def apply(changes: Sequence[Change], root: Path, level: Level) -> None:
    """Write all changes, or none: raise `RecollectError` when one is refused or a file has changed meanwhile."""
    done: list[Change] = []
    try:
        for one in changes:
            if files.read(one.file) != one.before:
                raise RecollectError(f"{one.file} has changed meanwhile; run the command again.")
            done.append(one)
            _write(one, private=level is Level.USER)
    except RecollectError:
        for one in reversed(done):
            if one.kind != "unchanged":
                files.write(one.file, one.before)
                files.write(files.backup_of(one.file), one.kept)
        raise
    for one in changes:
        if one.kind == "deleted":
            files.remove_empty(one.file.parent, root if level is Level.PROJECT else Path.home())


def found_entry(agent: Agent, text: str) -> tuple[str, Any]:
    """Return the name and the entry that a configuration has of Recollect, None where it has none."""
    servers: Any = FORMATS[agent.format].parse(text)
    for key in agent.servers:
        servers = servers.get(key) if isinstance(servers, dict) else None
    name = name_in(servers)
    return name, servers.get(name) if isinstance(servers, dict) else None


def snippet(agent: Agent | None, entry: Entry) -> str:
    """Return the entry as a file that holds nothing else; without an agent in the form that most clients read."""
    if agent is None:
        return json_text.put("", ["mcpServers"], NAME, entry)
    text: str = FORMATS[agent.format].put("", agent.servers, NAME, entry)
    return text


def _write(change: Change, *, private: bool) -> None:
    backup = files.backup_of(change.file)
    if change.kind == "unchanged":
        return
    if change.keep is not None:
        files.write(backup, change.keep, change.file, private=True)
    files.write(change.file, change.after, private=private)
    if change.keep is None:
        files.write(backup, None)


def _change(file: Path, what: str, add: Edit, again: Again) -> Change:
    """Plan an addition; the backup keeps the file as it was before the first one."""
    before, kept = files.read(file), files.read(files.backup_of(file))
    after = _edited(file, before, add)
    if after == before or _only_ours(file, before, kept, again):
        return Change(file, what, before, after, kept, kept)
    return Change(file, what, before, after, kept, before)


def _undone(file: Path, what: str, remove: Edit, again: Again) -> Change:
    """Plan a removal: the file as it was where that is known, else without what is ours."""
    before, kept = files.read(file), files.read(files.backup_of(file))
    with _named(file):
        ours = before is not None and again(_decoded(file, before)[0]) is not None
    if not ours:
        return Change(file, what, before, before, kept, kept)
    if _only_ours(file, before, kept, again):
        return Change(file, what, before, kept, kept, None)
    return Change(file, what, before, _edited(file, before, remove), kept, before)


def _only_ours(file: Path, before: bytes | None, kept: bytes | None, again: Again) -> bool:
    """Say whether a file is what its backup holds, or nothing where there is none, and our addition."""
    if before is None:
        return False
    try:
        add = again(_decoded(file, before)[0])
        return add is not None and _edited(file, kept, add) == before
    except ValueError:  # the backup is of something else
        return False


def _edited(file: Path, content: bytes | None, edit: Edit) -> bytes | None:
    """Apply an edit to a file's text; its byte order mark stays."""
    text, mark = _decoded(file, content or b"")
    with _named(file):
        new = edit(text)
    return content if new == text else mark + new.encode()


def _decoded(file: Path, content: bytes) -> tuple[str, bytes]:
    mark = codecs.BOM_UTF8 if content.startswith(codecs.BOM_UTF8) else b""
    try:
        return content[len(mark) :].decode(), mark
    except UnicodeDecodeError:
        raise InvalidInput("file", f"{file} is not UTF-8 text; left alone.") from None


@contextmanager
def _named(file: Path) -> Iterator[None]:
    """Name the file in what the formats say of its text."""
    try:
        yield
    except InvalidInput:
        raise
    except ValueError as error:
        raise InvalidInput("file", f"{file} cannot be edited and is left alone: {error}.") from None


def _with_entry(agent: Agent, text: str, entry: Entry) -> str:
    name, old = found_entry(agent, text)
    wanted = merged(old, entry)
    if wanted == old:
        return text
    new: str = FORMATS[agent.format].put(text, agent.servers, name, wanted)
    _check(agent, text, new, name, wanted)
    return new


def _without_entry(agent: Agent, text: str) -> str:
    name, _ = found_entry(agent, text)
    new: str = FORMATS[agent.format].drop(text, agent.servers, name)
    _check(agent, text, new, name, None)
    return new


def _check(agent: Agent, old: str, new: str, name: str, wanted: Entry | None) -> None:
    """Read both texts and compare: nothing but our entry may have changed. Raises `ValueError`."""
    before, after = (_split(FORMATS[agent.format].parse(text), agent.servers, name) for text in (old, new))
    if before[0] != after[0] or after[1] != wanted:
        raise ValueError(f"its form allows no safe edit; see `recollect install {agent.name} --print`")


def _split(data: dict[str, Any], path: Sequence[str], name: str) -> tuple[Any, Any]:
    """Return a configuration without our entry and without objects that held nothing else, and the entry."""
    around: list[dict[str, Any]] = [data]
    for key in path:
        around.append(around[-1].get(key) or {})
    entry = around[-1].pop(name, None)
    for inner, outer, key in zip(around[:0:-1], around[-2::-1], reversed(path), strict=True):
        if not inner:
            outer.pop(key, None)
    return data, entry


def _entry_edit(agent: Agent, text: str) -> Edit | None:
    """Return the edit that would put the entry of this text into another one, None where it has none."""
    name, entry = found_entry(agent, text)
    if entry is None:
        return None
    put = FORMATS[agent.format].put
    return lambda other: str(put(other, agent.servers, name, entry))


def _passage_edit(head: str, text: str) -> Edit | None:
    block = passage.find(text)
    return partial(passage.put, block=block, head=head) if block else None


def _needs(agent: Agent, level: Level, root: Path, instructions: Path) -> bool:
    """Say whether another agent is registered too that reads the same instruction file."""
    own = agent.instructions(level, root)
    if own is None or own.resolve() != instructions.resolve():
        return False
    try:
        content = files.read(agent.config(level, root)) or b""
        return found_entry(agent, content.decode("utf-8-sig"))[1] is not None
    except ValueError:  # what cannot be read registers nobody
        return False


def _real(file: Path, root: Path) -> Path:
    return files.real_file(file, (Path.home(), root))

"""Plans what `install` and `uninstall` change in an agent's files, and carries it out.

A plan reads everything and refuses damaged files before anything is written. A removal takes out exactly what was
put in: where the backup shows a file as it was, that comes back byte for byte.
"""

from __future__ import annotations

import codecs
import difflib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from recollect.doors.agents import files, hooks, json_text, passage, toml_text
from recollect.doors.agents.agents import Agent, Level, agents
from recollect.doors.agents.entry import NAME, Entry, merged, name_in
from recollect.errors import InvalidInput, RecollectError

FORMATS: Final[dict[str, ModuleType]] = {"json": json_text, "toml": toml_text}

_ENTRY: Final = "entry"
_PASSAGE: Final = "passage"
_HOOKS: Final = "hooks"
_PERMISSION: Final = "permission"
_PERMISSIONS, _ALLOW = "permissions", "allow"

Edit = Callable[[str], str]
Again = Callable[[str], Edit | None]
"""Returns the edit that copies our part of a text into another text; None where the text has no part of ours."""


@dataclass(frozen=True, slots=True)
class Change:
    """The change of a file: its bytes before and after; None where there is no file."""

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
        old, new = ((content or b"").decode("utf-8", "replace").splitlines() for content in (self.before, self.after))
        names = (str(self.file), str(self.file))
        return "\n".join(difflib.unified_diff(old, new, *names, n=2, lineterm=""))


@dataclass(frozen=True, slots=True)
class _Part:
    """Our part of a file: the edits that add it, remove it, and copy it into another text."""

    what: str
    add: Edit
    remove: Edit
    again: Again


def plan_install(
    agent: Agent,
    level: Level,
    root: Path,
    entry: Entry,
    commands: hooks.Commands | None = None,
    *,
    allowed: bool = False,
) -> list[Change]:
    """Return the changes that register Recollect with an agent, with hooks that run `commands`, or without hooks.

    With `allowed` the agent may call the tool without asking each time. Raises `InvalidInput` for a file that cannot be
    edited.
    """
    changes = []
    entry = entry | (agent.allow if allowed else {})
    for file, every in _parts_by_file(agent, level, root, entry, commands or {}).items():
        parts = [change for change in every if change.what != _PERMISSION or allowed]
        wanted = [part for part in parts if part.what != _HOOKS or commands]
        if wanted:
            taken = [part.remove if part not in wanted else part.add for part in parts]
            changes.append(_plan_addition(file, _named_together(wanted), _one_after_another(taken), _all_again(parts)))
        elif parts and files.read(file) is not None:
            changes.append(_plan_removal(file, _named_together(parts), parts[0].remove, _all_again(parts)))
    return [change for change in changes if change.what != _HOOKS or commands or change.kind != "unchanged"]


def plan_uninstall(agent: Agent, level: Level, root: Path) -> tuple[list[Change], list[str]]:
    """Return the changes that take Recollect out again, and the agents that need the passage, which therefore stays."""
    found = agent.instructions(level, root)
    others = [
        other.title
        for other in agents().values()
        if found and other is not agent and _shares_instructions(other, level, root, found)
    ]
    changes = []
    for file, parts in _parts_by_file(agent, level, root, {}, {}).items():
        if not (others and parts[0].what == _PASSAGE):
            removing = _one_after_another([_where_there(part) for part in parts])
            changes.append(_plan_removal(file, _named_together(parts), removing, _all_again(parts)))
    return changes, others


def _parts_by_file(
    agent: Agent, level: Level, root: Path, entry: Entry, commands: hooks.Commands
) -> dict[Path, list[_Part]]:
    """Return our parts in each file of an agent, the file of its MCP servers first."""
    adding = partial(_with_entry, agent, entry=entry)
    parts = {
        _real_path(agent.config(level, root), root): [
            _Part(_ENTRY, adding, partial(_without_entry, agent), partial(_entry_edit, agent))
        ]
    }
    if (reads := agent.instructions(level, root)) is not None:
        head = agent.places[level].head
        add = partial(passage.put, block=passage.BLOCK, head=head)
        parts[_real_path(reads, root)] = [_Part(_PASSAGE, add, passage.drop, partial(_passage_edit, head))]
    if (file := agent.hook_file(level, root)) is not None and (form := agent.hooks) is not None:
        putting = partial(hooks.with_hooks, form=form, commands=commands)
        removing, again = partial(hooks.without_hooks, form=form), partial(hooks.same_hooks, form=form)
        in_file = parts.setdefault(_real_path(file, root), [])
        if rule := agent.permission:
            permitting, forbidding = partial(_with_rule, rule), partial(_without_rule, rule)
            in_file.append(_Part(_PERMISSION, permitting, forbidding, partial(_rule_edit, rule)))
        in_file.append(_Part(_HOOKS, putting, removing, again))
    return parts


def _named_together(parts: Sequence[_Part]) -> str:
    return " and ".join(part.what for part in parts)


def _one_after_another(edits: Sequence[Edit]) -> Edit:
    return lambda text: reduce(lambda so_far, edit: edit(so_far), edits, text)


def _where_there(part: _Part) -> Edit:
    """Return the edit that removes a part where the text has it, and leaves other texts alone."""
    return lambda text: part.remove(text) if part.again(text) is not None else text


def _all_again(parts: Sequence[_Part]) -> Again:
    """Return the function that puts all our parts of a text into another text."""

    def again(text: str) -> Edit | None:
        edits = [edit for part in parts if (edit := part.again(text)) is not None]
        return _one_after_another(edits) if edits else None

    return again


def apply(changes: Sequence[Change], level: Level) -> None:
    """Write all changes, or none: raise `RecollectError` when a write is refused or a file has changed meanwhile.

    No folder is deleted: an empty one may have been there before.
    """
    done: list[Change] = []
    try:
        for change in changes:
            if files.read(change.file) != change.before:
                raise RecollectError(f"{change.file} has changed meanwhile; run the command again.")
            done.append(change)
            _write_change(change, private=level is Level.USER)
    except RecollectError:
        for change in reversed(done):
            if change.kind != "unchanged":
                files.write(change.file, change.before)
                files.write(files.backup_of(change.file), change.kept)
        raise


def found_entry(agent: Agent, text: str) -> tuple[str, Any]:
    """Return name and content of Recollect's entry in a configuration; None as content where it has none."""
    servers: Any = FORMATS[agent.format].parse(text)
    for key in agent.servers:
        servers = servers.get(key) if isinstance(servers, dict) else None
    name = name_in(servers)
    return name, servers.get(name) if isinstance(servers, dict) else None


def snippet(agent: Agent | None, entry: Entry) -> str:
    """Return the text of a file that holds only the entry; without an agent in the form that most clients read."""
    if agent is None:
        return json_text.put("", ["mcpServers"], NAME, entry)
    text: str = FORMATS[agent.format].put("", agent.servers, NAME, entry)
    return text


def _write_change(change: Change, *, private: bool) -> None:
    """Write the new content of a file, and write or delete its backup."""
    backup = files.backup_of(change.file)
    if change.kind == "unchanged":
        return
    if change.keep is not None:
        files.write(backup, change.keep, change.file, private=True)
    files.write(change.file, change.after, private=private)
    if change.keep is None:
        files.write(backup, None)


def _plan_addition(file: Path, what: str, add: Edit, again: Again) -> Change:
    """Plan an addition; the backup keeps the content before the first addition."""
    before, kept = files.read(file), files.read(files.backup_of(file))
    after = _apply_edit(file, before, add)
    if after == before or _only_ours(file, before, kept, again):
        return Change(file, what, before, after, kept, kept)
    return Change(file, what, before, after, kept, before)


def _plan_removal(file: Path, what: str, remove: Edit, again: Again) -> Change:
    """Plan a removal: restore the earlier content where it is known, else remove only our part."""
    before, kept = files.read(file), files.read(files.backup_of(file))
    with _naming_file(file):
        ours = before is not None and again(_without_byte_order_mark(file, before)[0]) is not None
    if not ours:
        return Change(file, what, before, before, kept, kept)
    if _only_ours(file, before, kept, again):
        return Change(file, what, before, kept, kept, None)
    return Change(file, what, before, _apply_edit(file, before, remove), kept, before)


def _only_ours(file: Path, before: bytes | None, kept: bytes | None, again: Again) -> bool:
    """Return whether the file holds only its backup's content, or nothing without a backup, and our addition."""
    if before is None:
        return False
    try:
        add = again(_without_byte_order_mark(file, before)[0])
        return add is not None and _apply_edit(file, kept, add) == before
    except ValueError:  # the backup is of something else
        return False


def _apply_edit(file: Path, content: bytes | None, edit: Edit) -> bytes | None:
    """Return the file's content with the edit applied to its text; its byte order mark stays."""
    text, mark = _without_byte_order_mark(file, content or b"")
    with _naming_file(file):
        new = edit(text)
    return content if new == text else mark + new.encode()


def _without_byte_order_mark(file: Path, content: bytes) -> tuple[str, bytes]:
    mark = codecs.BOM_UTF8 if content.startswith(codecs.BOM_UTF8) else b""
    try:
        return content[len(mark) :].decode(), mark
    except UnicodeDecodeError:
        raise InvalidInput("file", f"{file} is not UTF-8 text; left alone.") from None


@contextmanager
def _naming_file(file: Path) -> Iterator[None]:
    """Raise an error of the formats as `InvalidInput` that names the file."""
    try:
        yield
    except InvalidInput:
        raise
    except ValueError as error:
        raise InvalidInput("file", f"{file} cannot be edited and is left alone: {error}.") from None


def _with_entry(agent: Agent, text: str, entry: Entry) -> str:
    """Return the text with our entry, unchanged where the entry is up to date."""
    name, old = found_entry(agent, text)
    wanted = merged(old, entry)
    if wanted == old:
        return text
    new: str = FORMATS[agent.format].put(text, agent.servers, name, wanted)
    _check_only_entry_changed(agent, text, new, name, wanted)
    return new


def _without_entry(agent: Agent, text: str) -> str:
    name, _ = found_entry(agent, text)
    new: str = FORMATS[agent.format].drop(text, agent.servers, name)
    _check_only_entry_changed(agent, text, new, name, None)
    return new


def _check_only_entry_changed(agent: Agent, old: str, new: str, name: str, wanted: Entry | None) -> None:
    """Raise `ValueError` where the edit changed anything but our entry, or our entry is not `wanted`."""
    before, after = (_split_off_entry(FORMATS[agent.format].parse(text), agent.servers, name) for text in (old, new))
    if before[0] != after[0] or after[1] != wanted:
        raise ValueError(f"its form allows no safe edit; see `recollect install {agent.name} --print`")


def _split_off_entry(data: dict[str, Any], path: Sequence[str], name: str) -> tuple[Any, Any]:
    """Return the configuration without our entry and the objects that held only it, and the entry."""
    around: list[dict[str, Any]] = [data]
    for key in path:
        around.append(around[-1].get(key) or {})
    entry = around[-1].pop(name, None)
    for inner, outer, key in zip(around[:0:-1], around[-2::-1], reversed(path), strict=True):
        if not inner:
            outer.pop(key, None)
    return data, entry


def _entry_edit(agent: Agent, text: str) -> Edit | None:
    """Return the edit that copies our entry from this text into another text; None where this text has no entry."""
    name, entry = found_entry(agent, text)
    if entry is None:
        return None
    put = FORMATS[agent.format].put
    return lambda other: str(put(other, agent.servers, name, entry))


def _permission_rules_in(text: str) -> list[Any]:
    """Return the entries of `permissions.allow` in the text of a settings file, empty without any."""
    permissions = json_text.parse(text).get(_PERMISSIONS)
    rules = permissions.get(_ALLOW) if isinstance(permissions, dict) else None
    return rules if isinstance(rules, list) else []


def _with_rule(rule: str, text: str) -> str:
    return text if rule in _permission_rules_in(text) else json_text.append(text, [_PERMISSIONS], _ALLOW, rule)


def _without_rule(rule: str, text: str) -> str:
    rules = _permission_rules_in(text)
    return json_text.drop_element(text, [_PERMISSIONS], _ALLOW, rules.index(rule)) if rule in rules else text


def _rule_edit(rule: str, text: str) -> Edit | None:
    return partial(_with_rule, rule) if rule in _permission_rules_in(text) else None


def _passage_edit(head: str, text: str) -> Edit | None:
    block = passage.find(text)
    return partial(passage.put, block=block, head=head) if block else None


def _shares_instructions(agent: Agent, level: Level, root: Path, instructions: Path) -> bool:
    """Return whether this agent too is registered and reads the same instruction file."""
    own = agent.instructions(level, root)
    if own is None or own.resolve() != instructions.resolve():
        return False
    try:
        content = files.read(agent.config(level, root)) or b""
        return found_entry(agent, content.decode("utf-8-sig"))[1] is not None
    except ValueError:  # what cannot be read registers nobody
        return False


def _real_path(file: Path, root: Path) -> Path:
    return files.real_file(file, (Path.home(), root))

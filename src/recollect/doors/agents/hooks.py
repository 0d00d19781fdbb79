"""Our hooks among those of others in an agent's file: found by the program they start, put in, and taken out."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from recollect.doors.agents import json_text
from recollect.doors.agents.agents import Agent, HookForm
from recollect.doors.agents.entry import NAME, this_program, token_file
from recollect.settings import Settings, variables_of

_TABLE: Final = "hooks"
_COMMAND: Final = "command"
_SETTING: Final = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_SCRIPT: Final = re.compile(r"^const COMMANDS = (\{.*\})$", re.MULTILINE)

_GUARD: Final = (f"command -v {NAME} >/dev/null 2>&1 && ", " || true")
_GUARDED: Final = shlex.split(_GUARD[0])

Commands = Mapping[str, str]
"""The command of each event."""


def hook_commands(
    agent: Agent, settings: Settings, *, shared: bool = False, program: Path | None = None
) -> dict[str, str]:
    """Return the command of each event that an agent reports, none for an agent without hooks.

    A command names this `program` and the settings that are set, as the agent may not know the shell's variables. In
    a file that others share it names only a program on the search path, and does nothing without one.
    """
    if shared and agent.hooks:
        ours = {event: shlex.join([NAME, "hook", event, "--agent", agent.name]) for event in agent.hooks.events}
        return {event: command.join(_GUARD) for event, command in ours.items()}
    variables = [f"{name}={text}" for name, text in (variables_of(settings) | token_file(settings)).items()]
    program, form = program or this_program(), agent.hooks
    before = [*(["env", *variables] if variables else []), str(program), "hook"]
    return {event: shlex.join([*before, event, "--agent", agent.name]) for event in (form.events if form else ())}


def recollect_program_in(command: object) -> str:
    """Return the program in a hook command that Recollect installed, an empty text for every other value."""
    if not isinstance(command, str):
        return ""
    try:
        words = shlex.split(command)
    except ValueError:  # quotes that are no pair
        return ""
    words = words[len(_GUARDED) :] if words[: len(_GUARDED)] == _GUARDED else words
    rest = iter(words[1:] if words[:1] == ["env"] else words)
    program = next((word for word in rest if not _SETTING.fullmatch(word)), "")
    return program if Path(program).stem == NAME and "hook" in rest else ""


def found_hooks(text: str) -> dict[str, list[str]]:
    """Return our commands in an agent's file, by event; raise `ValueError` for an unreadable file."""
    if script := _SCRIPT.search(text):
        return {event: [command] for event, command in json.loads(script[1]).items() if recollect_program_in(command)}
    found: dict[str, list[str]] = {}
    for event, _, element in _event_elements(json_text.parse(text)):
        found.setdefault(event, []).extend(
            handler[_COMMAND] for handler in _handlers_of(element) if recollect_program_in(handler.get(_COMMAND))
        )
    return {event: commands for event, commands in found.items() if commands}


def with_hooks(text: str, form: HookForm, commands: Commands) -> str:
    """Return a file's text with our hook for each event; a hook of ours that is there already is brought up to date.

    Raises `ValueError` where the text cannot be read, or its form allows no safe edit.
    """
    if form.script:
        return _plugin_text(text, form, commands)
    new, seen = text, set[str]()
    for event, index, element in reversed(list(_event_elements(json_text.parse(text)))):
        changed = _with_command(element, commands.get(event, ""), once=event in seen)
        seen |= {event} if _is_our_hook(changed) else set()
        new = _with_element(new, event, index, element, changed)
    for event in reversed([command for command in commands if command not in seen]):
        new = json_text.append(new, [_TABLE], event, _hook_element(form, event, commands[event]))
    if form.version and "version" not in json_text.parse(new):
        new = json_text.put(new, [], "version", form.version)
    _check_only_hooks_changed(text, new, form, {event: [command] for event, command in commands.items()})
    return new


def without_hooks(text: str, form: HookForm) -> str:
    """Return a file's text without our hooks; raise as `with_hooks` does."""
    if form.script:
        return "" if found_hooks(text) else text
    new = text
    for event, index, element in reversed(list(_event_elements(json_text.parse(text)))):
        new = _with_element(new, event, index, element, _with_command(element, "", once=False))
    _check_only_hooks_changed(text, new, form, {})
    return new


def same_hooks(text: str, form: HookForm) -> Callable[[str], str] | None:
    """Return the edit that copies our hooks from this text into another text; None where this text has none."""
    if form.script:
        return (lambda _: text) if text and found_hooks(text) else None
    ours = [(event, handler) for event, _, handler in _event_elements(json_text.parse(text)) if _is_our_hook(handler)]
    if not ours:
        return None

    def edit(other: str) -> str:
        for event, element in reversed(ours):
            other = json_text.append(other, [_TABLE], event, element)
        if form.version and "version" not in json_text.parse(other):
            other = json_text.put(other, [], "version", form.version)
        return other

    return edit


def _plugin_text(text: str, form: HookForm, commands: Commands) -> str:
    """Return the plugin program with these commands; raise `ValueError` where `text` is a program of somebody else."""
    if text and not _SCRIPT.search(text):
        raise ValueError("it is a program of somebody else")
    program = Path(__file__).with_name(form.script).read_text(encoding="utf-8")
    table = json.dumps(dict(commands), ensure_ascii=False)
    return _SCRIPT.sub(lambda _: f"const COMMANDS = {table}", program, count=1)


def _event_elements(data: dict[str, Any]) -> Iterator[tuple[str, int, Any]]:
    """Yield event, index and element for each element in the lists of the events."""
    table = data.get(_TABLE, {})
    if not isinstance(table, dict):
        raise ValueError(f"`{_TABLE}` is no object")
    for event, elements in table.items():
        for index, element in enumerate(elements if isinstance(elements, list) else ()):
            yield event, index, element


def _handlers_of(element: Any) -> list[dict[str, Any]]:
    """Return the handlers of a group, or the element itself where it is no group."""
    if not isinstance(element, dict):
        return []
    inner = element.get(_TABLE)
    return [handler for handler in inner if isinstance(handler, dict)] if isinstance(inner, list) else [element]


def _is_our_hook(element: Any) -> bool:
    return any(recollect_program_in(handler.get(_COMMAND)) for handler in _handlers_of(element))


def _hook_element(form: HookForm, event: str, command: str) -> dict[str, Any]:
    handler = {_COMMAND: command, "timeout": form.timeout}
    matcher = {"matcher": form.matchers[event]} if event in form.matchers else {}
    return matcher | ({_TABLE: [{"type": "command"} | handler]} if form.grouped else handler)


def _with_command(element: Any, command: str, *, once: bool) -> Any:
    """Return the element with this command in our hook, or without our hook; None where nothing remains of it."""
    if not _is_our_hook(element):
        return element
    kept: list[Any] = []
    inner = element.get(_TABLE)
    for hook in inner if isinstance(inner, list) else [element]:
        if not (isinstance(hook, dict) and recollect_program_in(hook.get(_COMMAND))):
            kept.append(hook)
        elif command and not once:
            kept.append(hook | {_COMMAND: command})
            once = True
    if not kept:
        return None
    return element | {_TABLE: kept} if isinstance(inner, list) else kept[0]


def _with_element(text: str, event: str, index: int, old: Any, new: Any) -> str:
    if new == old:
        return text
    if new is None:
        return json_text.drop_element(text, [_TABLE], event, index)
    return json_text.replace_element(text, [_TABLE], event, index, new)


def _check_only_hooks_changed(old: str, new: str, form: HookForm, wanted: Mapping[str, list[str]]) -> None:
    """Raise `ValueError` where the edit changed anything but our hooks, or our hooks are not `wanted`."""
    before, after = (_without_our_hooks(json_text.parse(text), form) for text in (old, new))
    if before != after or found_hooks(new) != wanted:
        raise ValueError("the form of its hooks allows no safe edit")


def _without_our_hooks(data: dict[str, Any], form: HookForm) -> dict[str, Any]:
    """Return the data of a file without our hooks and without the settings that only they need."""
    left: dict[str, Any] = json.loads(json.dumps(data))
    table = left.get(_TABLE)
    for event, elements in list(table.items()) if isinstance(table, dict) else ():
        if isinstance(elements, list):
            kept = [new for element in elements if (new := _with_command(element, "", once=False)) is not None]
            left[_TABLE][event] = kept
            if not kept:
                del left[_TABLE][event]
    if table is not None and not left[_TABLE]:
        del left[_TABLE]
    if form.version:
        left.pop("version", None)
    return left

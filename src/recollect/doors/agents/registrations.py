"""Which agents know Recollect: where they are told of it, and which program they start. No process is started."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from recollect.domain.results import Check
from recollect.doors.agents import files
from recollect.doors.agents.agents import Agent, Level, agents
from recollect.doors.agents.entry import by_address, command_of, name_in
from recollect.doors.agents.hooks import found_hooks, recollect_program_in
from recollect.doors.agents.installation import FORMATS, found_entry
from recollect.errors import InvalidInput
from recollect.projects import checkout_of

_METADATA: Final = re.compile(r"recollect-(\d[^-]*)\.dist-info")


@dataclass(frozen=True, slots=True)
class Registration:
    """An entry that an agent's configuration has of Recollect, or why that cannot be read."""

    agent: Agent
    level: str
    file: Path
    entry: dict[str, Any]
    problem: str = ""


@dataclass(frozen=True, slots=True)
class HooksFound:
    """Our hooks in a file of an agent: the commands by event, or why the file cannot be read."""

    agent: Agent
    level: Level
    file: Path
    commands: dict[str, list[str]]
    problem: str = ""


def project_folder() -> Path:
    """Return the root of the checkout around the working folder, else that folder."""
    try:
        here = Path.cwd()
        return checkout_of(here) or here
    except OSError:  # the working folder is gone, or may not be looked at
        return Path.home()


def registrations(root: Path) -> list[Registration]:
    """Return every entry of Recollect in the files of the known agents, for all projects and for this project."""
    return [found for agent in agents().values() for level in Level for found in _registrations_at(agent, level, root)]


def reporting(root: Path) -> list[HooksFound]:
    """Return every file of the known agents with our hooks, for all projects and for this project."""
    return [found for agent in agents().values() for level in Level for found in _hooks_of(agent, level, root)]


def found_agents(root: Path) -> list[Agent]:
    """Return the agents that are used on this machine or in this project."""
    return [agent for agent in agents().values() if any(agent.present(level, root) for level in Level)]


def checks(root: Path) -> list[Check]:
    """Return the doctor's lines: a line for each entry, and a line that names the agents without an entry."""
    known = registrations(root)
    lacking = [agent.name for agent in found_agents(root) if agent not in [entry.agent for entry in known]]
    lines = [_check_registration(registration) for registration in known]
    lines += [_check_hooks(found) for found in reporting(root)]
    if lacking or not lines:
        advice = f"; `recollect install {lacking[0] if lacking else 'AGENT'}` registers one"
        seen = f"not registered: {', '.join(lacking)}" if lacking else "none is registered"
        lines.append(Check("agents", True, seen + advice))
    return lines


def program_version(program: Path) -> str:
    """Return the version of the package beside a `recollect` program, an empty text where it cannot be found."""
    base = program.resolve().parent.parent
    if base == Path(sys.prefix).resolve():
        return version("recollect")
    for packages in (*base.glob("lib/python*/*-packages"), base / "Lib" / "site-packages"):
        names = (_METADATA.fullmatch(folder.name) for folder in packages.glob("recollect-*.dist-info"))
        if found := next(filter(None, names), None):
            return found[1]
    return ""


def _registrations_at(agent: Agent, level: Level, root: Path) -> Iterator[Registration]:
    """Yield the entries of Recollect in an agent's file at this level, or the problem that hides them."""
    file = agent.config(level, root)
    try:
        content = files.read(file)
        if content is None:
            return
        text = content.decode("utf-8-sig")
        entry = found_entry(agent, text)[1]
        if isinstance(entry, dict):
            yield Registration(agent, level, file, entry)
        if per_project := agent.places[level].per_project:
            theirs = FORMATS[agent.format].parse(text).get(per_project)
            yield from _own_of_project(agent, theirs, file, root)
    except InvalidInput as error:
        yield Registration(agent, level, file, {}, str(error))
    except ValueError as error:
        yield Registration(agent, level, file, {}, f"{file} is damaged: {error}")


def _hooks_of(agent: Agent, level: Level, root: Path) -> Iterator[HooksFound]:
    """Yield our hooks in an agent's file at this level, or the problem that hides them."""
    file = agent.hook_file(level, root)
    if file is None:
        return
    try:
        commands = found_hooks((files.read(file) or b"").decode("utf-8-sig"))
        if commands:
            yield HooksFound(agent, level, file, commands)
    except ValueError as error:
        if file != agent.config(level, root):  # of that one the entry's line tells already
            yield HooksFound(agent, level, file, {}, f"the hooks in {file} cannot be read: {error}")


def _own_of_project(agent: Agent, projects: Any, file: Path, root: Path) -> Iterator[Registration]:
    """Yield the entry that a user's own file has for this project alone."""
    servers: Any = projects.get(str(root)) if isinstance(projects, dict) else None
    for key in agent.servers:
        servers = servers.get(key) if isinstance(servers, dict) else None
    entry = servers.get(name_in(servers)) if isinstance(servers, dict) else None
    if isinstance(entry, dict):
        yield Registration(agent, "user, this project", file, entry)


def _check_hooks(found: HooksFound) -> Check:
    """Return the doctor's line on hooks: a problem where their program is gone, or an event has no hook."""
    name, again = f"{found.agent.name} hooks", _install_command(found.agent, found.level)
    if found.problem:
        return Check(name, False, found.problem, "Mend that file.")
    where = f"{found.level} level, {found.file}"
    programs = sorted({recollect_program_in(command) for commands in found.commands.values() for command in commands})
    if gone := [program for program in programs if shutil.which(program) is None]:
        return Check(name, False, f"hooks ({where}), but {gone[0]} is not there", f"Run {again}.")
    wanted = found.agent.hooks.events if found.agent.hooks else ()
    if lacking := [event for event in wanted if event not in found.commands]:
        return Check(name, False, f"hooks ({where}), but none for {', '.join(lacking)}", f"Run {again}.")
    return Check(name, True, f"hooks ({where}): {', '.join(programs)}, {len(found.commands)} events")


def _install_command(agent: Agent, level: str) -> str:
    """Return the command that installs Recollect for the agent again."""
    return f"`recollect install {agent.name}{' --level project' if level == Level.PROJECT else ''}`"


def _check_registration(registration: Registration) -> Check:
    """Return the doctor's line on an entry: a problem where its program is gone, or of another version."""
    name, where = registration.agent.name, f"{registration.level} level, {registration.file}"
    again = _install_command(registration.agent, registration.level)
    if registration.problem:
        return Check(name, False, registration.problem, f"Mend that file, then run {again}.")
    if address := by_address(registration.entry):
        return Check(name, True, f"registered ({where}): {address}")
    command = command_of(registration.entry)
    program = shutil.which(command) if command else None
    if program is None:
        return Check(name, False, f"registered ({where}), but {command or 'no program'} is not there", f"Run {again}.")
    theirs, ours = program_version(Path(program)), version("recollect")
    seen = f"registered ({where}): {program}, {f'recollect {theirs}' if theirs else 'of unknown version'}"
    if theirs and theirs != ours:
        return Check(name, False, f"{seen}, not {ours} as here", f"Update that one, or let it start this one: {again}.")
    return Check(name, True, seen)

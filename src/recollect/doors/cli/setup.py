"""The commands for the first hour: `init`, `install`, `uninstall`, and the one that hooks call."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from recollect.doors.agents import passage
from recollect.doors.agents.agents import Agent, Level, agent_named, agents
from recollect.doors.agents.entry import new_entry, token_file
from recollect.doors.agents.files import backup_of
from recollect.doors.agents.hooks import Commands, hook_commands, with_hooks
from recollect.doors.agents.installation import Change, apply, found_entry, plan_install, plan_uninstall, snippet
from recollect.doors.agents.registrations import found_agents, project_folder, registrations, reporting
from recollect.doors.cli import exit_codes
from recollect.doors.cli.opening import of_store, opened
from recollect.doors.cli.options import Json
from recollect.doors.cli.render import out, visible
from recollect.doors.cli.shells import remove_completion
from recollect.doors.cli.terminal import interactive
from recollect.errors import InvalidInput, RecollectError
from recollect.projects import find_project
from recollect.settings import Settings

cli = typer.Typer()

_STYLES = {"+": "green", "-": "red", "@": "cyan"}

Name = Annotated[
    str, typer.Argument(metavar="AGENT", help=f"One of: {', '.join(agents())}.", autocompletion=lambda: [*agents()])
]
AtLevel = Annotated[Level, typer.Option("--level", help="For all your projects, or for this one, where others see it.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Change the files without asking.")]
NoHooks = Annotated[bool, typer.Option("--no-hooks", help="Leave out the hooks that report the agent's sessions.")]
AllowTool = Annotated[
    bool | None,
    typer.Option("--allow-tool/--ask-tool", help="Let the agent use `memory` without asking you each time."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")]


@cli.command()
def install(
    ctx: typer.Context,
    agent: Name = "",
    level: AtLevel = Level.USER,
    yes: Yes = False,
    dry_run: DryRun = False,
    no_hooks: NoHooks = False,
    allow_tool: AllowTool = None,
    print_only: Annotated[
        bool, typer.Option("--print", help="Only print entry, passage and hooks, for any agent; change nothing.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Register Recollect with an agent: MCP entry, passage in its instruction file, and hooks where it has any.

    Shows the changes first and keeps a backup beside each file. Repeat it after a change of settings or an upgrade: it
    brings up to date what it wrote, and changes nothing else.
    """
    root, shared = project_folder(), level is Level.PROJECT
    if print_only:
        known = agent_named(agent) if agent in agents() else None
        commands = hook_commands(known, ctx.obj, shared=shared) if known and not no_hooks else {}
        entry = new_entry(ctx.obj, known, shared=shared)
        _print_snippet(known, level, root, entry, commands, as_json)
        return
    if not agent:
        here = ", ".join(agent.name for agent in found_agents(root)) or "none"
        raise InvalidInput("agent", f"Missing agent: Name one of {', '.join(agents())}. Found here: {here}.")
    known = agent_named(agent)
    commands = {} if no_hooks else hook_commands(known, ctx.obj, shared=shared)
    entry = new_entry(ctx.obj, known, shared=shared)
    allowed = decide_tool_permission(known, allow_tool, yes=yes, ask=not (as_json or dry_run))
    changes = plan_install(known, level, root, entry, commands, allowed=allowed)
    written = carry_out(changes, level, yes=yes, dry_run=dry_run, as_json=as_json)
    sentences = installed(known, level, changes) if written else ["Nothing was changed."]
    if ctx.obj.url:
        sentences.append(_token_sentence(ctx.obj))
    _show_changes(known, level, changes, as_json, sentences, written=written)


@cli.command()
def uninstall(
    agent: Name,
    level: AtLevel = Level.USER,
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Take out of an agent's files exactly what `install` put in. Memories stay.

    With the last agent the shell completion goes too, if `--install-completion` installed it.
    """
    root, known = project_folder(), agent_named(agent)
    changes, others = plan_uninstall(known, level, root)
    written = carry_out(changes, level, yes=yes, dry_run=dry_run, as_json=as_json)
    sentences = ["Nothing was changed."]
    if written:
        changed = [_home_relative(change.file) for change in changes if change.kind != "unchanged"]
        place = "in this project" if level is Level.PROJECT else "at user level"
        sentences = [
            f"Removed from {known.title}: {', '.join(changed)}."
            if changed
            else f"Nothing to do: {known.title} is not registered {place}."
        ]
    if written and not registrations(root) and (gone := remove_completion(Path.home())):
        sentences.append(
            f"No agent is left, so shell completion is removed too: {', '.join(map(_home_relative, gone))}."
        )
    if others:
        sentences.append(f"The passage on memory stays, as {', '.join(others)} reads it too.")
    _show_changes(known, level, changes, as_json, sentences, written=written)


@cli.command(context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
def hook(
    event: Annotated[str, typer.Argument(help="Event, as the agent calls it, or one of ours.")] = "",
    agent: Annotated[
        str, typer.Option(metavar="NAME", help="Agent whose event it is. Default: the one that its JSON tells of.")
    ] = "",
) -> None:
    """Take an event of a coding agent's session, as JSON on standard input. It never fails; `install` sets it up.

    Our events: session:start, prompt:submit, tool:post, turn:end, session:checkpoint, session:end.
    """
    del event, agent  # a command with a daemon never comes here, and without one nobody takes events


def carry_out(
    changes: Sequence[Change], level: Level, *, yes: bool, dry_run: bool = False, as_json: bool = False
) -> bool:
    """Show the changes, ask, and write them; return whether every file is now as planned.

    Raises `InvalidInput` without `yes` where nobody can be asked, and `typer.Abort` where the person says no.
    """
    if all(change.kind == "unchanged" for change in changes):
        return True
    decided = yes and not dry_run
    if decided:  # whoever reads what is shown may leave before its end
        apply(changes, level)
    if not as_json:
        _show_diff(changes)
    if dry_run or decided:
        return decided
    if as_json or not interactive():
        raise InvalidInput("yes", "Nothing was changed, as nobody can be asked here: add `--yes`, or `--dry-run`.")
    typer.confirm("Write these changes?", abort=True, err=True)
    apply(changes, level)
    return True


def decide_tool_permission(agent: Agent, allow: bool | None, *, yes: bool, ask: bool = True) -> bool:
    """Return whether the agent may call the tool without asking each time.

    That is `allow` where it is set, else True with `yes`, else the person's answer; False where `ask` is False or no
    person can answer. An agent that never asks needs no permission.
    """
    if allow is not None or not agent.asks:
        return bool(allow)
    if yes or not (ask and interactive()):
        return yes
    return typer.confirm(f"Let {agent.title} use the tool `memory` without asking you each time?", err=True)


def installed(agent: Agent, level: Level, changes: Sequence[Change]) -> list[str]:
    """Return the sentences about an agent after its registration."""
    entry, passages = changes[0], [change for change in changes if change.what == "passage"]
    place = "this project" if level is Level.PROJECT else "all projects"
    before = "Nothing to do: " if all(change.kind == "unchanged" for change in changes) else ""
    read = f", and told about memory in {_home_relative(passages[0].file)}" if passages else ""
    sentences = [f"{before}{agent.title} is registered for {place} in {_home_relative(entry.file)}{read}."]
    if advice := agent.places[level].advice:
        sentences.append(advice)
    if any("permission" in change.what for change in changes) or (
        agent.allow and agent.allow.keys() <= _names_in_entry(agent, entry)
    ):
        sentences.append("It may use the tool `memory` without asking each time; `--ask-tool` leaves that out.")
    if reporting := [change for change in changes if "hooks" in change.what]:
        sentences.append(
            f"Its hooks in {_home_relative(reporting[0].file)} report its sessions; `--no-hooks` leaves them out."
        )
        sentences.extend([agent.hooks.advice] if agent.hooks and agent.hooks.advice else [])
    if not before:
        if backups := [
            _home_relative(backup_of(change.file))
            for change in changes
            if change.kind == "changed" and change.keep is not None
        ]:
            sentences.append(f"Backups: {', '.join(backups)}.")
        sentences.append(f"Restart {agent.title}, then ask: what do you remember about this project?")
    return sentences


def _names_in_entry(agent: Agent, change: Change) -> set[str]:
    """Return the names of the fields in the entry after a change."""
    entry = found_entry(agent, (change.after or b"").decode("utf-8-sig"))[1]
    return set(entry) if isinstance(entry, dict) else set()


def _as_json(changes: Sequence[Change]) -> list[dict[str, str]]:
    """Return changes as JSON tells them."""
    return [
        {"file": str(change.file), "what": change.what, "change": change.kind, "diff": change.diff}
        for change in changes
    ]


def _token_sentence(settings: Settings) -> str:
    """Return the sentence on where the agent's Recollect finds its token, which is in no file of the agent."""
    if found := list(token_file(settings).values()):
        return f"It speaks to {settings.url} with the token in {found[0]}."
    return (
        f"It speaks to {settings.url} with the token in its environment, RECOLLECT_TOKEN, which is written nowhere. "
        "For agents that see no shell's variables put it into a file of yours, and install with RECOLLECT_TOKEN_FILE."
    )


def _home_relative(file: Path) -> str:
    """Return a path as people write it."""
    home = Path.home()
    return f"~/{file.relative_to(home).as_posix()}" if file.is_relative_to(home) else str(file)


def _show_changes(
    agent: Agent, level: Level, changes: Sequence[Change], as_json: bool, sentences: list[str], *, written: bool
) -> None:
    """Print the outcome of an installation, as JSON with each change or as sentences."""
    body: dict[str, Any] = {
        "agent": agent.name,
        "level": str(level),
        "written": written,
        "changes": _as_json(changes),
    }
    exit_codes.show(body | {"message": " ".join(sentences)}, as_json, *sentences)


def _show_diff(changes: Sequence[Change]) -> None:
    for change in changes:
        for line in change.diff.splitlines():
            out.print(Text(visible(line), style=_STYLES.get(line[:1], "")), soft_wrap=True)


def _print_snippet(
    agent: Agent | None, level: Level, root: Path, entry: dict[str, Any], commands: Commands, as_json: bool
) -> None:
    """Print the texts to paste into an agent's files; without an agent in the form that most clients read."""
    text = snippet(agent, entry)
    file = str(agent.config(level, root)) if agent else "the client's MCP configuration"
    reads = agent.instructions(level, root) if agent else None
    body = {"file": file, "entry": text, "instructions": str(reads or ""), "passage": passage.BLOCK}
    where = str(reads or "the file or setting with the agent's instructions")
    sentences = [f"Into {file}:", f"\n{text}", f"Into {where}:", f"\n{passage.BLOCK}"]
    if agent and agent.hooks and commands:
        body |= {"hook_file": str(agent.hook_file(level, root)), "hooks": with_hooks("", agent.hooks, commands)}
        sentences += [f"Into {body['hook_file']}:", f"\n{body['hooks']}"]
    if agent and agent.plugin_folder:
        body["plugin"] = str(agent.plugin_folder)
        sentences.append(f"Or all of it as a plugin: `{agent.load} {body['plugin']}`")
    exit_codes.show(body, as_json, *sentences[:-1], sentences[-1].rstrip())


@cli.command()
def init(
    ctx: typer.Context,
    agent: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Install for this agent; repeat it for more.")
    ] = None,
    level: AtLevel = Level.USER,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Install for `--agent`, else for each agent found, without asking.")
    ] = False,
    take: Annotated[
        bool | None,
        typer.Option("--take-in/--no-take-in", help="Take in what agents have remembered already; `--yes` does too."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Make the store, recognise the project, install for the agents found, and take in what they know.

    What they know are their memory and instruction files and the transcripts of their last sessions. Safe to run again.
    """
    from recollect.doors.cli.filling import offer  # with all that runs operations

    settings = of_store(ctx)
    named = [agent_named(name) for name in agent or ()]
    if named and not yes and (as_json or not interactive()):
        raise InvalidInput("yes", "Nothing was done, as nobody can be asked here: add `--yes`, or leave out `--agent`.")
    root = project_folder()
    body: dict[str, Any] = {"store": _make_store(settings)}
    _print_sentences(
        as_json, f"Store: {body['store']['folder']}, {body['store']['memories']} memories that you may see."
    )
    body["project"] = _project_fields(settings)
    name, source = body["project"]["name"], body["project"]["source"]
    _print_sentences(as_json, f"Project: {name} (from {source}); `recollect project set NAME` gives it another name.")
    body["agents"] = _offer_installs(settings, named, root, level, yes=yes, as_json=as_json)
    body["remembered"] = offer(
        settings,
        root,
        True if take is None and yes else take,
        asked=interactive() and not as_json,
        quiet=as_json,
        tell=lambda sentence: _print_sentences(as_json, sentence),
    )
    tries = ['recollect remember "We deploy on Fridays"', 'recollect recall "when do we ship?"', "recollect doctor"]
    body["next"] = tries
    exit_codes.show(body, as_json, f"Try next: {', '.join(f'`{command}`' for command in tries)}.")


def _make_store(settings: Settings) -> dict[str, Any]:
    """Make the data folder and its tables where they do not exist."""
    with opened(settings, model=False) as run:
        return {"folder": str(settings.memory_db or settings.folder), "memories": run("stats").memories}


def _project_fields(settings: Settings) -> dict[str, str]:
    found = find_project(Path.cwd(), settings.home)
    source = found.source if found.name == settings.project else "the setting `project`"
    return {"name": settings.project, "source": source}


def _offer_installs(
    settings: Settings, named: Sequence[Agent], root: Path, level: Level, *, yes: bool, as_json: bool
) -> list[dict[str, Any]]:
    """Offer to install for the named agents, else for each agent found; return each agent with its outcome."""
    registered = {entry.agent.name for entry in registrations(root) if entry.entry}
    told_of = {entry.agent.name for entry in reporting(root) if entry.commands}
    chosen = named or found_agents(root)
    if not chosen:
        _print_sentences(
            as_json, "Agents: none is found here. `recollect install --print` shows what any client needs."
        )
    registered_agents: list[dict[str, Any]] = []
    for candidate in chosen:
        done = candidate.name in registered and not named
        if done:
            more = candidate.hooks and candidate.name not in told_of
            advice = f" `recollect install {candidate.name}` lets it report its sessions by hooks too." if more else ""
            _print_sentences(as_json, f"{candidate.title} is registered already.{advice}")
        elif yes or (interactive() and not as_json):
            done = _offer_install(settings, candidate, root, level, yes=yes, as_json=as_json)
        else:
            _print_sentences(as_json, f"{candidate.title} is here: `recollect install {candidate.name}` registers it.")
        registered_agents.append({"agent": candidate.name, "registered": done})
    return registered_agents


def _offer_install(settings: Settings, agent: Agent, root: Path, level: Level, *, yes: bool, as_json: bool) -> bool:
    """Install for an agent once the person agrees; a file that cannot be edited does not stop the next agent."""
    try:
        shared = level is Level.PROJECT
        entry, commands = new_entry(settings, agent, shared=shared), hook_commands(agent, settings, shared=shared)
        allowed = decide_tool_permission(agent, None, yes=yes, ask=not as_json)
        changes = plan_install(agent, level, root, entry, commands, allowed=allowed)
        _print_sentences(as_json, f"{agent.title}:")
        carry_out(changes, level, yes=yes, as_json=as_json)
    except typer.Abort:
        _print_sentences(as_json, f"{agent.title} was left alone; `recollect install {agent.name}` does it later.")
        return False
    except RecollectError as error:
        _print_sentences(as_json, str(error))
        return False
    _print_sentences(as_json, *installed(agent, level, changes))
    return True


def _print_sentences(as_json: bool, *sentences: str) -> None:
    for sentence in () if as_json else sentences:
        out.print(sentence, markup=False, highlight=False, soft_wrap=True)

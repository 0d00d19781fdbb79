"""Write the reference from the code: `docs/commands.md`, `settings.md` and `tools.md`, and what `--help` prints."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any, Final

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined
from typer.core import TyperGroup

from recollect.domain.lifecycle import LifecycleSettings
from recollect.domain.verbs import BY_NAME
from recollect.doors.cli.command_table import GROUPS
from recollect.doors.cli.dispatch import HELP
from recollect.doors.cli.main import whole
from recollect.doors.cli.options import FILTERS
from recollect.setting_texts import variable
from recollect.settings import Settings

DOCS: Final = Path(__file__).resolve().parent.parent / "docs"
_WIDTH: Final = 78  # columns that a help takes of 80
OPENINGS: Final = Path(__file__).resolve().parent.parent / "src" / "recollect" / "doors" / "mcp_openings.json"

_COMMANDS: Final = """# Commands

Every command and its options. This page is made from the program by `scripts/reference.py`; `recollect COMMAND --help`
says the same.

Plain words need no quotes; quote what your shell interprets, such as `'`, `?` or `&`. The options of `recollect`
itself, which the second table lists, may stand anywhere. The exit code says how a command ended:

| code | meaning |
|---|---|
| 0 | done; for `recall`, also when nothing relevant was found |
| 1 | another error |
| 2 | invalid input |
| 3 | a secret was found, or left out of an import |
| 4 | not found |
| 5 | the store is owned by another process |
| 6 | the data folder cannot be used |
| 7 | the store belongs to another embedding model |
| 8 | the model cannot be used |
| 9 | no daemon answers |
| 10 | a team's server: the token is missing or not valid |
| 11 | a team's server: you have no right to this |
| 12 | a team's server: the request is too large |
| 13 | a team's server: too many requests |
| 14 | a team's server: it does not answer |
| 15 | a memory has changed since it was read (`--if-hash`), a legal hold keeps it, or a deletion is not done |
| 16 | a team's server: a user or a team holds as much as they may |
| 130 | interrupted with Ctrl-C |
"""
_SETTINGS: Final = """# Settings

Every setting is an environment variable. An empty value counts as absent. A variable with `_FILE` at its end names a
file whose first line is the value: `RECOLLECT_TOKEN_FILE=/run/secrets/token`. Options of a command, such as `--home`,
override the environment. This page is made from the program by `scripts/reference.py`.

Set them where your shell and your agents see them, such as in your shell's profile. `recollect install` writes them
into an agent's entry, except project, tokens and keys; run it again after a change. After a change to the store or to
a model, run `recollect stop`, so that the daemon starts with it.
"""
_TOOLS: Final = """# MCP tools

These are the tools that `recollect mcp` offers an agent. Without an option that is the toolset `memory`, whose one
tool is all that most agents need. `recollect mcp --toolset store` offers another set instead; `--toolset memory
--toolset more` offers several. `store` has one tool for each operation, `dual` has tools for keeping and hiding
memories and for kinds of knowledge, and `more` adds searches and counts. Over HTTP the toolset is in the address: [MCP
over HTTP](frameworks.md#mcp).

Parameters in **bold** are required. In the toolset `dual`, `type` means what `fact_type` means elsewhere, the kind of
knowledge; elsewhere `type` is the kind of work in which something was observed. `allow_private` and `allow_secret`
include memories of that [sensitivity](concepts.md#who-sees-it); credentials are refused at every level. This page is
made from the program by `scripts/reference.py`.
"""
_SUBJECTS: Final = {
    "The store": (
        "home memory_db on_secret retention max_memories inbox_days journal_mirror backup_folder backup_days daemon "
        "idle_minutes"
    ),
    "Who asks": "user team project time_zone",
    "Models": "model models_dir rerank embedding_url embedding_key",
    "A team's server, on each client": "url token insecure",
    "A team's server, where it runs": (
        "database_url chroma_url vector_index drill_database_url limits max_body_mib requests_per_minute "
        "concurrent_requests token_days_max metrics_token"
    ),
    "Signing in to a team's server, where it runs": (
        "public_address oidc_issuer oidc_client_id oidc_client_secret oidc_login_client_id oidc_audiences oidc_scopes "
        "oidc_subject_claim oidc_name_claim oidc_groups_claim oidc_groups"
    ),
    "A language model": "chat_model chat_url chat_key chat_seconds chat_tokens_day",
}
_SESSIONS: Final = """## Sessions of coding agents

What these do: [sessions.md](sessions.md). A project may set them too, but only to make capture or injection stricter:
in small letters without `RECOLLECT_`, at the top of its `recollect.toml` or in `[tool.recollect]` of its
`pyproject.toml`.
"""


def commands() -> str:
    """Return the page on the command line."""
    parts = [_COMMANDS]
    known = whole()
    parts.append(f"{_table_of(known)}\n")
    for title, names in GROUPS.items():
        parts.append(f"## {title}\n")
        parts += [part for name in names.split() for part in _command(known.commands[name], name)]
    parts.append(f"## Filters\n\nA memory must pass all filters given.\n\n{_table_of(known.commands['filters'])}")
    return "\n".join(parts)


def _command(command: Any, name: str) -> Iterator[str]:
    usage = " ".join(command.collect_usage_pieces(_context(command)))
    yield f"### recollect {name}\n\n{_cell(command.help or '')}\n\n    recollect {name} {usage}\n"
    if table := _table_of(command):
        yield table
    if isinstance(command, TyperGroup):
        for below, sub in command.commands.items():
            yield from (part.replace("### ", "#### ", 1) for part in _command(sub, f"{name} {below}"))


def _table_of(command: Any) -> str:
    rows = [f"| `{_cell(record[0])}` | {_cell(record[1])} |" for record in _records(command)]
    if command.name != "filters" and any(_filters(one) for one in command.params):
        rows.append("| any [filter](#filters) | Only memories that pass it. |")
    return "| argument or option | meaning |\n|---|---|\n" + "\n".join(rows) + "\n" if rows else ""


def _context(command: Any) -> Any:
    return command.context_class(command)


def _records(command: Any) -> list[tuple[str, str]]:
    shown = [
        one for one in command.params if "--help" not in one.opts and (command.name == "filters" or not _filters(one))
    ]
    return [record for one in shown if (record := one.get_help_record(_context(command)))]


def _filters(option: Any) -> bool:
    return getattr(option, "rich_help_panel", None) == FILTERS


def helps() -> dict[str, str]:
    """Return what `--help` prints of each command, and without a name of all, in 80 columns."""
    command = whole()
    context = command.context_class(command, info_name="recollect", terminal_width=_WIDTH, **command.context_settings)
    return dict(_helps(command, context, ""))


def _helps(command: Any, context: Any, name: str) -> Iterator[tuple[str, str]]:
    yield name, f"{context.get_help()}\n"
    for below, sub in sorted(getattr(command, "commands", {}).items()):
        inner = sub.context_class(sub, info_name=below, parent=context, **sub.context_settings)
        yield from _helps(sub, inner, f"{name} {below}".strip())


def settings() -> str:
    """Return the page on the settings."""
    fields = Settings.model_fields
    sections = {title: names.split() for title, names in _SUBJECTS.items()}
    parts = [_SETTINGS]
    for title, names in sections.items():
        parts.append(f"## {title}\n\n{_table({name: fields[name] for name in names})}")
    parts.append(f"{_SESSIONS}\n{_table(dict(LifecycleSettings.model_fields))}")
    told = {name for names in sections.values() for name in names} | set(LifecycleSettings.model_fields)
    if told != set(fields):
        raise ValueError(f"settings without a section: {sorted(set(fields) - told)}")
    return "\n".join(parts)


def _table(fields: dict[str, FieldInfo]) -> str:
    rows = [
        f"| `{variable(name)}` | {_default(field)} | {_cell(field.description or '')} |"
        for name, field in fields.items()
    ]
    return "| variable | default | meaning |\n|---|---|---|\n" + "\n".join(rows) + "\n"


def _default(field: FieldInfo) -> str:
    default = field.default
    if default is PydanticUndefined or default is None or default == "":
        return ""
    if isinstance(default, bool):
        return f"`{int(default)}`"
    return (
        f"`{default.value if isinstance(default, Enum) else f'{default:g}' if isinstance(default, float) else default}`"
    )


def tools() -> str:
    """Return the page on the tools that MCP offers."""
    record = json.loads(OPENINGS.read_text(encoding="utf-8"))
    parts = [_TOOLS]
    seen: set[str] = set()
    for name, members in record["toolsets"].items():
        parts.append(f"## Toolset `{name}`\n\n{', '.join(f'`{tool}`' for tool in members)}\n")
        parts += [_tool(record["tools"][tool]) for tool in members if tool not in seen]
        seen.update(members)
    return "\n".join(parts)


def _tool(tool: dict[str, Any]) -> str:
    schema = tool["inputSchema"]
    required = schema.get("required", ())
    marks = {name: "**" if name in required else "" for name in schema["properties"]}
    rows = [
        f"| {marks[name]}`{name}`{marks[name]} | {_type(told)} | {_cell(_about(tool, name))} |"
        for name, told in schema["properties"].items()
    ]
    table = "| parameter | takes | meaning |\n|---|---|---|\n" + "\n".join(rows) + "\n" if rows else ""
    return f"### `{tool['name']}`\n\n{_cell(tool['description'])}\n\n{table}"


def _about(tool: dict[str, Any], name: str) -> str:
    """Return what a parameter means, as the tool says it to a model, else as the operation says it to people."""
    if told := tool["inputSchema"]["properties"][name].get("description"):
        return str(told)
    return BY_NAME[tool["name"]].fields[name].description or ""


def _type(told: dict[str, Any]) -> str:
    if "enum" in told:
        return ", ".join(f"`{value}`" for value in told["enum"])
    if "anyOf" in told:
        return " or ".join(dict.fromkeys(_type(one) for one in told["anyOf"]))
    if told.get("type") == "array":
        return f"list of {_type(told.get('items', {})) or 'values'}"
    bounds = [told[bound] for bound in ("minimum", "maximum") if bound in told]
    between = f" {bounds[0]}–{bounds[1]}" if len(bounds) == 2 else f" from {bounds[0]}" if "minimum" in told else ""
    return f"{told.get('type', '')}{between}"


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip().replace("|", "\\|")


PAGES: Final = {"commands.md": commands, "settings.md": settings, "tools.md": tools}

if __name__ == "__main__":
    for page, write in PAGES.items():
        (DOCS / page).write_text(write(), encoding="utf-8")
        print(f"docs/{page}")
    HELP.write_text(json.dumps(helps(), indent=0, ensure_ascii=False) + "\n", encoding="utf-8")

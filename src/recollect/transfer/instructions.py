"""Instruction files: which files agents read by themselves when they begin to work, and whose words those are.

An agent that works in a repository follows its instruction files anyway. So these are files of that project: they wait
for no decision there, but they are nobody's own words and count in no other scope. A file deeper in the tree, which may
belong to a library, and a file that a link leads to elsewhere are imports like any other.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Final, NamedTuple

from recollect.domain.origin import SaidBy
from recollect.settings import others_folder

MARKDOWN: Final = (".md", ".markdown", ".mdc")
_NAMES: Final = frozenset(
    {
        "AGENTS.md",
        "AGENTS.override.md",
        "CLAUDE.md",
        "CLAUDE.local.md",
        "GEMINI.md",
        ".clinerules",
        ".cursorrules",
        ".windsurfrules",
    }
)
"""As agents spell them: `agents.md` is a page like any other."""
_COPILOT: Final = (".github", "copilot-instructions.md")
_RULES: Final = ((".claude", "rules"), (".cursor", "rules"), (".github", "instructions"), (".windsurf", "rules"))
_BESIDE: Final = ("", ".claude")
"""The folders of a project, from its root, in which an agent looks for a file of such a name."""


class AgentFolder(NamedTuple):
    """Where an agent keeps what is its user's: a variable of its own that names the folder, and its usual name."""

    variable: str
    usual: str

    @property
    def path(self) -> Path:
        """Return the folder, whether it is there or not."""
        return (others_folder(self.variable) if self.variable else None) or Path.home() / self.usual


CLAUDE_CODE: Final = AgentFolder("CLAUDE_CONFIG_DIR", ".claude")
CODEX: Final = AgentFolder("CODEX_HOME", ".codex")
GEMINI: Final = AgentFolder("", ".gemini")
OF_USER: Final = {
    CLAUDE_CODE: ("CLAUDE.md",),
    CODEX: ("AGENTS.override.md", "AGENTS.md"),
    GEMINI: ("GEMINI.md",),
}
"""The instruction files that a user has for all projects, by the agent's folder."""


def is_instruction(path: PurePath) -> bool:
    """Say whether agents read a file as instructions, by its exact name or the folder it is in."""
    pairs = [*zip(path.parts, path.parts[1:], strict=False)]
    rules = any(pair in _RULES for pair in pairs) and path.suffix.lower() in MARKDOWN
    return path.name in _NAMES or _COPILOT in pairs[-1:] or rules


def instruction_files(root: Path) -> Iterator[Path]:
    """Yield the instruction files that an agent reads when it begins in the root of a project; no links."""
    beside = [root / folder / name for folder in _BESIDE for name in _names_in(root / folder)]
    rules = [path for above, inner in _RULES for path in sorted((root / above / inner).rglob("*"))]
    real = root.resolve()
    for path in (*beside, root.joinpath(*_COPILOT), *rules):
        inside = path.resolve() == real / path.relative_to(root)
        if inside and is_instruction(path.relative_to(root)) and path.is_file():
            yield path


def speaker_of(path: Path, root: Path) -> SaidBy | None:
    """Return whose words an instruction file holds for a user of the project `root`; None for any other file.

    A user's own instruction file for all projects holds that user's words. It has to belong to the user of this
    process.
    """
    real = path.resolve()
    for agent, names in OF_USER.items():
        if any(real == (agent.path / name).resolve() for name in names) and belongs_to_reader(real):
            return SaidBy.PERSON
    inside = is_instruction(path) and any(real == file.resolve() for file in instruction_files(root))
    return SaidBy.FILE if inside else None


def belongs_to_reader(path: Path) -> bool:
    """Say whether the user of this process owns a file."""
    return path.stat().st_uid == os.getuid()


def _names_in(folder: Path) -> list[str]:
    """Return the names of the entries of a folder as they are spelled, none where it cannot be read."""
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - only the names are wanted
    except OSError:
        return []

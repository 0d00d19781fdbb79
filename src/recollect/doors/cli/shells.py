"""What `--install-completion` left in a shell's files, and how it is taken out again."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

_OURS: Final = "_RECOLLECT_COMPLETE"
"""Stands in every script of completion that is ours."""
_SCRIPTS: Final = (".bash_completions/recollect.sh", ".zfunc/_recollect", ".config/fish/completions/recollect.fish")
_ZSH_LINE: Final = "fpath+=~/.zfunc; autoload -Uz compinit; compinit"


def remove_completion(home: Path) -> list[Path]:
    """Delete the completion scripts in a home folder and the lines that load them; return the changed files.

    A script of another program stays, and so does the line of zsh while the folder that it loads holds other files.
    """
    changed = [script for name in _SCRIPTS if _is_ours(script := home / name)]
    for script in changed:
        script.unlink()
    bash, zsh = home / _SCRIPTS[0], home / _SCRIPTS[1]
    if bash in changed and _without_line(home / ".bashrc", f"source '{bash}'"):
        changed.append(home / ".bashrc")
    if zsh in changed and not any(zsh.parent.iterdir()) and _without_line(home / ".zshrc", _ZSH_LINE):
        changed.append(home / ".zshrc")
    return changed


def _is_ours(script: Path) -> bool:
    try:
        return _OURS in script.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False


def _without_line(file: Path, line: str) -> bool:
    """Remove a line from a file, whatever its other bytes are; return whether the line was there."""
    with suppress(OSError):
        before = file.read_bytes().splitlines(keepends=True)
        after = [text for text in before if text.strip() != line.encode()]
        if after != before:
            file.write_bytes(b"".join(after))
            return True
    return False

"""What newcomers type in place of a command: what stands for it, and what is only named to them as near."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

ALIASES: Final = {
    **dict.fromkeys(("add", "save", "store", "put", "new", "note"), ("remember",)),
    **dict.fromkeys(("search", "find", "query", "ask", "grep"), ("recall",)),
    **dict.fromkeys(("get", "view", "cat", "history", "describe"), ("show",)),
    **dict.fromkeys(("delete", "remove", "rm", "del"), ("forget",)),
    **dict.fromkeys(("log", "recent"), ("timeline",)),
    **{"hide": ("forget", "--soft"), "ls": ("list",), "all": ("list", "--all"), "count": ("stats",)},
    **{"info": ("status",), "check": ("doctor",), "setup": ("init",), "projects": ("project", "list")},
    **dict.fromkeys(("config", "config list", "config get", "whoami"), ("settings",)),
    **{"revert": ("undo",), "tag list": ("tags",), "tag ls": ("tags",)},
}
"""What newcomers type for a command, in one word or two, and the words that it stands for."""
IN_GROUPS: Final = {"ls": "list"}
"""The same for the commands of a group, such as `project`."""
NEAREST: Final = {
    **dict.fromkeys(("web", "ui", "open", "browse", "dashboard"), "page"),
    **dict.fromkeys(("clear", "reset", "wipe", "erase"), "forget --where"),
    **dict.fromkeys(("sync", "watch"), "import --watch"),
    **dict.fromkeys(("signin", "sign-in", "auth"), "login"),
    **{"dump": "export", "quit": "stop", "exit": "stop", "restart": "stop", "logs": "timeline"},
}
"""What newcomers type that no command does as they may expect."""


def expand_alias(words: Sequence[str]) -> list[str]:
    """Return the typed words, with an alias replaced by the name of its command."""
    count = next((count for count in (2, 1) if " ".join(words[:count]) in ALIASES), 0)
    return [*(ALIASES[" ".join(words[:count])] if count else ()), *words[count:]]

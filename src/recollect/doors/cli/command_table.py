"""The commands by name: what runs those that only run an operation, their groups in the help, and their modules.

It imports nothing, as a command that the daemon runs reads it first.
"""

from __future__ import annotations

from typing import Final

COMMANDS: Final = {
    "timeline": ("get_timeline", "List the latest memories, in the order of their creation."),
    "by-file": ("search_by_file", "List memories of work that read or modified a file."),
    "by-concept": ("search_by_concept", "List memories about a concept."),
    "similar": ("find_similar", "List memories that are similar to a text or to another memory."),
    "prompt": (
        "format_for_prompt",
        "Print the most useful memories for a language model. They are Markdown, fenced as data.",
    ),
    "undo": ("restore", "Bring back what was hidden, merged, replaced or summarized."),
    "pin": ("pin", "Keep memories for good, and show them first where memories are shown unasked."),
    "unpin": ("unpin", "Undo `pin`."),
    "bury": ("bury", "Keep memories searchable, but never show them unasked."),
    "unbury": ("unbury", "Undo `bury`."),
    "move": ("move_memory", "Move memories to another project or scope. They get new ids, and are hidden here."),
    "promote": ("promote", "Move memories to where all your projects see them: personal, or the team."),
    "fact": ("store_fact", "Store a fact. With `--replaces` what held of its subject and predicate before ends."),
    "facts": ("query_facts", "List the facts that hold, or held at a time."),
    "stats": ("stats", "Count what is stored, by scope, kind and state."),
    "purge": ("purge_expired", "Remove expired memories for good."),
    "summarize": (
        "summarize_old",
        "Condense old memories into summaries. There is one per category; its originals rank below it.",
    ),
}
"""The commands that only run an operation."""

GROUPS: Final = {
    "Every day": "remember recall list show edit update forget undo",
    "Put in order": "pin unpin bury unbury tag tags move promote",
    "Other ways to look": "timeline by-file by-concept similar prompt fact facts stats session page",
    "Set up": "init install uninstall project",
    "Look after the store": (
        "doctor status start stop settings reindex rescan inbox withdraw purge summarize backup migrate-store"
    ),
    "In and out": "import export extract",
    "For programs": "mcp serve hook",
    "Teams": "login logout me user team token limits limit hold retention audit",
}
"""The commands in the order of the help."""

PARTS: Final = {
    "audit": "audit",
    "backup": "backup restore",
    "daemon": "start status stop",
    "doctor": "doctor",
    "edit": "edit update",
    "forget": "forget",
    "login": "login logout",
    "page": "page",
    "review": "inbox withdraw",
    "serve": "mcp serve",
    "sessions": "session",
    "settings": "settings",
    "setup": "hook init install uninstall",
    "store": "migrate-store reindex",
    "tags": "tag tags",
    "team": "hold limit limits me project retention team token user",
    "transfer": "export extract import",
}
"""The commands of each further module of this folder, which is imported once one of them is wanted."""

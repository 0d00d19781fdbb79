"""Payloads as released agents wrote them, shortened and in other words: what each event becomes, down to its memory.

Claude Code 2.1, Codex 0.169, Gemini CLI 0.61. A case is the agent, the event, what it adds to the agent's payload, and
what becomes of it: the reason of one that is dropped, or what a memory made of it must say.
"""

from __future__ import annotations

from typing import Any

ADDED = "# The broker drops idle links after 300 s, so the pool must send a ping every 60 s."
PATCH = f"""*** Begin Patch
*** Update File: src/pool.py
@@
-def connect(pool):
+{ADDED}
+def connect(pool):
*** Add File: docs/pool.md
+# Pool
*** End Patch
"""
FAILED = "E   usb.core.USBError: [Errno 13] Access denied (insufficient permissions) on device 04f9:2028"
CLAIM = "The checkout was flaky because the broker drops idle links after 300 s; a ping every 60 s keeps them."
RULE = "Never restart the broker during the backup, because the dump locks its tables."
BEFORE = (
    "<hook_context>&lt;memory-index&gt;\n- [7] Never deploy on Fridays (today)\n&lt;/memory-index&gt;</hook_context>"
)
RUN = {"command": "python print_label.py", "description": "Why does the label printer refuse?"}

Case = tuple[str, str, dict[str, Any], str, tuple[str, ...]]
WRAPPING = ("untrusted_context", "PGID", "Exit Code", "Exit code:", "Wall time", "*** ")
"""What agents put around the output of a tool, or around an edit; no memory says it."""


def _edit(path: str) -> dict[str, Any]:
    old, new = "def connect(pool):", f"{ADDED}\ndef connect(pool):"
    return {"file_path": path, "old_string": old, "new_string": new}


CASES: list[Case] = [
    ("claude-code", "UserPromptSubmit", {"prompt": RULE}, "", (RULE,)),
    (
        "claude-code",
        "PostToolUse",
        {
            "tool_name": "Edit",
            "tool_input": _edit("/srv/engine/src/pool.py") | {"replace_all": False},
            "tool_response": {"filePath": "/srv/engine/src/pool.py", "originalFile": "", "structuredPatch": []},
        },
        "",
        ("src/pool.py: ", "drops idle links after 300 s"),
    ),
    (
        "claude-code",
        "PostToolUse",
        {
            "tool_name": "NotebookEdit",
            "tool_input": {
                "notebook_path": "/srv/engine/load.ipynb",
                "cell_id": "c1",
                "cell_type": "code",
                "new_source": f"{ADDED}\npool = connect(5)",
                "edit_mode": "replace",
            },
            "tool_response": {"new_source": f"{ADDED}\npool = connect(5)", "cell_id": "c1", "language": "python"},
        },
        "",
        ("load.ipynb: ", "drops idle links after 300 s"),
    ),
    (
        "claude-code",
        "PostToolUse",
        {
            "tool_name": "Agent",
            "tool_input": {
                "description": "Look into the checkout",
                "prompt": "look",
                "subagent_type": "general-purpose",
            },
            "tool_response": {"status": "completed", "prompt": "look", "content": [{"type": "text", "text": CLAIM}]},
        },
        "",
        ("Look into the checkout", CLAIM),
    ),
    (
        "claude-code",
        "PostToolUseFailure",
        {"tool_name": "Bash", "tool_input": RUN, "error": f"Exit code 1\n{FAILED}", "is_interrupt": False},
        "",
        (FAILED.removeprefix("E   "),),
    ),
    ("claude-code", "Stop", {"stop_hook_active": False, "last_assistant_message": CLAIM}, "", (CLAIM,)),
    (
        "codex",
        "PostToolUse",
        {
            "tool_name": "apply_patch",
            "tool_input": {"command": PATCH},
            "tool_response": "Exit code: 0\nWall time: 0.2 seconds\nOutput:\nSuccess. Updated the following files:\n"
            "M src/pool.py\nA docs/pool.md\n",
        },
        "",
        ("src/pool.py: ", "drops idle links after 300 s"),
    ),
    (
        "codex",
        "PostToolUse",
        {
            "tool_name": "shell",
            "tool_input": {"command": ["bash", "-lc", f"apply_patch <<'EOF'\n{PATCH}EOF"]},
            "tool_response": "Success.",
        },
        "",
        ("src/pool.py: ", "drops idle links after 300 s"),
    ),
    (
        "codex",
        "PostToolUse",
        {"tool_name": "Bash", "tool_input": RUN, "tool_response": f"{FAILED}\n1 failed, 3 passed in 0.4s\n"},
        "",
        (FAILED.removeprefix("E   "),),
    ),
    (
        "codex",
        "PostToolUse",
        {
            "tool_name": "Bash",
            "tool_input": {"command": "ls /etc/broker", "description": ""},
            "tool_response": "Exit code: 0\nWall time: 0.1 seconds\nOutput:\nbroker.conf\n",
        },
        "it is a listing",
        (),
    ),
    ("codex", "Stop", {"stop_hook_active": False, "last_assistant_message": CLAIM}, "", (CLAIM,)),
    ("gemini-cli", "BeforeAgent", {"prompt": RULE}, "", (RULE,)),
    ("gemini-cli", "BeforeAgent", {"prompt": f"{BEFORE}\n\n{RULE}"}, "", (RULE,)),
    (
        "gemini-cli",
        "AfterTool",
        {
            "tool_name": "run_shell_command",
            "tool_input": RUN,
            "tool_response": {
                "llmContent": f"<untrusted_context>\nOutput: Traceback (most recent call last):\n{FAILED}\n"
                "Exit Code: 1\nProcess Group PGID: 29688\n</untrusted_context>",
                "returnDisplay": FAILED,
            },
        },
        "",
        (FAILED.removeprefix("E   "),),
    ),
    (
        "gemini-cli",
        "AfterTool",
        {
            "tool_name": "run_shell_command",
            "tool_input": {"command": "mkdir out", "description": ""},
            "tool_response": {
                "llmContent": "<untrusted_context>\nOutput: (empty)\nProcess Group PGID: 7\n</untrusted_context>"
            },
        },
        "it says nothing",
        (),
    ),
    (
        "gemini-cli",
        "AfterTool",
        {
            "tool_name": "replace",
            "tool_input": _edit("/srv/engine/src/pool.py") | {"instruction": "explain it"},
            "tool_response": {"llmContent": "Successfully modified file: /srv/engine/src/pool.py (1 replacements)."},
        },
        "",
        ("src/pool.py: ", "drops idle links after 300 s"),
    ),
    (
        "gemini-cli",
        "AfterTool",
        {
            "tool_name": "read_file",
            "tool_input": {"file_path": "/srv/engine/src/pool.py"},
            "tool_response": {"llmContent": "def connect(pool):\n    return pool\n", "returnDisplay": ""},
        },
        "it is a file as it stands",
        (),
    ),
    ("gemini-cli", "AfterAgent", {"prompt": RULE, "prompt_response": CLAIM, "stop_hook_active": False}, "", (CLAIM,)),
]

"""What each agent's reference shows of its hooks: the agent, the payload, and our event and fields for it."""

from __future__ import annotations

from typing import Any

CLAUDE = {
    "session_id": "abc123",
    "transcript_path": "/home/ada/.claude/projects/x/abc123.jsonl",
    "cwd": "/srv/engine",
    "permission_mode": "default",
}
CODEX = {
    "session_id": "019a",
    "turn_id": "t1",
    "transcript_path": None,
    "cwd": "/srv/engine",
    "model": "gpt-5-codex",
    "permission_mode": "default",
}
CURSOR = {
    "conversation_id": "c-1",
    "generation_id": "g-1",
    "model": "default",
    "cursor_version": "3.13.10",
    "workspace_roots": ["/srv/engine"],
    "user_email": None,
    "transcript_path": None,
}
GEMINI = {
    "session_id": "g-77",
    "transcript_path": "/tmp/g.json",
    "cwd": "/srv/engine",
    "timestamp": "2026-11-22T10:00:00Z",
}
OPENCODE = {"opencode": 1, "session_id": "ses_1", "cwd": "/srv/engine"}
BASE = {"claude-code": CLAUDE, "codex": CODEX, "cursor": CURSOR, "gemini-cli": GEMINI, "opencode": OPENCODE}

Case = tuple[str, str, dict[str, Any], str, dict[str, Any]]


def _late(name: str, given: dict[str, Any], output: str, *, failed: bool = False) -> dict[str, Any]:
    """Return the fields of a tool's use by an agent that takes no context before it."""
    return _tool(name, given, output, failed=failed) | {"also_before": True}


def _tool(name: str, given: dict[str, Any], output: str, *, failed: bool = False) -> dict[str, Any]:
    return {"tool": name, "input": given, "output": output, "failed": failed}


CASES: list[Case] = [
    ("claude-code", "SessionStart", {"source": "compact"}, "session:start", {"source": "compact"}),
    (
        "claude-code",
        "UserPromptSubmit",
        {"prompt": "Write a test"},
        "prompt:submit",
        {"prompt": "Write a test", "transcript": "/home/ada/.claude/projects/x/abc123.jsonl"},
    ),
    (
        "claude-code",
        "PreToolUse",
        {"tool_name": "Bash", "tool_input": {"command": "npm test"}, "tool_use_id": "toolu_1"},
        "tool:pre",
        {"tool": "Bash", "input": {"command": "npm test"}},
    ),
    (
        "codex",
        "PreToolUse",
        {"tool_name": "apply_patch", "tool_input": {"command": "*** Begin Patch"}, "tool_use_id": "call_1"},
        "tool:pre",
        {"tool": "apply_patch", "input": {"command": "*** Begin Patch"}},
    ),
    (
        "claude-code",
        "PostToolUse",
        {
            "tool_name": "Bash",
            "tool_input": {"command": "npm test", "timeout": 120000},
            "tool_response": {"stdout": "2 passed", "stderr": "slow", "interrupted": False, "isImage": False},
        },
        "tool:post",
        _tool("Bash", {"command": "npm test", "timeout": 120000}, "2 passed\nslow"),
    ),
    (
        "claude-code",
        "PostToolUse",
        {
            "tool_name": "Read",
            "tool_input": {"file_path": "/a.py"},
            "tool_response": {"type": "text", "file": {"filePath": "/a.py", "content": "x = 1\n", "numLines": 1}},
        },
        "tool:post",
        _tool("Read", {"file_path": "/a.py"}, "x = 1\n"),
    ),
    (
        "claude-code",
        "PostToolUse",
        {
            "tool_name": "Edit",
            "tool_input": {"file_path": "/a.py", "old_string": "1", "new_string": "2"},
            "tool_response": {"filePath": "/a.py", "originalFile": "x = 1\n", "structuredPatch": [{}]},
        },
        "tool:post",
        _tool("Edit", {"file_path": "/a.py", "old_string": "1", "new_string": "2"}, '{"filePath": "/a.py"}'),
    ),
    (
        "claude-code",
        "PostToolUse",
        {
            "tool_name": "Agent",
            "tool_input": {"prompt": "look"},
            "tool_response": {"status": "completed", "content": [{"type": "text", "text": "Found it."}]},
        },
        "tool:post",
        _tool("Task", {"prompt": "look"}, "Found it."),
    ),
    (
        "claude-code",
        "PostToolUse",
        {"tool_name": "mcp__hub__issue", "tool_input": {}, "tool_response": [{"type": "text", "text": "#7 open"}]},
        "tool:post",
        _tool("mcp__hub__issue", {}, "#7 open"),
    ),
    (
        "claude-code",
        "PostToolUseFailure",
        {
            "tool_name": "Bash",
            "tool_input": {"command": "make"},
            "error": "Exit code 2\nno rule",
            "is_interrupt": False,
        },
        "tool:post",
        _tool("Bash", {"command": "make"}, "no rule", failed=True),
    ),
    (
        "claude-code",
        "Stop",
        {"stop_hook_active": False, "last_assistant_message": "Done."},
        "turn:end",
        {"output": "Done.", "continued": False},
    ),
    (
        "claude-code",
        "PreCompact",
        {"trigger": "auto", "custom_instructions": ""},
        "session:checkpoint",
        {"transcript": "/home/ada/.claude/projects/x/abc123.jsonl"},
    ),
    ("claude-code", "SessionEnd", {"reason": "clear"}, "session:end", {"reason": "clear"}),
    ("codex", "SessionStart", {"source": "resume"}, "session:start", {"source": "resume"}),
    ("codex", "UserPromptSubmit", {"prompt": "Fix it"}, "prompt:submit", {"prompt": "Fix it"}),
    (
        "codex",
        "PostToolUse",
        {"tool_name": "Bash", "tool_input": {"command": "cargo test"}, "tool_response": "ok. 3 passed"},
        "tool:post",
        _tool("Bash", {"command": "cargo test"}, "ok. 3 passed"),
    ),
    (
        "codex",
        "Stop",
        {"stop_hook_active": True, "last_assistant_message": "Fixed."},
        "turn:end",
        {"output": "Fixed.", "continued": True},
    ),
    ("codex", "PreCompact", {"trigger": "manual"}, "session:checkpoint", {}),
    ("codex", "SessionEnd", {"reason": "other"}, "session:end", {"reason": "other"}),
    ("cursor", "sessionStart", {"session_id": "c-1", "composer_mode": "agent"}, "session:start", {}),
    ("cursor", "beforeSubmitPrompt", {"prompt": "Go", "attachments": []}, "prompt:submit", {"prompt": "Go"}),
    (
        "cursor",
        "postToolUse",
        {
            "tool_name": "Shell",
            "tool_input": {"command": "npm test"},
            "tool_output": '{"exitCode":0,"stdout":"All tests passed"}',
            "cwd": "/srv/engine",
            "duration": 5432,
        },
        "tool:post",
        _late("Bash", {"command": "npm test"}, "All tests passed"),
    ),
    (
        "cursor",
        "postToolUseFailure",
        {"tool_name": "Shell", "tool_input": {"command": "x"}, "error_message": "Timed out", "failure_type": "timeout"},
        "tool:post",
        _tool("Bash", {"command": "x"}, "Timed out", failed=True),
    ),
    (
        "cursor",
        "afterShellExecution",
        {"command": "ls", "output": "a\nb", "duration": 3, "sandbox": False},
        "tool:post",
        _tool("Bash", {"command": "ls"}, "a\nb"),
    ),
    (
        "cursor",
        "afterFileEdit",
        {"file_path": "/a.py", "edits": [{"old_string": "1", "new_string": "2"}]},
        "tool:post",
        _tool("Edit", {"file_path": "/a.py", "edits": [{"old_string": "1", "new_string": "2"}]}, ""),
    ),
    (
        "cursor",
        "afterMCPExecution",
        {"tool_name": "issue", "tool_input": '{"id": 7}', "result_json": '{"content":[{"type":"text","text":"open"}]}'},
        "tool:post",
        _tool("issue", {"id": 7}, "open"),
    ),
    ("cursor", "afterAgentResponse", {"text": "Ready."}, "tool:post", _tool("Assistant", {}, "Ready.")),
    ("cursor", "stop", {"status": "completed", "loop_count": 0}, "turn:end", {"output": "", "continued": False}),
    ("cursor", "stop", {"status": "completed", "loop_count": 1}, "turn:end", {"output": "", "continued": True}),
    ("cursor", "preCompact", {"trigger": "auto", "message_count": 45}, "session:checkpoint", {}),
    ("cursor", "sessionEnd", {"session_id": "c-1", "reason": "user_close"}, "session:end", {"reason": "user_close"}),
    ("gemini-cli", "SessionStart", {"source": "startup"}, "session:start", {"source": "startup"}),
    (
        "gemini-cli",
        "BeforeAgent",
        {"prompt": "Hello"},
        "prompt:submit",
        {"prompt": "Hello", "transcript": "/tmp/g.json"},
    ),
    (
        "gemini-cli",
        "AfterTool",
        {
            "tool_name": "run_shell_command",
            "tool_input": {"command": "go test"},
            "tool_response": {"llmContent": "ok", "returnDisplay": "ok!"},
        },
        "tool:post",
        _late("Bash", {"command": "go test"}, "ok"),
    ),
    (
        "gemini-cli",
        "AfterAgent",
        {"prompt": "Hello", "prompt_response": "Hi.", "stop_hook_active": False},
        "turn:end",
        {"output": "Hi.", "continued": False},
    ),
    ("gemini-cli", "PreCompress", {"trigger": "manual"}, "session:checkpoint", {"transcript": "/tmp/g.json"}),
    ("gemini-cli", "SessionEnd", {"reason": "exit"}, "session:end", {"reason": "exit"}),
    ("opencode", "SessionStart", {"source": "startup"}, "session:start", {"source": "startup"}),
    ("opencode", "UserPromptSubmit", {"prompt": "Hello"}, "prompt:submit", {"prompt": "Hello"}),
    (
        "opencode",
        "PostToolUse",
        {
            "tool_name": "bash",
            "tool_input": {"command": "go test"},
            "tool_response": {"output": "FAIL", "exit_code": 1},
        },
        "tool:post",
        _late("Bash", {"command": "go test"}, "FAIL", failed=True),
    ),
    ("opencode", "Stop", {"last_assistant_message": "Hi."}, "turn:end", {"output": "Hi.", "continued": False}),
    ("opencode", "PreCompact", {}, "session:checkpoint", {}),
    ("opencode", "SessionEnd", {"reason": "exit"}, "session:end", {"reason": "exit"}),
]


def payload(agent: str, name: str, fields: dict[str, Any]) -> dict[str, Any]:
    """Return a whole payload as the agent writes it."""
    return BASE[agent] | {"hook_event_name": name} | fields

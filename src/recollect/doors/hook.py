"""`recollect hook EVENT`: hands an event of a coding agent's session to the daemon, and a prompt's memories back.

The agent waits for it, so it imports little, takes about a second at most, and ends well whatever happens: a hook that
fails may stop the agent's work. It says nothing rather than something wrong, and sends nothing anywhere but to the
daemon or the server of `RECOLLECT_URL`. An event that finds no daemon waits for it in a file, and nobody for the event.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from importlib import import_module

from recollect import process, setting_texts
from recollect.client import light
from recollect.doors import hook_contracts, hook_spool, hook_texts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, NoReturn

    from recollect.setting_texts import SettingTexts

PATH = "/v1/hooks/"
"""Where the daemon takes events, each under its name."""
LIMIT = 1.0
"""Seconds from the start until nobody waits for the daemon any more."""
START_LIMIT = 2.4
"""The same for the start of a session: it comes once, and the daemon may have to be started for it."""
_END = 0.3  # seconds after that until the process ends whatever it does
_LARGEST = 2**25  # bytes of a payload; one that is larger is read to its end and dropped
_PAUSE = 0.05
_SERVER_PATIENCE = 20.0  # seconds that an event is tried for which nobody waits
_START_AGAIN = 5.0  # seconds until a daemon that was started may have failed to come up
_PATIENCE = {
    hook_contracts.START: START_LIMIT,
    hook_contracts.TOOL: 0.3,
    hook_contracts.TURN: 0.3,
}
"""Seconds to wait for a daemon that is starting, where it is not the limit: events of tools come often."""
_FIRST_FOLDER = "CLAUDE_PROJECT_DIR"  # where the session began; what its payloads name follows each `cd`
_OWN_TOOL = "recollect"
_STORE, _STORING = "remember", ("store_memory", "memory_store", "memory_remember")
"""The action and the tools by which an agent stores a memory."""
_TIME, _LONGEST_TIME = "timestamp", 64
_LONGEST_PATH = 4096
_unsent: list[Callable[[], None]] = []
"""What keeps the event for later that nobody has taken yet."""


def main(words: Sequence[str], given: Mapping[str, str]) -> NoReturn:
    """Read the agent's payload on standard input, pass it on, write the answer, and end the process with 0."""
    try:
        limit = START_LIMIT if _is_session_start(words) else LIMIT
        deadline = time.monotonic() + limit
        _end_after(limit + _END)
        said = answer(words, _read_payload(), given, deadline)
        if said:
            _write_output(said.encode())
    except BaseException:  # noqa: BLE001, S110 - whatever goes wrong, the agent's work goes on
        pass
    os._exit(0)  # not even taking the interpreter down may fail, or take time


def _end_after(seconds: float) -> None:
    """Let an alarm end this process whatever it does."""
    signal.signal(signal.SIGALRM, lambda *_: _give_up())
    signal.setitimer(signal.ITIMER_REAL, seconds)


def _give_up() -> NoReturn:
    """End at once; an event that nobody has taken is delivered later."""
    try:
        for keep in _unsent:
            keep()
    finally:
        os._exit(0)


def answer(words: Sequence[str], payload: bytes | None, given: Mapping[str, str], deadline: float) -> str:
    """Return the text for the agent on standard output, empty without any; `given` are settings before the command."""
    event, agent = _event_and_agent(words)
    settings = setting_texts.SettingTexts(given, setting_texts.variables())
    said = json.loads(payload) if payload else None
    remote = bool(settings.server)
    if not isinstance(said, dict) or not (remote or settings.shares_daemon):
        return ""
    heard = hook_contracts.understood(event, agent, said)
    fields = _event_fields(heard) if heard else None
    if heard is None or fields is None:
        return ""
    fields = fields | {"agent": heard.agent} | _time_field(said)
    if remote:
        fields.pop("transcript", None)  # a file that the server does not have
        return _reply_to_agent(
            heard, _ask_server(settings, heard.event, fields | {"folder": _session_folder(said)}, deadline)
        )
    body: dict[str, Any] = {
        "id": f"{time.time_ns()}-{os.getpid()}",
        "event": heard.event,
        "fields": fields,
        "client": {
            "given": dict(given),
            "variables": settings.variables,
            "folder": _session_folder(said),
            "user": process.user(),
        },
    }
    if heard.event == hook_contracts.TOOL and not hook_contracts.takes_context(heard):
        body["late"] = True  # nothing is shown, so nothing counts as shown
    return _reply_to_agent(heard, _hand_over(settings.store_folder, body, given, deadline))


def _reply_to_agent(heard: hook_contracts.Heard, found: Mapping[str, Any]) -> str:
    """Return the JSON that brings the daemon's text to the agent, empty where there is none."""
    text = found.get("text")
    reply = hook_contracts.injection(heard, text) if isinstance(text, str) else None
    return json.dumps(reply) if reply else ""


def _is_session_start(words: Sequence[str]) -> bool:
    """Return whether a command names the start of a session, by the agent's name or ours."""
    return any(word.replace(":", "").lower() == "sessionstart" for word in words)


def _event_and_agent(words: Sequence[str]) -> tuple[str, str]:
    """Return the event and the agent that the command names."""
    event, agent, rest = "", "", list(words)
    while rest:
        word = rest.pop(0)
        if word == "--agent" and rest:
            agent = rest.pop(0)
        elif word.startswith("--agent="):
            agent = word.removeprefix("--agent=")
        elif not word.startswith("-"):
            event = event or word
    return event, agent


def _event_fields(heard: hook_contracts.Heard) -> dict[str, Any] | None:
    """Return the fields of our event, cut and cleaned; None for an event without session or content."""
    found = heard.fields
    if not isinstance(found["session_id"], str) or not found["session_id"].strip():
        return None
    fields: dict[str, Any] = {"session_id": hook_texts.cut(found["session_id"], 200)}
    for name in ("source", "reason"):
        if isinstance(found.get(name), str):
            fields[name] = hook_texts.cut(found[name], 60)
    if heard.event in (hook_contracts.CHECKPOINT, hook_contracts.PROMPT) and isinstance(found.get("transcript"), str):
        fields["transcript"] = hook_texts.cut(found["transcript"], _LONGEST_PATH)
    if heard.event == hook_contracts.PROMPT:
        prompt = found["prompt"]
        return fields | {"prompt": hook_texts.cut(prompt)} if isinstance(prompt, str) and prompt.strip() else None
    if heard.event == hook_contracts.TURN:
        fields["output"] = hook_texts.cut(hook_texts.text_of(found.get("output")))
        return fields | {"continued": bool(found.get("continued"))}
    tool = found.get("tool")
    if heard.event == hook_contracts.BEFORE:
        if not isinstance(tool, str) or not hook_contracts.acts(tool) or _OWN_TOOL in tool:
            return None
        fields["tool"] = hook_texts.cut(tool, 100)
        fields["input"] = hook_texts.arguments(found.get("input"))
        return fields if fields["tool"].strip() and fields["input"] else None
    if heard.event == hook_contracts.TOOL:
        if not isinstance(tool, str) or not tool.strip():
            return None
        if _OWN_TOOL in tool:  # what was recalled or stored is known already
            stores = hook_texts.arguments(found.get("input")).get("action") == _STORE or tool.endswith(_STORING)
            stored = hook_texts.stored(found.get("output"))  # by its id the daemon finds the drafts that it replaces
            return fields | {"tool": _OWN_TOOL, "input": {"action": _STORE}, "output": stored} if stores else None
        fields["tool"] = hook_texts.cut(tool, 100)
        fields["input"] = hook_texts.arguments(found.get("input"))
        said = hook_texts.opened(found.get("output"))
        wrote, failed = hook_texts.unwrapped(hook_texts.text_of(said))
        fields["output"] = hook_texts.cut(wrote)
        fields["failed"] = failed or found.get("failed") is True or hook_texts.says_failure(said)
        if hook_contracts.takes_late(heard):
            fields["also_before"] = True
        return fields if fields["output"] or fields["input"] else None
    return fields


def _time_field(payload: Mapping[str, Any]) -> dict[str, str]:
    """Return the field `at` with the time in the payload, empty where the agent sends none."""
    said = payload.get(_TIME)
    return {"at": said} if isinstance(said, str) and said.isascii() and len(said) <= _LONGEST_TIME else {}


def _session_folder(payload: Mapping[str, Any]) -> str:
    """Return the session's folder, else the folder of this process."""
    folder = process.named(_FIRST_FOLDER) or hook_contracts.folder_of(payload)
    if os.path.isabs(folder):  # noqa: PTH117 - pathlib takes long to import
        return hook_texts.cut(folder, 2_000)
    try:
        return os.getcwd()  # noqa: PTH109 - pathlib takes long to import
    except OSError:  # it is gone
        return "/"


def _hand_over(home: str, body: dict[str, Any], given: Mapping[str, str], deadline: float) -> dict[str, Any]:
    """Hand an event to the daemon, which is started where none runs, and return its answer, empty without any.

    An event without an answer in time is delivered later, in order. It has the same id then, by which the daemon knows
    it if it arrived. The event before a tool is of no use later: no daemon is started for it, and it is not kept.
    """
    if body["event"] == hook_contracts.BEFORE:
        try:
            return _post_event(home, body, deadline)
        except (light.Absent, OSError):
            return {}
    at = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())

    def later() -> None:
        hook_spool.keep(home, body | {"fields": {"at": at} | body["fields"]})
        hook_spool.deliver_later(home, _delivery(home, given))

    _unsent[:] = [later]
    try:
        return _ask_daemon(home, body, given, deadline)
    except OSError:
        later()
        return {}
    finally:
        _unsent.clear()


def _ask_daemon(home: str, body: dict[str, Any], given: Mapping[str, str], deadline: float) -> dict[str, Any]:
    """Return the daemon's answer to an event; raise `OSError` where none comes before the deadline."""
    missed = False
    while time.monotonic() < deadline:
        try:
            if not hook_spool.waits(home):
                return _post_event(home, body, deadline)
        except light.Absent as absent:
            if not missed and (isinstance(absent, light.Outdated) or not light.is_busy(home)):
                _start_daemon(given)
        if not missed:
            missed = True
            deadline = min(deadline, time.monotonic() + _PATIENCE.get(body["event"], LIMIT))
        time.sleep(_PAUSE)
    raise TimeoutError


def _delivery(home: str, given: Mapping[str, str]) -> Callable[[bytes, float], bool]:
    """Return the function that hands a kept event over, and starts a daemon where none comes up."""
    started = time.monotonic()

    def deliver(content: bytes, deadline: float) -> bool:
        nonlocal started
        try:
            if "taken" not in _post_event(home, json.loads(content), deadline):
                raise ValueError("the event was refused")
        except (light.Absent, OSError):
            if time.monotonic() - started > _START_AGAIN and not light.is_busy(home):
                started = time.monotonic()
                _start_daemon(given)
            return False
        return True

    return deliver


def _ask_server(settings: SettingTexts, event: str, fields: dict[str, Any], deadline: float) -> dict[str, Any]:
    """Hand an event to the server and return its answer, empty where none is wanted or comes before the deadline.

    A separate process sends it: looking up the name of a host cannot be broken off within a process.
    """
    waits = _wants_answer(event, fields)
    said = _sent_by_fork(settings, event, fields, deadline, waits=waits)
    found = json.loads(said) if said else None
    return found if isinstance(found, dict) else {}


def _wants_answer(event: str, fields: Mapping[str, Any]) -> bool:
    """Return whether the agent waits for the server's answer to an event."""
    at_once = (hook_contracts.PROMPT, hook_contracts.START, hook_contracts.BEFORE, hook_contracts.TURN)
    return event in at_once or fields.get("failed") is True or fields.get("also_before") is True


def _sent_by_fork(settings: SettingTexts, event: str, fields: dict[str, Any], deadline: float, *, waits: bool) -> bytes:
    """Send an event by a forked process; return the answer where one is waited for and comes before the deadline."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        try:
            os.close(reading)
            hook_spool.leave(max(0.1, deadline - time.monotonic()) if waits else _SERVER_PATIENCE)
            answer = _send_to_server(settings, event, fields)
            with os.fdopen(writing, "wb") as stream:
                stream.write(json.dumps(answer).encode())
        finally:
            os._exit(0)
    os.close(writing)
    return _read_pipe(reading, deadline) if waits else b""


def _send_to_server(settings: SettingTexts, event: str, fields: dict[str, Any]) -> dict[str, Any]:
    """Send an event with the settings of its project; return the answer, empty for a session that is not captured."""
    from datetime import UTC, datetime
    from pathlib import Path

    from recollect import project_files, projects
    from recollect.client.server import client_here

    folder = fields["folder"]
    asked = project_files.asked_here(folder, settings)
    before = event == hook_contracts.BEFORE
    wanted = "inject" if before or event in (hook_contracts.START, hook_contracts.PROMPT) else "capture"
    both_off = all(project_files.is_off(asked.get(name, True)) for name in ("inject", "capture"))
    only = wanted if before or wanted == "capture" else ""
    if both_off or (only and project_files.is_off(asked.get(only, True))):
        return {}
    said = {"at": datetime.now(UTC).isoformat()} | fields
    client, home = client_here(settings, folder), Path(settings.home)
    if event == hook_contracts.START and (former := projects.former_names(Path(folder), home, client.project)):
        said["former_projects"] = former
    body = {"fields": said, "settings": asked} | ({} if _wants_answer(event, fields) else {"late": True})
    return dict(client.post(f"/v1/hooks/{event}", body))


def _read_pipe(reading: int, deadline: float) -> bytes:
    """Return the bytes until the other end closes, empty where that takes longer than the deadline."""
    parts: list[bytes] = []
    size = 0
    while (left := deadline - time.monotonic()) > 0 and size <= light.LARGEST_ANSWER:
        if not select.select([reading], [], [], left)[0]:
            return b""
        part = os.read(reading, 65_536)
        if not part:
            return b"".join(parts)
        parts.append(part)
        size += len(part)
    return b""


def _post_event(home: str, body: dict[str, Any], deadline: float) -> dict[str, Any]:
    """Send one event to the daemon and return its answer; raise `light.Absent` where nobody takes it."""
    content = json.dumps({name: value for name, value in body.items() if name != "event"}).encode()
    return light.post(home, PATH + body["event"], content, deadline)


def _start_daemon(given: Mapping[str, str]) -> None:
    """Start the daemon by a process of its own, which outlives this process."""
    subprocess = import_module("subprocess")
    subprocess.Popen(
        [sys.executable, "-P", "-m", "recollect.client.launch", json.dumps(dict(given))],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        **process.detached(),
    )


def _read_payload() -> bytes | None:
    """Read standard input to its end; return None where it is larger than any payload."""
    parts, size = [], 0
    while part := os.read(0, 2**20):
        size += len(part)
        if size <= _LARGEST:
            parts.append(part)
    return b"".join(parts) if size <= _LARGEST else None


def _write_output(content: bytes) -> None:
    while content:
        content = content[os.write(1, content) :]

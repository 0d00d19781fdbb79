"""Segmentation: looks for a boundary in each event of a session, and keeps it as a fact and in the state."""

from __future__ import annotations

from typing import Final

from recollect.domain.enums import OnSecret
from recollect.domain.lifecycle import SubmitPrompt, UseTool
from recollect.domain.requests import StoreFact
from recollect.errors import RecollectError
from recollect.gate import clear, masked
from recollect.sessions.boundaries import Boundary, window_after
from recollect.sessions.observations.lines import read_lines
from recollect.sessions.observations.occurrence import shown_input, tool_occurrence
from recollect.sessions.observations.statements import own_words
from recollect.sessions.session_state import Context

PREDICATE: Final = "boundary_at"
_MAX_READ: Final = 20_000  # characters of a text that are looked at
_MAX_BOUNDARIES: Final = 200  # of a session that are kept


def segment_prompt(context: Context[SubmitPrompt]) -> None:
    """Record a boundary where a prompt opens another topic."""
    _segment_text(context, own_words(context.event.prompt), prompt=True)


def segment_output(context: Context[UseTool]) -> None:
    """Record a boundary where an output is of another topic; lines of noise are left out."""
    call = tool_occurrence(context.event.tool, context.event.input, context.event.output)
    lines = [line.text for line in read_lines(call.text) if not line.noise]
    _segment_text(context, "\n".join([shown_input(call.input), *lines]), prompt=False)


def _segment_text(context: Context[SubmitPrompt] | Context[UseTool], text: str, *, prompt: bool) -> None:
    """Move the window of topics on by a text, and record the boundary before it where there is one."""
    if not (context.settings.capture and context.has("memory.boundaries")):
        return
    window, boundary = window_after(context.state.window, masked(text[:_MAX_READ]), context.at, prompt=prompt)
    context.update(window=window)
    if boundary is not None:
        _keep_boundary(context, boundary)


def _keep_boundary(context: Context[SubmitPrompt] | Context[UseTool], boundary: Boundary) -> None:
    """Add a boundary to the session's state, and store it as a fact where there is a store."""
    fact = clear(
        StoreFact(
            subject=f"session:{context.event.session_id}",
            predicate=PREDICATE,
            object=" ".join([f"{boundary.at:%Y-%m-%dT%H:%M:%SZ}", *boundary.keywords]),
            valid_from=boundary.at,
        ),
        OnSecret.REDACT,
    ).value
    keywords = tuple(fact.object.split(" ")[1:])
    kept = boundary.model_copy(update={"keywords": keywords})
    context.update(boundaries=(*context.state.boundaries, kept)[-_MAX_BOUNDARIES:])
    if context.has("memory.store"):
        try:
            context.perform("store_fact", **fact.model_dump(exclude_unset=True))
        except RecollectError:
            return  # the boundary is in the session's state all the same

"""The boundaries stage: where a session turns to another topic, kept as facts that hold side by side."""

from __future__ import annotations

from typing import Final

from recollect.domain.enums import OnSecret
from recollect.domain.lifecycle import SubmitPrompt, UseTool
from recollect.domain.requests import StoreFact
from recollect.errors import RecollectError
from recollect.gate import clear
from recollect.lifecycle.capabilities import BOUNDARIES, STORE
from recollect.lifecycle.context import Context
from recollect.lifecycle.masking import masked
from recollect.policy.boundaries import Boundary
from recollect.policy.observations.lines import read
from recollect.policy.observations.occurrence import shown_input, used
from recollect.policy.observations.statements import said

PREDICATE: Final = "boundary_at"
_BOUNDARIES: Final = 200  # of one session that are kept


def segment_prompt(context: Context[SubmitPrompt]) -> None:
    """Look whether a prompt opens another topic."""
    _segment(context, said(context.event.prompt), prompt=True)


def segment_output(context: Context[UseTool]) -> None:
    """Look whether an output is of another topic; lines that are noise say nothing of it."""
    one = used(context.event.tool, context.event.input, context.event.output)
    told = [line.text for line in read(one.text) if not line.noise]
    _segment(context, "\n".join([shown_input(one.input), *told]), prompt=False)


def _segment(context: Context[SubmitPrompt] | Context[UseTool], text: str, *, prompt: bool) -> None:
    detect = context.capabilities.get(BOUNDARIES)
    if detect is None:
        return
    window, boundary = detect(context.state.window, masked(text), context.at, prompt)
    context.update(window=window)
    if boundary is not None:
        _keep(context, boundary)


def _keep(context: Context[SubmitPrompt] | Context[UseTool], boundary: Boundary) -> None:
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
    context.update(boundaries=(*context.state.boundaries, kept)[-_BOUNDARIES:])
    if (store := context.capabilities.get(STORE)) is not None:
        try:
            store.perform("store_fact", **fact.model_dump(exclude_unset=True))
        except RecollectError:
            return  # the boundary is in the session's state all the same

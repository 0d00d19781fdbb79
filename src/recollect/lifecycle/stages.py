"""The visible list of stages: which module runs on which event, in which order, and what each capability provides."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from recollect.app import App
from recollect.domain.enums import Scope
from recollect.domain.lifecycle import (
    CheckpointSession,
    EndSession,
    LifecycleSettings,
    SessionEvent,
    StartSession,
    SubmitPrompt,
    UseTool,
)
from recollect.domain.requests import Caller
from recollect.lifecycle import capture, compress, consolidate, segmentation
from recollect.lifecycle.capabilities import (
    BOUNDARIES,
    COMPRESSION,
    CONSOLIDATION,
    MEMORABILITY,
    STORE,
    TEMPORAL,
    MemoryStore,
    Registry,
)
from recollect.lifecycle.context import Context
from recollect.lifecycle.inject import forget_shown, inject
from recollect.policy.boundaries import observed
from recollect.policy.memorability import memorability
from recollect.policy.temporal_scales import balanced


@dataclass(frozen=True, slots=True)
class Stage:
    """One module's part in one event; a lower priority runs first."""

    module: str
    event: type[SessionEvent]
    priority: int
    run: Callable[[Context[Any]], object]


STAGES: Final[tuple[Stage, ...]] = (
    Stage("inject", StartSession, 10, forget_shown),
    Stage("capture", StartSession, 50, capture.begin),
    Stage("inject", SubmitPrompt, 50, inject),
    Stage("boundaries", SubmitPrompt, 100, segmentation.segment_prompt),
    Stage("capture", SubmitPrompt, 150, capture.capture_prompt),
    Stage("boundaries", UseTool, 100, segmentation.segment_output),
    Stage("capture", UseTool, 150, capture.capture_output),
    Stage("capture", CheckpointSession, 100, capture.write_checkpoint),
    Stage("inject", CheckpointSession, 900, forget_shown),
    Stage("capture", EndSession, 100, capture.summarize),
    Stage("consolidation", EndSession, 200, consolidate.at_session_end),
    Stage("compression", EndSession, 300, compress.at_session_end),
)


_READING: Final = frozenset({"inject"})


def running(settings: LifecycleSettings, stages: Iterable[Stage] = STAGES) -> list[Stage]:
    """Return the stages of the modules that are on."""
    return [one for one in stages if one.module not in settings.off]


def permitted(caller: Caller, stages: Iterable[Stage] = STAGES) -> list[Stage]:
    """Return all stages, or those that only read where the caller may not write to the project."""
    return [one for one in stages if Scope.PROJECT in caller.writes or one.module in _READING]


def capabilities(app: App, caller: Caller, settings: LifecycleSettings) -> Registry:
    """Return what the modules that are on provide."""
    provided: dict[str, object] = {
        STORE.name: MemoryStore(app, caller),
        MEMORABILITY.name: memorability,
        BOUNDARIES.name: observed,
        TEMPORAL.name: balanced,
        CONSOLIDATION.name: partial(consolidate.consolidate, app, caller, settings),
        COMPRESSION.name: partial(compress.compress, app, caller, settings),
    }
    return Registry({name: one for name, one in provided.items() if name.partition(".")[2] not in settings.off})

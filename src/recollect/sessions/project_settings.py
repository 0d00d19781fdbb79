"""The settings of a project for its sessions, as its files, or a client in its stead, ask for them.

A project's files come from whoever wrote the repository. So they may change these settings alone, turn on nothing that
is off, and spend no more than without them. A value that is not allowed changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from recollect.domain.lifecycle import LifecycleSettings
from recollect.project_files import NAMES, stricter, table_in

log = logging.getLogger(__name__)


def settings_in(folder: str, defaults: LifecycleSettings) -> LifecycleSettings:
    """Return the `defaults` with the changes of the nearest settings file above a folder.

    Any file of the project turns capture or injection off.
    """
    table = table_in(folder)
    return narrowed_settings(defaults, table, folder) if table else defaults


def narrowed_settings(defaults: LifecycleSettings, asked: Mapping[str, Any], project: str) -> LifecycleSettings:
    """Return the defaults with the allowed changes that the settings of a `project` ask for."""
    changed = {}
    for name, value in asked.items():
        if name not in NAMES:
            continue
        text = ",".join(map(str, value)) if isinstance(value, list) else value
        try:
            meant = LifecycleSettings.model_validate({name: text})
        except ValidationError as error:
            log.warning("the setting %s of the project %s is not used: %s", name, project, error.errors()[0]["msg"])
        else:
            changed[name] = stricter(name, getattr(defaults, name), getattr(meant, name))
    return defaults.model_copy(update=changed)

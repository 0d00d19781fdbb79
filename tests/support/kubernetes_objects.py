"""What is wrong with an object of Kubernetes: unknown fields, and containers that may do too much."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from kubernetes.client import models


def unknown_fields(given: Any, kind: str, where: str = "") -> Iterator[str]:
    """Yield each field of an object that the types of Kubernetes do not know."""
    if inner := re.match(r"(?:[Ll]ist|[Dd]ict)[\[(](?:str, )?(\w+)[\])]", kind):
        for key, one in given.items() if isinstance(given, dict) else enumerate(given):
            yield from unknown_fields(one, inner[1], f"{where}.{key}")
    elif model := getattr(models, kind, None):
        fields = {model.attribute_map[name]: type_ for name, type_ in model.openapi_types.items()}
        for key, one in given.items():
            if key in fields:
                yield from unknown_fields(one, fields[key], f"{where}.{key}")
            else:
                yield f"{where}.{key} of {kind}"


def assert_restricted(container: dict[str, Any]) -> None:
    """Fail where a container has more rights than the restricted standard lets in, or does not say what it needs."""
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["resources"]["requests"].keys() == {"cpu", "memory"}

"""The gate against forms of secrets and harmless lines written before its rules, a third of them kept aside."""

from __future__ import annotations

from typing import Any

import pytest

from gate_lines import harmless_lines, secret_lines
from recollect.domain.enums import OnSecret
from recollect.domain.requests import Draft, StoreFact
from recollect.domain.transfer import ImportItem
from recollect.gate import clear, secrets_in

pytestmark = pytest.mark.slow


def noun(case: Any) -> Draft | StoreFact | ImportItem:
    """Return what a filled template is stored as: a bare text is the content of a memory."""
    fields = dict(case) if isinstance(case, dict) else {"content": case}
    match fields.pop("noun", "draft"):
        case "fact":
            return StoreFact(**fields)
        case "item":
            return ImportItem(kind="memory", where="a line", **fields)
    if "tags" in fields:
        fields["tags"] = tuple(fields["tags"])
    return Draft(**fields)


def is_found(case: Any, secret: str) -> bool:
    """Say whether the gate finds the secret: where it stands in one text, it must lie in what is found there."""
    for _, text, findings in secrets_in(noun(case)):
        start = text.find(secret)
        if findings and (start < 0 or any(one.start < start + len(secret) and one.end > start for one in findings)):
            return True
    return False


@pytest.mark.parametrize("kept", [False, True])
def test_secrets_are_refused(kept: bool) -> None:
    """At least 98 of 100 forms are refused with every kind of password, also of those that no rule was written for."""
    lines = [line for line in secret_lines() if line.kept is kept]
    missed = [line for line in lines if not all(is_found(*case) for case in line.cases())]
    assert len(lines) >= 300
    assert len(missed) <= 0.02 * len(lines), missed


@pytest.mark.parametrize(("kept", "most"), [(False, 0.0), (True, 0.03)])
def test_harmless_lines_pass(kept: bool, most: float) -> None:
    """No harmless line that the rules were written with is refused, and at most 3 of 100 of those kept aside."""
    lines = [line for line in harmless_lines() if line.kept is kept]
    refused = [line for line in lines if any(found for _, _, found in secrets_in(noun(next(line.cases())[0])))]
    assert len(lines) >= 150
    assert len(refused) <= most * len(lines), refused


def test_a_masked_secret_is_gone() -> None:
    """With `redact` the secret of every form that is found stands nowhere in what would be stored."""
    for line in secret_lines():
        case, secret = next(line.cases())
        if len(secret) < 8 or not is_found(case, secret):
            continue
        masked = clear(noun(case), OnSecret.REDACT).value
        assert secret not in masked.model_dump_json(), line.template

"""What schemathesis makes of the OpenAPI document: the server answers nothing that the document does not allow."""

from __future__ import annotations

import contextlib
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis import Response
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from team_server import Talk

pytestmark = pytest.mark.slow

CHECKS = (not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance)
SPARED = {"disable_user", "revoke_token", "revoke_team", "invite_user", "set_limits"}
"""Administration that would take the asking user's own rights or requests away."""


def check_answers(talk: Talk, examples: int) -> None:
    """Ask every operation of the document, half of the time what it does not allow, and check each answer."""
    document = talk.ask("GET", "/openapi.json").json()
    schema: Any = schemathesis.openapi.from_dict(document)
    for found in schema.get_all_operations():
        operation = found.ok()
        if operation.path.rpartition("/")[2] in SPARED:
            continue
        modes = [schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE]
        cases = st.one_of(*[operation.as_strategy(generation_mode=mode) for mode in modes])

        @seed(15)
        @settings(
            max_examples=examples,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=cases)
        def run(case: Any) -> None:
            with contextlib.suppress(UnicodeEncodeError):  # no HTTP client can send such a header
                told = case.as_transport_kwargs(base_url="http://testserver", headers=talk.headers("root"))
                told.pop("cookies", None)
                if isinstance(told.get("data"), bytes | str):
                    told["content"] = told.pop("data")
                case.validate_response(_response(talk.client.request(**told)), checks=CHECKS)

        run()


def _response(answer: Any) -> Response:
    """Return an answer as schemathesis reads it."""
    request = httpx.Request(answer.request.method, str(answer.request.url))
    found = httpx.Response(
        answer.status_code, headers=answer.headers.multi_items(), content=answer.content, request=request
    )
    found.elapsed = answer.elapsed
    return Response.from_any(found)


@pytest.mark.full
def test_many_requests_find_no_500(talk: Talk) -> None:
    """Two hundred requests to each operation are answered as the document says."""
    check_answers(talk, 200)


def test_no_request_finds_a_500(talk: Talk) -> None:
    """Some requests to each operation, right ones and wrong ones, are answered as the document says."""
    check_answers(talk, 1)

"""Requests to the server: who is let in, what is asked and answered, and what each refusal says."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema
import pytest

from api_page import page
from every_operation import REQUESTS
from places import DOCS
from team_server import Talk, TeamServer

pytestmark = pytest.mark.slow
BROKEN = (
    b"{",
    b"[]",
    b'{"query": NaN}',
    b'{"query": "\\ud800"}',
    b'{"\\ud800": 1}',
    b'{"query": "\xff"}',
    b'{"limit": ' + b"9" * 5_000 + b"}",
    b'{"query": "q", "limit": 1' + b"0" * 4_000 + b"}",
    b'{"query": "q", "limit": 1e999}',
    b'{"query": "q", "min_score": 1e999}',
    b'{"a":' * 100_000,
    b'{"self": 1}',
    b'{"query": "q", "caller": {"user": "bob"}}',
)


def test_what_one_remembers_the_team_recalls(talk: Talk) -> None:
    """A writer stores, a reader of the team finds it and may not write, and whoever is outside sees nothing of it."""
    stored = talk.post("/v1/remember", {"content": "The quokka of the harbour deploys on Fridays."})
    assert (stored.status_code, stored.json()["status"]) == (200, "stored")
    found = talk.post("/v1/recall", {"query": "quokka", "min_score": 0.0}, "bob").json()
    assert [hit["memory"]["content"] for hit in found["hits"]] == ["The quokka of the harbour deploys on Fridays."]
    refused = talk.post("/v1/remember", {"content": "The mast is pine."}, "bob")
    assert (refused.status_code, refused.json()["error"]) == (403, "Forbidden")
    outside = talk.post("/v1/recall", {"query": "quokka"}, "eve", params={"team": "crew", "project": "engine"})
    assert outside.status_code == 403


def test_every_answer_is_what_the_document_says(talk: Talk) -> None:
    """Each operation answers over HTTP what its schema in the OpenAPI document allows, and all are in it."""
    document = talk.ask("GET", "/openapi.json").json()
    for name, fields in REQUESTS:
        who = "root" if name == "doctor" else "ada"
        params = {} if name == "doctor" else {"project": "engine"}
        answer = talk.post(f"/v1/{name}", fields, who, params=params)
        assert answer.status_code == 200, (name, answer.text)
        told = document["paths"][f"/v1/{name}"]["post"]["responses"]["200"]["content"]["application/json"]["schema"]
        schema = told | {"components": document["components"]}
        jsonschema.validate(answer.json(), schema, cls=jsonschema.Draft202012Validator)


def test_what_is_no_request_is_refused(talk: Talk) -> None:
    """Broken, deep and huge JSON is refused with a sentence, and so is a field that names another caller."""
    for body in BROKEN:
        answer = talk.ask("POST", "/v1/recall", content=body, headers={"Content-Type": "application/json"})
        assert (answer.status_code, answer.json()["error"]) == (422, "InvalidInput"), body[:40]
    large = talk.ask("POST", "/v1/recall", content=b'{"query": "' + b"q" * 8 * 2**20 + b'"}')
    assert (large.status_code, large.json()["error"]) == (413, "TooLarge")


@pytest.mark.parametrize(("body", "byte", "at"), [(b'{"q": "caf\xe9"}', "E9", 10), (b"\xff\xfe{", "FF", 0)])
def test_a_body_is_utf8(talk: Talk, body: bytes, byte: str, at: int) -> None:
    """A byte that is not UTF-8 is named with its place."""
    answer = talk.ask("POST", "/v1/recall", content=body, headers={"Content-Type": "application/json"})
    assert answer.json()["message"] == f"Invalid body: The input is not UTF-8: byte 0x{byte} at position {at}"


def test_only_json_is_read(talk: Talk) -> None:
    """A form is refused; a large body of unsaid length is read no further than what the server takes."""
    form = talk.ask("POST", "/v1/recall", data={"query": "q"})
    assert (form.status_code, form.json()["error"]) == (415, "UnsupportedMediaType")
    large = talk.ask("POST", "/v1/recall", content=(b" " * 2**20 for _ in range(9)))
    assert (large.status_code, large.json()["error"]) == (413, "TooLarge")
    batch = {"items": [], "last": True, "source": "x"}
    wide = talk.ask("POST", "/v1/import_batch", content=json.dumps(batch).encode() + b" " * 9 * 2**20)
    assert wide.status_code == 422


def test_the_address_only_narrows(talk: Talk) -> None:
    """Whoever names another user, a foreign team, a project without its right, or a team twice is refused."""
    for params, status in (
        ({"user": "bob"}, 422),
        ({"caller": "bob"}, 422),
        ({"team": "dock"}, 403),
        ([("team", "crew"), ("team", "dock")], 422),
        ({"project": "a\0b"}, 422),
    ):
        assert talk.post("/v1/stats", {}, params=params).status_code == status, params
    personal = talk.post("/v1/remember", {"content": "Mine alone.", "scope": "personal"}, "bob", params={})
    assert personal.status_code == 200
    assert talk.post("/v1/list_memories", {}, "bob", params={}).json()["total"] == 1
    assert talk.post("/v1/list_memories", {}, "root", params={}).status_code in (200, 403)


def test_days_begin_in_the_zone_of_the_address(talk: Talk) -> None:
    """A client names its zone; without one days and times are those of UTC."""
    fields = {"content": "The quokka left the harbour.", "observed_at": "2026-11-28T23:30"}
    assert talk.post("/v1/remember", fields).status_code == 200
    place = {"team": "crew", "project": "engine"}
    for zone, day in (({}, "2026-11-28"), ({"zone": "Asia/Tokyo"}, "2026-11-29")):
        asked = {"since": day, "until": day}
        assert talk.post("/v1/list_memories", asked, params=place | zone).json()["total"] == 1
    assert talk.post("/v1/list_memories", {}, params=place | {"zone": "Mars/Olympus"}).status_code == 422


def test_nobody_enters_without_a_valid_token(talk: Talk, team: TeamServer) -> None:
    """Without a token, with another one, or with one that was revoked in mid-session, the answer is 401 in one way."""
    assert talk.post("/v1/stats").status_code == 200
    tokens = ["", "x", "rec_" + "a" * 8 + "_" + "b" * 43, "\xe9"]
    for path in ("/v1/stats", "/v1/nothing", "/mcp", "/openapi.json", "/metrics", "/docs"):
        for token in tokens:
            headers = {"Authorization": f"Bearer {token}".encode("latin-1")} if token else {}
            answer = talk.ask("POST", path, "", headers=headers, params={})
            assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer"), (path, token)
    prefix = team.tokens["ada"].split("_")[1]
    team.administer("revoke_token", prefix=prefix)
    assert talk.post("/v1/stats").json()["error"] == "Unauthorized"


def test_a_retry_gets_the_first_answer(talk: Talk) -> None:
    """Under the same idempotency key nothing is stored twice; a key of another user is another key."""
    key = {"Idempotency-Key": "once"}
    first, again = (talk.post("/v1/remember", {"content": "The pier is long."}, headers=key).json() for _ in range(2))
    assert first["id"] == again["id"]
    assert (first["status"], again["status"]) == ("stored", "stored")
    other = talk.post("/v1/remember", {"content": "The mast is pine."}, headers=key)
    assert (other.status_code, other.json()["field"]) == (422, "Idempotency-Key")
    assert talk.post("/v1/list_memories", {}).json()["total"] == 1
    long = talk.post("/v1/remember", {"content": "x"}, headers={"Idempotency-Key": "k" * 201})
    assert (long.status_code, long.json()["field"]) == (422, "Idempotency-Key")


def test_what_needs_an_admin_says_so(talk: Talk) -> None:
    """The doctor, the metrics and administration are for admins of the deployment."""
    assert talk.post("/v1/doctor", {}).status_code == 403
    assert talk.ask("GET", "/metrics").status_code == 403
    assert talk.post("/v1/admin/add_team", {"team": "dock"}).status_code == 403
    assert talk.post("/v1/admin/add_team", {"team": "dock"}, "root").status_code == 200
    assert talk.post("/v1/admin/list_tokens", {}).status_code == 200


def test_secrets_are_refused_with_their_kind(talk: Talk) -> None:
    """A secret is 422 with the field and the kind; nothing of it comes back."""
    secret = "ghp_" + "a1B2" * 9
    answer = talk.post("/v1/remember", {"content": f"The token is {secret}"})
    assert (answer.status_code, answer.json()["error"]) == (422, "SecretFound")
    assert secret not in answer.text


def test_unknown_addresses_and_methods_have_sentences(talk: Talk) -> None:
    """What is not there is 404, another method 405 with what is allowed, both in the form of every error."""
    assert talk.ask("GET", "/v1/nothing", params={}).json()["error"] == "NotFound"
    assert talk.ask("GET", "/docs").status_code == 404  # nothing is served whose scripts come from elsewhere
    other = talk.ask("GET", "/v1/recall", params={})
    assert (other.status_code, other.headers["allow"]) == (405, "POST")
    assert set(other.json()) == {"error", "message"}


def test_the_one_tool_answers_by_action(talk: Talk) -> None:
    """`POST /v1/memory` remembers, recalls and forgets as the MCP tool does, and its errors have their status."""
    stored = talk.post("/v1/memory", {"action": "remember", "content": "The mast is pine."}).json()
    assert stored["message"] == f"Memory stored successfully with ID: {stored['id']}"
    found = talk.post("/v1/memory", {"action": "recall", "query": "mast"}).json()
    assert found["memories"][0]["id"] == stored["id"]
    wrong = talk.post("/v1/memory", {"action": "sing"})
    assert (wrong.status_code, wrong.json()["field"]) == (422, "action")
    assert talk.post("/v1/memory", {"action": "forget", "id": stored["id"]}).status_code == 200


def test_the_page_on_the_api_is_up_to_date(talk: Talk) -> None:
    """`docs/api.md` is what the OpenAPI document says; where it differs, what it should be is left in the message."""
    wanted = page(talk.ask("GET", "/openapi.json").json())
    assert (DOCS / "api.md").read_text(encoding="utf-8") == wanted


def test_the_page_on_the_api_shows_real_answers(talk: Talk) -> None:
    """The two requests of the page are answered as it shows, and the parts of the score that it shows add up."""
    text = (DOCS / "api.md").read_text(encoding="utf-8")
    asked = re.findall(r"/v1/(\w+)\?project=(\w+)\".*?--json '(.*?)'", text, re.S)
    shown = [json.loads(one) for one in re.findall(r"```json\n(.*?)```", text, re.S)]
    for (name, project, body), answer in zip(asked, shown, strict=True):
        assert talk.post(f"/v1/{name}", json.loads(body), params={"project": project}).json() == _near(answer)
    (hit,) = shown[1]["hits"]
    assert sum(hit["parts"].values()) == pytest.approx(hit["score"])


def _near(answer: Any) -> Any:
    """Return an answer whose numbers equal those that differ by less than what processors and rounding make."""
    if isinstance(answer, list):
        return [_near(one) for one in answer]
    if isinstance(answer, dict):
        return {name: _near(one) for name, one in answer.items()}
    return pytest.approx(answer, abs=0.002) if isinstance(answer, float) else answer


def test_the_page_on_the_api_has_every_error(talk: Talk) -> None:
    """The table of errors and the document name the same statuses, each with the kind of its example."""
    rows = re.findall(r"^\| (\d{3}) \| (.*?) \|", (DOCS / "api.md").read_text(encoding="utf-8"), re.MULTILINE)
    responses = talk.ask("GET", "/openapi.json").json()["paths"]["/v1/recall"]["post"]["responses"]
    assert {status for status, _ in rows} == responses.keys() - {"200"}
    for status in responses.keys() - {"200"}:
        kind = responses[status]["content"]["application/json"]["example"]["error"]
        assert any(f"`{kind}`" in kinds for one, kinds in rows if one == status), status


def test_what_is_done_with_an_observation_is_an_operation_of_sessions(talk: Talk) -> None:
    """Correcting an observation stands with the sessions in the document, as listing and showing them does."""
    paths = talk.ask("GET", "/openapi.json").json()["paths"]
    for name in ("list_sessions", "show_session", "correct_observation"):
        assert paths[f"/v1/{name}"]["post"]["tags"] == ["sessions"]


def test_each_example_of_the_document_holds(talk: Talk) -> None:
    """Each example of the document meets its schema; the tool, the hooks, the probes and the errors have examples."""
    document = talk.ask("GET", "/openapi.json").json()
    found = set()
    for path, methods in document["paths"].items():
        for told in methods.values():
            for body in (*told["responses"].values(), *filter(None, [told.get("requestBody")])):
                content = body["content"]["application/json"]
                if "example" in content:
                    found.add("error" if content["schema"].get("$ref", "").endswith("/Error") else path)
                    schema = content["schema"] | {"components": document["components"]}
                    jsonschema.validate(content["example"], schema, cls=jsonschema.Draft202012Validator)
    hooks = {path for path in document["paths"] if path.startswith("/v1/hooks/")}
    assert found == {"error", "/v1/memory", "/healthz", "/readyz", *hooks}

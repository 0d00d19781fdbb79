"""The nouns: what a request accepts, what it says when it refuses, and that namespaces never collide."""

from __future__ import annotations

import ast
import math
from datetime import UTC, datetime, timedelta, timezone
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pydantic import ValidationError

import recollect
from recollect import Caller, Draft, Forget, Get, Query
from recollect.domain.enums import POLICIES, FactType, Scope
from recollect.domain.fields import MAX_CONTENT, MAX_LIMIT, MAX_NAME, MAX_QUERY
from recollect.domain.results import Outcome, WriteStatus
from recollect.errors import InvalidInput

KINDS = (
    "`general`, `preference`, `decision`, `context`, `fact`, `entity`, `relationship`, `self`, "
    "`profile`, `event`, `case`, or `pattern`"
)
REFUSED: list[tuple[type, dict[str, Any], str]] = [
    (Draft, {}, "Missing content: `content` is required"),
    (Query, {}, "Missing query: `query` is required"),
    (Forget, {}, "Missing id: `id` is required"),
    (Draft, {"content": " \n\t"}, "Invalid content: Must hold some text"),
    (Query, {"query": " "}, "Invalid query: Must hold some text"),
    (Draft, {"content": "a\x00b"}, "Invalid content: Contains a NUL character"),
    (Draft, {"content": "a\udc80"}, "Invalid content: Contains a lone surrogate, which is not text"),
    (Draft, {"content": 42}, "Invalid content: Must be a string"),
    (Draft, {"confidence": 1.01}, "Invalid confidence: Must be 0.0–1.0"),
    (Draft, {"confidence": -0.1}, "Invalid confidence: Must be 0.0–1.0"),
    (Draft, {"confidence": math.nan}, "Invalid confidence: Must be 0.0–1.0"),
    (Draft, {"confidence": "sure"}, "Invalid confidence: Must be 0.0–1.0"),
    (Draft, {"importance": 2}, "Invalid importance: Must be 0.0–1.0"),
    (Draft, {"trust": math.inf}, "Invalid trust: Must be 0.0–1.0"),
    (Draft, {"scope": "galaxy"}, "Invalid scope: Must be `personal`, `project`, or `team`"),
    (Query, {"query": "x", "scope": "all"}, "Invalid scope: Must be `personal`, `project`, or `team`"),
    (Draft, {"fact_type": "rumour"}, f"Invalid fact_type: Must be {KINDS}"),
    (Draft, {"sensitivity": "hidden"}, "Invalid sensitivity: Must be `public`, `private`, or `secret`"),
    (Draft, {"ttl_days": 0}, "Invalid ttl_days: Must be a number of days above 0 and at most 36500"),
    (Draft, {"position": -1}, "Invalid position: Must be a whole number from 0 to 2147483647"),
    (Draft, {"concepts": ["magic"]}, "Invalid concepts: Must be `how-it-works`, `why-it-exists`, "),
    (Draft, {"type": "zip"}, "Invalid type: Must be `bugfix`, `feature`, "),
    (Draft, {"tags": ["x\udc80"]}, "Invalid tags: Contains a lone surrogate, which is not text"),
    (Draft, {"colour": "red"}, "Unknown parameter: `colour`. Allowed: `allow_private`, "),
    (Query, {"text": "x"}, "Unknown parameter: `text`. Allowed: `"),
    (Query, {"query": "x", "limit": 0}, f"Invalid limit: Must be a whole number from 1 to {MAX_LIMIT}"),
    (Query, {"query": "x", "limit": MAX_LIMIT + 1}, f"Invalid limit: Must be a whole number from 1 to {MAX_LIMIT}"),
    (
        Query,
        {"query": "x", "profile": "loud"},
        "Invalid profile: Must be `balanced`, `weighted`, `habit`, or `relevance`",
    ),
    (Query, {"query": "x", "min_score": 1.5}, "Invalid min_score: Must be 0.0–1.0"),
    (
        Caller,
        {"user": "a", "team": "a/b", "project": "p"},
        "Invalid team: Must be 1–200 characters without `/`",
    ),
]
names = st.text(st.sampled_from("ab:/ \\%_é"), min_size=1, max_size=5).map(str.strip).filter(bool)


@pytest.mark.parametrize(("request_type", "fields", "message"), REFUSED)
def test_bad_input_is_one_sentence(request_type: type, fields: dict[str, Any], message: str) -> None:
    """A field that is missing, unknown or out of range is named, with what is allowed."""
    content = {"content": "x"} if request_type is Draft and fields else {}
    with pytest.raises(InvalidInput) as caught:
        request_type(**content | fields)
    assert str(caught.value).startswith(message)
    assert f"`{caught.value.field}`" in message or f" {caught.value.field}:" in message


def test_too_long_is_refused() -> None:
    """Text longer than its limit is refused, text as long as its limit is not."""
    for make, most in ((lambda text: Draft(content=text), MAX_CONTENT), (lambda text: Query(query=text), MAX_QUERY)):
        assert make("x" * most)
        with pytest.raises(InvalidInput, match=f"at most {most} characters"):
            make("x" * (most + 1))
    with pytest.raises(InvalidInput, match=f"Invalid key: .*at most {MAX_NAME} characters"):
        Draft(content="x", key="k" * (MAX_NAME + 1))
    with pytest.raises(InvalidInput, match=r"^Invalid tags: Must have at most 200 entries$"):
        Draft(content="x", tags=[f"t{number}" for number in range(201)])


def test_the_defaults_of_a_draft() -> None:
    """An absent field has the default of the seed."""
    draft = Draft(content="x")
    assert (draft.scope, draft.fact_type, draft.confidence) == (Scope.PROJECT, FactType.GENERAL, 0.5)
    assert (draft.importance, draft.trust, draft.key, draft.category) == (0.5, 0.5, None, None)
    assert Query(query="x").limit == 10


@pytest.mark.parametrize("kind", FactType)
def test_every_fact_type_takes_its_plural(kind: FactType) -> None:
    """`preferences`, `entities` and ` DECISIONS ` are read as what they mean."""
    plural = f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"
    assert Draft(content="x", fact_type=plural).fact_type is kind
    assert Draft(content="x", fact_type=f" {plural.upper()} ").fact_type is kind
    assert kind in POLICIES


def test_blank_labels_are_absent_and_lists_hold_each_once() -> None:
    """A blank key or category is none; names are stripped; tags and concepts are kept once, in order."""
    draft = Draft(content="x", key="  ", category="\t", tags=[" b ", "a", "b"], concepts=["gotcha", "gotcha"])
    assert (draft.key, draft.category) == (None, None)
    assert (draft.tags, draft.concepts) == (("b", "a"), ("gotcha",))


def test_times_are_aware() -> None:
    """A time without a zone is taken as UTC; one with a zone is brought to UTC."""
    noon = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
    assert Draft(content="x", observed_at=noon.replace(tzinfo=None)).observed_at == noon
    elsewhere = noon.astimezone(timezone(timedelta(hours=5)))
    seen = Draft(content="x", observed_at=elsewhere).observed_at
    assert seen == noon
    assert seen.utcoffset() == timedelta(0)


def test_a_request_is_frozen() -> None:
    """What passed the checks cannot be changed afterwards."""
    with pytest.raises(ValidationError, match="frozen"):
        Draft(content="x").content = "y"


def test_outcomes_speak_as_the_seed_says() -> None:
    """Every outcome has the seed's sentence."""
    assert Outcome(WriteStatus.STORED, "123").message == "Memory stored successfully with ID: 123"
    assert Outcome(WriteStatus.UPDATED, "123").message == "Memory updated successfully (ID: 123)"
    assert Outcome(WriteStatus.DELETED, "42").message == "Memory 42 deleted."
    assert Outcome(WriteStatus.NOT_FOUND, "42").message == "Memory 42 not found."


def test_a_caller_has_three_namespaces() -> None:
    """A read sees all three namespaces, or the one of its scope."""
    caller = Caller(user="ada", team="crew", project="engine")
    assert caller.namespaces() == ("user:ada", "project:crew/engine", "team:crew")
    assert caller.namespaces(Scope.TEAM) == ("team:crew",)
    assert Caller(user="ada", project="engine").namespace(Scope.PROJECT) == "project:local/engine"


@hypothesis_settings(deadline=None, database=None)
@given(st.lists(st.tuples(names, names.filter(lambda one: "/" not in one), names), min_size=2, max_size=6))
def test_namespaces_never_collide(triples: list[tuple[str, str, str]]) -> None:
    """Two scopes give the same namespace only when everything that decides it is the same."""
    decided: dict[str, tuple[object, ...]] = {}
    for (user, team, project), scope in product(triples, Scope):
        by = {Scope.PERSONAL: (user,), Scope.PROJECT: (team, project), Scope.TEAM: (team,)}[scope]
        name = Caller(user=user, team=team, project=project).namespace(scope)
        assert decided.setdefault(name, (scope, *by)) == (scope, *by)


@pytest.mark.parametrize("name", recollect.__all__)
def test_every_export_is_the_thing_itself(name: str) -> None:
    """Whatever `recollect` exports is the object of that name in its home."""
    home = recollect._HOMES[name]
    assert getattr(recollect, name) is getattr(import_module(home), name)
    assert name in dir(recollect)


def test_the_exports_are_exactly_the_declared_ones() -> None:
    """What type checkers see and what can be imported are the same names, and nothing else is there."""
    tree = ast.parse(Path(recollect.__file__).read_text(encoding="utf-8"))
    branch = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.name for node in branch.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert seen == set(recollect.__all__)
    with pytest.raises(AttributeError, match="no attribute 'remembr'"):
        _ = recollect.remembr


def test_every_request_refuses_what_it_does_not_know() -> None:
    """No request swallows a misspelt field."""
    for request_type, needed in ((Draft, "content"), (Query, "query"), (Forget, "id"), (Get, "id")):
        with pytest.raises(InvalidInput, match="Unknown parameter: `limt`"):
            request_type(**{needed: "x", "limt": 5})

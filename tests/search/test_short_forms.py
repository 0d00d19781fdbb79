"""Short forms: what developers abbreviate is found by either form, and other meanings of it stay first."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from callers import ADA
from recollect import App, Draft, Query, recall, remember
from recollect.search.parse import parse
from recollect.text.normalization import fold
from recollect.text.short_forms import other_forms, short_form_table
from stores import open_app

NOTES = {
    "cluster": "The Kubernetes cluster runs version 1.29",
    "setup": "Set up the environment with make dev",
    "review": "Keep pull requests below 400 lines",
    "events": "Events travel over RabbitMQ as the message broker",
    "mirror": "The repository is mirrored to GitLab every night",
    "backup": "The database is copied at three in the morning",
    "press": "Public relations are handled by an agency in Ghent; PR mails go there",
    "pins": "Dependencies are pinned in uv.lock",
    "short": "k8s nodes are named after ships",
    "runners": "CI has two runners",
}


@pytest.fixture(params=["settings", "deployed"])
def noted(request: pytest.FixtureRequest) -> Iterator[App]:
    """Return a store on each kind of database with a few notes."""
    with open_app(request.getfixturevalue(request.param), background=False) as app:
        for key, content in NOTES.items():
            remember(app, Draft(content=content, key=key), ADA)
        yield app


def found(app: App, query: str) -> list[str]:
    """Return the keys of the likely hits, best first."""
    hits = recall(app, Query(query=query), ADA).hits
    return [str(hit.memory.key) for hit in hits if hit.match >= 0.2]


@pytest.mark.parametrize(
    ("query", "key"),
    [
        ("k8s version", "cluster"),
        ("env setup", "setup"),
        ("message bus", "events"),
        ("message queue", "events"),
        ("repo", "mirror"),
        ("repos", "mirror"),
        ("DB", "backup"),
        ("DBs", "backup"),
        ("deps", "pins"),
        ("PR lines", "review"),
        ("Kubernetes nodes", "short"),
        ("continuous integration runners", "runners"),
    ],
)
def test_either_form_finds_the_other(noted: App, query: str, key: str) -> None:
    """A query by the short form, or by the long one, has what holds the other among its likely hits."""
    assert key in found(noted, query)


def test_the_word_itself_comes_first(noted: App) -> None:
    """What a short form means elsewhere, and what holds it as it is written, is found before its long form."""
    assert found(noted, "PR agency")[0] == "press"
    assert found(noted, "k8s nodes")[0] == "short"


@pytest.mark.parametrize(
    ("query", "forms"),
    [
        ("the PRs of our repo", {"prs": ("pull request",), "repo": ("repository",)}),
        ("Pull requests", {"pull requests": ("pr",)}),
        ("single sign on", {"single sign on": ("sso",)}),
        ("dependencies and libraries", {"dependencies": ("dep",), "libraries": ("lib",)}),
        ("a prepared report on product owners", {}),
        ("", {}),
    ],
)
def test_forms_are_whole_words(query: str, forms: dict[str, tuple[str, ...]]) -> None:
    """Forms are found in any case and as plurals, and neither within another word nor by its stem."""
    assert other_forms(query) == forms


def test_every_row_can_be_asked_for() -> None:
    """Each form is folded, in the singular and of at most three words, and none is lost as a word without meaning."""
    for form, others in short_form_table().items():
        assert form == fold(form)
        assert re.fullmatch(r"[^\W_]+(?: [^\W_]+){0,2}", form), form
        assert other_forms(f"our {form} there").get(form) == others
        assert set(parse(form).words) & set(form.split()), form

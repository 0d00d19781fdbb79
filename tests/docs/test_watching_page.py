"""What watches a deployment: dashboard and alerts ask for what a running server tells, by labels that it has."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import promql_parser
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from places import DOCS
from recollect import App, Settings
from team_server import TeamServer

pytestmark = pytest.mark.slow

DASHBOARD: dict[str, Any] = json.loads((DOCS / "deploy" / "grafana" / "recollect.json").read_text(encoding="utf-8"))
RULES: list[dict[str, Any]] = [
    rule
    for group in yaml.safe_load((DOCS / "deploy" / "prometheus" / "alerts.yaml").read_text(encoding="utf-8"))["groups"]
    for rule in group["rules"]
]
OF_PROMETHEUS = {"up"}
"""Metrics that Prometheus adds itself."""
LABELS_OF_PROMETHEUS = {"job", "instance", "worker", "le"}
"""Labels that the scrape adds, several workers tell, or that every histogram has."""
BOTH = {"Accept": "application/json, text/event-stream"}
CALL = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "memory", "arguments": {"action": "recall", "query": "pier"}},
}


def expressions() -> dict[str, str]:
    """Return every expression of both files, as Prometheus gets it, by where it stands."""
    shown = {
        f"{panel['title']} {target['refId']}": target["expr"]
        for panel in DASHBOARD["panels"]
        for target in panel["targets"]
    }
    whole = shown | {rule["alert"]: rule["expr"] for rule in RULES}
    return {name: text.replace("$__rate_interval", "5m") for name, text in whole.items()}


def parts(node: Any) -> Iterator[Any]:
    """Yield an expression and every expression in it."""
    yield node
    for name in ("expr", "lhs", "rhs", "vector_selector", "param"):
        if (inner := getattr(node, name, None)) is not None and not isinstance(inner, str):
            yield from parts(inner)
    for argument in getattr(node, "args", ()) or ():
        yield from parts(argument)


@pytest.fixture
def told(app: App, settings: Settings) -> dict[str, set[str]]:
    """Return the samples in `/metrics` of a server that has answered, each with the names of its labels."""
    team = TeamServer(app, settings)
    with team.talking() as talk:
        talk.post("/v1/remember", {"content": "The pier is long."})
        talk.post("/v1/recall", {"query": "pier"})
        talk.post("/v1/recall", {"query": "pier"}, "nobody")
        assert talk.ask("POST", "/mcp", json=CALL, params={"project": "engine"}, headers=BOTH).status_code == 200
        text = talk.ask("GET", "/metrics", "root").text
    return {
        sample.name: set(sample.labels) for family in text_string_to_metric_families(text) for sample in family.samples
    }


def test_every_metric_and_label_is_told(told: dict[str, set[str]]) -> None:
    """Each metric of an expression stands in `/metrics`, and so do the labels by which it is chosen or summed."""
    odd = []
    for name, text in expressions().items():
        found = list(parts(promql_parser.parse(text)))
        selected = [one for one in found if isinstance(one, promql_parser.VectorSelector)]
        assert selected, name
        labels = {label for one in selected if one.name in told for label in told[one.name]} | LABELS_OF_PROMETHEUS
        odd += [f"{name}: {one.name}" for one in selected if one.name not in told.keys() | OF_PROMETHEUS]
        asked = {matcher.name for one in selected for matcher in one.matchers.matchers}
        summed = [one.modifier for one in found if isinstance(one, promql_parser.AggregateExpr) and one.modifier]
        asked |= {label for one in summed for label in one.labels}
        odd += [f"{name}: {label}" for label in asked - labels]
    assert odd == []
    named = {metric for text in expressions().values() for metric in re.findall(r"\b(?:recollect|process)_\w+", text)}
    assert {"recollect_requests_total", "recollect_outbox_depth", "process_cpu_seconds_total"} <= named


def test_a_metric_that_is_gone_is_noticed(told: dict[str, set[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above fails for an expression over a metric or a label that no server tells."""
    for wrong in ("sum(recollect_gone_total)", "sum by (colour) (recollect_requests_total)"):
        monkeypatch.setitem(DASHBOARD["panels"][0]["targets"][0], "expr", wrong)
        with pytest.raises(AssertionError, match=r"gone_total|colour"):
            test_every_metric_and_label_is_told(told)


def test_every_panel_explains_itself() -> None:
    """Each panel has a title of its own, a unit, a description, a place of its own and a legend for each line."""
    panels = DASHBOARD["panels"]
    assert len({panel["title"] for panel in panels}) == len(panels) > 10
    assert len({(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}) == len(panels)
    assert all(panel["description"].endswith(".") and panel["fieldConfig"]["defaults"]["unit"] for panel in panels)
    assert all(target["legendFormat"] for panel in panels for target in panel["targets"])
    assert [one["name"] for one in DASHBOARD["templating"]["list"]] == ["source", "job"]


def test_every_alert_says_what_is_wrong() -> None:
    """Each alert has a name of its own, how bad it is, and two sentences for whoever is woken by it."""
    assert len({rule["alert"] for rule in RULES}) == len(RULES) > 5
    assert {rule["labels"]["severity"] for rule in RULES} == {"critical", "warning"}
    assert all(set(rule["annotations"]) == {"summary", "description"} for rule in RULES)


def test_the_file_is_what_the_script_writes(module: Callable[[str], ModuleType]) -> None:
    """The dashboard is made by `scripts/dashboard.py`, and was not changed by hand."""
    script = module("dashboard")
    assert script.FILE.read_text(encoding="utf-8") == script.text()

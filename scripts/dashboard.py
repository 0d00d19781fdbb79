"""Write `docs/deploy/grafana/recollect.json`, the dashboard over a team server's metrics, from the table here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, NamedTuple

FILE: Final = Path(__file__).resolve().parent.parent / "docs" / "deploy" / "grafana" / "recollect.json"
_WIDTH: Final = 12  # of 24 columns
_HEIGHT: Final = 8
_HERE: Final = 'job="$job"'
_EACH: Final = "[$__rate_interval]"
_OF_RECALL: Final = "recall|recall_compact|memory"
_SOURCE: Final = {"type": "prometheus", "uid": "${source}"}
_QUANTILES: Final = (0.5, 0.95, 0.99)


class Panel(NamedTuple):
    """A graph: its title, what it tells, its unit in Grafana, and its expressions with their legends."""

    title: str
    description: str
    unit: str
    expressions: tuple[tuple[str, str], ...]


def _quantiles(metric: str, by: str = "", where: str = "") -> tuple[tuple[str, str], ...]:
    """Return the expressions of the median and of two high quantiles of a histogram."""
    labels = ", ".join(filter(None, ("le", by)))
    legend = f" {{{{{by}}}}}" if by else ""
    return tuple(
        (
            f"histogram_quantile({share}, sum by ({labels}) (rate({metric}_bucket{{{_HERE}{where}}}{_EACH})))",
            f"{share:.0%}{legend}",
        )
        for share in (_QUANTILES if not by else _QUANTILES[1:2])
    )


PANELS: Final = (
    Panel(
        "Requests",
        "Answered requests a second, by operation.",
        "reqps",
        ((f"sum by (operation) (rate(recollect_requests_total{{{_HERE}}}[$__rate_interval]))", "{{operation}}"),),
    ),
    Panel(
        "Failures",
        "Requests a second that ended with an error, by status: 4xx were refused, 5xx are faults.",
        "reqps",
        (
            (
                f'sum by (status) (rate(recollect_requests_total{{{_HERE}, status=~"[45].."}}[$__rate_interval]))',
                "{{status}}",
            ),
        ),
    ),
    Panel(
        "Time of an answer",
        "From a request's head to the end of its answer: half, 95 % and 99 % of all requests are faster.",
        "s",
        _quantiles("recollect_request_seconds"),
    ),
    Panel(
        "Time by operation",
        "95 % of the requests of an operation are answered faster.",
        "s",
        _quantiles("recollect_request_seconds", "operation"),
    ),
    Panel(
        "Parts of a recall",
        "Seconds a second that recalls spend in each part: what grows here is what makes them slow.",
        "s",
        (
            (
                f'sum by (stage) (rate(recollect_stage_seconds_sum{{{_HERE}, operation=~"{_OF_RECALL}"}}{_EACH}))',
                "{{stage}}",
            ),
        ),
    ),
    Panel(
        "Calls of tools",
        "Calls of MCP tools a second, by tool and status.",
        "reqps",
        (
            (
                f"sum by (tool, status) (rate(recollect_tool_calls_total{{{_HERE}}}[$__rate_interval]))",
                "{{tool}} {{status}}",
            ),
        ),
    ),
    Panel(
        "Refusals",
        "Refused requests a second: `secret` was found by the scanner, `rate` asked too often.",
        "reqps",
        ((f"sum by (kind) (rate(recollect_refusals_total{{{_HERE}}}[$__rate_interval]))", "{{kind}}"),),
    ),
    Panel(
        "Requests under way",
        "How many requests each replica works on at this moment.",
        "short",
        ((f"sum by (instance) (recollect_requests_running{{{_HERE}}})", "{{instance}}"),),
    ),
    Panel(
        "What waits",
        "Memories that the vector index does not have yet, which every replica tells alike, and events of sessions "
        "that are not worked off.",
        "short",
        (
            (f"max(recollect_outbox_depth{{{_HERE}}})", "memories for the index"),
            (f"sum(recollect_events_waiting{{{_HERE}}})", "events"),
            (f"sum(recollect_events_lost{{{_HERE}}})", "events lost since the start"),
        ),
    ),
    Panel(
        "Connections to the database",
        "Connections in use, and how many may be: a request waits where none is left.",
        "short",
        (
            (f"sum by (instance) (recollect_connections_used{{{_HERE}}})", "{{instance}}"),
            (f"max(recollect_connections_most{{{_HERE}}})", "most of a process"),
        ),
    ),
    Panel(
        "Memory",
        "Resident memory of each process.",
        "bytes",
        ((f"process_resident_memory_bytes{{{_HERE}}}", "{{instance}} {{worker}}"),),
    ),
    Panel(
        "CPU",
        "Cores that each replica uses.",
        "short",
        ((f"sum by (instance) (rate(process_cpu_seconds_total{{{_HERE}}}[$__rate_interval]))", "{{instance}}"),),
    ),
    Panel(
        "Model",
        "1 where the embedding model is loaded; without it recall goes by words alone.",
        "short",
        ((f"min by (instance) (recollect_model_ready{{{_HERE}}})", "{{instance}}"),),
    ),
    Panel(
        "Time to load the model",
        "Seconds from the start of a process to its loaded model; 0 before.",
        "s",
        ((f"recollect_model_load_seconds{{{_HERE}}}", "{{instance}} {{worker}}"),),
    ),
)


def dashboard() -> dict[str, Any]:
    """Return the dashboard as Grafana reads it; the source of data and the job are chosen on it."""
    return {
        "title": "Recollect",
        "uid": "recollect",
        "description": "The server of a team: requests, times, refusals, what waits, and its processes.",
        "tags": ["recollect"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [_source_choice(), _job_choice()]},
        "panels": [_graph(number, panel) for number, panel in enumerate(PANELS)],
    }


def _graph(number: int, panel: Panel) -> dict[str, Any]:
    column, row = number % 2, number // 2
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.description,
        "datasource": _SOURCE,
        "gridPos": {"x": column * _WIDTH, "y": row * _HEIGHT, "w": _WIDTH, "h": _HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": [
            {"refId": chr(ord("A") + place), "datasource": _SOURCE, "expr": expression, "legendFormat": legend}
            for place, (expression, legend) in enumerate(panel.expressions)
        ],
    }


def _source_choice() -> dict[str, Any]:
    return {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"}


def _job_choice() -> dict[str, Any]:
    query = "label_values(recollect_requests_running, job)"
    return {
        "name": "job",
        "label": "Job",
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": query, "refId": "job"},
        "refresh": 1,
    }


def text() -> str:
    """Return the file of the dashboard."""
    return json.dumps(dashboard(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
    print(FILE)

"""Writes the Grafana dashboards of deploy/compose/grafana from the metrics in code and tools/dashboard_panels.py."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from foliot.observability.metrics import BY_NAME
from tools.dashboard_panels import DASHBOARDS, Dashboard, Panel, Variable

TARGET = Path(__file__).resolve().parent.parent / "deploy" / "compose" / "grafana" / "dashboards"
SOURCE = {"type": "prometheus", "uid": "${source}"}
INSTALLATION = 'job="$installation"'
METRIC = re.compile(r"\b((?:foliot|jobs?|active)_\w+?)(_bucket|_sum|_count)?\b(?![\w=(])(\{)?")
COLUMNS = 24
HEIGHT = 8


def metrics_in(expr: str) -> set[str]:
    """The names of the metrics in a query. Labels, which look alike, are followed by an operator or a bracket."""
    return {found[1] for found in METRIC.finditer(expr) if found[1] in BY_NAME}


def of_installation(expr: str) -> str:
    """The query for one installation: the targets that Prometheus scrapes under one name."""

    def selected(found: re.Match[str]) -> str:
        if found[1] not in BY_NAME:
            return found[0]
        name = found[1] + (found[2] or "")
        return f"{name}{{{INSTALLATION}, " if found[3] else f"{name}{{{INSTALLATION}}}"

    return METRIC.sub(selected, expr)


def text_of(panel: Panel) -> str:
    if panel.text:
        return panel.text
    names = sorted({name for query in panel.queries for name in metrics_in(query.expr)})
    return "\n\n".join(BY_NAME[name].text for name in names)


def panel_of(panel: Panel, number: int, place: tuple[int, int]) -> dict[str, Any]:
    bounds = {} if panel.may_be_negative else {"min": 0}
    if panel.unit == "percentunit":
        bounds["max"] = 1
    return {
        "id": number,
        "title": panel.title,
        "description": text_of(panel),
        "type": panel.kind,
        "datasource": SOURCE,
        "gridPos": {"x": place[0], "y": place[1], "w": panel.width, "h": height_of(panel)},
        "fieldConfig": {"defaults": {"unit": panel.unit, **bounds}, "overrides": []},
        "options": {},
        "targets": [
            {
                "refId": chr(ord("A") + place),
                "datasource": SOURCE,
                "expr": of_installation(query.expr),
                "legendFormat": query.legend,
                "exemplar": "_bucket" in query.expr,
            }
            for place, query in enumerate(panel.queries)
        ],
    }


def height_of(panel: Panel) -> int:
    return HEIGHT if panel.kind == "timeseries" else HEIGHT // 2


def variable_of(variable: Variable) -> dict[str, Any]:
    query = f"label_values({of_installation(variable.metric)}, {variable.of})"
    return {
        "name": variable.name,
        "label": variable.label,
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": query, "refId": variable.name},
        "definition": query,
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": ["All"], "value": ["$__all"]},
    }


def text(dashboard: Dashboard) -> str:
    panels, x, y = [], 0, 0
    for number, panel in enumerate(dashboard.panels, 1):
        if x + panel.width > COLUMNS:
            x, y = 0, y + height_of(dashboard.panels[number - 2])
        panels.append(panel_of(panel, number, (x, y)))
        x += panel.width
    installation = {
        "name": "installation",
        "label": "Installation",
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": "label_values(active_workers_total, job)", "refId": "installation"},
        "definition": "label_values(active_workers_total, job)",
        "refresh": 1,
        "current": {"text": "foliot", "value": "foliot"},
    }
    source = {
        "name": "source",
        "label": "Source",
        "type": "datasource",
        "query": "prometheus",
        "current": {"text": "Prometheus", "value": "prometheus"},
    }
    made: dict[str, Any] = {
        "uid": f"foliot-{dashboard.name}",
        "title": dashboard.title,
        "tags": ["foliot"],
        "timezone": "browser",
        "schemaVersion": 39,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "editable": True,
        "links": [{"title": "Foliot", "type": "dashboards", "tags": ["foliot"], "asDropdown": False, "keepTime": True}],
        "templating": {"list": [source, installation, *map(variable_of, dashboard.variables)]},
        "panels": panels,
    }
    return json.dumps(made, indent=2) + "\n"


def target_of(dashboard: Dashboard) -> Path:
    return TARGET / f"{dashboard.name}.json"


def write() -> None:
    for dashboard in DASHBOARDS:
        target_of(dashboard).write_text(text(dashboard))


if __name__ == "__main__":
    write()

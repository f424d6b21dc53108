"""Dashboards, rules and alerts: made from the metrics in code, and asked of a real Prometheus."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from tools import dashboards
from tools.dashboard_panels import DASHBOARDS, Dashboard

from foliot.observability.metrics import METRICS
from tests.support.debian import require
from tests.support.processes import FoliotProcess
from tests.support.prometheus import FILES, Prometheus, prometheus_server
from tests.support.waiting import until

VARIABLES = {"$installation": "foliot", "$queue": ".*", "$job_name": ".*", "$__rate_interval": "1m"}
# Needs a standby.
WITHOUT_DATA = "foliot_postgres_replication_lag_seconds"
TAG = "watched"


def queries_of(dashboard: Dashboard) -> Iterator[str]:
    made = json.loads(dashboards.text(dashboard))
    for panel in made["panels"]:
        for target in panel["targets"]:
            yield filled(target["expr"])


def filled(expr: str) -> str:
    for name, value in VARIABLES.items():
        expr = expr.replace(name, value)
    assert "$" not in expr
    return expr


def rules_in(name: str) -> list[dict[str, Any]]:
    groups = yaml.safe_load((FILES / name).read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda dashboard: str(dashboard.name))
def test_the_file_of_the_dashboard_is_up_to_date(dashboard: Dashboard) -> None:
    assert dashboards.target_of(dashboard).read_text() == dashboards.text(dashboard), "run `make docs`"


def test_there_is_no_other_dashboard() -> None:
    files = {path.name for path in dashboards.TARGET.glob("*.json")}
    assert files == {dashboards.target_of(dashboard).name for dashboard in DASHBOARDS}


def test_every_metric_is_on_a_dashboard_with_its_description() -> None:
    shown = {
        name for dashboard in DASHBOARDS for query in queries_of(dashboard) for name in dashboards.metrics_in(query)
    }
    assert shown == {metric.name for metric in METRICS}
    texts = [panel["description"] for d in DASHBOARDS for panel in json.loads(dashboards.text(d))["panels"]]
    assert all(texts)


def test_every_query_is_about_one_installation_and_adds_nothing_up_over_servers() -> None:
    for dashboard in DASHBOARDS:
        for query in queries_of(dashboard):
            names = re.findall(r"\b(?:foliot|jobs?|active)_[a-z_]+(?=[{\[])", query)
            assert names, query
            assert query.count('{job="foliot"') == len(names), query
            assert re.search(r"\b(max|topk|histogram_quantile)\b", query), query


def test_rules_use_metrics_that_exist() -> None:
    names = {name for file in ("rules.yml", "alerts.yml") for rule in rules_in(file) for name in
        dashboards.metrics_in(rule["expr"])}  # fmt: skip
    recorded = {rule["record"] for rule in rules_in("rules.yml")}
    assert len(names) > 10
    for rule in rules_in("alerts.yml"):
        used = set(re.findall(r"\bfoliot:[\w:]+", rule["expr"]))
        assert used <= recorded
        assert used or dashboards.metrics_in(rule["expr"]) or rule["expr"].startswith("up{")


def test_every_rule_and_alert_has_a_test_in_which_it_fires() -> None:
    tests = yaml.safe_load((FILES / "rules_test.yml").read_text())["tests"]
    fired = {case["alertname"] for test in tests for case in test.get("alert_rule_test", ()) if case.get("exp_alerts")}
    assert fired == {rule["alert"] for rule in rules_in("alerts.yml")}
    asked = " ".join(case["expr"] for test in tests for case in test.get("promql_expr_test", ()))
    named = " ".join(rule["expr"] for rule in rules_in("alerts.yml"))
    assert [rule["record"] for rule in rules_in("rules.yml") if rule["record"] not in asked + named] == []


@pytest.mark.deploy
@pytest.mark.parametrize(
    "arguments", [["check", "rules", "rules.yml", "alerts.yml"], ["test", "rules", "rules_test.yml"],
        ["check", "config", "prometheus.yml"]],
    ids=" ".join,
)  # fmt: skip
def test_promtool_agrees(arguments: list[str]) -> None:
    promtool = require("promtool", "prometheus")
    done = subprocess.run([promtool, *arguments], cwd=FILES, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.deploy
@pytest.mark.process
@pytest.mark.timeout(400)
async def test_a_real_prometheus_answers_every_query_of_dashboards_and_rules(
    tmp_path: Path, postgres: Any, database_url: str
) -> None:
    environment = {"FOLIOT_DATABASE_URL": database_url, "FOLIOT_JOB_METRICS_TAG": TAG}
    async with FoliotProcess("up", "--port", "0", "--workers", "1", environment=environment) as up:
        address = (await up.event("ProcessStarted", part="up"))["address"]
        target = address.removeprefix("http://")
        async with (
            httpx.AsyncClient(base_url=address, timeout=30, trust_env=False) as client,
            prometheus_server(tmp_path, target) as prometheus,
        ):
            await until(lambda: scrapes(prometheus))
            await run_jobs(client)
            asked = [query for dashboard in DASHBOARDS for query in queries_of(dashboard)]
            asked += [rule["record"] for rule in rules_in("rules.yml")]
            for query in asked:
                await until(lambda query=query: answers(prometheus, query))  # type: ignore[misc]
            groups = (await prometheus.ask("rules"))["groups"]
            rules = [rule for group in groups for rule in group["rules"]]
            assert {rule["health"] for rule in rules} == {"ok"}, rules
            firing = {alert["labels"]["alertname"] for alert in (await prometheus.ask("alerts"))["alerts"]}
            assert firing <= {"FoliotDeadLetters", "FoliotLowSuccess", "FoliotJobLowSuccess", "FoliotQueueLag"}
            await until(lambda: has_exemplars(prometheus))


async def scrapes(prometheus: Prometheus) -> bool:
    (target,) = (await prometheus.ask("targets"))["activeTargets"] or [{"health": "unknown"}]
    assert target["health"] != "down", target
    return bool(target["health"] == "up")


async def run_jobs(client: httpx.AsyncClient) -> None:
    """Jobs of several kinds: some with series of their own, some that fail, one that waits."""
    jobs: list[dict[str, Any]] = [
        {"task": "simulate", "payload": {"execution_time_ms": 5}, "tags": [TAG]},
        {"task": "simulate", "payload": {"fail_rate": 1}, "retries": 0, "tags": [TAG]},
        {"task": "simulate", "queue": "nobody"},
        {"task": "simulate", "name": "often", "every": "1s", "tags": [TAG]},
    ]
    for job in jobs:
        answer = await client.post("/v1/jobs", json=job)
        assert answer.status_code == 201, answer.text


async def answers(prometheus: Prometheus, query: str) -> bool:
    """Whether there are values, none of them NaN."""
    found = await prometheus.query(query)
    if WITHOUT_DATA in query:
        return True
    return bool(found) and all(sample["value"][1] != "NaN" for sample in found)


async def has_exemplars(prometheus: Prometheus) -> bool:
    found = await prometheus.ask("query_exemplars", query="job_duration_seconds_bucket", start="0", end="9999999999")
    labels = [exemplar["labels"] for series in found for exemplar in series["exemplars"]]
    return bool(labels) and all("run_id" in each for each in labels)

"""`foliot bench` measures a real installation and removes everything that it created."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest

from foliot.cli.bench_measurements import Spread, _spread
from tests.support.cluster import Cluster
from tests.support.terminal import Screen, Shell

pytestmark = [pytest.mark.process, pytest.mark.timeout(120)]


def left_of_it(shell: Shell) -> list[str]:
    jobs = [job["name"] for job in json.loads(shell.done("jobs", "--json"))["items"]]
    runs = json.loads(
        shell.done("runs", "--state", "pending,scheduled,running,retrying", "--text", "foliot bench", "--json")
    )["items"]
    return [name for name in [*jobs, *(run["name"] for run in runs)] if name.startswith("foliot bench")]


def test_bench_measures_and_cleans_up(shell: Shell) -> None:
    measured = json.loads(shell.done("bench", "--seconds", "4", "--connections", "2", "--json"))
    assert measured["workers"] == 1
    for rate in ("submitted", "batched", "executed"):
        assert measured[rate]["number"] >= 0
    assert measured["submitted"]["per_second"] > 0
    assert measured["batched"]["number"] >= measured["batch_size"]
    assert 0 < measured["answer_ms"]["p50"] <= measured["answer_ms"]["p95"] <= measured["answer_ms"]["p99"]
    assert measured["answer_ms"]["number"] == measured["submitted"]["number"]
    for times in ("start_ms", "finish_ms", "tick_ms"):
        assert 0 <= measured[times]["p50"] <= measured[times]["p99"]
    assert left_of_it(shell) == []


def test_a_terminal_shows_a_table_a_bar_and_an_explanation(cluster: Cluster) -> None:
    with Screen(cluster.url, "bench", "--seconds", "8", columns=60) as screen:
        assert screen.end(seconds=60) == 0
    for words in ("submitted one by one", "MILLISECONDS", "tick to start", "come from the database's clock"):
        assert words in screen.shown.replace("\r\n", " ").replace("  ", " ") or words in screen.shown
    assert "\rprobing latency [" in screen.shown
    assert "Traceback" not in screen.shown


def test_ctrl_c_stops_the_bench_and_it_cleans_up(shell: Shell, cluster: Cluster) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "foliot", "bench", "--seconds", "60"],
        env={"FOLIOT_URL": cluster.url, "PATH": ""}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        while not json.loads(shell.done("runs", "--text", "foliot bench", "--state", "pending,running", "--json"))[
            "items"
        ]:
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err
    assert left_of_it(shell) == []


def test_a_queue_without_workers_is_not_measured(shell: Shell) -> None:
    said = shell.refusal("bench", "--queue", "lonely", code=1)
    assert "no worker serves the queue 'lonely' (queues with workers: default)" in said
    shell.done("pause", "--queue", "default")
    try:
        assert "is paused; resume it" in shell.refusal("bench", code=1)
    finally:
        shell.done("resume", "--queue", "default")


def test_percentiles_are_measured_values() -> None:
    assert _spread([]) == Spread(0, 0, 0, 0)
    assert _spread([0.001]) == Spread(1, 1, 1, 1)
    assert _spread([number / 1000 for number in range(1, 101)]) == Spread(100, 50, 95, 99)

"""`foliot submit` and `--wait` explain why a run waits."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from foliot.cli.waiting import Told
from tests.support.cluster import Cluster
from tests.support.terminal import Screen, Shell

pytestmark = pytest.mark.process


def test_a_paused_queue_is_reported(shell: Shell) -> None:
    shell.done("pause", "--queue", "told", "--reason", "moving")
    ended = shell.foliot("submit", "simulate", "--queue", "told")
    assert ended.err.startswith("simulate was submitted to queue told; it waits: queue 'told' has been paused since ")
    assert "by local because moving" in ended.err
    shell.done("resume", "--queue", "told")


def test_a_missing_worker_is_reported(shell: Shell) -> None:
    assert "no live worker serves the queue 'nowhere'" in shell.foliot("submit", "simulate", "--queue", "nowhere").err


def test_waiting_prints_the_reason_and_what_to_do(shell: Shell, cluster: Cluster) -> None:
    flow = {"name": "asks", "steps": [{"key": "ask", "signal": {}}]}
    workflow = shell.done("workflows", "submit", "-", stdin=json.dumps(flow).encode()).strip()
    with Screen(cluster.url, "workflows", "show", workflow, "--wait", columns=200) as screen:
        screen.until(f"step ask waits for a signal: foliot signal {workflow} ask")
        shell.done("signal", workflow, "ask")
        screen.until("completed")
    job = subprocess.Popen(
        [sys.executable, "-m", "foliot", "submit", "simulate", "--queue", "nowhere", "--wait"],
        env={"FOLIOT_URL": cluster.url, "PATH": ""}, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert job.stderr is not None
        assert "waiting for it to end" in job.stderr.readline()
        assert job.stderr.readline() == "waits: no live worker serves the queue 'nowhere'\n"
    finally:
        job.kill()
        job.communicate()


def test_no_reason_is_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    told = Told()
    for number in (3, 2):
        gate = {"gate": "rate", "is_open": False, "detail": f"{number} are ahead"}
        told.tell({"state": "held", "gates": [gate]}, "")
    told.tell({"state": "held", "gates": [{"gate": "pause", "is_open": False, "detail": "paused"}]}, "")
    told.tell({"state": "running", "gates": [{"gate": "worker", "is_open": True, "detail": "runs"}]}, "")
    assert capsys.readouterr().err == "waits: 3 are ahead\nwaits: paused\n"

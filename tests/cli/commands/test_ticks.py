"""`foliot ticks`: the outcome of each tick."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import get_args

import click
import pytest

from foliot.cli.commands.ticks import strip, tick_table
from foliot.model.catchup import Reason
from foliot.model.states import RunState
from tests.support.cluster import Cluster
from tests.support.terminal import Shell, on_a_terminal
from tests.support.waiting import until

pytestmark = pytest.mark.process

Recurring = Callable[..., str]


def test_a_job_without_ticks_is_reported(shell: Shell, recurring: Recurring) -> None:
    name = recurring()
    ended = shell.foliot("ticks", name)
    assert (ended.code, ended.out, ended.err) == (0, "", "No ticks yet.\n")
    assert shell.json("ticks", name) == {"items": [], "next": None}


def test_a_missed_tick_shows_when_no_scheduler_node_was_running() -> None:
    tick = {"until_at": None, "blocked_by": None, "run_id": None, "decided_at": "2026-03-01T12:00:50Z"}
    ticks = [
        tick | {"tick_at": "2026-03-01T12:00:50Z", "outcome": "running", "run_id": "r"},
        tick | {"tick_at": "2026-03-01T12:00:46Z", "outcome": "missed"},
    ]
    on_time, missed = tick_table({"items": ticks}, datetime(2026, 3, 1, 12, 1, tzinfo=UTC)).splitlines()[-2:]
    assert "later" not in on_time
    assert "4 s later" in missed
    assert "no scheduler was running from 2026-03-01T12:00:46Z to 2026-03-01T12:00:50Z" in missed


async def test_ticks_show_each_outcome_its_reason_and_its_run(
    shell: Shell, recurring: Recurring, cluster: Cluster
) -> None:
    name = recurring("--cron", "* * * * * *", "--payload", '{"execution_time_ms": 60000}')
    shell.done("trigger", name)

    async def overlapped() -> bool:
        return {tick["outcome"] for tick in shell.json("ticks", name)["items"]} == {"running", "overlap"}

    await until(overlapped)
    # From here on nothing changes: the runs are long, and no tick follows.
    shell.done("pause", name)
    ticks = shell.json("ticks", name)["items"]
    assert shell.json("ticks", name, "--limit", "1")["items"] == ticks[:1]
    strip_line, blank, header, *lines = shell.done("ticks", name).splitlines()
    marks, outcomes = {"running": "▶", "overlap": "o"}, [tick["outcome"] for tick in reversed(ticks)]
    # A tick that is fired late finds the triggered run open, and is older than it: either outcome may come first.
    legend = " ".join(f"{marks[outcome]} {outcome}" for outcome in dict.fromkeys(outcomes))
    assert strip_line == f"{''.join(marks[outcome] for outcome in outcomes)}   {legend}"
    # A busy scheduler may fire a tick more than a second late.
    shown = [title for title in header.split() if title != "DECIDED"]
    assert (blank, shown) == ("", ["TICK", "WHEN", "OUTCOME", "REASON", "BLOCKED", "BY", "RUN"])
    for tick, line in zip(ticks, lines, strict=True):
        assert line.startswith(f"{tick['tick_at']} ")
        assert line[header.index("OUTCOME") :].startswith(f"{tick['outcome']} ")
        if tick["outcome"] == "running":
            assert line[header.index("REASON") :].strip() == line[header.index("RUN") :] == tick["run_id"]
        else:
            assert line[header.index("REASON") :].startswith("the previous run had not ended  ")
            assert line[header.index("BLOCKED BY") :] == tick["blocked_by"]

    coloured = on_a_terminal(cluster.url, "ticks", name)
    assert coloured.code == 0
    colours = {"running": 36, "overlap": 33}
    assert "".join(f"\x1b[{colours[outcome]}m{marks[outcome]}\x1b[0m" for outcome in outcomes) in coloured.out
    plain = on_a_terminal(cluster.url, "ticks", name, NO_COLOR="1")
    assert "\x1b" not in plain.out
    assert plain.out.splitlines()[0] == strip_line


def test_the_strip_distinguishes_outcomes_without_colours() -> None:
    def mark(outcome: str, until_at: str | None = None) -> str:
        return click.unstyle(strip([{"outcome": outcome, "until_at": until_at}])).partition("   ")[0]

    outcomes = {str(outcome) for outcome in [*get_args(Reason), *RunState]}
    waiting = {"waiting", "held", "ready", "scheduled"}
    assert {mark(outcome) for outcome in waiting} == {"·"}
    assert len({mark(outcome) for outcome in outcomes - waiting} | {"·"}) == len(outcomes - waiting) + 1
    assert mark("missed", "2026-03-01T00:00:00Z") == f"{mark('missed')}…"

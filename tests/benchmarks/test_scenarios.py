"""Each scenario of `make bench` works, with sizes too small to mean anything. `make bench ARGS="--tiny"` runs all of
them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from benchmarks.bench import Bench, opened
from benchmarks.scenarios import latency, many_workers, order

from benchmarks import report

pytestmark = [pytest.mark.process]


@pytest.fixture
async def bench(database_url: str) -> AsyncIterator[Bench]:
    async with opened(database_url, is_full=False, is_tiny=True) as bench:
        yield bench


async def test_scenario_measures_something(bench: Bench) -> None:
    """This scenario covers a baseline, a scheduler node, a worker, and jobs that report their start."""
    found = report.document(latency.NAME, latency.TITLE, await latency.measure(bench))
    assert found["rows"]
    assert all(row["name"] in report.table(found) for row in found["rows"])
    # The server is a process of this machine, so its CPU time is visible.
    assert found["rows"][0]["postgres_us"] > 0
    assert await bench.session.fetchval("select to_regnamespace('yardstick')") is None


@pytest.mark.deploy
@pytest.mark.process
@pytest.mark.timeout(600)
async def test_simulated_workers_run_ticks_and_jobs(bench: Bench) -> None:
    result = await many_workers.measure(bench)
    idle, busy = result.rows
    assert idle.figures["api_cores"] is not None
    assert (busy.figures["submitted_per_second"] or 0) > 0
    assert (busy.figures["ended_per_second"] or 0) > (busy.figures["submitted_per_second"] or 0), "no tick was run"


def test_wait_during_which_a_core_was_taken_away_is_marked() -> None:
    waits = latency.told_apart([0.001, 0.02, 0.002], [5.0, 5.0, 5.01, 5.01])
    assert latency.undisturbed(waits) == [0.001, 0.002]
    assert latency.seconds_of(waits) == [0.001, 0.02, 0.002]


def test_every_scenario_has_a_unique_name_and_a_title() -> None:
    every = (*order.ALL, *order.WITH_RIVALS, many_workers)
    names = [scenario.NAME for scenario in every]
    assert len(set(names)) == len(names)
    assert all(scenario.TITLE for scenario in every)

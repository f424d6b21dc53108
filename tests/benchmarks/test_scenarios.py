"""Every scenario of `make bench` works, with numbers too small to say anything."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from benchmarks.bench import Bench, opened
from benchmarks.scenarios.order import ALL, Scenario

from benchmarks import report

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with opened(None, is_full=False, is_tiny=True) as bench:
        yield bench


@pytest.mark.parametrize("scenario", ALL, ids=lambda scenario: scenario.NAME)
async def test_a_scenario_measures_something(scenario: Scenario, bench: Bench) -> None:
    found = report.document(scenario.NAME, scenario.TITLE, await scenario.measure(bench))
    assert found["rows"]
    assert all(len(row) > 1 for row in found["rows"])
    table = report.table(found)
    assert all(row["name"] in table for row in found["rows"])
    assert all(goal["what"] in table and goal["verdict"] in ("met", "not met", "unknown") for goal in found["goals"])

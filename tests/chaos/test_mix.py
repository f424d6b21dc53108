"""A minute of mixed faults beside the other tests: nothing may be lost, however busy the machine is.

How soon things happen is looked at by `make chaos`, which has the machine to itself. Each day has its own seed, the
same on every machine.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.chaos.checker.check import breaches
from tests.chaos.checker.history import load
from tests.chaos.run import Plan, run

TIMED = frozenset({7, 15, 16, 37, 38})
"""Invariants about speed."""
MINUTES = 1.0
RATE = 100.0


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_a_minute_of_mixed_faults_loses_nothing(tmp_path: Path) -> None:
    seed = int(datetime.now(UTC).strftime("%Y%m%d"))
    told: list[str] = []
    # Close together, so that a minute has many different faults.
    await run(Plan(tmp_path, seed, MINUTES, RATE, every_seconds=2.0), told.append)
    (tmp_path / "told").write_text("\n".join(told))
    history = load(tmp_path)
    assert len(history.runs) > MINUTES * RATE, "there was hardly anything to lose"
    found = [breach for breach in breaches(history) if breach.invariant.number not in TIMED]
    assert not found, (
        f"seed {seed}; what was done, the history and the logs are in {tmp_path}: python -m tests.chaos check "
        f"{tmp_path}"
    )

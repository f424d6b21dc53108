"""The jitter of a tick."""

from __future__ import annotations

from foliot.model.ids import new_id
from foliot.model.jitter import tick_jitter

NOW = 1_800_000_000


def test_jitter_is_reproducible_bounded_and_spread() -> None:
    job = new_id()
    delays = [tick_jitter(30, job, NOW + n * 60) for n in range(200)]
    assert delays == [tick_jitter(30, job, NOW + n * 60) for n in range(200)]
    assert min(delays) >= 0
    assert max(delays) <= 30
    assert len(set(delays)) > 20

"""Fixtures for recurring jobs, with a clock that stands still at 2026-03-01, 12:00 UTC, until a test advances it."""

from __future__ import annotations

import pytest

from foliot.clock import Clock
from tests.support.fake_clock import FakeClock


@pytest.fixture
def clock(fake_clock: FakeClock) -> Clock:
    return fake_clock

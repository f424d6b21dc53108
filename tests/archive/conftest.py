from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from foliot.clock import Clock
from foliot.config import Config
from tests.support.fake_clock import FakeClock


@pytest.fixture
def fake_clock() -> FakeClock:
    """In the morning, so that a slice of today has ended."""
    return FakeClock(datetime.now(UTC).replace(hour=10, minute=1, second=0, microsecond=0))


@pytest.fixture
def clock(fake_clock: FakeClock) -> Clock:
    return fake_clock


@pytest.fixture
def config(tmp_path: Path) -> Config:
    directory = tmp_path / "archive"
    directory.mkdir()
    return Config(archive_url=str(directory), archive_minutes=60)

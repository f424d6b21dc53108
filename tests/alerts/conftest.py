from __future__ import annotations

import pytest

from foliot.clock import Clock
from foliot.config import Config
from foliot.events import EventBus
from foliot.store.store import Store
from tests.support.alerts import Watch
from tests.support.fake_clock import FakeClock


@pytest.fixture
def clock(fake_clock: FakeClock) -> Clock:
    return fake_clock


@pytest.fixture
def watch(store: Store, fake_clock: FakeClock, events: EventBus, config: Config) -> Watch:
    return Watch(store, fake_clock, events, config)

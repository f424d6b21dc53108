from __future__ import annotations

import pytest

from foliot.clock import Clock
from foliot.events import EventBus
from foliot.store.store import Store
from tests.support.worker_bench import Bench


@pytest.fixture
async def bench(store: Store, clock: Clock, events: EventBus) -> Bench:
    bench = Bench(store, clock, events)
    await bench.register()
    return bench

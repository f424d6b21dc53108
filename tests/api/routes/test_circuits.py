"""Circuit breakers over HTTP."""

from __future__ import annotations

from datetime import timedelta

import httpx
import pytest

from foliot.clock import Clock
from foliot.model.circuit_breaker import Circuit
from foliot.store.store import Store
from tests.support.fake_clock import FakeClock


@pytest.fixture
def clock(fake_clock: FakeClock) -> Clock:
    """It is 2026-03-01, 12:00 UTC."""
    return fake_clock


async def test_circuits_are_shown(client: httpx.AsyncClient, store: Store, fake_clock: FakeClock) -> None:
    await store.circuit_breaker.record_failures({"send_invoice": 5}, {"send_invoice": Circuit()})
    until = (fake_clock.now() + timedelta(seconds=600)).isoformat().replace("+00:00", "Z")
    assert (await client.get("/v1/circuits")).json() == {
        "items": [{"task": "send_invoice", "failures": 5, "open_until": until, "probe_id": None}]
    }

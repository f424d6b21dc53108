"""Charts over time, read from the sums of minutes and hours."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import httpx
import pytest

from foliot.clock import Clock
from foliot.events import EventBus
from foliot.scheduler.recorder import Recorder
from foliot.store.store import Store
from tests.scheduler.test_recorder import ENDED, catch_up
from tests.support.fake_clock import FakeClock


@pytest.fixture
def clock(fake_clock: FakeClock) -> Clock:
    return fake_clock


@pytest.fixture
async def recorder(store: Store, fake_clock: FakeClock, events: EventBus) -> Recorder:
    await store.partitions.create_missing()
    return Recorder(store=store, clock=fake_clock, events=events)


async def test_charts_are_read_from_the_sums(
    client: httpx.AsyncClient, recorder: Recorder, fake_clock: FakeClock, sql: Any
) -> None:
    start = fake_clock.now()
    await catch_up(recorder)
    await sql.execute(ENDED, "succeeded", "mail", start, 2, 3)
    await sql.execute(ENDED, "failed", "bulk", start + timedelta(minutes=2), 40, 1)
    await fake_clock.advance(183)
    await catch_up(recorder)
    since = start.isoformat().replace("+00:00", "Z")

    async def lines(**query: Any) -> dict[str, list[float | None]]:
        answer = await client.get("/v1/series", params={"since": since, **query})
        assert answer.status_code == 200, answer.text
        return {line["name"]: line["values"] for line in answer.json()["lines"]}

    assert await lines() == {
        "succeeded": [3, 0, 0],
        "failed": [0, 0, 1],
        "cancelled": [0, 0, 0],
        "skipped": [0, 0, 0],
    }
    assert await lines(group="queue") == {"mail": [3, 0, 0], "bulk": [0, 0, 1]}
    assert len(await lines(group="queue", limit=1)) == 1
    assert (await lines(queue="mail"))["succeeded"] == [3, 0, 0]
    assert (await lines(queue="mail"))["failed"] == [0, 0, 0]
    assert await lines(group="queue", queue="bulk") == {"bulk": [0, 0, 1]}
    assert await lines(group="queue", queue="nothing") == {}
    waits = await lines(metric="wait")
    assert waits["p95"][1] is None
    assert 30 < (waits["p95"][2] or 0) <= 60
    assert (await lines(step=180))["succeeded"] == [3]
    assert await lines(metric="ready") == {}
    before = await lines(since=(start - timedelta(minutes=3)).isoformat().replace("+00:00", "Z"))
    assert before["succeeded"][:2] == [None, None], "nobody measured then"


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"group": "quantile"}, "group"),
        ({"metric": "none"}, "metric"),
        ({"step": "90"}, "step"),
        ({"step": "0"}, "step"),
        ({"limit": "0"}, "limit"),
        ({"limit": "51"}, "limit"),
        ({"since": "2026-03-01T00:00:00Z", "until": "2026-02-01T00:00:00Z"}, "since"),
        ({"since": "2020-03-01T00:00:00Z"}, "since"),
        ({"since": "2026-03-01T00:00:00"}, "since"),
    ],
)
async def test_a_bad_wish_is_refused_at_its_field(client: httpx.AsyncClient, query: dict[str, str], field: str) -> None:
    answer = await client.get("/v1/series", params=query)
    assert (answer.status_code, answer.json()["field"]) == (422, field)

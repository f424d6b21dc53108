"""A run that is only in the archive: the API says where to look for it."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from foliot.api.app import build_app
from foliot.clock import Clock
from foliot.config import Config
from foliot.events import EventBus
from foliot.model.ids import new_id
from foliot.scheduler.pruner import Pruner
from foliot.store.store import Store
from foliot.submission.submitter import Submitter
from tests.support.archive import archiver_of, catch_up
from tests.support.fake_clock import FakeClock
from tests.support.runs import finish

DAY_SECONDS = 86_400


@pytest.mark.parametrize("path", ["", "/logs"])
async def test_the_answer_names_the_place_in_the_archive(
    store: Store, config: Config, clock: Clock, events: EventBus, fake_clock: FakeClock, path: str
) -> None:
    first, old, last = [await finish(store, queue="default") for _ in range(3)]
    assert first < old < last
    ended_on = fake_clock.now().date()
    await fake_clock.advance(2 * DAY_SECONDS)
    await catch_up(archiver_of(store, config))
    await fake_clock.advance((config.retention_days + 1) * DAY_SECONDS)
    await catch_up(archiver_of(store, config))
    await Pruner(store=store, clock=fake_clock, events=events).run_once()
    submitter = Submitter(store=store, clock=clock, events=events)
    app = build_app(store=store, submitter=submitter, config=config, clock=clock, audit=None, is_open=True)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost:8000") as client:
        answer = await client.get(f"/v1/runs/{old}{path}")
        assert answer.status_code == 404
        place = f"{config.archive_url}/runs/day={ended_on}/namespace=default/"
        assert answer.json()["detail"].endswith(f"the archive has runs of its time in {place}")
        assert list(Path(place).iterdir())
        elsewhere = await client.get(f"/v1/runs/{old}{path}", headers={"Foliot-Namespace": "shop"})
        assert elsewhere.json()["detail"] == f"there is no run '{old}'"
        never = new_id()
        assert (await client.get(f"/v1/runs/{never}{path}")).json()["detail"] == f"there is no run '{never}'"


async def test_explain_and_health_say_that_days_wait_for_an_archive_that_is_away(
    store: Store, config: Config, clock: Clock, events: EventBus, fake_clock: FakeClock
) -> None:
    await finish(store)
    submitter = Submitter(store=store, clock=clock, events=events)
    app = build_app(store=store, submitter=submitter, config=config, clock=clock, audit=None, is_open=True)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost:8000") as client:
        assert (await client.get("/v1/explain/archive")).status_code == 404
        await catch_up(archiver_of(store, config))
        explained = (await client.get("/v1/explain/archive")).json()
        assert (explained["state"], explained["summary"]) == (
            "working", "it takes history; no day past retention waits for it",
        )  # fmt: skip
        Path(config.archive_url).rename(f"{config.archive_url}-away")
        await fake_clock.advance((config.retention_days + 3) * DAY_SECONDS)
        await archiver_of(store, config).run_once()
        await fake_clock.advance(600)
        await Pruner(store=store, clock=fake_clock, events=events).run_once()
        assert await store.partitions.list_unarchived()
        explained = (await client.get("/v1/explain/archive")).json()
        assert explained["state"] == "failing"
        assert "the archive has not taken" in explained["summary"]
        assert "stay in the database until the archive has them" in explained["summary"]
        advice = {one["kind"]: one for one in (await client.get("/v1/health/database")).json()["advice"]}
        assert advice["archive"]["severity"] == "problem"
        assert config.archive_url in advice["archive"]["text"]
        assert "wait in the database for the archive" in advice["archive_behind"]["text"]

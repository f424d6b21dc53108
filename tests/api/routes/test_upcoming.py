"""`GET /v1/upcoming` lists the ticks of the next hours."""

from __future__ import annotations

import httpx
import pytest

from foliot.clock import Clock
from tests.support.fake_clock import FakeClock


@pytest.fixture
def clock(fake_clock: FakeClock) -> Clock:
    """It is Sunday, 2026-03-01, 12:00 UTC."""
    return fake_clock


async def make(client: httpx.AsyncClient, name: str, **fields: object) -> None:
    answer = await client.post("/v1/jobs", json={"name": name, "task": "send_invoice", **fields})
    assert answer.status_code == 201, answer.text


async def test_the_ticks_of_all_jobs_are_listed_and_counted(client: httpx.AsyncClient) -> None:
    await make(client, "hourly", cron="0 * * * *", tags=["sale"])
    await make(client, "nightly", cron="0 3 * * *", queue="heavy")
    await make(client, "paused", cron="0 * * * *")
    await client.post("/v1/jobs/paused/pause")
    found = (await client.get("/v1/upcoming", params={"hours": 24})).json()
    listed = {job["name"]: (job["count"], job["is_estimate"], job["queue"]) for job in found["jobs"]}
    assert listed == {"hourly": (23, False, "mail"), "nightly": (1, False, "heavy")}
    assert (sum(bucket["fires"] for bucket in found["buckets"]), found["more"]) == (24, False)
    for query, names in (({"queue": "heavy"}, ["nightly"]), ({"tag": "sale"}, ["hourly"]), ({"tag": "none"}, [])):
        some = (await client.get("/v1/upcoming", params=query)).json()
        assert [job["name"] for job in some["jobs"]] == names


async def test_a_job_that_fires_all_the_time_hides_no_other(client: httpx.AsyncClient) -> None:
    await make(client, "every-second", every="1s")
    await make(client, "nightly", cron="0 3 * * *")
    found = (await client.get("/v1/upcoming", params={"hours": 168})).json()
    listed = {job["name"]: job for job in found["jobs"]}
    assert listed["nightly"]["count"] == 7
    assert (listed["every-second"]["is_estimate"], len(listed["every-second"]["fires"])) == (True, 200)
    assert listed["every-second"]["count"] == pytest.approx(168 * 3600, rel=0.01)
    assert min(bucket["fires"] for bucket in found["buckets"][:-1]) >= 3590


@pytest.mark.parametrize(
    ("query", "field"),
    [({"hours": 0}, "hours"), ({"hours": 745}, "hours"), ({"since": "2020-01-01T00:00:00Z"}, "since")],
)
async def test_a_time_that_cannot_be_shown_is_refused(
    client: httpx.AsyncClient, query: dict[str, str], field: str
) -> None:
    answer = await client.get("/v1/upcoming", params=query)
    assert (answer.status_code, answer.json()["field"]) == (422, field)

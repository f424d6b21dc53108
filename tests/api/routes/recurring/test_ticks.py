"""Past and upcoming ticks of recurring jobs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import httpx

from tests.support.fake_clock import FakeClock
from tests.support.recurring import create_job, job_path, succeed, ticks_of


async def test_ticks_are_listed_latest_first_up_to_the_limit(client: httpx.AsyncClient, fake_clock: FakeClock) -> None:
    await create_job(client, every="10m", name="report")
    for _ in range(4):
        await succeed(client, "POST", "report", "/pause")
        await fake_clock.advance(600)
        await succeed(client, "POST", "report", "/resume")
    await fake_clock.advance(1)
    run = await succeed(client, "POST", "report", "/trigger")
    whole = await ticks_of(client, "report")
    expected = [("paused", f"2026-03-01T12:{minute}:00Z", f"2026-03-01T12:{minute}:00Z") for minute in (40, 30, 20, 10)]
    assert whole == [("ready", "2026-03-01T12:40:01Z", None), *expected]
    for limit in (1, 2, 5, 200):
        assert await ticks_of(client, "report", f"?limit={limit}") == whole[:limit]
    assert (await succeed(client, "GET", "report", "/ticks"))["items"][0]["run_id"] == run["id"]


async def test_next_ticks_are_in_the_time_zone_of_the_job_across_a_clock_change(
    client: httpx.AsyncClient, fake_clock: FakeClock
) -> None:
    spring, autumn = datetime(2026, 3, 28, 12, tzinfo=UTC), datetime(2026, 10, 24, 12, tzinfo=UTC)
    cases: list[tuple[datetime, dict[str, str], list[tuple[str, str | None]]]] = [
        (spring, {}, [("2026-03-29T03:00:00+02:00", "after_gap"), ("2026-03-30T02:30:00+02:00", None)]),
        (spring, {"dst_gap": "skip"}, [("2026-03-30T02:30:00+02:00", None), ("2026-03-31T02:30:00+02:00", None)]),
        (autumn, {}, [("2026-10-25T02:30:00+02:00", "first_of_two"), ("2026-10-26T02:30:00+01:00", None)]),
        (
            autumn,
            {"dst_fold": "last"},
            [("2026-10-25T02:30:00+01:00", "second_of_two"), ("2026-10-26T02:30:00+01:00", None)],
        ),
        (
            autumn,
            {"dst_fold": "both"},
            [("2026-10-25T02:30:00+02:00", "first_of_two"), ("2026-10-25T02:30:00+01:00", "second_of_two")],
        ),
    ]
    for eve, policy, expected in cases:
        await fake_clock.advance((eve - fake_clock.now()).total_seconds())
        job = await create_job(client, cron="30 2 * * *", timezone="Europe/Zurich", **policy)
        assert (await client.get(job_path(job["id"], "/next?count=2"))).json() == {
            "items": [{"at": at, "dst": flag} for at, flag in expected], "timezone": "Europe/Zurich",
        }  # fmt: skip
        assert datetime.fromisoformat(job["next_at"]) == datetime.fromisoformat(expected[0][0])


async def test_next_ticks_are_listed_up_to_the_limit(client: httpx.AsyncClient) -> None:
    await create_job(client, every="1h", name="endless")
    await create_job(client, every="1h", name="bounded", end_at="2026-03-01T15:00:00Z")
    await create_job(client, every="1h", name="counted", max_runs=2)
    hours = [f"2026-03-01T{hour}:00:00Z" for hour in range(13, 23)]
    for name, counts in {
        "endless": {"": 10, "?count=4": 4},
        "bounded": {"": 3, "?count=2": 2},
        "counted": {"": 2, "?count=1": 1},
    }.items():
        for query, number in counts.items():
            items = (await client.get(job_path(name, "/next") + query)).json()["items"]
            assert [item["at"] for item in items] == hours[:number]
    assert len((await client.get(job_path("endless", "/next?count=1000"))).json()["items"]) == 1000


async def test_h_has_a_stable_value_for_each_job(client: httpx.AsyncClient) -> None:
    firsts = set()
    for _ in range(8):
        job = await create_job(client, cron="H H * * *")
        (first,) = (await client.get(job_path(job["id"], "/next?count=1"))).json()["items"]
        assert first["at"] == job["next_at"]
        firsts.add(first["at"])
    assert len(firsts) > 1


async def test_days_tell_what_became_of_their_ticks_and_what_is_planned(client: httpx.AsyncClient, sql: Any) -> None:
    await client.put("/v1/calendars/holidays", json={"timezone": "Europe/Berlin", "dates": ["2026-03-04"]})
    job = await create_job(client, cron="30 2 * * *", timezone="Europe/Berlin", name="report", calendar="holidays")
    await sql.execute(
        "insert into foliot.ticks (job_id, tick_at, until_at, noted_at, reason) values "
        "($1, '2026-02-27 23:30Z', null, now(), 'overlap'), "
        "($1, '2026-02-25 01:30Z', '2026-02-26 01:30Z', now(), 'missed')",
        UUID(job["id"]),
    )
    shown = (await client.get("/v1/jobs/report/ticks/days")).json()
    assert (shown["timezone"], shown["today"], shown["counted_from"]) == ("Europe/Berlin", "2026-03-01", None)
    assert shown["days"] == [
        {"date": "2026-02-25", "outcomes": {"missed": 1}},
        {"date": "2026-02-26", "outcomes": {"missed": 1}},
        # 23:30 in London is the next day in Berlin.
        {"date": "2026-02-28", "outcomes": {"overlap": 1}},
    ]
    ahead = {day["date"]: (day["count"], day["excluded"]) for day in shown["ahead"]}
    assert (ahead["2026-03-03"], ahead["2026-03-04"], len(ahead)) == ((1, 0), (0, 1), 183)
    assert shown["clock_changes"][0] == "2026-03-29"

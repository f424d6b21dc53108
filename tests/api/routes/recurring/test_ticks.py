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
        shown = (await client.get(job_path(job["id"], "/next?count=2"))).json()
        assert ([(one["at"], one["dst"]) for one in shown["items"]], shown["timezone"]) == (expected, "Europe/Zurich")
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


async def test_ticks_are_listed_within_a_time_and_page_by_page(client: httpx.AsyncClient, sql: Any) -> None:
    job = await create_job(client, cron="0 2 * * *", name="report")
    await sql.execute(
        "insert into foliot.ticks (job_id, tick_at, noted_at, reason) "
        "select $1, '2026-02-20 02:00Z'::timestamptz + n * interval '1 day', now(), 'missed' "
        "from generate_series(0, 6) n",
        UUID(job["id"]),
    )
    # A tick that was noted and run later has two rows at the same time.
    await sql.execute(
        "insert into foliot.runs (id, created_at, due_at, rank, state, queue, task, job_id, tick_at) "
        "select gen_random_uuid(), now(), now(), 0, 'ready', 'default', 't', $1, '2026-02-24 02:00Z'",
        UUID(job["id"]),
    )
    days = [f"2026-02-{day}T02:00:00Z" for day in (26, 25, 24, 24, 23, 22, 21, 20)]
    within = "?since=2026-02-22T00:00:00Z&until=2026-02-25T00:00:00Z"
    assert [at for _, at, _ in await ticks_of(client, "report", within)] == days[2:6]
    for size in (1, 3):
        seen = list[tuple[str, str]]()
        after: str | None = ""
        while after is not None:
            page = (await client.get(job_path("report", f"/ticks?limit={size}&after={after}"))).json()
            seen += [(tick["tick_at"], tick["outcome"]) for tick in page["items"]]
            after = page["next"]
        assert ([at for at, _ in seen], {seen[2][1], seen[3][1]}) == (days, {"ready", "missed"})
    assert (await client.get(job_path("report", "/ticks?after=x"))).json()["field"] == "after"


async def test_the_strip_sums_up_ticks_and_shows_downtimes_as_one(client: httpx.AsyncClient, sql: Any) -> None:
    job = await create_job(client, every="10m", name="report")
    blocker = UUID(int=7)
    await sql.execute(
        "insert into foliot.ticks (job_id, tick_at, until_at, noted_at, reason, blocked_by) values "
        "($1, '2026-02-28 05:00Z', '2026-02-28 13:00Z', now(), 'missed', null), "
        "($1, '2026-02-28 14:10Z', null, now(), 'overlap', $2), "
        "($1, '2026-02-28 14:50Z', null, now(), 'overlap', $2), "
        "($1, '2026-02-28 16:00Z', null, now(), 'overlap', $2), "
        "($1, '2026-02-28 20:00Z', '2026-02-28 21:00Z', now(), 'paused', null)",
        UUID(job["id"]), blocker,
    )  # fmt: skip
    shown = (await client.get(job_path("report", "/ticks/strip?cells=24"))).json()
    assert (shown["since"], shown["until"], shown["cell_seconds"]) == (
        "2026-02-28T12:00:00Z", "2026-03-01T12:00:00Z", 3600,
    )  # fmt: skip
    told = [(cell["first"], cell["until_at"], cell["outcome"], cell["count"]) for cell in shown["cells"]]
    assert told == [
        # It began before the time that is shown.
        ("2026-02-28T05:00:00Z", "2026-02-28T13:00:00Z", "missed", 1),
        ("2026-02-28T14:10:00Z", None, "overlap", 2),
        ("2026-02-28T16:00:00Z", None, "overlap", 1),
        ("2026-02-28T20:00:00Z", "2026-02-28T21:00:00Z", "paused", 1),
    ]
    assert (shown["cells"][1]["blocked_by"], shown["counted_from"]) == (str(blocker), None)
    for wrong, field in {
        "since=2024-01-01T00:00:00Z": "since",
        "since=2026-02-02T00:00:00Z&until=2026-02-01T00:00:00Z": "since",
        "cells=401": "cells",
        "until=yesterday": "until",
    }.items():
        refused = await client.get(job_path("report", f"/ticks/strip?{wrong}"))
        assert (refused.status_code, refused.json()["field"]) == (422, field)
    assert (await client.get(job_path("nothing", "/ticks/strip"))).status_code == 404


async def test_durations_are_compared_with_the_time_between_ticks(client: httpx.AsyncClient, sql: Any) -> None:
    job = await create_job(client, cron="0,10 * * * *", name="report")
    empty = (await client.get(job_path("report", "/durations"))).json()
    assert empty == {"items": [], "p95_seconds": None, "period_seconds": 600}
    await sql.execute(
        "insert into foliot.history (id, created_at, due_at, started_at, finished_at, token, attempt, lost, priority, "
        "state, queue, task, job_id, tick_at) "
        "select gen_random_uuid(), at, at, at, at + n * interval '1 second', 1, 1, 0, 0, "
        "'succeeded', 'default', 't', $1, at "
        "from (select n, now() + n * interval '1 minute' as at from generate_series(1, 20) n) as t",
        UUID(job["id"]),
    )
    shown = (await client.get(job_path("report", "/durations"))).json()
    assert [one["seconds"] for one in shown["items"]] == list(range(20, 0, -1))
    assert (shown["p95_seconds"], shown["period_seconds"]) == (19, 600)
    assert len((await client.get(job_path("report", "/durations?limit=5"))).json()["items"]) == 5


async def test_next_ticks_show_what_the_calendar_excludes_and_when_each_fires(client: httpx.AsyncClient) -> None:
    await client.put("/v1/calendars/holidays", json={"dates": ["2026-03-03"]})
    await create_job(client, cron="30 2 * * *", name="report", calendar="holidays", jitter_seconds=60)
    fires = (await client.get(job_path("report", "/next?count=2"))).json()["items"]
    assert [one["at"] for one in fires] == ["2026-03-02T02:30:00Z", "2026-03-04T02:30:00Z"]
    assert "2026-03-02T02:30:00Z" <= fires[0]["fires_at"] <= "2026-03-02T02:31:00Z"
    all_of_them = (await client.get(job_path("report", "/next?count=2&excluded=1"))).json()["items"]
    assert [(one["mark"], one["fires_at"] is None) for one in all_of_them] == [
        (None, False), ("excluded", True), (None, False),
    ]  # fmt: skip


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

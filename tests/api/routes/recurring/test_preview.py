"""A schedule is tried out before it is saved, and nothing changes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import httpx
import pytest

from foliot.store.store import Store
from tests.support.fake_clock import FakeClock
from tests.support.recurring import create_job, get_job

ENDED = """
insert into foliot.history (
    id, created_at, due_at, started_at, finished_at, token, attempt, lost, priority, state, queue, task, job_id, tick_at
)
select gen_random_uuid(), at, at, at, at + $3::bigint * interval '1 second', 1, 1, 0, 0, 'succeeded', 'default', 't',
    $1, at
from unnest($2::timestamptz[]) at
"""


async def preview(client: httpx.AsyncClient, **wishes: Any) -> dict[str, Any]:
    answer = await client.post("/v1/schedules/preview", json=wishes)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_a_preview_has_the_next_ticks_a_description_and_a_year_of_days(client: httpx.AsyncClient) -> None:
    seen = await preview(client, cron="30 9 * * MON-FRI", timezone="Europe/Zurich")
    assert (seen["timezone"], seen["fires_per_week"], seen["replay"]) == ("Europe/Zurich", 5.0, None)
    assert "09:30" in seen["words"]
    assert seen["next"][0] == {
        "at": "2026-03-02T09:30:00+01:00",
        "fires_at": "2026-03-02T08:30:00Z",
        "dst": None,
        "mark": None,
    }
    assert len(seen["next"]) == 50
    assert len(seen["days"]) == 366
    # 2026-03-01 is a Sunday.
    assert [day["count"] for day in seen["days"][:8]] == [0, 1, 1, 1, 1, 1, 0, 0]
    assert not any(day["is_estimate"] for day in seen["days"])


async def test_the_odd_nights_show_what_becomes_of_times_that_are_missing_or_come_twice(
    client: httpx.AsyncClient,
) -> None:
    seen = await preview(client, cron="30 2 * * *", timezone="Europe/Zurich", dst_fold="both")
    gap, fold = seen["odd_nights"]
    assert (gap["kind"], gap["at"], gap["minutes"]) == ("gap", "2026-03-29T03:00:00+02:00", 60)
    assert [(tick["at"], tick["dst"]) for tick in gap["ticks"]] == [("2026-03-29T03:00:00+02:00", "after_gap")]
    assert (fold["kind"], fold["at"]) == ("fold", "2026-10-25T02:00:00+01:00")
    assert [tick["dst"] for tick in fold["ticks"]] == ["first_of_two", "second_of_two"]
    skipping = await preview(client, cron="30 2 * * *", timezone="Europe/Zurich", dst_gap="skip")
    assert [tick["at"] for tick in skipping["odd_nights"][0]["ticks"]] == []
    assert (await preview(client, cron="@daily"))["odd_nights"] == []


async def test_excluded_and_moved_ticks_are_marked(client: httpx.AsyncClient) -> None:
    await client.put("/v1/calendars/closed", json={"weekdays": ["TUE"]})
    skipped = await preview(client, cron="0 6 * * *", calendar="closed")
    assert [(tick["mark"], tick["fires_at"] is None) for tick in skipped["next"][:3]] == [
        (None, False),
        ("excluded", True),
        (None, False),
    ]
    assert [(day["count"], day["excluded"]) for day in skipped["days"][1:4]] == [(1, 0), (0, 1), (1, 0)]
    moved = await preview(client, cron="0 6 * * TUE", calendar="closed", on_excluded="move")
    assert [(tick["at"][:10], tick["mark"]) for tick in moved["next"][:2]] == [
        ("2026-03-04", "moved"),
        ("2026-03-11", "moved"),
    ]


async def test_a_change_is_compared_with_the_job_as_it_is_saved(client: httpx.AsyncClient) -> None:
    await create_job(client, name="report", cron="0 */6 * * *", timezone="Europe/Zurich")
    before = await get_job(client, "report")
    seen = await preview(client, job="report", cron="0 */12 * * *")
    assert (seen["fires_per_week"], seen["saved_fires_per_week"], seen["timezone"]) == (14.0, 28.0, "Europe/Zurich")
    assert (await preview(client, job="report"))["fires_per_week"] == 28.0
    assert await get_job(client, "report") == before


async def test_the_last_month_is_replayed_with_real_durations(
    client: httpx.AsyncClient, store: Store, fake_clock: FakeClock, sql: Any
) -> None:
    await store.partitions.create_missing()
    job = await create_job(client, name="report", cron="0 * * * *")
    now = fake_clock.now()
    assert (await preview(client, job="report"))["replay"] is None
    await sql.execute(ENDED, job["id"], [now - timedelta(hours=n) for n in (1, 2, 3)], 40 * 60)
    hourly = (await preview(client, job="report"))["replay"]
    assert (hourly["ticks"], hourly["runs"], hourly["overlaps"]) == (720, 720, 0)
    assert hourly["median_seconds"] == 2400
    often = (await preview(client, job="report", cron="*/30 * * * *"))["replay"]
    assert (often["ticks"], often["runs"], often["overlaps"]) == (1440, 720, 720)
    waiting = (await preview(client, job="report", cron="*/30 * * * *", overlap="buffer_all"))["replay"]
    assert waiting["runs"] == 1440


async def test_other_ticks_in_the_queue_at_the_same_minute_are_counted(client: httpx.AsyncClient) -> None:
    for name in ("a", "b"):
        await create_job(client, name=name, cron="0 3 * * *", queue="mail")
    await create_job(client, name="elsewhere", cron="0 3 * * *", queue="bulk")
    seen = (await preview(client, cron="0 */3 * * *", queue="mail"))["crowding"]
    assert (seen["queue"], seen["busiest_at"], seen["busiest"], seen["shared"], seen["fires"]) == (
        "mail",
        "2026-03-02T03:00:00Z",
        2,
        1,
        7,
    )


@pytest.mark.parametrize("wishes", [{"every": "1s"}, {"cron": "* * * * * *"}, {"cron": "* * * * *"}])
async def test_a_schedule_with_very_many_ticks_is_estimated(client: httpx.AsyncClient, wishes: dict[str, str]) -> None:
    seen = await preview(client, **wishes)
    of_a_day = 86_400 if wishes.get("cron") != "* * * * *" else 1440
    assert seen["days"][200] == {"date": "2026-09-17", "count": of_a_day, "excluded": 0, "is_estimate": True}
    assert abs(seen["fires_per_week"] - 7 * of_a_day) < of_a_day * 0.01


@pytest.mark.parametrize(
    ("wishes", "field", "place"),
    [
        ({"cron": "61 * * * *"}, "cron", (0, 2)),
        ({"cron": "0 0 31 2 *"}, "cron", (4, 6)),
        ({"cron": "@daily", "timezone": "Europe/Zurihc"}, "timezone", None),
        ({"cron": "@daily", "calendar": "none"}, "calendar", None),
        ({"every": "soon"}, "every", None),
        ({"cron": "@daily", "end_at": "2020-01-01T00:00:00Z"}, "end_at", None),
        ({"cron": "@daily", "payload": 1}, "payload", None),
        ({}, "cron", None),
    ],
)
async def test_an_error_names_its_field_and_place(
    client: httpx.AsyncClient, wishes: dict[str, Any], field: str, place: tuple[int, int] | None
) -> None:
    answer = await client.post("/v1/schedules/preview", json=wishes)
    problem = answer.json()
    assert (answer.status_code, problem["field"]) == (422, field), problem
    if place is not None:
        assert (problem["start"], problem["end"]) == place


async def test_an_unknown_job_is_not_found(client: httpx.AsyncClient) -> None:
    assert (await client.post("/v1/schedules/preview", json={"job": "none", "cron": "@daily"})).status_code == 404

"""Calendars over HTTP, and the jobs that use them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from foliot.clock import Clock
from tests.support.fake_clock import FakeClock

URL = "/v1/calendars/holidays"
BANK = {"timezone": "Europe/London", "dates": ["2026-12-25", "2026-12-28"], "weekdays": ["SAT", "SUN"]}


@pytest.fixture
def clock(fake_clock: FakeClock) -> Clock:
    """It is Sunday, 2026-03-01, 12:00 UTC."""
    return fake_clock


async def make(client: httpx.AsyncClient, **fields: Any) -> httpx.Response:
    return await client.post("/v1/jobs", json={"task": "send_invoice", **fields})


async def next_times(client: httpx.AsyncClient, name: str, count: int) -> list[str]:
    return [item["at"] for item in (await client.get(f"/v1/jobs/{name}/next?count={count}")).json()["items"]]


async def test_a_calendar_is_created_changed_shown_and_deleted(
    client: httpx.AsyncClient, fake_clock: FakeClock
) -> None:
    made = (await client.put(URL, json=BANK)).json()
    assert made == {
        "name": "holidays",
        "version": 1,
        **BANK,
        "created_at": "2026-03-01T12:00:00Z",
        "updated_at": "2026-03-01T12:00:00Z",
        "jobs": 0,
    }
    await fake_clock.advance(60)
    # An identical PUT changes nothing.
    assert (await client.put(URL, json=BANK)).json() == made
    changed = (await client.put(URL, json=BANK | {"dates": []})).json()
    assert changed == made | {"version": 2, "dates": [], "updated_at": "2026-03-01T12:01:00Z"}
    assert (await client.get(URL)).json() == changed
    assert (await client.get("/v1/calendars")).json() == {"items": [changed]}
    assert (await client.delete(URL)).status_code == 204
    for answer in (await client.get(URL), await client.delete(URL), await client.get("/v1/calendars/%00")):
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "dates"),
        ({"dates": []}, "dates"),
        ({"dates": ["2026-02-30"]}, "dates[0]"),
        ({"dates": ["25.12.2026"]}, "dates[0]"),
        ({"weekdays": ["SAT", "Sunday"]}, "weekdays[1]"),
        ({"weekdays": ["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"]}, "weekdays"),
        ({"timezone": "Europe/Lodnon", "weekdays": ["SAT"]}, "timezone"),
        ({"dates": ["2026-12-25"] * 5001}, "dates"),
        ({"days": ["SAT"]}, "days"),
    ],
)
async def test_an_invalid_calendar_is_refused_with_its_field(
    client: httpx.AsyncClient, body: dict[str, Any], field: str
) -> None:
    answer = await client.put(URL, json=body)
    assert (answer.status_code, answer.json()["field"]) == (422, field)
    assert (await client.get(URL)).status_code == 404


@pytest.mark.parametrize("name", ["a b", "é", "x" * 201, "%0A"])
async def test_the_name_of_a_calendar_has_plain_characters(client: httpx.AsyncClient, name: str) -> None:
    answer = await client.put(f"/v1/calendars/{name}", json=BANK)
    assert (answer.status_code, answer.json()["field"]) == (422, "name")


async def test_a_job_skips_or_moves_ticks_on_excluded_days(client: httpx.AsyncClient) -> None:
    await client.put(URL, json=BANK)
    for on_excluded, expected in {
        "skip": ["2026-12-23T09:00:00Z", "2026-12-24T09:00:00Z", "2026-12-29T09:00:00Z"],
        # The ticks of Friday, Monday and the weekend all move to Tuesday at nine, as one.
        "move": ["2026-12-23T09:00:00Z", "2026-12-24T09:00:00Z", "2026-12-29T09:00:00Z", "2026-12-30T09:00:00Z"],
    }.items():
        bounds = {"start_at": "2026-12-23T00:00:00Z", "calendar": "holidays", "on_excluded": on_excluded}
        answer = await make(client, name=on_excluded, cron="0 9 * * *", timezone="Europe/London", **bounds)
        assert answer.status_code == 201, answer.text
        times = await next_times(client, on_excluded, len(expected))
        assert [
            datetime.fromisoformat(time).astimezone(UTC).isoformat().replace("+00:00", "Z") for time in times
        ] == expected
    monthly = await make(client, name="monthly", cron="0 9 25 12 *", calendar="holidays", on_excluded="move")
    assert monthly.json()["next_at"] == "2026-12-29T09:00:00Z"


async def test_a_job_with_an_unknown_calendar_or_one_that_excludes_all_ticks_is_refused(
    client: httpx.AsyncClient,
) -> None:
    await client.put(URL, json=BANK)
    unknown = await make(client, cron="@daily", calendar="hollidays")
    assert (unknown.status_code, unknown.json()["field"]) == (422, "calendar")
    assert "did you mean 'holidays'" in unknown.json()["detail"]
    never = await make(client, cron="0 9 * * SAT", calendar="holidays")
    assert (never.status_code, never.json()["field"]) == (422, "calendar")
    one_off = await make(client, calendar="holidays")
    assert (one_off.status_code, one_off.json()["field"]) == (422, "calendar")
    patched = await make(client, name="report", cron="@daily")
    assert patched.status_code == 201
    answer = await client.patch("/v1/jobs/report", json={"calendar": "nope"})
    assert (answer.status_code, answer.json()["field"]) == (422, "calendar")


async def test_a_calendar_in_use_is_not_deleted(client: httpx.AsyncClient) -> None:
    await client.put(URL, json=BANK)
    await make(client, name="report", cron="@daily", calendar="holidays")
    refused = await client.delete(URL)
    assert (refused.status_code, refused.json()["detail"]) == (
        409, "the job 'report' uses the calendar 'holidays'; change the job first",
    )  # fmt: skip
    assert (await client.patch("/v1/jobs/report", json={"calendar": None})).status_code == 200
    assert (await client.delete(URL)).status_code == 204


async def test_a_schedule_of_several_expressions_and_instants_is_due_at_each(client: httpx.AsyncClient) -> None:
    made = await make(client, name="union", cron=["0 9 * * *", "0 9,21 * * SUN"], times=["2026-03-02T15:00:00+01:00"])
    assert made.status_code == 201, made.text
    assert await next_times(client, "union", 4) == [
        "2026-03-01T21:00:00Z", "2026-03-02T09:00:00Z", "2026-03-02T14:00:00Z", "2026-03-03T09:00:00Z",
    ]  # fmt: skip
    only = await make(client, name="only", times=["2026-03-01T13:00:00Z", "2026-02-01T13:00:00Z"])
    assert (only.status_code, await next_times(client, "only", 5)) == (201, ["2026-03-01T13:00:00Z"])
    bad: list[tuple[dict[str, Any], str]] = [
        ({"cron": []}, "cron"),
        ({"cron": ["0 9 * * *", "61 * * * *"]}, "cron"),
        ({"cron": ["0 9 * * *"] * 21}, "cron"),
        ({"times": []}, "times"),
        ({"times": ["2026-02-01T13:00:00Z"]}, "times"),
        ({"times": ["2026-04-01T13:00:00"]}, "times[0]"),
    ]
    for fields, field in bad:
        answer = await make(client, **fields)
        assert (answer.status_code, answer.json()["field"]) == (422, field), answer.text
    assert "'61 * * * *'" in (await make(client, cron=["0 9 * * *", "61 * * * *"])).json()["detail"]


async def test_a_change_is_previewed_for_each_job_and_changes_nothing(client: httpx.AsyncClient) -> None:
    made = (await client.put(URL, json={"weekdays": ["SUN"]})).json()
    await make(client, name="daily", cron="0 9 * * *", calendar="holidays")
    await make(client, name="moves", cron="0 9 25 12 *", calendar="holidays", on_excluded="move")
    await make(client, name="mondays", cron="0 9 * * MON", calendar="holidays")
    await make(client, name="often", every="1s", calendar="holidays")
    await make(client, name="without", cron="0 9 * * *")
    change = {"weekdays": ["SUN", "MON"], "dates": ["2026-12-25"]}
    answer = await client.post(f"{URL}/preview", json=change)
    assert answer.status_code == 200, answer.text
    shown = answer.json()
    jobs = {job["name"]: job for job in shown["jobs"]}
    assert [job["name"] for job in shown["jobs"]] == ["mondays", "often", "daily", "moves"]
    assert (shown["changed"], shown["more"]) == (4, False)
    assert (jobs["mondays"]["next_before"], jobs["mondays"]["next_after"]) == ("2026-03-02T09:00:00Z", None)
    assert jobs["mondays"]["lost"] == 53
    assert jobs["daily"]["next_after"] == "2026-03-03T09:00:00Z"
    assert jobs["daily"]["days"][0] == {"date": "2026-03-02", "before": 1, "after": 0}
    # 53 Mondays and Christmas go.
    assert (jobs["daily"]["lost"], jobs["daily"]["gained"], len(jobs["daily"]["days"])) == (54, 0, 54)
    assert jobs["moves"]["days"] == [
        {"date": "2026-12-25", "before": 1, "after": 0},
        {"date": "2026-12-26", "before": 0, "after": 1},
    ]
    assert jobs["often"]["is_estimate"]
    assert jobs["often"]["days"][0] == {"date": "2026-03-02", "before": 86400, "after": 0}
    assert (await client.get(URL)).json() == made | {"jobs": 4}
    assert (await client.post("/v1/calendars/unknown/preview", json=change)).status_code == 404
    refused = await client.post(f"{URL}/preview", json={})
    assert (refused.status_code, refused.json()["field"]) == (422, "dates")


async def test_the_jobs_of_a_calendar_are_listed_in_pages(client: httpx.AsyncClient) -> None:
    await client.put(URL, json=BANK)
    for name in ("b", "a", "c"):
        await make(client, name=name, cron="0 9 * * *", calendar="holidays")
    await make(client, name="d", cron="0 9 * * *")
    page = (await client.get("/v1/jobs?calendar=holidays&limit=2")).json()
    assert ([job["name"] for job in page["items"]], page["next"]) == (["a", "b"], "b")
    rest = (await client.get("/v1/jobs?calendar=holidays&limit=2&after=b")).json()
    assert ([job["name"] for job in rest["items"]], rest["next"]) == (["c"], None)
    mixed = await client.get("/v1/jobs?calendar=holidays&tag=x")
    assert (mixed.status_code, mixed.json()["field"]) == (422, "calendar")

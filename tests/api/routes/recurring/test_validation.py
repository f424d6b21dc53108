"""Recurring jobs with bad schedules, bad options, bad queries or unknown references are refused."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import httpx

from foliot.model.ids import new_id
from tests.support.problems import JSON, problem_of
from tests.support.recurring import BAD_CRON, JOB_ROUTES, bad, call_job, create_job, job_path

NOT_A_SCHEDULE = [
    *[bad("cron", "invalid_cron", cron=cron) for cron in BAD_CRON],
    *[bad("schedule", "invalid_cron", schedule=cron) for cron in BAD_CRON],
    bad("cron", "invalid_cron", cron=""),
    bad("cron", cron="1," * 250 + "1 * * * *"),
    bad("cron", cron=5),
    bad("schedule", "invalid_cron", schedule=""),
    bad("schedule", "invalid_cron", schedule="tomorrow"),
    bad("schedule", schedule="2030-01-01T00:00:00"),
    bad("schedule", schedule="2030-01-01"),
    bad("schedule", schedule="2030-02-30T00:00:00Z"),
    bad("schedule", schedule="2030-01-01T00:00:00+25:00"),
    bad("schedule", schedule="9999-12-31T23:59:59-14:00"),
    *[bad("every", every=every) for every in ("", "0", "0s", "-5m", "5x", "1.5h", "1e3s", "37000d", "9" * 101, "٣m")],
]
NOT_AN_OPTION = [
    *[
        bad("timezone", cron="@daily", timezone=zone)
        for zone in ("Europe/Zuric", "", "CEST", "../UTC", "/etc/localtime", "UTC\n", "Europe")
    ],
    bad("timezone", every="1d", timezone="Mars/Olympus"),
    bad("overlap", every="5m", overlap="sometimes"),
    bad("overlap", every="5m", overlap=None),
    bad("catchup", every="5m", catchup="some"),
    *[
        bad("catchup_window", every="5m", catchup_window=window)
        for window in ("", "0s", "soon", "-1d", "366d", "36500d")
    ],
    bad("catchup_window", every="5m", catchup_window=86_400),
    *[bad("catchup_max", every="5m", catchup_max=most) for most in (0, 10_001, 1.5)],
    *[bad("jitter_seconds", every="5m", jitter_seconds=jitter) for jitter in (-1, 86_401, 0.5, "5")],
    *[bad("max_runs", every="5m", max_runs=most) for most in (0, -1, 10**40)],
    bad("retry_on", every="5m", retry_on=[]),
    bad("retry_on", every="5m", retry_on="ValueError"),
    *[bad("retry_on[0]", every="5m", retry_on=[cause]) for cause in (0, 256, "", None)],
    bad("never_on", every="5m", never_on=[]),
    bad("max_snoozes", every="5m", max_snoozes=-1),
    *[bad("backoff", every="5m", backoff=backoff) for backoff in ({"kind": "list"}, {"waits": [1]})],
    bad("dst_gap", cron="@daily", dst_gap="jump"),
    bad("dst_fold", cron="@daily", dst_fold="twice"),
    bad("start_at", every="5m", start_at="2030-01-01T00:00:00"),
    bad("end_at", every="5m", end_at="whenever"),
]
CONTRADICTORY = [
    bad("end_at", every="5m", start_at="2030-01-02T00:00:00Z", end_at="2030-01-01T00:00:00Z"),
    bad("end_at", every="5m", end_at="2026-03-01T12:04:59Z"),
    bad("end_at", cron="@daily", end_at="2020-01-01T00:00:00Z"),
    bad("start_at", cron="@daily", start_at="2200-01-02T00:00:00Z"),
    bad("start_at", every="5m", start_at="9999-12-31T23:59:59-14:00"),
    bad("every", cron="@daily", every="5m"),
    bad("schedule", cron="@daily", schedule="@hourly"),
    bad("schedule", every="5m", schedule="@hourly"),
    bad("schedule", cron="@daily", schedule="2030-01-01T00:00:00Z"),
    bad("delay_seconds", cron="@daily", delay_seconds=5),
    bad("delay_seconds", schedule="@daily", delay_seconds=0),
    bad("schedule_time", every="5m", schedule_time="2030-01-01T00:00:00Z"),
    bad("schedule", schedule="2030-01-01T00:00:00Z", delay_seconds=5),
    bad("schedule", schedule="2030-01-01T00:00:00Z", schedule_time="2031-01-01T00:00:00Z"),
    bad("start_at", start_at="2030-01-01T00:00:00Z"),
    bad("end_at", delay_seconds=5, end_at="2030-01-01T00:00:00Z"),
    bad("max_runs", schedule="2030-01-01T00:00:00Z", max_runs=1),
]


async def test_an_invalid_schedule_is_refused_with_its_field_and_nothing_is_stored(
    client: httpx.AsyncClient, sql: Any
) -> None:
    for case in [*NOT_A_SCHEDULE, *NOT_AN_OPTION, *CONTRADICTORY]:
        answer = await client.post("/v1/jobs", json={"task": "send_invoice", "name": "bad", **case.fields})
        assert problem_of(answer) == (422, case.code, case.field), case
    stored = (
        "select (select count(*) from foliot.jobs) + (select count(*) from foliot.job_versions) + (select "
        "count(*) from foliot.runs)"
    )
    assert await sql.fetchval(stored) == 0
    for fields, words in [
        ({"cron": "0 24 * * *"}, "cron: hour: 24 is not between 0 and 23"),
        ({"schedule": "0 24 * * *"}, "schedule: hour: 24 is not between 0 and 23"),
        ({"cron": "0 0 30 2 *"}, "never comes in month '2'"),
        ({"cron": "@daily", "timezone": "Europe/Zuric"}, "did you mean 'Europe/Zurich'?"),
        ({"every": "5x"}, "write it like 90s, 5m, 1h30m or 2d"),
        ({"schedule": "2030-01-01T00:00:00"}, "has no offset"),
    ]:
        assert words in (await client.post("/v1/jobs", json={"task": "send_invoice", **fields})).json()["detail"]


async def test_an_invalid_number_in_a_query_is_named(client: httpx.AsyncClient) -> None:
    await create_job(client, every="5m", name="report")
    for path, field, most in [
        ("/v1/jobs", "limit", 200),
        (job_path("report", "/ticks"), "limit", 200),
        (job_path("report", "/next"), "count", 1000),
    ]:
        for number in ("0", "-1", str(most + 1), "9" * 5000, "x", "", "1.5", "0x10", "null", "%00", "%EF%BC%91"):
            assert problem_of(await client.get(f"{path}?{field}={number}")) == (422, "invalid", field), number
        for number in ("1", str(most)):
            assert (await client.get(f"{path}?{field}={number}")).status_code == 200


async def test_requests_for_unknown_recurring_jobs_are_not_found(client: httpx.AsyncClient, sql: Any) -> None:
    one_off = await create_job(client, name="one-off")
    for reference in (one_off["id"], "one-off", str(new_id()), "nothing", "%", "1" * 5000):
        for method, rest in JOB_ROUTES:
            assert problem_of(await call_job(client, method, reference, rest)) == (404, "not_found", None), (
                method,
                rest,
            )
    for raw in ("%00", "%ED%A0%80", "%FF", "a%2Fb", "%2E%2E%2Fhealthz"):
        for method, rest in JOB_ROUTES:
            assert (
                problem_of(await client.request(method, f"/v1/jobs/{raw}{rest}", content=b"{}", headers=JSON))[0] == 404
            ), (
                method,
                raw,
                rest,
            )
    assert await sql.fetch("select id, state from foliot.runs") == [(UUID(one_off["id"]), "ready")]

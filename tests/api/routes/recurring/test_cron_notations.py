"""Cron notations of other schedulers over HTTP: how they are stored, and refusals that suggest what to write."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

JOB = {"name": "report", "task": "send_invoice"}


async def made(client: httpx.AsyncClient, **fields: Any) -> dict[str, Any]:
    answer = await client.post("/v1/jobs", json=JOB | fields)
    assert answer.status_code == 201, answer.text
    job: dict[str, Any] = answer.json()
    return job


async def changed(client: httpx.AsyncClient, **fields: Any) -> dict[str, Any]:
    answer = await client.patch("/v1/jobs/report", json=fields)
    assert answer.status_code == 200, answer.text
    job: dict[str, Any] = answer.json()
    return job


def refusal(answer: httpx.Response) -> tuple[int, str, str]:
    document = answer.json()
    return answer.status_code, document.get("field"), document["detail"]


@pytest.mark.parametrize(
    ("fields", "schedule", "next_at"),
    [
        (
            {"cron": "CRON_TZ=Asia/Tokyo 0 9 * * *"},
            {"cron": "0 9 * * *", "timezone": "Asia/Tokyo"},
            "2026-03-02T00:00:00Z",
        ),
        (
            {"schedule": "TZ=Asia/Tokyo 0 9 * * *"},
            {"cron": "0 9 * * *", "timezone": "Asia/Tokyo"},
            "2026-03-02T00:00:00Z",
        ),
        (
            {"cron": "CRON_TZ=Asia/Tokyo 0 9 * * *", "timezone": "Asia/Tokyo"},
            {"cron": "0 9 * * *", "timezone": "Asia/Tokyo"},
            "2026-03-02T00:00:00Z",
        ),
        (
            {"cron": ["CRON_TZ=Asia/Tokyo 0 9 * * *", "TZ=Asia/Tokyo 0 21 * * *"]},
            {"cron": ["0 9 * * *", "0 21 * * *"], "timezone": "Asia/Tokyo"},
            "2026-03-02T00:00:00Z",
        ),
        ({"cron": "@every 1h30m"}, {"every": "1h30m"}, "2026-03-01T13:30:00Z"),
        ({"schedule": "@every 5m"}, {"every": "5m"}, "2026-03-01T12:05:00Z"),
        ({"cron": "TZ=Asia/Tokyo @every 1d"}, {"every": "1d", "timezone": "Asia/Tokyo"}, "2026-03-02T12:00:00Z"),
        ({"cron": "rate(5 minutes)"}, {"every": "5m"}, "2026-03-01T12:05:00Z"),
        ({"cron": "cron(0 18 ? * 2-6 *)"}, {"cron": "0 18 ? * MON-FRI"}, "2026-03-02T18:00:00Z"),
        ({"cron": "cron(0 18 ? * 2-6 2027)"}, {"cron": "0 0 18 ? * MON-FRI 2027"}, "2027-01-01T18:00:00Z"),
        ({"cron": "0 0 9 ? * FRI-MON 2026-2027"}, {"cron": "0 0 9 ? * FRI-MON 2026-2027"}, "2026-03-02T09:00:00Z"),
        ({"cron": "0 0 13 * +FRI"}, {"cron": "0 0 13 * +FRI"}, "2026-03-13T00:00:00Z"),
        ({"cron": "0 22-4 * * *"}, {"cron": "0 22-4 * * *"}, "2026-03-01T22:00:00Z"),
        ({"cron": "@midnight"}, {"cron": "@midnight"}, "2026-03-02T00:00:00Z"),
    ],
)
async def test_a_notation_is_stored_as_equivalent_cron_fields(
    client: httpx.AsyncClient, fields: dict[str, Any], schedule: dict[str, Any], next_at: str
) -> None:
    job = await made(client, **fields)
    found = {
        name: job["schedule"][name] for name in ("cron", "every", "timezone") if job["schedule"].get(name) is not None
    }
    assert found | {"timezone": found.get("timezone", "UTC")} == {"timezone": "UTC", **schedule}
    assert job["next_at"] == next_at


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"cron": "*/90 * * * *"}, "cron", "every 90 minutes cannot be written in cron: use every: 90m"),
    ({"schedule": "*/90 * * * *"}, "schedule", "use every: 90m"),
    ({"cron": ["0 9 * * *", "0 */25 * * *"]}, "cron", "'0 */25 * * *': hour: the step 25"),
    ({"cron": "0 12 * * ? *"}, "cron", "write cron(0 12 * * ? *)"),
    (
        {"cron": "CRON_TZ=Asia/Tokyo 0 9 * * *", "timezone": "UTC"},
        "cron",
        "says Asia/Tokyo and timezone says UTC: leave one of them out",
    ),
    ({"cron": "@every 1d", "timezone": "Mars/Olympus"}, "timezone", "there is no IANA time zone 'Mars/Olympus'"),
    ({"cron": ["CRON_TZ=Asia/Tokyo 0 9 * * *", "0 9 * * *"]}, "cron", "all expressions of a job are in one zone"),
    ({"cron": ["0 9 * * *", "CRON_TZ=Asia/Tokyo 0 9 * * *"]}, "cron", "all expressions of a job are in one zone"),
    (
        {"cron": ["TZ=Asia/Tokyo 0 9 * * *", "TZ=Europe/Rome 0 9 * * *"]},
        "cron",
        "all expressions of a job are in one zone",
    ),
    ({"cron": "CRON_TZ=Asia/Tokio 0 9 * * *"}, "cron", "did you mean 'Asia/Tokyo'"),
    ({"cron": ["@every 5m", "0 9 * * *"]}, "cron", "a period can't stand beside other expressions"),
    ({"cron": ["0 9 * * *", "rate(1 day)"]}, "cron", "a period can't stand beside other expressions"),
    ({"cron": "@every 5 minutes"}, "cron", "write 5m"),
    ({"cron": "@every 5m", "every": "5m"}, "every", "give either cron or every"),
    ({"cron": "@reboot"}, "cron", "let systemd run it"),
    ({"cron": "0 0 0 1 1 ? 2020-2025"}, "cron", "the job would never fire"),
    ({"schedule": "0 0 0 1 1 ? 2020-2025"}, "schedule", "the job would never fire"),
    ({"cron": "0 0 0 29 2 ? 2027"}, "cron", "never fires"),
    ({"cron": "0 9 * * *, 0 10 * * *"}, "cron", "found 10; a field has no spaces"),
]


@pytest.mark.parametrize(("fields", "field", "detail"), REFUSED)
async def test_a_refusal_names_the_field_and_suggests_what_to_write(
    client: httpx.AsyncClient, fields: dict[str, Any], field: str, detail: str
) -> None:
    status, named, said = refusal(await client.post("/v1/jobs", json=JOB | fields))
    assert (status, named) == (422, field), said
    assert said.startswith(f"{field}: ")
    assert detail in said


@pytest.mark.parametrize(
    ("fields", "field", "detail"), [case for case in REFUSED if not {"schedule", "every"} & set(case[0])]
)
async def test_a_change_is_refused_as_a_new_job_is(
    client: httpx.AsyncClient, fields: dict[str, Any], field: str, detail: str
) -> None:
    before = await made(client, cron="0 3 * * *")
    status, named, said = refusal(await client.patch("/v1/jobs/report", json=fields))
    assert (status, named) == (422, field), said
    assert detail in said
    assert (await client.get("/v1/jobs/report")).json()["schedule"] == before["schedule"]


async def test_a_change_takes_the_zone_of_the_new_expression(client: httpx.AsyncClient) -> None:
    await made(client, cron="0 3 * * *", timezone="Europe/Rome")
    job = await changed(client, cron="CRON_TZ=Asia/Tokyo 0 9 * * *")
    assert (job["schedule"]["cron"], job["schedule"]["timezone"], job["next_at"]) == (
        "0 9 * * *",
        "Asia/Tokyo",
        "2026-03-02T00:00:00Z",
    )
    job = await changed(client, cron="0 10 * * *")
    assert (job["schedule"]["timezone"], job["next_at"]) == ("Asia/Tokyo", "2026-03-02T01:00:00Z")
    job = await changed(client, cron="@every 2h")
    assert (job["schedule"].get("cron"), job["schedule"]["every"]) == (None, "2h")
    job = await changed(client, cron="0 10 * * *", timezone="UTC")
    assert (job["schedule"]["cron"], job["schedule"].get("every"), job["next_at"]) == (
        "0 10 * * *",
        None,
        "2026-03-02T10:00:00Z",
    )


async def test_a_job_stored_with_a_now_refused_expression_still_fires_and_can_be_changed(
    client: httpx.AsyncClient, sql: Any
) -> None:
    """`*/90` used to mean minute 0 of every hour. A node that reads such a job must neither stop nor change its
    times."""
    await made(client, cron="0 * * * *")
    await sql.execute("UPDATE foliot.jobs SET schedule = jsonb_set(schedule, '{cron}', '\"*/90 * * * *\"')")
    shown = (await client.get("/v1/jobs/report/next?count=2")).json()["items"]
    assert [tick["at"] for tick in shown] == ["2026-03-01T13:00:00Z", "2026-03-01T14:00:00Z"]
    job = await changed(client, priority=3, timezone="Asia/Kolkata")
    assert (job["schedule"]["cron"], job["next_at"]) == ("*/90 * * * *", "2026-03-01T12:30:00Z")
    assert "use every: 90m" in refusal(await client.patch("/v1/jobs/report", json={"cron": "*/90 * * * *"}))[2]

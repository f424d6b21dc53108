"""The versions of a recurring job, and going back to one."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import httpx

from foliot.store.jobs import VERSIONS_KEPT
from foliot.store.store import Store
from tests.support.fake_clock import FakeClock
from tests.support.problems import problem_of
from tests.support.recurring import call_job, create_job, end_runs, get_job, succeed, ticks_of


async def versions_of(client: httpx.AsyncClient, reference: str, **query: int) -> dict[str, Any]:
    answer = await client.get(f"/v1/jobs/{reference}/versions", params=query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_each_change_is_a_version_with_its_author_and_time(
    client: httpx.AsyncClient, fake_clock: FakeClock
) -> None:
    job = await create_job(client, cron="0 3 * * *", name="report", payload={"to": "ann"})
    await fake_clock.advance(60)
    await succeed(client, "PATCH", "report", cron="0 4 * * *", tags=["night"])
    await succeed(client, "POST", "report", "/pause")
    shown = await versions_of(client, "report")
    assert (shown["id"], shown["name"], shown["is_deleted"], shown["next"]) == (job["id"], "report", False, None)
    second, first = shown["items"]
    assert (first["version"], first["made_by"], first["made_at"]) == (1, "local", "2026-03-01T12:00:00Z")
    assert (second["version"], second["made_by"], second["made_at"]) == (2, "local", "2026-03-01T12:01:00Z")
    differing = {name for name in first if first[name] != second[name]}
    assert differing == {"version", "made_at", "schedule", "schedule_words", "tags"}
    assert (second["schedule"]["cron"], second["tags"], second["payload"]) == ("0 4 * * *", ["night"], {"to": "ann"})


async def test_an_earlier_version_becomes_current_as_a_new_one(client: httpx.AsyncClient, sql: Any) -> None:
    await create_job(client, cron="0 3 * * *", name="report", payload={"to": "ann"}, retries=7)
    await succeed(client, "PATCH", "report", cron="0 4 * * *", payload={"to": "bob"}, retries=1, priority=3, queue="a")
    restored = await succeed(client, "POST", "report", "/restore", version=1)
    assert (restored["version"], restored["priority"], restored["queue"]) == (3, 0, "mail")
    assert (restored["schedule"]["cron"], restored["payload"], restored["options"]) == (
        "0 3 * * *",
        {"to": "ann"},
        {"retries": 7},
    )
    assert restored["next_at"] == "2026-03-02T03:00:00Z"
    last, _, first = (await versions_of(client, "report"))["items"]
    assert {**last, "version": 1, "made_at": first["made_at"]} == first
    # The current version is restored already.
    assert (await succeed(client, "POST", "report", "/restore", version=3))["version"] == 3
    assert problem_of(await call_job(client, "POST", "report", "/restore", version=9)) == (404, "not_found", None)


async def test_a_version_that_no_longer_fits_is_refused_and_nothing_changes(client: httpx.AsyncClient) -> None:
    await client.put("/v1/calendars/holidays", json={"dates": ["2030-01-01"]})
    await create_job(client, cron="0 3 * * *", name="report", calendar="holidays")
    await succeed(client, "PATCH", "report", calendar=None)
    assert (await client.delete("/v1/calendars/holidays")).status_code == 204
    assert problem_of(await call_job(client, "POST", "report", "/restore", version=1)) == (
        422,
        "invalid",
        "calendar",
    )
    assert (await get_job(client, "report"))["version"] == 2


async def test_restoring_is_refused_for_a_job_that_somebody_else_has_changed(client: httpx.AsyncClient) -> None:
    await create_job(client, cron="0 3 * * *", name="report")
    await succeed(client, "PATCH", "report", cron="0 4 * * *")
    seen = (await client.get("/v1/jobs/report")).headers["ETag"]
    await succeed(client, "PATCH", "report", cron="0 5 * * *")
    answer = await client.post("/v1/jobs/report/restore", json={"version": 1}, headers={"If-Match": seen})
    assert problem_of(answer) == (412, "precondition_failed", None)
    assert (await get_job(client, "report"))["schedule"]["cron"] == "0 5 * * *"


async def test_a_deleted_job_comes_back_with_its_runs_and_ticks(
    client: httpx.AsyncClient, store: Store, fake_clock: FakeClock
) -> None:
    job = await create_job(client, every="10m", name="report", payload={"to": "ann"}, max_runs=5)
    await succeed(client, "POST", "report", "/trigger")
    assert await end_runs(store) == 1
    await succeed(client, "PATCH", "report", priority=2)
    await fake_clock.advance(60)
    assert (await call_job(client, "DELETE", "report")).status_code == 204
    (gone,) = (await client.get("/v1/deleted-jobs")).json()["items"]
    assert (gone["name"], gone["version"], gone["deleted_by"]) == ("report", 2, "local")
    shown = await versions_of(client, "report")
    assert shown["is_deleted"]
    assert (shown["items"][0]["deleted_at"], shown["items"][1]["deleted_at"]) == ("2026-03-01T12:01:00Z", None)
    restored = await succeed(client, "POST", "report", "/restore")
    assert (restored["id"], restored["version"], restored["priority"]) == (job["id"], 3, 2)
    assert (restored["runs_left"], restored["next_at"]) == (5, "2026-03-01T12:11:00Z")
    assert len((await client.get("/v1/jobs/report/runs")).json()["items"]) == 1
    assert await ticks_of(client, "report") != []
    assert (await client.get("/v1/deleted-jobs")).json()["items"] == []
    # The same once more, as after a lost answer, changes nothing.
    assert (await succeed(client, "POST", "report", "/restore"))["version"] == 3


async def test_a_deleted_job_is_not_restored_over_another_of_its_name(client: httpx.AsyncClient) -> None:
    gone = await create_job(client, every="10m", name="report")
    await call_job(client, "DELETE", "report")
    await create_job(client, every="5m", name="report")
    assert problem_of(await call_job(client, "POST", gone["id"], "/restore")) == (409, "conflict", None)
    assert (await get_job(client, "report"))["schedule"]["every"] == "5m"


async def test_the_latest_versions_are_kept_and_listed_in_pages(client: httpx.AsyncClient, sql: Any) -> None:
    job = await create_job(client, every="10m", name="report")
    await sql.execute(
        "insert into foliot.job_versions (job_id, version, made_at, definition) "
        "select job_id, n, made_at, definition from foliot.job_versions, generate_series(2, $1::bigint) n",
        VERSIONS_KEPT,
    )
    await sql.execute("update foliot.jobs set version = $1", VERSIONS_KEPT)
    await succeed(client, "PATCH", "report", priority=1)
    assert await sql.fetchrow("select min(version), count(*) from foliot.job_versions") == (2, VERSIONS_KEPT)
    page = await versions_of(client, job["id"], limit=150)
    assert [version["version"] for version in page["items"]] == list(range(201, 51, -1))
    rest = await versions_of(client, job["id"], limit=150, before=page["next"])
    assert ([version["version"] for version in rest["items"]], rest["next"]) == (list(range(51, 1, -1)), None)


async def test_versions_of_jobs_deleted_before_retention_are_forgotten(
    client: httpx.AsyncClient, store: Store, sql: Any, fake_clock: FakeClock
) -> None:
    for name in ("old", "kept", "restored"):
        await create_job(client, every="10m", name=name)
    for name in ("old", "restored"):
        await call_job(client, "DELETE", name)
    await succeed(client, "POST", "restored", "/restore")
    await fake_clock.advance(60)
    await call_job(client, "DELETE", "kept")
    assert await store.job_versions.forget_versions(fake_clock.now() - timedelta(seconds=30)) == 1
    left = await sql.fetch("select definition ->> 'name', version from foliot.job_versions order by 1, 2")
    assert [tuple(row) for row in left] == [("kept", 1), ("restored", 1), ("restored", 2)]
    assert problem_of(await client.get("/v1/jobs/old/versions")) == (404, "not_found", None)


async def test_a_restored_job_waits_for_the_jobs_that_it_depends_on(client: httpx.AsyncClient, sql: Any) -> None:
    first = await create_job(client, every="10m", name="first")
    second = await create_job(client, name="second", dependencies=["first"])
    await call_job(client, "DELETE", "second")
    await succeed(client, "POST", "second", "/restore")
    rows = await sql.fetch("select job_id, upstream_id from foliot.job_dependencies")
    assert [tuple(row) for row in rows] == [(UUID(second["id"]), UUID(first["id"]))]

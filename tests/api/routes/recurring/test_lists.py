"""Recurring jobs in lists and one by one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import httpx

from tests.support.problems import JSON
from tests.support.recurring import call_job, create_job, get_job, job_path, succeed


async def test_a_job_is_shown_by_id_and_by_name_and_listed_as_it_was_made(client: httpx.AsyncClient) -> None:
    created = await create_job(
        client, cron="0 9 * * *", name="report", payload={"deep": [{"ü": None}, 10**40, 1.5]}, queue="bulk"
    )
    for reference in ("report", created["id"], created["id"].upper()):
        assert await get_job(client, reference) == created | {"created": False}
    assert (await client.get("/v1/jobs")).json()["items"] == [created | {"created": False}]
    longest = await create_job(client, every="5m", catchup_window="365d")
    assert (await get_job(client, longest["id"]))["schedule"]["catchup_window_seconds"] == 31_536_000


async def test_a_payload_of_any_accepted_depth_can_be_shown_listed_changed_and_triggered(
    client: httpx.AsyncClient,
) -> None:
    taken = 0
    for depth in (1, 50, *range(90, 105), 500, 940):
        payload = b'{"payload": {"a": ' + b"[" * depth + b"]" * depth + b"}"
        answer = await client.post(
            "/v1/jobs", content=payload + b', "task": "send_invoice", "every": "5m", "name": "deep"}', headers=JSON
        )
        if answer.status_code == 400:
            continue
        taken += 1
        for path in ("/v1/jobs", job_path("deep")):
            assert (await client.get(path)).status_code == 200
        assert (await client.patch(job_path("deep"), content=payload + b"}", headers=JSON)).status_code == 200
        triggered = await succeed(client, "POST", "deep", "/trigger")
        assert (await call_job(client, "GET", triggered["id"])).status_code == 200
        assert (await call_job(client, "DELETE", "deep")).status_code == 204
    assert taken >= 3


async def pages(
    client: httpx.AsyncClient, limit: int, between: Callable[[], Awaitable[None]] | None = None
) -> list[list[str]]:
    """The names on each page, up to the last one."""
    found, after = [], ""
    while True:
        page = (await client.get("/v1/jobs", params={"after": after, "limit": limit})).json()
        found.append([job["name"] for job in page["items"]])
        if page["next"] is None:
            return found
        after = page["next"]
        if between is not None:
            await between()


async def test_jobs_are_listed_page_by_page_each_once(client: httpx.AsyncClient) -> None:
    names = ["a", "A", "b", "B", "ä", "a b", "a-b", "ab", "Z", "z", "😀", "100%", "10", "9", "_", "é", "ê", "日本"]
    await create_job(client, name="one-off")
    assert (await client.get("/v1/jobs")).json() == {"items": [], "next": None}
    for name in names:
        await create_job(client, every="5m", name=name)
    (whole,) = await pages(client, 200)
    assert sorted(whole) == sorted(names)
    for limit in (1, 5, 6, 17, 18, 19):
        found = await pages(client, limit)
        assert [name for page in found for name in page] == whole
        assert all(len(page) == limit for page in found[:-1])


async def test_creations_and_deletions_between_pages_cause_no_duplicates_or_gaps(
    client: httpx.AsyncClient,
) -> None:
    staying = [f"job {number:02}" for number in range(0, 40, 2)]
    for name in staying:
        await create_job(client, every="5m", name=name)
    numbers = iter(range(1, 40, 2))

    async def disturb() -> None:
        name = f"job {next(numbers):02}"
        await create_job(client, every="5m", name=name)
        await create_job(client, every="5m", name=f"a {name}")
        await succeed(client, "PATCH", staying[0], priority=1)
        await call_job(client, "DELETE", name)

    seen = [name for page in await pages(client, 3, disturb) for name in page]
    assert len(seen) == len(set(seen))
    assert set(staying) <= set(seen)

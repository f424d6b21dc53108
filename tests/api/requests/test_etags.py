"""ETags: answers show a version, and a change with the ETag of another version is refused, even if versions change
during the request."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from foliot.store.store import Store

JOB, CALENDAR, QUEUE = "/v1/jobs/nightly", "/v1/calendars/holidays", "/v1/queues/mail"
PATHS = [JOB, CALENDAR, QUEUE]
DAYS = {"dates": ["2026-12-25"]}
Write = Callable[[httpx.AsyncClient, dict[str, str]], Awaitable[httpx.Response]]


async def make(client: httpx.AsyncClient) -> None:
    assert (
        await client.post("/v1/jobs", json={"name": "nightly", "task": "send_invoice", "cron": "0 3 * * *"})
    ).status_code == 201
    assert (await client.put(CALENDAR, json=DAYS)).status_code == 200
    assert (await client.patch(QUEUE, json={"max_running": 3})).status_code == 200


async def change(
    client: httpx.AsyncClient, path: str, headers: dict[str, str] | None = None, *, number: int = 7
) -> httpx.Response:
    if path == CALENDAR:
        return await client.put(path, json={"dates": [f"2026-12-{number:02}"]}, headers=headers)
    body = {"priority": number} if path == JOB else {"max_depth": number}
    return await client.patch(path, json=body, headers=headers)


async def tag_of(client: httpx.AsyncClient, path: str) -> str:
    answer = await client.get(path)
    assert answer.status_code == 200
    return str(answer.headers["etag"])


def is_refused(answer: httpx.Response) -> bool:
    document = answer.json()
    assert (answer.status_code, document["code"]) == (412, "precondition_failed"), document
    assert "GET it again" in document["detail"]
    return True


@pytest.mark.parametrize("path", PATHS)
async def test_a_client_with_the_current_etag_gets_304_without_a_body(client: httpx.AsyncClient, path: str) -> None:
    await make(client)
    tag = await tag_of(client, path)
    assert not tag.startswith("W/")
    for known in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        answer = await client.get(path, headers={"If-None-Match": known})
        assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", tag)
    assert (await client.get(path, headers={"If-None-Match": '"other"'})).status_code == 200
    changed = await change(client, path)
    assert changed.headers["etag"] != tag
    answer = await client.get(path, headers={"If-None-Match": tag})
    assert (answer.status_code, answer.headers["etag"]) == (200, changed.headers["etag"])


@pytest.mark.parametrize("path", PATHS)
async def test_if_match_changes_only_the_named_version(client: httpx.AsyncClient, path: str) -> None:
    await make(client)
    first = await tag_of(client, path)
    second = (await change(client, path, {"If-Match": first})).headers["etag"]
    before = (await client.get(path)).json()
    for stale in (first, f"W/{second}", '"somebody-elses"', '"0"', f'{first}, "x"'):
        assert is_refused(await change(client, path, {"If-Match": stale}, number=9))
    assert (await client.get(path)).json() == before
    version = second.strip('"').partition(".")[0]
    assert (await change(client, path, {"If-Match": f'"x", {second}'}, number=10)).status_code == 200
    assert (await change(client, path, {"If-Match": "*"}, number=11)).status_code == 200
    assert is_refused(await change(client, path, {"If-Match": f'"{version}"'}))


@pytest.mark.parametrize("bad", ["", "3", '"', '"a" "b"', "*, *", '"a",', "x" * 5000, '"a b"'])
async def test_a_malformed_etag_is_refused(client: httpx.AsyncClient, bad: str) -> None:
    await make(client)
    for path in PATHS:
        answer = await change(client, path, {"If-Match": bad})
        assert (answer.status_code, answer.json()["field"]) == (422, "If-Match")
    assert (await client.get(JOB, headers={"If-None-Match": bad})).status_code == 200


async def test_pause_resume_and_delete_accept_if_match(client: httpx.AsyncClient) -> None:
    await make(client)
    stale = await tag_of(client, JOB)
    await change(client, JOB)
    for path in (f"{JOB}/pause", f"{JOB}/resume"):
        assert is_refused(await client.post(path, headers={"If-Match": stale}))
    assert is_refused(await client.delete(JOB, headers={"If-Match": stale}))
    assert (await client.get(JOB)).json()["status"] == "active"
    paused = await client.post(f"{JOB}/pause", headers={"If-Match": '"2"'})
    assert (paused.status_code, paused.json()["status"]) == (200, "paused")
    # Pausing and firing do not change the definition: the version stays, but the shown resource changes.
    resumed = await client.post(f"{JOB}/resume", headers={"If-Match": paused.headers["etag"]})
    assert (resumed.status_code, resumed.json()["status"]) == (200, "active")
    assert resumed.headers["etag"] != paused.headers["etag"]
    assert (await client.delete(JOB, headers={"If-Match": paused.headers["etag"]})).status_code == 204
    stale = await tag_of(client, CALENDAR)
    await change(client, CALENDAR)
    assert is_refused(await client.delete(CALENDAR, headers={"If-Match": stale}))
    assert (await client.delete(CALENDAR, headers={"If-Match": await tag_of(client, CALENDAR)})).status_code == 204


async def test_if_match_does_not_match_a_later_job_with_the_same_name(client: httpx.AsyncClient) -> None:
    await make(client)
    for path in (JOB, CALENDAR):
        stale = await tag_of(client, path)
        assert (await client.delete(path)).status_code == 204
        if path == CALENDAR:
            answer = await change(client, path, {"If-Match": "*"})
            assert (answer.status_code, answer.json()["code"]) == (412, "precondition_failed")
            await client.put(path, json=DAYS)
        else:
            assert (await change(client, path, {"If-Match": stale})).status_code == 404
            await client.post("/v1/jobs", json={"name": "nightly", "task": "send_invoice", "cron": "0 3 * * *"})
        assert (await client.get(path)).json()["version"] == 1
        assert is_refused(await change(client, path, {"If-Match": stale}))


async def test_if_none_match_star_creates_a_calendar_but_does_not_change_one(client: httpx.AsyncClient) -> None:
    only_new = {"If-None-Match": "*"}
    assert (await client.put(CALENDAR, json=DAYS, headers=only_new)).json()["version"] == 1
    answer = await change(client, CALENDAR, only_new)
    assert (answer.status_code, answer.json()["code"]) == (412, "precondition_failed")
    for headers in ({"If-None-Match": '"1"'}, only_new | {"If-Match": "*"}):
        answer = await change(client, CALENDAR, headers)
        assert (answer.status_code, answer.json()["field"]) == (422, "If-None-Match")
    assert (await client.get(CALENDAR)).json()["dates"] == DAYS["dates"]


async def test_a_one_off_job_has_no_version(client: httpx.AsyncClient) -> None:
    made = (await client.post("/v1/jobs", json={"task": "send_invoice"})).json()
    answer = await client.get(f"/v1/jobs/{made['id']}", headers={"If-None-Match": "*"})
    assert (answer.status_code, answer.headers.get("etag")) == (200, None)


@pytest.mark.parametrize("path", PATHS)
async def test_one_of_many_concurrent_changes_of_a_version_wins(client: httpx.AsyncClient, path: str) -> None:
    await make(client)
    tag = await tag_of(client, path)
    answers = await asyncio.gather(
        *(change(client, path, {"If-Match": tag}, number=number) for number in range(11, 21))
    )
    assert sorted(answer.status_code for answer in answers) == [200] + [412] * 9
    (won,) = (answer for answer in answers if answer.status_code == 200)
    assert (await client.get(path)).json() == won.json()


async def test_one_of_many_concurrent_creations_of_a_calendar_wins(client: httpx.AsyncClient) -> None:
    answers = await asyncio.gather(
        *(change(client, CALENDAR, {"If-None-Match": "*"}, number=number) for number in range(11, 21))
    )
    assert sorted(answer.status_code for answer in answers) == [200] + [412] * 9


async def test_concurrent_changes_of_limits_do_not_undo_each_other(client: httpx.AsyncClient) -> None:
    for turn in range(1, 6):
        depth, running = {"max_depth": turn}, {"max_running": turn}
        answers = await asyncio.gather(client.patch(QUEUE, json=depth), client.patch(QUEUE, json=running))
        assert [answer.status_code for answer in answers] == [200, 200]
        assert (await client.get(QUEUE)).json().items() >= (depth | running).items()


WRITES: dict[str, tuple[str, str, Write]] = {
    "change": ("change_job", JOB, lambda client, headers: client.patch(JOB, json={"queue": "other"}, headers=headers)),
    "pause": ("pause_job", JOB, lambda client, headers: client.post(f"{JOB}/pause", headers=headers)),
    "delete": ("delete_job", JOB, lambda client, headers: client.delete(JOB, headers=headers)),
    "change a calendar": (
        "change_calendar",
        CALENDAR,
        lambda client, headers: client.put(CALENDAR, json=DAYS, headers=headers),
    ),
    "delete a calendar": (
        "delete_calendar",
        CALENDAR,
        lambda client, headers: client.delete(CALENDAR, headers=headers),
    ),
    "change a queue": (
        "put_queue",
        QUEUE,
        lambda client, headers: client.patch(QUEUE, json={"max_running": 1}, headers=headers),
    ),
}


@pytest.mark.parametrize("write", WRITES)
async def test_the_write_checks_the_version_again(
    client: httpx.AsyncClient, store: Store, monkeypatch: pytest.MonkeyPatch, write: str
) -> None:
    """Another change is committed after ours was checked and before it is written."""
    await make(client)
    method, path, send = WRITES[write]
    family = {JOB: store.jobs, CALENDAR: store.calendars, QUEUE: store.queues}[path]
    real, changes = getattr(family, method), 0

    async def meet(*arguments: Any, **named: Any) -> Any:
        nonlocal changes
        changes += 1
        if changes == 1:
            assert (await change(client, path)).status_code == 200
        return await real(*arguments, **named)

    monkeypatch.setattr(family, method, meet)
    answer = await send(client, {"If-Match": await tag_of(client, path)})
    assert is_refused(answer)
    monkeypatch.undo()
    after = (await client.get(path)).json()
    expected = {JOB: ("priority", 7), CALENDAR: ("dates", ["2026-12-07"]), QUEUE: ("max_depth", 7)}[path]
    assert (after[expected[0]], after.get("status", "active"), after.get("queue", "mail")) == (
        expected[1],
        "active",
        "mail",
    )

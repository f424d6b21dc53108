"""Creating and showing jobs, from the first answer to the last state."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import httpx

from foliot.events import Event, RunsSubmitted
from foliot.model.ids import new_id
from foliot.model.outcome import Outcome
from foliot.model.states import RunState
from foliot.store.store import Store
from tests.support.runs import claim_runs

WORKER = new_id()


async def create(client: httpx.AsyncClient, **fields: Any) -> dict[str, Any]:
    answer = await client.post("/v1/jobs", json=fields)
    assert answer.status_code == 201, answer.text
    job: dict[str, Any] = answer.json()
    assert answer.headers["location"] == f"/v1/jobs/{job['id']}"
    return job


async def show(client: httpx.AsyncClient, job: dict[str, Any]) -> dict[str, Any]:
    answer = await client.get(f"/v1/jobs/{job['id']}")
    assert answer.status_code == 200, answer.text
    shown: dict[str, Any] = answer.json()
    return shown


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


async def claim(store: Store, queue: str = "mail") -> int:
    """Claims a ready run as a worker, and returns the token of the claim."""
    (claimed,) = await claim_runs(store, WORKER, {queue: 1}, ["send_invoice", "shell", "simulate"])
    return claimed.token


async def end(store: Store, job: dict[str, Any], **outcome: Any) -> None:
    token = await claim(store)
    assert await store.outcomes.finish_runs(WORKER, [Outcome(UUID(job["id"]), token, **outcome)]) == 1


async def test_a_job_without_a_time_is_ready_now(client: httpx.AsyncClient) -> None:
    job = await create(client, task="send_invoice", payload={"customer": 7}, name="invoice 7", priority=5)
    assert {key: job[key] for key in ("name", "status", "state", "task", "queue", "priority", "created")} == {
        "name": "invoice 7",
        "status": "pending",
        "state": "ready",
        "task": "send_invoice",
        "queue": "mail",
        "priority": 5,
        "created": True,
    }
    assert job["scheduled_at"] == job["created_at"]


async def test_a_delay_counts_from_the_database_s_now(client: httpx.AsyncClient) -> None:
    job = await create(client, task="send_invoice", delay_seconds=90)
    assert (job["status"], job["state"]) == ("scheduled", "scheduled")
    assert instant(job["scheduled_at"]) - instant(job["created_at"]) == timedelta(seconds=90)


async def test_a_delay_of_zero_is_now(client: httpx.AsyncClient) -> None:
    assert (await create(client, task="send_invoice", delay_seconds=0))["state"] == "ready"


async def test_a_schedule_time_is_kept_to_the_microsecond_whatever_its_offset(client: httpx.AsyncClient) -> None:
    job = await create(client, task="send_invoice", schedule_time="2199-07-01T09:30:00.123456+05:45")
    assert job["state"] == "scheduled"
    assert instant(job["scheduled_at"]) == datetime(2199, 7, 1, 3, 45, 0, 123456, tzinfo=UTC)


async def test_a_schedule_time_in_the_past_is_now(client: httpx.AsyncClient) -> None:
    for past in (
        "2020-01-01T00:00:00Z",
        "1900-01-01T00:00:00+01:00",
        "0001-01-01T00:00:00+14:00",
        "0001-01-01T00:00:00Z",
    ):
        job = await create(client, task="send_invoice", schedule_time=past)
        assert (job["state"], job["scheduled_at"]) == ("ready", job["created_at"])


async def test_aliases_of_fields_work(client: httpx.AsyncClient) -> None:
    job = await show(client, await create(client, job_type="send_invoice", max_retries=7))
    assert (job["task"], job["options"]) == ("send_invoice", {"retries": 7})


async def test_a_command_is_a_job_of_the_task_shell(client: httpx.AsyncClient) -> None:
    job = await show(client, await create(client, command="echo hello"))
    assert (job["task"], job["queue"], job["payload"]) == ("shell", "default", {"command": "echo hello"})
    assert (await create(client, task="shell", command="true"))["task"] == "shell"


async def test_a_job_can_override_the_queue_of_its_task(client: httpx.AsyncClient) -> None:
    assert (await create(client, task="send_invoice", queue="bulk"))["queue"] == "bulk"


async def test_given_options_are_stored(client: httpx.AsyncClient) -> None:
    given = {"retries": 0, "timeout_seconds": 2.5, "backoff": {"kind": "fixed", "base_seconds": 1}}
    job = await show(client, await create(client, task="send_invoice", **given))
    assert job["options"] == given | {"backoff": {"kind": "fixed", "base_seconds": 1.0}}


async def test_a_payload_comes_back_as_it_was_sent(client: httpx.AsyncClient) -> None:
    texts: list[object] = ["plain", "backslash-u \\u0000 in letters", "emoji 😀, quotes \" and ', newline \n", ""]
    for value in [*texts, 0, -1.5, 10**40, 5e-324, None, True, [], {}, {"deep": [[[{}]]]}, {"": "empty key"}]:
        job = await show(client, await create(client, task="send_invoice", payload={"value": value}))
        assert job["payload"] == {"value": value}


async def test_a_new_job_is_shown_with_all_its_fields(client: httpx.AsyncClient) -> None:
    created = await create(client, task="send_invoice")
    job = await show(client, created)
    assert {key: job[key] for key in created if key != "created"} == {
        key: created[key] for key in created if key != "created"
    }
    assert job["payload"] == {}
    for unknown in ("name", "reason", "worker_id", "started_at", "finished_at", "options", "result", "error", "output"):
        assert job[unknown] is None
    assert job["attempt"] == 0


async def test_a_running_job_shows_its_worker_and_start(client: httpx.AsyncClient, store: Store) -> None:
    job = await create(client, task="send_invoice")
    await claim(store)
    shown = await show(client, job)
    assert (shown["status"], shown["attempt"], shown["worker_id"]) == ("running", 1, str(WORKER))
    assert instant(shown["started_at"]) >= instant(shown["created_at"])


async def test_a_job_that_succeeded_is_shown_with_its_result(client: httpx.AsyncClient, store: Store) -> None:
    job = await create(client, task="send_invoice")
    await end(store, job, state=RunState.SUCCEEDED, result='{"sent":true}', output=b"sent \xff\0")
    shown = await show(client, job)
    assert (shown["status"], shown["state"], shown["result"]) == ("completed", "succeeded", {"sent": True})
    assert shown["output"] == "sent \N{REPLACEMENT CHARACTER}\0"
    assert instant(shown["finished_at"]) >= instant(shown["started_at"])


async def test_a_job_that_failed_is_shown_with_its_error(client: httpx.AsyncClient, store: Store) -> None:
    job = await create(client, task="send_invoice")
    await end(store, job, state=RunState.FAILED, reason="error", error='{"kind":"ValueError","message":"no"}')
    shown = await show(client, job)
    assert (shown["status"], shown["reason"], shown["error"]) == (
        "failed",
        "error",
        {"kind": "ValueError", "message": "no"},
    )


async def test_a_job_that_waits_for_a_retry_shows_its_last_error(client: httpx.AsyncClient, store: Store) -> None:
    job = await create(client, task="send_invoice")
    token = await claim(store)
    outcome = Outcome(
        UUID(job["id"]), token, RunState.SCHEDULED, "error", 60.0, error='{"kind":"ValueError"}', output=b"out"
    )
    assert await store.outcomes.retry_runs(WORKER, [outcome]) == 1
    shown = await show(client, job)
    assert (shown["status"], shown["state"], shown["attempt"]) == ("retrying", "scheduled", 1)
    assert (shown["error"], shown["output"]) == ({"kind": "ValueError"}, "out")


async def test_a_json_result_that_is_not_text_is_shown(client: httpx.AsyncClient, store: Store) -> None:
    for result in ('"nul \\u0000"', '"lone \\ud800 surrogate"', "1e400"):
        job = await create(client, task="send_invoice")
        await end(store, job, state=RunState.SUCCEEDED, result=result)
        assert (await show(client, job))["result"] == json.loads(result)


async def test_an_unknown_job_is_not_found(client: httpx.AsyncClient) -> None:
    for job_id in (str(new_id()), str(UUID(int=1)), "nonsense", "%00", "%ED%A0%80", "1" * 5000, "..%2F..%2Fetc"):
        answer = await client.get(f"/v1/jobs/{job_id}")
        assert answer.status_code == 404
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["code"] == "not_found"


async def test_concurrent_submissions_are_stored_in_few_statements(
    client: httpx.AsyncClient, seen: list[Event], sql: Any
) -> None:
    await create(client, task="send_invoice")
    seen.clear()
    jobs = await asyncio.gather(
        *(create(client, task="send_invoice", payload={"number": number}) for number in range(200))
    )
    batches = [event.count for event in seen if isinstance(event, RunsSubmitted)]
    assert sum(batches) == 200
    assert len(batches) <= 10
    stored = await sql.fetch("select id from foliot.runs order by rank")
    assert {row[0] for row in stored[1:]} == {UUID(job["id"]) for job in jobs}


async def test_a_disconnected_client_does_not_disturb_its_batch(client: httpx.AsyncClient) -> None:
    await create(client, task="send_invoice")
    calls = [asyncio.create_task(create(client, task="send_invoice")) for _ in range(20)]
    for _ in range(5):
        await asyncio.sleep(0)
    for call in calls[::2]:
        call.cancel()
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert all(isinstance(answer, dict) for answer in answers[1::2])

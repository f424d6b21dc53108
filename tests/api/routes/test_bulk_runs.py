"""Cancelling and rerunning runs by a filter: counted first, batch by batch, never more than were counted, and safe to
repeat."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from foliot.api.routes import bulk_runs
from foliot.model.states import RunState
from foliot.store.store import Store
from tests.support.jobs import make_job
from tests.support.run_lists import listed_ids
from tests.support.runs import claim, finish, insert


async def change(client: httpx.AsyncClient, verb: str, **group: Any) -> dict[str, Any]:
    answer = await client.post(f"/v1/runs/{verb}", json=group)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_matching_runs_are_counted_and_then_cancelled(client: httpx.AsyncClient, store: Store) -> None:
    running = str(await insert(store))
    await claim(store)
    waiting = [str(await insert(store)) for _ in range(3)]
    later = str(await insert(store, delay_seconds=3600))
    other = str(await insert(store, task="simulate", queue="default"))
    done = str(await finish(store, task="simulate", queue="other"))
    counted = await change(client, "cancel", queue="mail", dry_run=True)
    assert (counted["count"], counted["more"], counted["dry_run"]) == (5, False, True)
    assert [run["id"] for run in counted["sample"]] == [later, *waiting[::-1], running]
    assert await listed_ids(client, state="cancelled") == []
    younger = str(await insert(store))
    asked = {"queue": "mail", "until": counted["until"], "expected": counted["count"], "reason": "mistake"}
    assert (await change(client, "cancel", **asked))["count"] == 5
    assert await listed_ids(client, state="cancelled") == [later, *waiting[::-1]]
    shown = (await client.get(f"/v1/runs/{running}")).json()
    assert (shown["status"], shown["cancel_requested"]["message"]) == ("running", "mistake")
    assert await listed_ids(client, state="pending") == [younger, other]
    assert (await client.get(f"/v1/runs/{done}")).json()["status"] == "completed"
    # After a lost answer the repetition finds nothing left to do, except for the run that its worker has not released
    # yet.
    assert (await change(client, "cancel", **asked))["count"] == 1
    assert (await change(client, "cancel", **asked, force=True))["count"] == 1
    assert (await change(client, "cancel", **asked))["count"] == 0


async def test_ended_runs_are_rerun_once(client: httpx.AsyncClient, store: Store) -> None:
    failed = [
        str(await finish(store, RunState.FAILED, error="Disk full", options='{"tags": ["red"]}')) for _ in range(2)
    ]
    await finish(store, RunState.FAILED, error="other")
    await finish(store)
    asked: dict[str, Any] = {"state": "failed", "text": "disk FULL"}
    counted = await change(client, "rerun", **asked, dry_run=True)
    assert counted["count"] == 2
    asked |= {"until": counted["until"], "expected": 2}
    assert [run["id"] for run in (await change(client, "rerun", **asked))["sample"]] == failed[::-1]
    assert (await change(client, "rerun", **asked))["count"] == 0
    new = [(await client.get(f"/v1/runs/{run}")).json() for run in await listed_ids(client, tag="red", state="pending")]
    assert sorted(run["rerun_of"] for run in new) == failed
    assert (await change(client, "rerun", tag="red", dry_run=True))["count"] == 0


async def test_consecutive_batches_neither_overlap_nor_leave_gaps(
    client: httpx.AsyncClient, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_runs, "BATCH", 4)
    monkeypatch.setattr(bulk_runs, "PAGES", 2)
    for _ in range(11):
        await insert(store)
    group: dict[str, Any] = {"queue": "mail", "dry_run": True}
    counts = []
    while True:
        counted = await change(client, "cancel", **group)
        counts.append(counted["count"])
        if not counted["more"]:
            break
        group |= {"after": counted["next"], "until": counted["until"]}
    assert counts == [8, 3]
    group = {"queue": "mail", "until": counted["until"], "expected": 11}
    done = 0
    while True:
        answer = await change(client, "cancel", **group)
        done += answer["count"]
        if answer["next"] is None:
            break
        group |= {"after": answer["next"], "expected": group["expected"] - answer["count"]}
    assert (done, len(await listed_ids(client, state="cancelled"))) == (11, 11)


async def test_more_runs_than_expected_are_left_alone(client: httpx.AsyncClient, store: Store) -> None:
    for _ in range(3):
        await insert(store)
    answer = await client.post("/v1/runs/cancel", json={"queue": "mail", "expected": 2})
    assert (answer.status_code, "more than 2 runs match now" in answer.json()["detail"]) == (409, True)
    assert await listed_ids(client, state="cancelled") == []


async def test_runs_of_a_job_are_changed_batch_by_batch(
    client: httpx.AsyncClient, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_runs, "BATCH", 1)
    await make_job(store, name="nightly", task="send_invoice", every="1h")
    for _ in range(3):
        assert (await client.post("/v1/jobs/nightly/trigger")).status_code == 201
    after: str | None = ""
    for left in (3, 2, 1):
        answer = await change(client, "cancel", job="nightly", expected=left, after=after)
        assert answer["count"] == 1
        after = answer["next"]
    assert after is None
    assert len(await listed_ids(client, job="nightly", state="cancelled")) == 3


async def test_steps_are_left_out_of_reruns(client: httpx.AsyncClient) -> None:
    steps = [{"key": "one", "task": "simulate"}, {"key": "two", "task": "simulate"}]
    flow = (await client.post("/v1/workflows", json={"steps": steps})).json()
    await client.post(f"/v1/workflows/{flow['id']}/cancel")
    assert (await change(client, "rerun", task="simulate", dry_run=True))["count"] == 0
    assert [run["id"] for run in (await change(client, "rerun", task="workflow", dry_run=True))["sample"]] == [
        flow["id"]
    ]


@pytest.mark.parametrize(
    ("verb", "body", "field"),
    [
        ("cancel", {}, "state"),
        ("cancel", {"dry_run": True}, "state"),
        ("cancel", {"until": "1h", "expected": 1}, "state"),
        ("cancel", {"queue": "mail"}, "expected"),
        ("cancel", {"queue": "mail", "all": True, "dry_run": True}, "all"),
        ("cancel", {"state": "failed", "dry_run": True}, "state"),
        ("cancel", {"state": "pending,failed", "dry_run": True}, "state"),
        ("cancel", {"state": "faild", "dry_run": True}, "state"),
        ("cancel", {"job": "nothing", "dry_run": True}, "job"),
        ("cancel", {"queue": "mail", "after": "x", "dry_run": True}, "after"),
        ("rerun", {"state": "running", "dry_run": True}, "state"),
        ("rerun", {"force": True, "dry_run": True}, "force"),
        ("rerun", {"since": "1h", "until": "2h", "dry_run": True}, "until"),
    ],
    ids=range(13),
)
async def test_invalid_requests_are_refused(
    client: httpx.AsyncClient, verb: str, body: dict[str, Any], field: str
) -> None:
    answer = await client.post(f"/v1/runs/{verb}", json=body)
    assert (answer.status_code, answer.json()["field"]) == (422, field), answer.text


async def test_all_runs_are_selected_only_by_all(client: httpx.AsyncClient, store: Store) -> None:
    await insert(store)
    await insert(store, task="simulate", queue="default")
    assert (await change(client, "cancel", all=True, expected=2))["count"] == 2


class TestJobs:
    @pytest.fixture(autouse=True)
    async def jobs(self, client: httpx.AsyncClient) -> None:
        for name, extra in (
            ("a", {"every": "1h"}),
            ("b", {"every": "1h", "tags": ["red"]}),
            ("c", {"dependencies": ["a"]}),
        ):
            assert (await client.post("/v1/jobs", json={"name": name, "task": "simulate", **extra})).status_code == 201

    async def test_jobs_are_triggered_once_all_or_none(self, client: httpx.AsyncClient) -> None:
        counted = (await client.post("/v1/jobs/trigger", json={"name": "*", "dry_run": True})).json()
        assert (counted["count"], counted["names"], counted["runs"]) == (3, ["a", "b", "c"], [])
        asked = {"name": "*", "expected": 3, "idempotency_key": "k"}
        first, second = [(await client.post("/v1/jobs/trigger", json=asked)) for _ in range(2)]
        assert (first.status_code, second.status_code) == (201, 200)
        assert second.json() == first.json() | {"created": False}
        assert sorted(await listed_ids(client)) == sorted(first.json()["runs"])
        assert (await client.post("/v1/jobs/trigger", json={"name": "*", "expected": 2})).status_code == 409
        assert (await client.post("/v1/jobs/trigger", json={"tag": "red", "expected": 1})).json()["names"] == ["b"]

    async def test_jobs_that_others_depend_on_are_not_deleted(self, client: httpx.AsyncClient) -> None:
        assert (await client.post("/v1/jobs/delete", json={"name": "*", "dry_run": True})).json()["count"] == 3
        kept = (await client.post("/v1/jobs/delete", json={"name": "a", "expected": 1})).json()
        assert kept == {"count": 0, "names": [], "kept": ["a"], "dry_run": False}
        gone = (await client.post("/v1/jobs/delete", json={"name": "*", "expected": 3})).json()
        assert (gone["names"], gone["kept"]) == (["a", "b", "c"], [])
        assert (await client.get("/v1/jobs")).json()["items"] == []

    @pytest.mark.parametrize(
        ("body", "field"),
        [({}, "name"), ({"name": "*"}, "expected"), ({"name": "*", "expected": 3, "reason": "x"}, "reason")],
        ids=["nothing", "uncounted", "reason"],
    )
    async def test_invalid_requests_are_refused(
        self, client: httpx.AsyncClient, body: dict[str, Any], field: str
    ) -> None:
        for verb in ("trigger", "delete"):
            answer = await client.post(f"/v1/jobs/{verb}", json=body)
            assert (answer.status_code, answer.json()["field"]) == (422, field), answer.text


async def test_runs_given_by_id_are_cancelled_or_rerun(client: httpx.AsyncClient, store: Store) -> None:
    waiting, other = str(await insert(store)), str(await insert(store))
    done, failed = str(await finish(store, queue="done")), str(await finish(store, RunState.FAILED, queue="done"))
    theirs = str(await insert(store, queue="team/mail"))
    ids = [waiting, done, failed, theirs]
    counted = await change(client, "cancel", ids=ids, dry_run=True)
    assert (counted["count"], [run["id"] for run in counted["sample"]]) == (1, [waiting])
    assert (await change(client, "cancel", ids=ids))["count"] == 1
    assert await listed_ids(client, state="pending") == [other]
    assert (await change(client, "rerun", ids=[done, failed, theirs]))["count"] == 2
    # A request repeated after a lost answer finds nothing left to do.
    assert (await change(client, "rerun", ids=[done, failed, theirs]))["count"] == 0


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"ids": ["0190a6f0-8d3a-7c4e-9b1f-2f6d5c3a1b00"], "queue": "mail"}, "ids"),
        ({"ids": ["0190a6f0-8d3a-7c4e-9b1f-2f6d5c3a1b00"], "all": True}, "ids"),
        ({"ids": ["x"]}, "ids[0]"),
        ({"ids": [], "expected": 1}, "state"),
    ],
)
async def test_ids_cannot_be_combined_with_filters(client: httpx.AsyncClient, body: dict[str, Any], field: str) -> None:
    answer = await client.post("/v1/runs/cancel", json=body)
    assert (answer.status_code, answer.json()["field"]) == (422, field), answer.text


async def test_every_filter_of_lists_selects_runs_for_a_change(client: httpx.AsyncClient, store: Store) -> None:
    chosen = str(await insert(store, priority=5, payload='{"customer": 7}'))
    await insert(store, priority=5, payload='{"customer": 8}')
    counted = await change(client, "cancel", priority=">1", payload=["customer:7"], not_queue="o*", dry_run=True)
    assert [run["id"] for run in counted["sample"]] == [chosen]
    lost = str(await finish(store, RunState.FAILED, queue="other"))
    assert (await change(client, "rerun", reason="error", not_error="x", dry_run=True))["sample"][0]["id"] == lost

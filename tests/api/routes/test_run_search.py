"""Counts, facets and histograms of runs read a bounded number of runs, and say so when there are more."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import httpx
import pytest

from foliot.api.routes import run_search
from foliot.model.ids import first_id_of
from foliot.model.states import RunState
from foliot.store.store import Store
from tests.support.jobs import make_job
from tests.support.runs import WORKER, finish, insert


async def test_facets_count_the_values_of_matching_runs(client: httpx.AsyncClient, store: Store, sql: Any) -> None:
    job = await make_job(store, name="nightly", every="1h")
    for _ in range(2):
        await finish(store, RunState.FAILED, error="no", options='{"tags": ["red", "blue"]}')
    last = await finish(store, options='{"tags": ["red"]}')
    await insert(store, task="simulate", queue="default")
    await sql.execute(
        "update foliot.history set job_id = $1, tick_at = due_at, name = 'nightly' where id = $2", job.id, last
    )

    async def facets(**query: Any) -> dict[str, Any]:
        found = (await client.get("/v1/runs/facets", params=query)).json()
        assert found["more"] is False
        return {
            kind: {value["name"]: value["count"] for value in values} if isinstance(values, list) else values
            for kind, values in found.items()
        }

    found = await facets()
    assert found["count"] == 4
    assert found["state"] == {"failed": 2, "succeeded": 1, "ready": 1}
    assert found["queue"] == {"mail": 3, "default": 1}
    assert found["task"] == {"send_invoice": 3, "simulate": 1}
    assert found["job"] == {"nightly": 1}
    assert found["worker"] == {"claims by hand": 3}
    assert found["error"] == {"ValueError": 2}
    assert found["tag"] == {"red": 3, "blue": 2}
    assert (await facets(tag="blue"))["state"] == {"failed": 2}
    assert (await facets(job="nightly"))["tag"] == {"red": 1}
    # Each value of a facet works as a filter for the runs that it counts.
    page = (await client.get("/v1/runs/facets")).json()
    for kind in ("queue", "task", "job", "worker", "error", "tag", "state"):
        for value in page[kind]:
            counted = (await client.get("/v1/runs/count", params={kind: value["value"]})).json()
            assert counted["count"] == value["count"], (kind, value)
    assert page["worker"][0]["value"] == str(WORKER)


async def test_capped_counts_are_marked(
    client: httpx.AsyncClient, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_search, "COUNT_SCAN_MAX", 3)
    monkeypatch.setattr(run_search, "FACET_SCAN_MAX", 3)
    for _ in range(5):
        await insert(store)
    assert (await client.get("/v1/runs/count")).json()["more"] is True
    facets = (await client.get("/v1/runs/facets")).json()
    assert (facets["count"], facets["more"]) == (3, True)
    assert facets["since"] is not None


async def fill(sql: Any, number: int, begin: datetime, step: timedelta) -> None:
    for place in range(number):
        at = begin + step * place
        await sql.execute(
            """
            insert into foliot.history (id, created_at, due_at, started_at, finished_at, token, attempt, lost,
                priority, state, queue, task)
            values ($1, $2, $2, $2, $2, 1, 1, 0, 0, case when $3 % 4 = 0 then 'failed' else 'succeeded' end, 'mail',
                'send_invoice')
            """,
            UUID(int=first_id_of(at).int | 0x2 << 62), at, place,
        )  # fmt: skip


async def test_a_histogram_counts_by_time_and_state(client: httpx.AsyncClient, sql: Any) -> None:
    begin = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=1)
    await fill(sql, 12, begin, timedelta(minutes=5))
    query: dict[str, Any] = {
        "since": begin.isoformat(),
        "until": (begin + timedelta(hours=1)).isoformat(),
        "buckets": 3,
    }
    found = (await client.get("/v1/runs/histogram", params=query)).json()
    assert [bucket["states"] for bucket in found["buckets"]] == [{"failed": 1, "succeeded": 3}] * 3
    assert [bucket["is_estimate"] for bucket in found["buckets"]] == [False] * 3
    assert found["buckets"][0]["end"] == found["buckets"][1]["begin"]
    only = (await client.get("/v1/runs/histogram", params=query | {"state": "failed"})).json()
    assert [bucket["states"] for bucket in only["buckets"]] == [{"failed": 1}] * 3


async def test_a_full_bucket_is_an_estimate_from_its_first_runs(
    client: httpx.AsyncClient, sql: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=1)
    await fill(sql, 40, begin, timedelta(minutes=1))
    monkeypatch.setattr(run_search, "HISTOGRAM_READ_MAX", 16)
    query: dict[str, Any] = {
        "since": begin.isoformat(),
        "until": (begin + timedelta(minutes=40)).isoformat(),
        "buckets": 2,
    }
    found = (await client.get("/v1/runs/histogram", params=query)).json()
    for bucket in found["buckets"]:
        assert bucket["is_estimate"] is True
        assert 18 <= sum(bucket["states"].values()) <= 24


async def test_a_histogram_of_a_job_goes_by_ticks(client: httpx.AsyncClient, store: Store, sql: Any) -> None:
    job = await make_job(store, name="nightly", every="1h")
    run_id = await finish(store)
    await finish(store)
    tick = datetime.now(UTC) - timedelta(minutes=50)
    await sql.execute("update foliot.history set job_id = $1, tick_at = $2 where id = $3", job.id, tick, run_id)
    found = (await client.get("/v1/runs/histogram", params={"job": "nightly", "since": "1h", "buckets": 2})).json()
    assert [bucket["states"] for bucket in found["buckets"]] == [{"succeeded": 1}, {}]


@pytest.mark.parametrize("buckets", [0, 121])
async def test_the_number_of_buckets_is_limited(client: httpx.AsyncClient, buckets: int) -> None:
    answer = await client.get("/v1/runs/histogram", params={"buckets": buckets})
    assert (answer.status_code, answer.json()["field"]) == (422, "buckets")

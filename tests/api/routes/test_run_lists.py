"""Lists of runs over HTTP: live and finished runs together, filtered, page by page, at a bounded cost."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import httpx
import pytest

from foliot.api import run_filters
from foliot.model.ids import first_id_of, new_id, tick_run_id
from foliot.model.namespace import Namespace
from foliot.model.outcome import Outcome
from foliot.model.states import RunState
from foliot.store.run_lists import RunFilter
from foliot.store.store import Store
from tests.support.jobs import make_job
from tests.support.plans import rows_read
from tests.support.run_lists import listed_ids
from tests.support.runs import WORKER, claim, finish, insert

EVERYTHING = RunFilter(namespace=Namespace()).encoded(None)


async def mixture(store: Store) -> dict[str, str]:
    """One run of each kind, in the order of their creation."""
    made = {
        "succeeded": await finish(store),
        "failed": await finish(store, RunState.FAILED, error="Disk FULL at 7%"),
        "cancelled": await finish(store, RunState.CANCELLED),
        "running": await insert(store),
    }
    await claim(store)
    made["ready"] = await insert(store)
    made["scheduled"] = await insert(store, delay_seconds=3600)
    made["other"] = await insert(store, task="simulate", queue="default", name="a Name")
    return {name: str(run_id) for name, run_id in made.items()}


async def test_live_and_finished_runs_are_one_list_latest_first_in_pages_of_any_size(
    client: httpx.AsyncClient, store: Store
) -> None:
    made = await mixture(store)
    for limit in (1, 2, 3, 7, 50):
        assert await listed_ids(client, limit=limit) == list(made.values())[::-1], limit


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ({"state": "failed"}, ["failed"]),
        ({"state": "running"}, ["running"]),
        ({"state": "completed"}, ["succeeded"]),
        ({"state": "succeeded,cancelled"}, ["cancelled", "succeeded"]),
        ({"state": "pending"}, ["other", "ready"]),
        ({"state": "scheduled"}, ["scheduled"]),
        ({"state": "retrying"}, []),
        ({"state": "ready,failed"}, ["other", "ready", "failed"]),
        ({"queue": "default"}, ["other"]),
        ({"task": "simulate"}, ["other"]),
        ({"task": "simulate", "state": "failed"}, []),
        ({"text": "disk full"}, ["failed"]),
        ({"text": "A NAME"}, ["other"]),
        ({"text": "simul"}, ["other"]),
        ({"text": "%"}, ["failed"]),
        ({"text": "Traceback"}, []),
    ],
)
async def test_filters(client: httpx.AsyncClient, store: Store, query: dict[str, str], wanted: list[str]) -> None:
    made = await mixture(store)
    for limit in (1, 50):
        assert await listed_ids(client, limit=limit, **query) == [made[name] for name in wanted]


async def test_a_run_between_attempts_is_listed_as_retrying_and_not_as_pending(
    client: httpx.AsyncClient, store: Store
) -> None:
    run_id = await insert(store)
    (claimed,) = await claim(store)
    await store.outcomes.retry_runs(
        WORKER, [Outcome(run_id, claimed.token, RunState.SCHEDULED, "error", delay_seconds=60)]
    )
    assert await listed_ids(client, state="retrying") == await listed_ids(client, state="scheduled") == [str(run_id)]
    assert await listed_ids(client, state="pending") == []


async def test_a_run_that_ends_between_pages_is_listed_once(client: httpx.AsyncClient, store: Store) -> None:
    made = [await insert(store) for _ in range(4)]
    first = (await client.get("/v1/runs", params={"limit": 2})).json()
    claims = await claim(store, count=4)
    await store.outcomes.finish_runs(WORKER, [Outcome(one.run_id, one.token, RunState.SUCCEEDED) for one in claims])
    await insert(store)
    rest = await listed_ids(client, after=first["next"])
    assert [item["id"] for item in first["items"]] + rest == [str(run_id) for run_id in made[::-1]]


async def test_since_and_until_bound_the_list_and_old_runs_need_since(
    client: httpx.AsyncClient, store: Store, sql: Any
) -> None:
    old, now = first_id_of(datetime.now(UTC) - timedelta(days=10)), datetime.now(UTC)
    waiting = first_id_of(now - timedelta(days=12))
    young = await finish(store)
    await sql.execute(
        "insert into foliot.history select (jsonb_populate_record(h, jsonb_build_object('id', $1::uuid))).* from "
        "foliot.history h",
        old,
    )
    await insert(store)
    await sql.execute("update foliot.runs set id = $1", waiting)
    assert await listed_ids(client) == [str(young), str(waiting)]
    assert await listed_ids(client, since=(now - timedelta(days=11)).isoformat()) == [str(young), str(old)]
    assert await listed_ids(client, since="11d") == [str(young), str(old)]
    assert await listed_ids(client, since="20d", until="1d") == [str(old), str(waiting)]
    since = datetime.fromisoformat((await client.get("/v1/runs?since=2h")).json()["since"])
    assert timedelta(0) <= since - (now - timedelta(hours=2)) < timedelta(minutes=1)


async def test_a_rare_run_is_found_after_empty_pages(
    client: httpx.AsyncClient, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_filters, "SCAN_MAX", 5)
    rare = await insert(store, task="simulate", queue="default")
    for _ in range(12):
        await insert(store)
    first = (await client.get("/v1/runs", params={"task": "simulate"})).json()
    assert (first["items"], first["next"] is None) == ([], False)
    assert await listed_ids(client, task="simulate") == [str(rare)]


async def test_a_page_that_few_runs_fill_reads_no_more_of_them(
    client: httpx.AsyncClient, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_filters, "FIRST_LOOK", 3)
    asked: list[int] = []
    really = store.run_lists.list_runs

    async def noted(*arguments: Any, scan: int, **more: Any) -> Any:
        asked.append(scan)
        return await really(*arguments, scan=scan, **more)

    monkeypatch.setattr(store.run_lists, "list_runs", noted)
    rare = await insert(store, task="simulate", queue="default")
    common = [str(await insert(store)) for _ in range(12)]
    assert (await client.get("/v1/runs", params={"task": "simulate"})).json()["items"][0]["id"] == str(rare)
    assert asked == [3, run_filters.SCAN_MAX]
    asked.clear()
    task = (await client.get(f"/v1/runs/{common[0]}")).json()["task"]
    assert await listed_ids(client, task=task, limit=2) == common[::-1]
    assert asked[:5] == [3] * 5


async def test_runs_of_a_job_by_name_and_by_id_latest_tick_first(client: httpx.AsyncClient, store: Store) -> None:
    job = await make_job(store, name="nightly", task="send_invoice", every="1h")
    start = datetime(2026, 1, 1, tzinfo=UTC)
    ticks = {
        tick_run_id(job.id, int((start + timedelta(hours=n)).timestamp())): start + timedelta(hours=n) for n in range(5)
    }
    await store.backfill.insert_backfill(job.id, ticks, RunState.READY)
    for claimed in await claim(store, queue="default", count=2):
        await store.outcomes.finish_runs(WORKER, [Outcome(claimed.run_id, claimed.token, RunState.SUCCEEDED)])
    await insert(store)
    wanted = [str(run_id) for run_id in ticks][::-1]
    for reference in ("nightly", str(job.id)):
        assert await listed_ids(client, job=reference, limit=2) == wanted
        assert await listed_ids(client, f"/v1/jobs/{reference}/runs", limit=2) == wanted
        assert await listed_ids(client, f"/v1/jobs/{reference}/runs", state="completed") == wanted[3:]
    assert await listed_ids(client, job="nightly", until="2026-01-01T02:00:00Z") == wanted[3:]
    assert await listed_ids(client, job="nightly", since="2026-01-01T02:00:00+00:00") == wanted[:3]
    await store.jobs.delete_job(job.id)
    assert await listed_ids(client, f"/v1/jobs/{job.id}/runs") == wanted
    assert (await client.get("/v1/jobs/nightly/runs")).status_code == 404


async def test_a_one_off_job_has_a_single_run(client: httpx.AsyncClient, store: Store) -> None:
    run_id = await finish(store)
    await finish(store)
    assert await listed_ids(client, f"/v1/jobs/{run_id}/runs") == [str(run_id)]
    assert (await client.get(f"/v1/jobs/{new_id()}/runs")).status_code == 404


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"state": "faild"}, "state"),
        ({"state": "failed,"}, "state"),
        ({"queue": "\0"}, "queue"),
        ({"task": "x" * 501}, "task"),
        ({"text": "\0"}, "text"),
        ({"job": "\0"}, "job"),
        ({"job": "nothing"}, "job"),
        ({"since": "yesterday"}, "since"),
        ({"since": "2026-01-01T00:00:00"}, "since"),
        ({"since": "1500-01-01T00:00:00Z"}, "since"),
        ({"until": "99999999999d"}, "until"),
        ({"since": "1h", "until": "2h"}, "until"),
        ({"after": "x"}, "after"),
        ({"job": str(UUID(int=7)), "after": "x.y"}, "after"),
        ({"job": str(UUID(int=7)), "after": "9" * 30 + "." + str(UUID(int=7))}, "after"),
        ({"limit": "0"}, "limit"),
        ({"limit": "201"}, "limit"),
        ({"limit": "many"}, "limit"),
    ],
)
async def test_an_invalid_list_request_is_refused(client: httpx.AsyncClient, query: dict[str, str], field: str) -> None:
    answer = await client.get("/v1/runs", params=query)
    assert (answer.status_code, answer.json().get("field")) == (422, field), answer.text
    assert answer.json()["detail"].startswith(f"{field}: ")


async def test_attempts_are_listed_including_the_last(client: httpx.AsyncClient, store: Store) -> None:
    run_id = await insert(store)
    assert (await client.get(f"/v1/runs/{run_id}/attempts")).json() == {"items": []}
    (first,) = await claim(store)
    error = '{"kind":"ValueError","message":"no"}'
    await store.outcomes.retry_runs(
        WORKER, [Outcome(run_id, first.token, RunState.SCHEDULED, "timeout", error=error, output=b"12345")]
    )
    await store.runs.move_runs([run_id], RunState.READY)
    (second,) = await claim(store)
    running = (await client.get(f"/v1/runs/{run_id}/attempts")).json()["items"]
    assert [(one["attempt"], one["outcome"], one["output_bytes"]) for one in running] == [
        (1, "timeout", 5),
        (2, "running", None),
    ]
    assert running[0]["error"] == {"kind": "ValueError", "message": "no"}
    assert running[0]["worker_id"] == str(WORKER)
    assert running[0]["duration_seconds"] > 0
    assert running[1]["duration_seconds"] is None
    await store.outcomes.finish_runs(WORKER, [Outcome(run_id, second.token, RunState.SUCCEEDED, output=b"")])
    ended = (await client.get(f"/v1/runs/{run_id}/attempts")).json()["items"]
    assert [(one["attempt"], one["outcome"], one["output_bytes"]) for one in ended] == [
        (1, "timeout", 5),
        (2, "succeeded", 0),
    ]


async def test_a_run_cancelled_between_attempts_has_no_further_attempt(client: httpx.AsyncClient, store: Store) -> None:
    run_id = await insert(store)
    (first,) = await claim(store)
    await store.outcomes.retry_runs(
        WORKER, [Outcome(run_id, first.token, RunState.SCHEDULED, "error", delay_seconds=60)]
    )
    await client.post(f"/v1/runs/{run_id}/cancel")
    assert [one["outcome"] for one in (await client.get(f"/v1/runs/{run_id}/attempts")).json()["items"]] == ["error"]
    for path in (f"/v1/runs/{new_id()}/attempts", "/v1/runs/x/attempts"):
        assert (await client.get(path)).status_code == 404


class TestPageCost:
    @pytest.fixture
    async def many(self, sql: Any) -> None:
        await sql.execute(
            """
            insert into foliot.history (
                id, created_at, due_at, finished_at, token, attempt, lost, priority, state, queue, task, worker_id,
                    options
            )
            select ('01990000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, now(), now(),
                now() + n % 5 * interval '1 day', 1, 1,
                0, 0,
                case when n % 1000 = 0 then 'failed' else 'succeeded' end, 'q', 't', gen_random_uuid(),
                case when n % 100 = 0 then '{"tags": ["a"]}'::jsonb end
            from generate_series(1, 20000) n
            """
        )
        await sql.execute(
            """
            insert into foliot.runs (id, created_at, due_at, rank, state, queue, task, worker_id)
            select gen_random_uuid(), now(), now(), n, case when n % 1000 = 0 then 'running' else 'scheduled' end, 'q',
                't',
                case when n % 1000 = 0 then gen_random_uuid() end
            from generate_series(1, 20000) n
            """
        )
        await sql.execute("analyze foliot.history; analyze foliot.runs")

    @pytest.mark.usefixtures("many")
    @pytest.mark.parametrize("where", ["all", "live", "history", "failed", "running", "tagged"])
    async def test_a_list_of_runs_reads_a_page_and_not_the_tables(self, sql: Any, where: str) -> None:
        first, since = UUID(int=0), datetime.now(UTC) - timedelta(days=1)
        last = UUID(int=(1 << 128) - 1)
        latest = (where, last, first, first, 51, since, None, False, EVERYTHING, None, 1.0, 51)
        assert 20 <= await rows_read(sql, "run_lists", "list_runs", *latest) < 1000
        oldest = (where, first, first, first, last, 51, since, None, False, EVERYTHING, None, 1.0, 51)
        assert 20 <= await rows_read(sql, "run_lists", "list_oldest_runs", *oldest) < 1000
        counted = (where, last, first, first, 51, since, None, False, EVERYTHING, None, since, since, 20)
        assert 20 <= await rows_read(sql, "run_lists", "count_wanted_runs", *counted) < 1000

    @pytest.mark.usefixtures("many")
    @pytest.mark.parametrize("where", ["all", "live", "history", "failed", "tagged", "job"])
    async def test_a_histogram_reads_a_part_of_each_bucket(self, sql: Any, where: str) -> None:
        bounds = [UUID(int=0x01990000_0000_7000_8000_000000000000 + 0x1000 * number) for number in range(6)]
        times = [datetime(2026, 1, 1, tzinfo=UTC)] * 5
        asked = (where, bounds[:-1], bounds[1:], times, times, times, 20, False, EVERYTHING, UUID(int=7))
        assert await rows_read(sql, "run_lists", "count_runs_by_time", *asked) < 1000

    @pytest.mark.usefixtures("many")
    async def test_a_list_of_children_reads_a_page(self, sql: Any) -> None:
        await sql.execute(
            "update foliot.history set parent_id = $1, step = id::text where right(id::text, 2) = '07'", UUID(int=7)
        )
        await sql.execute("vacuum analyze foliot.history")
        first, since = UUID(int=0), datetime.now(UTC) - timedelta(days=1)
        last = UUID(int=(1 << 128) - 1)
        arguments = ("children", last, first, first, 51, since, UUID(int=7), False, EVERYTHING, None, 1.0, 51)
        assert 51 <= await rows_read(sql, "run_lists", "list_runs", *arguments) < 1000

    @pytest.mark.usefixtures("many")
    async def test_a_list_of_the_runs_of_a_job_reads_a_page(self, sql: Any) -> None:
        await sql.execute(
            "update foliot.history set job_id = $1, tick_at = created_at + ('x' || right(id::text, 8))::bit(32)::int "
            "* interval '1 s'",
            UUID(int=7),
        )
        await sql.execute("vacuum analyze foliot.history")
        since, until = datetime(2026, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
        arguments = (UUID(int=7), until, UUID(int=0), 51, since, False, EVERYTHING, None, 1.0, 51)
        assert 51 <= await rows_read(sql, "run_lists", "list_job_runs", *arguments) < 1000

    @pytest.mark.usefixtures("many")
    async def test_a_list_of_dead_letters_reads_a_page(self, sql: Any) -> None:
        since, until = datetime.now(UTC) - timedelta(days=1), datetime.now(UTC) + timedelta(days=9)
        listed = (since, until, UUID(int=0), 11, None, None, None, False, False, 11, "default")
        assert 11 <= await rows_read(sql, "dead_letters", "list_dead_letters", *listed) < 100
        grouped = (since, until, 10, None, None, None, False, False, 10, "default", 5, None)
        assert 10 <= await rows_read(sql, "dead_letters", "group_dead_letters", *grouped) < 100
